// SPDX-License-Identifier: Apache-2.0
#include "executor/records/metrics_log.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "executor/config/text_file.hpp"
#include "executor/records/record_line.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::string_view repeated_kinds[] = {"step", "redo", "evaluation"};

/// What a record is about.
template <class Json>
std::string key_of(Json const& record)
{
    auto const number = [&](char const* name) { return record.value(name, std::int64_t{0}); };
    auto const kind = record.value("kind", std::string{});
    if (kind == "step" || kind == "redo") {
        return fmt::format("{} {} {}", kind, number("step"), number("attempt"));
    }
    if (kind == "recovery") {  // a generation that began with a loss may reassign its places later
        return fmt::format("{} {} {} {}", kind, number("generation"), number("step"), number("attempt"));
    }
    if (kind == "evaluation" || kind == "checkpoint") {
        return fmt::format("{} {}", kind, number("step"));
    }
    if (kind == "safe") {
        return fmt::format("{} {} {}", kind, number("step"), record.value("level", std::string{}));
    }
    if (kind == "start") {
        return fmt::format("{} {}", kind, number("generation"));
    }
    return kind == "note" ? "note " + record.value("message", std::string{}) : kind;
}

/// A line of the file as a record that was undone; none when a start from this step does not repeat it.
std::optional<std::string> undone(std::string_view line, step_id from)
{
    for (auto const kind : repeated_kinds) {
        auto const head = fmt::format("{{\"kind\":\"{}\",\"step\":", kind);
        std::int64_t step = 0;
        if (line.starts_with(head) && std::from_chars(line.data() + head.size(), line.data() + line.size(), step).ec == std::errc{} && step >= from.value) {
            return fmt::format("{{\"kind\":\"undone\",\"was\":\"{}\",\"step\":{}", kind, line.substr(head.size()));
        }
    }
    return std::nullopt;
}

std::string whole_text(std::string const& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

void metrics_log::add(nlohmann::ordered_json const& record, std::string people)
{
    line added{key_of(record), record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n', std::move(people)};
    auto const kind = record.value("kind", std::string{});
    if (std::find(std::begin(repeated_kinds), std::end(repeated_kinds), kind) != std::end(repeated_kinds)) {
        added.repeated_from = record.value("step", std::int64_t{0});
    }
    keep(std::move(added));
}

void metrics_log::start(nlohmann::ordered_json const& record, step_id from)
{
    std::erase_if(kept_, [&](line const& l) { return l.repeated_from >= from.value; });
    keep({key_of(record), record.dump() + '\n', {}, -1, from});
}

void metrics_log::keep(line kept)
{
    kept_.push_back(std::move(kept));
    if (writes_ && !file_ &&
        std::chrono::steady_clock::now() - opened_ > std::chrono::seconds{10}) {  // there may be room, or the folder may have its name again
        writes_ = false;
        begin_to_write();
    } else if (writes_) {
        write(kept_.back());
    }
    if (kept_.size() > most_lines) {
        kept_.pop_front();
    }
}

void metrics_log::write(line const& entry)
{
    if (entry.undoes) {
        undo(*entry.undoes);
        has_end_ = false;
    }
    if (entry.key == "end" && std::exchange(has_end_, true)) {
        return;  // the last writer died behind it
    }
    file_.append(entry.text);
}

void metrics_log::undo(step_id from)
{
    std::string text;
    bool any = false;
    std::istringstream lines{whole_text(path_)};
    for (std::string l; std::getline(lines, l);) {
        auto changed = undone(l, from);
        any = any || changed;
        text += (changed ? *changed : l) + '\n';
    }
    if (!any) {
        return;
    }
    try {
        write_whole(path_, text);
        file_ = appended_file{path_};    // it is another one now
    } catch (exit_error const& error) {  // they stay as they are; a training does not end for it
        fmt::print(stderr, "rheo: {}\n", error.what());
    }
}

metrics_log::tail metrics_log::read_tail()
{
    tail result;
    auto const text = end_of_file(path_, most_bytes);
    if (!text.empty() && text.back() != '\n') {
        file_.append("\n");  // its writer was killed within a line
    }
    result.is_cut = std::ifstream(path_, std::ios::binary | std::ios::ate).tellg() > most_bytes;
    std::istringstream lines{text};
    std::string strange;  // of another program; a training does not end for it
    for (std::string l; std::getline(lines, l);) {
        try {
            auto const record = record_of(l);
            if (!record) {
                continue;
            }
            if (record->value("kind", std::string{}) == "start") {
                result = {};
            }
            result.keys.push_back(key_of(*record));
        } catch (json_error const& error) {
            strange = fmt::format("'{}': the line \"{}\" {}, and is left as it is", path_, l.substr(0, 60), error.what());
        }
    }
    if (!strange.empty()) {
        fmt::print(stderr, "rheo: {}\n", strange);
    }
    return result;
}

std::vector<std::string> metrics_log::begin_to_write()
{
    std::vector<std::string> unread;
    if (std::exchange(writes_, true)) {
        return unread;
    }
    opened_ = std::chrono::steady_clock::now();
    try {
        file_ = appended_file{path_};
    } catch (exit_error const& error) {
        fmt::print(stderr, "rheo: {}; training continues, and records are written once that works again\n", error.what());
        return unread;
    }
    auto const end = read_tail();
    std::map<std::string, int> there;
    for (auto const& key : end.keys) {
        ++there[key];
    }
    has_end_ = there.contains("end");
    // Records in front of the last start in the file are there: who wrote it had written them.
    auto first = kept_.begin();
    if (!end.keys.empty()) {
        auto const known = std::find_if(kept_.begin(), kept_.end(), [&](line const& l) { return l.undoes && l.key == end.keys.front(); });
        first = known == kept_.end() ? first : known;
    }
    if (end.is_cut) {  // and so are those in front of the part that was read
        auto const until = std::find_if(first, kept_.end(), [&](line const& l) { return l.undoes && !there.contains(l.key); });
        auto const known = std::find_if(first, until, [&](line const& l) { return there.contains(l.key); });
        first = known == until ? first : known;
    }
    for (; first != kept_.end(); ++first) {
        if (auto const found = there.find(first->key); found != there.end() && found->second > 0) {
            --found->second;
            continue;
        }
        if (first->undoes) {
            there.clear();
        }
        write(*first);
        if (!first->people.empty()) {
            unread.push_back(first->people);
        }
    }
    return unread;
}

void metrics_log::stop_writing()
{
    writes_ = false;
    file_ = appended_file{};
}

}  // namespace rheo::inline v0
