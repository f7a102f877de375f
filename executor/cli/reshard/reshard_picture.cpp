// SPDX-License-Identifier: Apache-2.0
// The picture of `rheo reshard --svg`: for each round a matrix with a row for each sender and a column for each receiver, the darker the more bytes, with
// bars of what each sends and receives in all of the round. Pointing at a cell shows its bytes and tensors.

#include "executor/cli/reshard/reshard_input.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/cli/size_text.hpp"
#include "rheo/trace/svg.hpp"

namespace rheo::cli {

namespace {

constexpr int most_lines = 128;  ///< of a matrix; beyond, lines are nodes or groups of ranks
constexpr std::size_t most_rounds = 24;
constexpr double side = 260.0;  ///< of a matrix
constexpr double bar = 36.0;    ///< room for the longest bar
constexpr double margin = 40.0;
constexpr double panel = side + bar + margin + 20.0;
constexpr double top = 60.0;

struct cell {
    bytes size{};
    std::set<std::string> tensors{};
};

struct round_matrix {
    std::map<std::pair<int, int>, cell> cells{};  ///< sender, receiver
    std::map<int, bytes> sent{};
    std::map<int, bytes> received{};
};

bytes most(std::map<int, bytes> const& sums)
{
    bytes largest{};
    for (auto const& [line, size] : sums) {
        largest = std::max(largest, size);
    }
    return largest;
}

/// From white to a dark blue.
std::string shade(bytes size, bytes largest)
{
    auto const share = static_cast<double>(size.count) / static_cast<double>(std::max<std::int64_t>(1, largest.count));
    auto const mix = [&](int from, int to) { return from + static_cast<int>((to - from) * (0.15 + 0.85 * share)); };
    return fmt::format("#{:02x}{:02x}{:02x}", mix(255, 20), mix(255, 60), mix(255, 130));
}

std::string title_of(std::string const& line, std::pair<int, int> way, cell const& c)
{
    auto text = fmt::format("{} {} to {} {}: {}, {} tensors: ", line, way.first, line, way.second, size_text(c.size), c.tensors.size());
    std::size_t shown = 0;
    for (auto const& name : c.tensors) {
        if (shown++ == 4) {
            text += ", ...";
            break;
        }
        text += (shown == 1 ? "" : ", ") + name;
    }
    return text;
}

svg_point point(double x, double y) { return {{x}, {y}}; }

void draw_round(svg_picture<>& picture, round_matrix const& m, int lines, std::string const& line, double x, double y)
{
    auto const width = side / lines;
    bytes largest{};
    for (auto const& [way, c] : m.cells) {
        largest = std::max(largest, c.size);
    }
    picture.box(point(x, y), point(x + side, y + side), "#f4f4f4");
    for (auto const& [way, c] : m.cells) {
        auto const left = x + way.second * width;
        auto const upper = y + way.first * width;
        picture.box(point(left, upper), point(left + width, upper + width), shade(c.size, largest), title_of(line, way, c));
    }
    auto const most_sent = std::max(bytes{1}, std::max(most(m.sent), most(m.received)));
    auto const length = [&](bytes size) { return bar * static_cast<double>(size.count) / static_cast<double>(most_sent.count); };
    for (auto const& [from, size] : m.sent) {
        picture.box(point(x + side + 4, y + from * width), point(x + side + 4 + length(size), y + (from + 1) * width), "#e39a4f",
                    fmt::format("{} {} sends {}", line, from, size_text(size)));
    }
    for (auto const& [to, size] : m.received) {
        picture.box(point(x + to * width, y + side + 4), point(x + (to + 1) * width, y + side + 4 + length(size)), "#5aa469",
                    fmt::format("{} {} receives {}", line, to, size_text(size)));
    }
    auto const step = std::max(1, lines / 16);
    for (int i = 0; i < lines; i += step) {
        auto const middle = (i + 0.5) * width;
        picture.text(point(x - 4, y + middle + 4), std::to_string(i), svg_anchor::end);
        picture.text(point(x + middle, y - 4), std::to_string(i), svg_anchor::middle);
    }
}

}  // namespace

std::string picture_of(reshard_plan const& plan, std::string const& title, int node_size)
{
    int ranks = 1;
    for (auto const& t : plan.transfers) {
        ranks = std::max({ranks, t.from.value + 1, t.to.value + 1});
    }
    auto group = ranks > most_lines ? node_size : 1;
    group = std::max(group, (ranks + most_lines - 1) / most_lines);
    std::string const line = group == 1 ? "rank" : group == node_size ? "node" : fmt::format("ranks by {}:", group);
    auto const lines = (ranks + group - 1) / group;
    std::map<int, round_matrix> rounds;
    for (auto const& t : plan.transfers) {
        auto const from = t.from.value / group;
        auto const to = t.to.value / group;
        auto& m = rounds[t.round];
        auto& c = m.cells[{from, to}];
        c.size += t.size;
        c.tensors.emplace(plan.tensors[at(t.tensor)].name.view());
        m.sent[from] += t.size;
        m.received[to] += t.size;
    }
    auto const shown = std::min(rounds.size(), most_rounds);
    auto const across = std::max<std::size_t>(1, std::min<std::size_t>(shown, 4));
    auto const down = (shown + across - 1) / across;
    svg_picture<> picture{
        point(std::max(900.0, static_cast<double>(across) * panel + margin), top + std::max<double>(1, static_cast<double>(down)) * (panel + 30))};
    picture.text(point(margin, 20), title);
    picture.text(point(margin, 36), rounds.empty() ? "nothing moves"
                                                   : fmt::format("rows send, columns receive; {} in {} round{}{}", size_text(plan.certificate.moved.value),
                                                                 rounds.size(), rounds.size() == 1 ? "" : "s",
                                                                 shown < rounds.size() ? fmt::format(", of which the first {} are drawn", shown) : ""));
    std::size_t k = 0;
    for (auto const& [number, m] : rounds) {
        if (k == shown) {
            break;
        }
        auto const x = margin + static_cast<double>(k % across) * panel;
        auto const y = top + 30 + static_cast<double>(k / across) * (panel + 30);
        bytes moved{};
        for (auto const& [from, size] : m.sent) {
            moved += size;
        }
        picture.text(point(x, y - 18), fmt::format("round {}: {}", number, size_text(moved)));
        draw_round(picture, m, lines, line, x, y);
        ++k;
    }
    return picture.str();
}

}  // namespace rheo::cli
