// SPDX-License-Identifier: Apache-2.0
#include "least_copied.hpp"

#include <utility>

#include "executor/config/config.hpp"
#include "executor/config/plan_change.hpp"
#include "executor/config/toml.hpp"
#include "executor/plan/planning.hpp"
#include "rheo/plan/holdings_under.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/state_layout.hpp"
#include "rheo/reshard/tensor_bytes.hpp"

using namespace rheo;

std::optional<bytes> least_copied(std::string const& config, std::vector<std::string> const& settings, std::string const& change, int ranks)
{
    auto const job = read_config_file(config, settings).config;
    auto const model = running_model(job);
    auto const parsed = plan_change_of("1: " + change);
    auto const changed = parsed ? changed_config(job, parsed->settings) : failure{parsed.error()};
    auto const before = make_plan(model, job, ranks);
    auto const after = changed ? make_plan(model, *changed, ranks) : failure{changed.error()};
    if (!before || !after) {
        return std::nullopt;
    }
    auto const known = make_replanning(model, *changed, ranks);
    auto const tensors = layout_tensors(known.state, known.formats);
    auto const layout = [&](plan const& p) {
        return state_layout(known.state, tensors, layers_by_rank(holdings_under(p, ranks_of(p), known.cells_per_layer, known.optimizer)));
    };
    auto const planned = try_reshard({.from = layout(before->plan), .to = layout(after->plan), .ranks = rank_choice::any});
    return planned.fault ? std::nullopt : std::optional{planned.plan.certificate.needed.bound};
}
