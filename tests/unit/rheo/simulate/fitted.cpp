// SPDX-License-Identifier: Apache-2.0
// Lines through measured rows: a published table, tables made of lines, and what is refused.
#include "rheo/simulate/network/fitted.hpp"

#include <limits>
#include <string>
#include <vector>

#include "rheo/simulate/network/arrivals.hpp"
#include "rheo/simulate/network/fitted_path.hpp"
#include "support/public_vectors.hpp"

using namespace rheo;

namespace {

std::vector<measured_time> sampled(array_view<fitted_line const> lines, double off)
{
    std::vector<measured_time> rows;
    double sign = 1.0;
    for (std::int64_t size = 16; size <= (std::int64_t{1} << 32); size *= 2) {
        rows.push_back({{size}, fitted_time(lines, {size}) * (1.0 + sign * off)});
        sign = -sign;
    }
    return rows;
}

std::vector<measured_time> every_second(std::vector<measured_time> const& rows, std::size_t first)
{
    std::vector<measured_time> result;
    for (auto k = first; k < rows.size(); k += 2) {
        result.push_back(rows[k]);
    }
    return result;
}

}  // namespace

TEST_CASE("fitted: held rows of a public table are met within 5 %")
{
    test::vector_table const table{test::read_vectors("nccl/measured_a100_8.csv")};
    std::vector<measured_time> fit;
    std::vector<measured_time> held;
    for (auto const& line : table.lines) {
        auto& rows = table.cell(line, "use") == "fit" ? fit : held;
        rows.push_back({{table.integer(line, "bytes")}, microseconds(table.number(line, "time_us"))});
    }
    if (table.lines.empty()) {
        return;
    }
    auto const lines = fit_lines(fit);
    REQUIRE(lines);
    CHECK(fitted_error(*lines, held) < 0.05);
    auto const other = fit_lines(held);  // and the other way round
    REQUIRE(other);
    CHECK(fitted_error(*other, fit) < 0.05);
}

TEST_CASE("fitted: tables made of lines give these lines back")
{
    std::vector<fitted_line> const one{{microseconds(5.0), 1e-10}};
    std::vector<fitted_line> const two{{microseconds(20.0), 1e-10}, {microseconds(80.0), 5e-12}};
    std::vector<fitted_line> const three{{microseconds(20.0), 1e-9}, {microseconds(50.0), 1e-10}, {microseconds(400.0), 1e-11}};
    for (auto const& lines : {one, two, three}) {
        auto const rows = sampled(lines, 0.0);
        auto const fit = fit_lines(rows);
        REQUIRE(fit);
        REQUIRE(fit->size() == lines.size());
        for (std::size_t k = 0; k < lines.size(); ++k) {
            CHECK((*fit)[k].latency.count == Approx(lines[k].latency.count));
            CHECK((*fit)[k].seconds_per_byte == Approx(lines[k].seconds_per_byte));
        }
        // measured 3 % off, up and down: what is held back is about as far off
        auto const rough = sampled(lines, 0.03);
        CHECK(fitted_error(*fit_lines(every_second(rough, 0)), every_second(rough, 1)) < 0.08);
    }
}

TEST_CASE("fitted: few rows and flat ones have a fit, too")
{
    std::vector<measured_time> const alone{{{100}, microseconds(3.0)}};
    CHECK(fitted_time(*fit_lines(alone), {1 << 20}) == microseconds(3.0));
    std::vector<measured_time> const falling{{{1}, microseconds(3.0)}, {{2}, microseconds(2.0)}, {{3}, microseconds(1.0)}};
    CHECK(fitted_time(*fit_lines(falling), {2}) == microseconds(2.0));
    std::vector<measured_time> const pair{{{0}, microseconds(3.0)}, {{10}, microseconds(4.0)}};
    CHECK(fitted_time(*fit_lines(pair), {20}).count == Approx(5e-6));
}

TEST_CASE("fitted: what cannot be is refused in a sentence")
{
    CHECK(fit_lines({}).error() == "a fit needs at least one measured row");
    for (double const time : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        measured_time const row[] = {{{1}, {time}}};
        CHECK(fit_lines(row).error() == "measured row 0: expected at least 0 bytes and a finite time above zero");
    }
    measured_time const twice[] = {{{8}, {1.0}}, {{8}, {1.0}}};
    CHECK(fit_lines(twice).error() == "measured row 1 of 8 bytes: expected more bytes than in the row before it");
}

TEST_CASE("fitted: messages on a network take the times of the lines")
{
    std::vector<fitted_line> const lines{{{1e-6}, 4e-9}, {{1e-4}, 1e-10}};
    fitted_path const measured{{{1e-5}, {1e9}}, lines};
    fitted_path const plain{{{1e-5}, {1e9}}};
    std::vector<network_level<fitted_path>> const levels{{2, network_topology::switched, measured}, {3, network_topology::ring, plain}};
    array_view<network_level<fitted_path> const> const view{levels};
    for (std::int64_t const size : {0, 1000, 100'000, 10'000'000}) {
        std::vector<timed_message<>> const messages{{rank_id{0}, rank_id{1}, {size}}, {rank_id{1}, rank_id{0}, {size}}, {rank_id{0}, rank_id{4}, {size}}};
        auto const times = *arrivals<fitted_network>(view, messages);
        CHECK(times[0].count == Approx(fitted_time(lines, {size}).count));
        CHECK(times[1] == times[0]);  // nobody shares
        CHECK(times[2].count == Approx(1e-5 + static_cast<double>(size) / 1e9));
        rank_links<fitted_path> slow{view};
        slow(0, rank_id{1}) = slowed_link(measured, 3.0);
        auto const slowed = *arrivals<fitted_network>(view, messages, &slow);
        auto three_times = lines;
        for (auto& line : three_times) {
            line.seconds_per_byte *= 3.0;
        }
        CHECK(slowed[0].count == Approx(fitted_time(three_times, {size}).count));
        slow(0, rank_id{1}) = {{{1e-3}, {1e6}}};  // a node with a link of its own, that was not measured
        CHECK((*arrivals<fitted_network>(view, messages, &slow))[0].count == Approx(1e-5 + 1e-3 + static_cast<double>(size) / 1e6));
    }
    std::vector<network_level<fitted_path>> const wrong{{2, network_topology::full, {{{0.0}, {1.0}}, {{{-1.0}, 0.0}}}}};
    CHECK(network_fault(array_view<network_level<fitted_path> const>{wrong}).find("rate or latency cannot be") != std::string::npos);
}
