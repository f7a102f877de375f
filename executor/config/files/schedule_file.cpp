// SPDX-License-Identifier: Apache-2.0
#include "executor/config/files/schedule_file.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "executor/config/config.hpp"
#include "rheo/schedule/core/stage_placement.hpp"
#include "rheo/schedule/draw/text_schedule.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/families/written_schedule.hpp"

namespace rheo::inline v0 {

namespace {

result<any_schedule> read_schedule_file(std::string const& path)
{
    static std::mutex one_at_a_time;
    static std::map<std::string, std::unique_ptr<written_schedule>> known;
    std::lock_guard const lock{one_at_a_time};
    if (auto const found = known.find(path); found != known.end()) {
        return any_schedule{static_cast<detail::schedule_family const&>(*found->second)};
    }
    std::ifstream file{path, std::ios::binary};
    if (!file || !std::filesystem::is_regular_file(path)) {
        return failure{"'" + path + "': no such file, and no schedule is called so"};
    }
    auto read = parse_schedule_text(std::string{std::istreambuf_iterator<char>{file}, {}});
    if (!read) {
        return failure{path + ": " + read.error()};
    }
    if (position_count(placement_of(read->program)) != static_cast<int>(read->program.rows.size()) || in_order_of_stages(read->program).rows.back().empty()) {
        return failure{path + ": a row has no stage, but every rank of a pipeline has one"};
    }
    auto& read_once = known[path] = std::make_unique<written_schedule>(path, in_order_of_stages(std::move(read->program)), read->microbatches);
    return any_schedule{static_cast<detail::schedule_family const&>(*read_once)};
}

}  // namespace

any_schedule automatic_schedule()
{
    static constexpr auto automatic = detail::unknown_family("auto");
    return any_schedule{automatic};
}

result<any_schedule> find_schedule(std::string const& name)
{
    auto parsed = parse_schedule(name);
    if (parsed || name.find_first_of("./") == name.npos) {
        return parsed;
    }
    return read_schedule_file(name);
}

result<any_schedule> find_schedule_or_name(std::string const& name)
{
    if (auto found = find_schedule(name)) {
        return found;
    }
    static std::mutex one_at_a_time;
    static std::map<std::string, detail::schedule_family> unknown;
    std::lock_guard const lock{one_at_a_time};
    auto const [place, added] = unknown.try_emplace(name);
    if (added) {
        place->second = detail::unknown_family(place->first);
    }
    return any_schedule{std::as_const(place->second)};
}

any_schedule default_schedule() { return one_f_one_b{}; }

}  // namespace rheo::inline v0
