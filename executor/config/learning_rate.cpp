// SPDX-License-Identifier: Apache-2.0
#include "executor/config/learning_rate.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "executor/config/entry_text.hpp"
#include "executor/config/toml_value.hpp"
#include "rheo/units/in_quotes.hpp"

namespace rheo::inline v0 {

result<std::vector<rate_from>> rate_table(std::span<std::string const> entries)
{
    constexpr double most_rate = 1e300;
    std::vector<rate_from> table;
    for (auto const& entry : entries) {
        auto const colon = std::min(entry.find(':'), entry.size());
        auto const step = number_in<std::int64_t>(std::string_view{entry}.substr(0, colon));
        auto const rate = colon < entry.size() ? number_in<double>(std::string_view{entry}.substr(colon + 1)) : std::nullopt;
        if (!step || !rate || *step < 0 || !(*rate >= 0.0 && *rate <= most_rate)) {
            return failure{fmt::format("{} is no learning rate of a step; expected STEP: RATE, both at least 0, e.g. 1000: 1e-4", in_quotes(entry))};
        }
        if (!table.empty() && *step <= table.back().step) {
            return failure{fmt::format("step {} follows step {}; expected steps that ascend", *step, table.back().step)};
        }
        table.push_back({*step, *rate});
    }
    return table;
}

std::string error_of_schedule(optimizer_config const& o)
{
    auto const is = [&](rate_schedule schedule) { return o.schedule == schedule; };
    auto const name = name_of(o.schedule);
    if (is(rate_schedule::table)) {
        return o.table.empty() ? "optimizer.table has no entry; expected STEP: RATE, e.g. 0: 1e-3" : "";
    }
    if (!o.table.empty()) {
        return fmt::format("optimizer.table gives the learning rates of optimizer.schedule = \"table\", not of \"{}\"", name);
    }
    for (auto const& [key, steps] : {std::pair{"optimizer.stable_steps", o.stable_steps}, std::pair{"optimizer.decay_steps", o.decay_steps}}) {
        if (steps != 0 && !is(rate_schedule::wsd)) {
            return fmt::format("{} is of optimizer.schedule = \"wsd\", not of \"{}\"", key, name);
        }
    }
    return is(rate_schedule::wsd) && o.decay_steps == 0 ? "optimizer.decay_steps must be at least 1 with optimizer.schedule = \"wsd\"" : "";
}

std::string rates_text(optimizer_config const& o, std::int64_t steps)
{
    auto const begin = fmt::format("lr {}", o.learning_rate);
    switch (o.schedule) {
    case rate_schedule::linear: return fmt::format("{} to {} linearly over {} steps, warm-up {}", begin, o.final_learning_rate, steps, o.warmup_steps);
    case rate_schedule::constant: return fmt::format("{}, warm-up {}", begin, o.warmup_steps);
    case rate_schedule::wsd:
        return fmt::format("{}, warm-up {}, {} steps stable, then to {} linearly over {}", begin, o.warmup_steps, o.stable_steps, o.final_learning_rate,
                           o.decay_steps);
    case rate_schedule::table: return fmt::format("lr by step {}", toml_value(o.table));
    case rate_schedule::cosine: break;
    }
    return fmt::format("{} to {} over {} steps, warm-up {}", begin, o.final_learning_rate, steps, o.warmup_steps);
}

}  // namespace rheo::inline v0
