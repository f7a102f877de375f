// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/levels/promotion.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/checkpoint/checkpoint_manifest.hpp"
#include "executor/checkpoint/checkpoint_publish.hpp"
#include "executor/checkpoint/levels/local_folder.hpp"
#include "executor/checkpoint/manage/verify.hpp"
#include "executor/checkpoint/part_files.hpp"
#include "executor/state/collectives.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/version.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

/// What was written between two steps in one generation.
struct candidate {
    step_id step;
    generation_id generation;

    friend auto operator<=>(candidate const&, candidate const&) = default;
};

/// origin -> positions of members whose node has its part, or a copy; the same on all members.
using holders_of_parts = std::map<rank_id, std::vector<std::size_t>>;

/// All parts on all nodes, the newest first.
std::map<candidate, holders_of_parts, std::greater<>> gather_parts(mpi::messenger& messages, fs::path const& local, std::optional<step_id> newer_than)
{
    std::vector<std::int64_t> words;
    for (auto const& part : local_parts(local)) {
        if (!newer_than || part.step > *newer_than) {
            words.insert(words.end(), {part.step.value, part.generation.value, part.origin.value});
        }
    }
    std::map<candidate, holders_of_parts, std::greater<>> all;
    auto const everywhere = all_gather(messages, words);
    for (std::size_t position = 0; position < everywhere.size(); ++position) {
        auto const& theirs = everywhere[position];
        for (std::size_t i = 0; i + 2 < theirs.size(); i += 3) {
            candidate const which{{theirs[i]}, {static_cast<std::int32_t>(theirs[i + 1])}};
            all[which][{static_cast<std::int32_t>(theirs[i + 2])}].push_back(position);
        }
    }
    return all;
}

/// A part that this rank has read and found right.
struct served_part {
    rank_id origin;
    part_texts texts;
};

/// @throws exit_error: which bytes are bad
part_texts read_and_verify(fs::path const& folder, rank_id origin)
{
    auto texts = texts_in(folder, origin);
    auto const part = parse_part(texts.manifest, (folder / part_file(origin)).string());
    auto about = parse_state(texts.about, (folder / about_file(origin)).string()).about;
    about.files = part.files;
    if (auto const checked = verify_files(folder, about); !checked.found.empty()) {
        auto const& bad = checked.found.front();
        throw exit_error{exit_code::bad_data,
                         fmt::format("'{}': bytes {} to {} are not what was written ({})", bad.file.string(), bad.begin, bad.end, bad.what)};
    }
    return texts;
}

/// Who serves each part: of those that have it, one that serves fewest so far.
std::map<rank_id, std::size_t> deal_serving(holders_of_parts const& holders)
{
    std::map<rank_id, std::size_t> servers;
    std::map<std::size_t, int> loads;
    for (auto const& [origin, positions] : holders) {
        auto const has_less = [&](std::size_t a, std::size_t b) { return std::pair{loads[a], a} < std::pair{loads[b], b}; };
        auto const least = *std::min_element(positions.begin(), positions.end(), has_less);
        ++loads[least];
        servers[origin] = least;
    }
    return servers;
}

/// What all members know of a candidate whose parts were read by those that serve them.
struct found_parts {
    std::vector<served_part> mine{};
    std::vector<std::string> bad{};  ///< why parts were taken from elsewhere, or could not be
    bool whole = false;
    checkpoint_manifest manifest{};  ///< when it is
};

/// Texts of several parts as one, each with its length before it.
void add_text(std::string& all, std::string const& text) { all += fmt::format("{} {}", text.size(), text); }

std::vector<std::string> texts_of(std::string const& all)
{
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < all.size();) {
        auto const space = all.find(' ', i);
        auto const size = std::stoull(all.substr(i, space - i));
        texts.push_back(all.substr(space + 1, size));
        i = space + 1 + size;
    }
    return texts;
}

/// This rank's reading of the parts that are dealt to it.
struct reading {
    std::string texts{};              ///< manifest and about of those that are right
    std::string reason{};             ///< why others are not
    std::vector<std::int64_t> bad{};  ///< whose they are
};

reading read_dealt(fs::path const& folder, std::map<rank_id, std::size_t> const& servers, mpi::messenger& messages, std::vector<served_part>& served)
{
    reading mine;
    auto const self = static_cast<std::size_t>(messages.members().position_of(messages.members().self));
    for (auto const& [origin, server] : servers) {
        if (server != self) {
            continue;
        }
        try {
            auto texts = read_and_verify(folder, origin);
            add_text(mine.texts, texts.manifest);
            add_text(mine.texts, texts.about);
            served.push_back({origin, std::move(texts)});
        } catch (exit_error const& error) {
            mine.bad.push_back(origin.value);
            mine.reason += fmt::format("{}{}", mine.reason.empty() ? "" : "; ", error.what());
        }
        messages.beat();
    }
    return mine;
}

/// Who else has the parts that some found bad.
holders_of_parts without(holders_of_parts const& holders, std::vector<std::vector<std::int64_t>> const& bad)
{
    holders_of_parts left;
    for (std::size_t position = 0; position < bad.size(); ++position) {
        for (auto const word : bad[position]) {
            rank_id const origin{static_cast<std::int32_t>(word)};
            auto others = holders.at(origin);
            std::erase(others, position);
            if (!others.empty()) {
                left[origin] = std::move(others);
            }
        }
    }
    return left;
}

/// Reads the parts of a candidate, each where it is dealt to; a bad one from the next who has it.
found_parts read_parts(mpi::messenger& messages, fs::path const& folder, holders_of_parts holders)
{
    found_parts found;
    std::vector<part_manifest> parts;
    std::optional<checkpoint_manifest> about;
    while (!holders.empty()) {
        auto const mine = read_dealt(folder, deal_serving(holders), messages, found.mine);
        for (auto const& reason : gather_texts(messages, mine.reason)) {
            found.bad.insert(found.bad.end(), reason.empty() ? 0 : 1, reason);
        }
        for (auto const& of_rank : gather_texts(messages, mine.texts)) {
            auto const texts = texts_of(of_rank);
            for (std::size_t i = 0; i + 1 < texts.size(); i += 2) {
                parts.push_back(parse_part(texts[i], "part"));
                about = about ? about : parse_state(texts[i + 1], "about").about;
            }
        }
        holders = without(holders, all_gather(messages, mine.bad));
    }
    if (!about) {
        return found;
    }
    found.manifest = *about;
    std::sort(parts.begin(), parts.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
    for (auto& part : parts) {
        found.manifest.files.insert(found.manifest.files.end(), part.files.begin(), part.files.end());
    }
    try {
        (void)parse_manifest(format_manifest(found.manifest), "the parts together");
        found.whole = true;
    } catch (exit_error const& error) {
        found.bad.emplace_back(error.what());
    }
    return found;
}

/// @returns why not; empty: this rank's parts are in the run folder
std::string copy_parts(fs::path const& run_folder, fs::path const& folder, candidate which, std::vector<served_part> const& parts, mpi::messenger& messages)
{
    try {
        for (auto const& one : parts) {
            growing_part source{folder, one.origin, sizes_in(folder, one.origin)};
            source.finished(one.texts);
            copy_part(source, unfinished_folder(run_folder, which.step, which.generation), {[](checkpoint_point) {}, [&] { messages.beat(); }});
        }
        return {};
    } catch (exit_error const& error) {
        return error.what();
    }
}

std::string publish(fs::path const& run_folder, candidate which, found_parts const& found, std::vector<rank_id> const& origins)
{
    try {
        auto const& m = found.manifest;
        return publish_parts(run_folder, {which.step, which.generation, origins, m.tensors, m.fingerprint, m.config, m.data_digest, 0},
                             [](checkpoint_point) {});
    } catch (exit_error const& error) {
        remove_unfinished(run_folder, which.step, which.generation);
        return error.what();
    }
}

}  // namespace

promotion promote_newest(mpi::messenger& messages, fs::path const& run_folder, fs::path const& local, std::optional<step_id> newer_than)
{
    promotion result;
    auto const& members = messages.members();
    bool const first = members.members.front() == members.self;
    for (auto const& [which, holders] : gather_parts(messages, local, newer_than)) {
        auto const folder = local_step_folder(local, which.step, which.generation);
        auto const found = read_parts(messages, folder, holders);
        auto const name = fmt::format("step {} on node-local storage", which.step.value);
        if (!found.whole) {
            result.notes.push_back(fmt::format("the checkpoint of {} is not whole, so it is not used: {}", name,
                                               found.bad.empty() ? std::string{"a part is missing"} : fmt::format("{}", fmt::join(found.bad, "; "))));
            continue;
        }
        std::vector<rank_id> origins;
        for (auto const& [origin, unused] : holders) {
            origins.push_back(origin);
        }
        auto error = copy_parts(run_folder, folder, which, found.mine, messages);
        auto const errors = gather_texts(messages, error);
        auto const failed = std::find_if(errors.begin(), errors.end(), [](auto const& e) { return !e.empty(); });
        if (failed == errors.end() && first) {
            error = publish(run_folder, which, found, origins);
        }
        auto text = failed != errors.end() ? *failed : error;
        broadcast(messages, text);
        if (!text.empty()) {
            result.error = fmt::format("the checkpoint of {} cannot be copied to the run folder: {}", name, text);
            return result;
        }
        result.step = which.step;
        auto const copies = std::count_if(holders.begin(), holders.end(), [&](auto const& part) {
            auto const& has = part.second;
            return members.has(part.first) && std::find(has.begin(), has.end(), static_cast<std::size_t>(members.position_of(part.first))) == has.end();
        });
        result.notes.push_back(
            fmt::format("the checkpoint of {} was newer than {}, so it was copied to the run folder: {} part{}{}{}", name,
                        newer_than ? fmt::format("step {}, the newest that was published", newer_than->value) : std::string{"any that was published"},
                        origins.size(), origins.size() == 1 ? "" : "s", copies > 0 ? fmt::format(", {} of them from copies on other nodes", copies) : "",
                        found.bad.empty() ? std::string{} : fmt::format(" ({})", fmt::join(found.bad, "; "))));
        return result;
    }
    return result;
}

}  // namespace rheo::inline v0
