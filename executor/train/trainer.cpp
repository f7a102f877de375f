// SPDX-License-Identifier: Apache-2.0
// The loop of the trainer: an action is performed, its event goes to the protocol; and the programs that are in force.
#include "executor/train/trainer.hpp"

#include <stdexcept>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "executor/os/exit_without_finalize.hpp"
#include "executor/plan/planned_cluster.hpp"
#include "executor/plan/planning.hpp"
#include "executor/state/measured_state.hpp"
#include "rheo/plan/programs.hpp"
#include "rheo/schedule/check/deadlock.hpp"

namespace rheo::inline v0 {

namespace {

std::vector<layer_id> all_layers(int count)
{
    std::vector<layer_id> layers;
    for (layer_id l{0}; l.value < count; ++l) {
        layers.push_back(l);
    }
    return layers;
}

}  // namespace

trainer::trainer(job const& about, rank_services const& services, std::unique_ptr<mpi::generation>& begins, launch_id launch, step_planner planner,
                 std::optional<checkpoint> from, steps_so_far so_far)
    : job_{&about},
      with_{&services},
      self_{begins->self},
      planner_{std::move(planner)},
      fence_{about.config.run.folder, self_},
      resident_{about.state, services.backend},
      room_{services.backend.own()},
      clocks_{services.frontiers, services.record, services.clock},
      sweep_{about, services.device, services.record},
      copies_{self_},
      optimizer_{about.config, resident_},
      transport_{services.nccl,
                 services.multiprocessors,
                 services.backend,
                 services.record,
                 about.config.run.transport == transport_choice::nccl,
                 about.config.run.watchdog.start},
      evaluation_{services.record},
      recovery_{services.record, services.clock},
      from_{std::move(from)},
      checkpoints_{about, services.data, services.inject, services.clock, self_, from_ ? std::optional{from_->step()} : std::nullopt},
      changes_{about, services.record},
      so_far_{so_far}
{
    resident_.begin_scales(about.items());
    if (from_) {
        from_->read_scales(resident_, about.items());
    }
    auto began = start_protocol<membership_plan>({.launch = launch,
                                                  .ended = generation_id{begins->id.value - 1},
                                                  .last = step_id{about.config.train.steps},
                                                  .members = begins->members,
                                                  .holds = {self_, from_ ? from_->step() : step_id{0}, all_layers(planner_.known().layers), {}}});
    state_ = std::move(began.state);
    action_ = std::move(began.action);
    auto const version = from_ ? from_->step() : step_id{0};
    with_->record.start({begins->id, version, static_cast<int>(begins->members.size()), from_.has_value()}, begins->members.front() == self_);
    if (with_->energies != nullptr) {
        with_->energies->resume_from(version);
    }
    generation_ = std::move(begins);
}

training_end trainer::run()
{
    auto const planner = [this](auto const& holdings, auto const& in_force, auto const& departing) {
        auto const start = with_->clock.now();
        auto result = changes_.next() != nullptr ? changes_.next()->first_for(holdings) : planner_.plan_for(holdings, in_force, departing);
        trace(activity::plan, start);
        recovery_.took(&recovery_record::plan, start);
        return result;
    };
    for (;;) {
        if (auto const* end = std::get_if<leave>(&action_)) {
            if (end->reason == leave_reason::fenced) {
                auto const ended = generation_->id.value - 1;
                exit_without_finalize(
                    fmt::format("rank {}: the others continued without it after generation {} ('{}/after-{}' says who); it commits and writes nothing "
                                "more, and ends itself",
                                self_.value, ended, job_->config.run.folder, ended));
            }
            if (end->reason == leave_reason::drained) {
                checkpoints_.depart(generation_->members);
                end_.record = {.message = fmt::format("rank {} left after step {}", self_.value, state_.now.step.value), .steps = state_.now.step};
            }
            end_.reason = end->reason;
            return end_;
        }
        protocol_event event;
        auto const perform_it = [&](auto const& action) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(action)>, leave>) {
                event = perform(action);
            }
        };
        if (!mpi::unless_peer_lost([&] { std::visit(perform_it, action_); })) {
            if (recovery_.peer_lost(generation_->members)) {
                trace(activity::detect, recovery_.last_progress());
            }
            event = rheo::peer_lost{};
        }
        recovery_.progress();
        with_->progress();
        auto next = advance(std::move(state_), event, planner);
        state_ = std::move(next.state);
        action_ = std::move(next.action);
    }
}

std::unique_ptr<mpi::generation> trainer::abandon()
{
    if (generation_ != nullptr) {
        generation_->revoke();
    }
    messages_.reset();
    return release_members();
}

void trainer::trace(activity kind, seconds start)
{
    with_->record.event({.rank = self_,
                         .activity = kind,
                         .generation = state_.now.generation,
                         .step = state_.now.step,
                         .attempt = state_.now.attempt,
                         .start = start,
                         .end = with_->clock.now(),
                         .held = worker_ != nullptr ? worker_->held_activations() : bytes{}});
}

/// Which pipelines do not run the family that was asked for, and why.
void trainer::report_other_schedules() const
{
    auto const& runs_now = section_.plan;
    for (std::size_t i = 0; i < runs_now.pipelines.size(); ++i) {
        if (auto const runs = schedule_of(runs_now, i); !runs.error.empty()) {
            auto const ranks = ranks_of(runs_now.pipelines[i]).size();
            with_->record.note(fmt::format("pipeline {} of {} rank{} runs {}: {}", i, ranks, ranks == 1 ? "" : "s",
                                           runs.family ? name_of(runs) : "an order by list scheduling", runs.error));
        }
    }
}

void trainer::prepare_programs(section_work work)
{
    if (section_.work == work) {
        return;
    }
    section_.plan = planner_.section(state_.plan, work);
    section_.programs = programs_of(section_.plan, job_->units, job_->layers());
    if (auto const proof = deadlock_free<rendezvous>(std::span<program const>{section_.programs}); !proof) {
        throw std::logic_error{"the plan cannot be run: " + proof.message()};
    }
    section_.compute = compute_of(job_->config.plan.cluster, generation_->members);
    section_.work = work;
    if (work != section_work::whole) {
        choose_clocks();
        return;
    }
    report_other_schedules();
    choose_clocks();
    if (clocks_.follows()) {
        section_.plan.clocks = clocks_.chosen().clocks;
        if (clocks_.must_precompute() && state_.plan.error.empty()) {
            clocks_.precompute(planner_.contingencies(state_.plan));
        }
    }
    if (position_of(section_.plan, self_).found) {
        section_.planned_memory = memory_parts_of(section_.plan, job_->model, job_->config, self_);
        section_.measured_state = measured_state(resident_, layers_in(layers_of(section_.plan, self_)));
    }
}

void trainer::choose_clocks()
{
    if (clocks_.must_choose()) {
        clocks_.choose(planner_.whole_step(state_.plan), self_, recovery_.is_open() && is_reporter(), sweep_.runs());
    }
}

/// Of this rank's row of the programs at hand.
std::span<megahertz const> trainer::clocks_of_row(plan_position place)
{
    if (!place.found) {
        return {};
    }
    auto const& row = section_.programs[at(place.pipeline)].rows[static_cast<std::size_t>(place.position)];
    if (sweep_.runs()) {
        return sweep_.row(row.size());  // computations are fewer
    }
    if (section_.plan.clocks.empty()) {  // what is left of a step
        return carried_clocks_of(place, row);
    }
    return section_.plan.clocks[at(place.pipeline)][static_cast<std::size_t>(place.position)];
}

/// For a row that is not a whole step's, on the same stages; none: the highest.
std::span<megahertz const> trainer::carried_clocks_of(plan_position place, std::vector<instruction> const& row)
{
    return sweep_.runs() || !place.found ? std::span<megahertz const>{} : clocks_.carried_to(row, stage_count(state_.plan.pipelines[at(place.pipeline)].cuts));
}

}  // namespace rheo::inline v0
