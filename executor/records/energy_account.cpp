// SPDX-License-Identifier: Apache-2.0
#include "executor/records/energy_account.hpp"

#include <algorithm>
#include <fstream>
#include <set>
#include <utility>

#include "executor/config/strict_json.hpp"
#include "executor/records/record_line.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

energy_so_far energy_of_records(std::string const& folder, step_id from)
{
    energy_so_far result;
    std::set<std::int64_t> committed;  // a step may stand there twice: it was committed, and gone back behind
    std::ifstream file{folder + "/metrics.jsonl"};
    for (std::string line; std::getline(file, line);) {
        if (line.find("\"energy_J\"") == line.npos) {
            continue;
        }
        try {
            auto record = record_of(line);
            auto const kind = record ? record->value("kind", "") : std::string{};
            if (kind != "step" && kind != "redo" && kind != "undone") {
                continue;
            }
            auto const& energy = (*record)["energy_J"];
            result.energy += joules{energy.is_number() ? energy.get<double>() : 0.0};
            auto const step = record->value("step", std::int64_t{-1});
            if (kind == "step" && step >= 0 && step < from.value && committed.insert(step).second) {
                result.tokens += record->value("tokens", std::int64_t{0});
            }
        } catch (json_error const&) {
            // another program's line, which the report mentions; a training does not end for it
        }
    }
    return result;
}

energy_account::energy_account(std::span<rank_id const> launched, energy_so_far before, std::int64_t tokens_per_step)
    : total_{before.energy}, tokens_per_step_{tokens_per_step}, before_{before.tokens}
{
    for (auto const rank : launched) {
        counted_[rank] = {};
    }
}

void energy_account::resume_from(step_id step)
{
    if (first_.value < 0) {
        first_ = step;
    }
    before_ = std::min(before_, step.value * tokens_per_step_);
    steps_ = std::max(std::int64_t{0}, step.value - first_.value);
    first_ = std::min(first_, step);
}

std::vector<rank_id> energy_account::ranks() const
{
    std::vector<rank_id> result;
    for (auto const& [rank, counted] : counted_) {
        result.push_back(rank);
    }
    return result;
}

joules energy_account::update(std::span<rank_id const> members, std::span<double const> known, std::span<double const> counts)
{
    expects(known.size() == counted_.size() && counts.size() == counted_.size(), "there is a count for each rank that is not accounted for");
    drawn_ = {};
    pending_.clear();
    lacks_.clear();
    std::size_t k = 0;
    for (auto const& [rank, before] : counted_) {
        auto const now = known[k] != 0.0 ? std::max(before, joules{counts[k]}) : before;
        drawn_ += now - before;
        if (std::find(members.begin(), members.end(), rank) != members.end()) {
            pending_[rank] = now;
        } else if (known[k] == 0.0) {
            lacks_.push_back(rank);
        }
        ++k;
    }
    return drawn_;
}

std::vector<rank_id> energy_account::settled(bool committed)
{
    total_ += drawn_;
    steps_ += committed ? 1 : 0;
    drawn_ = {};
    counted_ = std::exchange(pending_, {});
    missing_.insert(missing_.end(), lacks_.begin(), lacks_.end());
    return std::exchange(lacks_, {});
}

}  // namespace rheo::inline v0
