#pragma once
// SPDX-License-Identifier: Apache-2.0

// A family's program with what runs it: one pipeline of all ranks, the real worker and messages, and the library's timeline of
// the same program. All families are made before any is measured, so that they can take turns: a machine whose speed
// changes is as fast for one as for the other.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>
#include <sched.h>
#include <time.h>

#include "executor/host/backend.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/plan/planning.hpp"
#include "executor/train/worker.hpp"
#include "message_time.hpp"
#include "replay.hpp"
#include "rheo/model/fusion.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/state.hpp"
#include "rheo/plan/programs.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/schedule/check/figures.hpp"

namespace bench {

/// Waits until the clock shows that: sleeps, but for the last moment, as a sleep ends late by what it takes to wake up.
inline void wait_until(rheo::launch_clock const& clock, rheo::seconds then)
{
    constexpr double moment = 0.3e-3;
    auto const left = then.count - moment - clock.now().count;
    if (left > 0) {
        timespec const pause{static_cast<time_t>(left), static_cast<long>(std::fmod(left, 1.0) * 1e9)};
        nanosleep(&pause, nullptr);
    }
    while (clock.now() < then) {
        sched_yield();
    }
}

class family {
public:
    /// @param unit of a forward of a rank's whole part, where operations are timed waits; 0: they take what they take
    family(rheo::run_config const& config, rheo::mpi::generation const& members, rheo::seconds unit, std::filesystem::path const& scratch)
        : name_{name_of(config.plan.schedule)}, members_{&members}, waits_{unit.count > 0}
    {
        using namespace rheo;
        auto const ranks = static_cast<int>(members.members.size());
        auto const runs = fused(gpt_model(config.model));
        auto first = make_plan(runs, config, ranks);
        error_ = first.error();
        if (!error_.empty()) {
            return;
        }
        plan_ = std::move(first->plan);
        auto made = schedule_of(plan_, 0);
        error_ = made.error;
        if (!error_.empty()) {
            return;
        }
        compute_ = std::move(made.compute);
        data_ = std::make_unique<dataset>(config.data, config.model.vocabulary, config.train.microbatch);
        silent_ = std::make_unique<records>(scratch.string(), members.self, false, true);
        about_ = std::make_unique<job>(job{runs, state_of(runs), {}, config});
        with_.emplace(rank_services{.data = *data_, .backend = backend_, .record = *silent_});
        resident_ = std::make_unique<resident_state>(about_->state, backend_);
        initialise_layers(*resident_, layer_id{0}, layer_id{about_->layers()}, 1);
        std::fill(resident_->scales.begin(), resident_->scales.end(), 20);
        for (std::size_t u = 0; u < about_->state.uses.size(); ++u) {
            resident_->accumulator(use_id{static_cast<std::int32_t>(u)});
        }
        worker_ = std::make_unique<worker>(*about_, *with_, plan_, members.self, *resident_);
        costs_ = even_costs(compute_, {unit, unit * 2.0, unit, unit, {}, {}});
        worker_->computed = [this](instruction i, seconds since) {
            if (waits_) {
                wait_until(with_->clock, since + cost_of(costs_, i));
            }
            auto& [spent, count] = spent_[static_cast<std::size_t>(i.stage)][static_cast<std::size_t>(i.kind)];
            spent += (with_->clock.now() - since).count;
            ++count;
        };
        std::map<int, stage*> here;
        auto const made_here = worker_->stages();
        std::size_t next = 0;
        for (int s = 0; s < static_cast<int>(costs_.size()); ++s) {
            if (plan_.pipelines.front().stages[static_cast<std::size_t>(s)].front() == members.self) {
                here.emplace(s, made_here[next++]);
            }
        }
        replay_ = std::make_unique<replay>(std::move(here), *data_, config.train.seed, config.train.microbatch.slices);
        row_ = programs_of(plan_, {}, 0).front().rows[static_cast<std::size_t>(worker_->place().position)];
    }

    family(family const&) = delete;
    family& operator=(family const&) = delete;

    std::string const& name() const { return name_; }
    std::string const& error() const { return error_; }  ///< why the family has no program here; empty when it has

    /// What a step takes by the library, where operations take what they took when they were measured by themselves and a message that time; or operations the time that they wait.
    double predicted(rheo::seconds message) const { return rheo::makespan(compute_, with_messages(costs_, waits_ ? modelled_message() : message)).count; }

    /// Measures the operations of the program, each rank its own in their order, all ranks at once.
    void measure_operations()
    {
        std::vector<times_of_stage> spent(costs_.size());
        MPI_Barrier(MPI_COMM_WORLD);
        replay_->run(row_, spent);
        costs_ = means_of_all(spent);
    }

    /// What a message between its ranks takes, by itself.
    rheo::seconds measured_message(rheo::mpi::messenger& messages) const { return message_time(messages, with_->clock, message_size()); }

    /// What the step that was measured takes by the library, when each operation takes what its kind took on the mean in that step, and
    /// a message what it took in this turn.
    double explained(rheo::seconds message) const
    {
        return rheo::makespan(compute_, with_messages(means_of_all(spent_), waits_ ? modelled_message() : message)).count;
    }

    /// What a step takes from the first rank's beginning to the last one's end: an upper bound, as ranks leave a barrier one after the other.
    double measured(rheo::mpi::messenger& messages)
    {
        using namespace rheo;
        loss_sum unused;
        spent_.assign(costs_.size(), {});
        MPI_Barrier(MPI_COMM_WORLD);
        messages.begin_section();
        double span[2] = {-with_->clock.now().count, 0};
        worker_->run(
            row_, plan_.work.front(), {members_->id, step_id{1}, attempt_id{0}, true}, messages, [](use_id, microbatch_id) { return true; },
            [](std::span<use_id const>, microbatch_id) {}, unused);
        span[1] = with_->clock.now().count;
        MPI_Allreduce(MPI_IN_PLACE, span, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return span[0] + span[1];
    }

private:
    /// What operations took on the mean, of all ranks, each of which has the times of its own stages; transfers are left at 0.
    static rheo::stage_costs means_of_all(std::vector<times_of_stage> const& spent)
    {
        using namespace rheo;
        auto const kinds = std::tuple_size_v<times_of_stage>;
        std::vector<double> sums(2 * kinds * spent.size());
        for (std::size_t s = 0; s < spent.size(); ++s) {
            for (std::size_t k = 0; k < kinds; ++k) {
                sums[2 * (s * kinds + k)] = spent[s][k].first;
                sums[2 * (s * kinds + k) + 1] = spent[s][k].second;
            }
        }
        MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(sums.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        stage_costs costs;
        for (std::size_t s = 0; s < spent.size(); ++s) {
            auto const mean = [&](instruction_kind kind) {
                auto const* const each = &sums[2 * (s * kinds + static_cast<std::size_t>(kind))];
                return seconds{each[1] > 0 ? each[0] / each[1] : 0};
            };
            using enum instruction_kind;
            costs.push_back({mean(forward), mean(backward), mean(input_gradient), mean(weight_gradient), {}, {}});
        }
        return costs;
    }

    rheo::bytes message_size() const { return boundary_bytes(about_->model.layers.front(), about_->shape()); }  ///< the blocks have one width
    rheo::seconds modelled_message() const { return transfer_time(rheo::link_between_ranks, message_size()); }

    /// The costs with the messages between neighbouring stages.
    rheo::stage_costs with_messages(rheo::stage_costs costs, rheo::seconds message) const
    {
        auto const chain = stage_count(plan_.pipelines.front().cuts);
        for (int s = 0; s < static_cast<int>(costs.size()); ++s) {
            auto& cost = costs[static_cast<std::size_t>(s)];
            cost.send_activation = s % chain + 1 < chain ? message : rheo::seconds{};
            cost.send_gradient = s % chain > 0 ? message : rheo::seconds{};
        }
        return costs;
    }

    std::string name_;
    std::string error_;
    rheo::mpi::generation const* members_;
    bool waits_;
    rheo::plan plan_;
    rheo::program compute_;
    rheo::host_backend backend_{1};
    std::unique_ptr<rheo::dataset> data_;
    std::unique_ptr<rheo::records> silent_;
    std::unique_ptr<rheo::job> about_;
    std::optional<rheo::rank_services> with_;
    std::unique_ptr<rheo::resident_state> resident_;
    std::unique_ptr<rheo::worker> worker_;
    std::unique_ptr<replay> replay_;
    rheo::stage_costs costs_;            ///< of timed waits, or as last measured
    std::vector<times_of_stage> spent_;  ///< by stage, in the last step
    std::vector<rheo::instruction> row_;
};

}  // namespace bench
