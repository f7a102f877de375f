// SPDX-License-Identifier: Apache-2.0
// The loop of the trainer: an action is performed, its event goes to the protocol; and the plans that are in force.
#include "executor/train/trainer.hpp"

#include <stdexcept>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "executor/os/exit_without_finalize.hpp"
#include "executor/plan/plan_report.hpp"
#include "executor/plan/planning.hpp"
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

trainer::trainer(job const& about, std::unique_ptr<mpi::generation>& begins, launch_id launch, plan first, replanning known, std::optional<checkpoint> from,
                 steps_so_far so_far)
    : job_{&about},
      self_{begins->self},
      first_{std::move(first)},
      known_{std::move(known)},
      rules_{rules_of(about.config)},
      fence_{about.config.run.folder, self_},
      resident_{about.state, *about.backend},
      room_{about.backend->own()},
      so_far_{so_far},
      from_{std::move(from)},
      checkpoints_{about, self_, from_ ? std::optional{from_->step()} : std::nullopt}
{
    resident_.begin_scales(about.items());
    if (from_) {
        from_->read_scales(resident_, about.items());
    }
    auto began = start_protocol<membership_plan>({.launch = launch,
                                                  .ended = generation_id{begins->id.value - 1},
                                                  .last = step_id{about.config.train.steps},
                                                  .members = begins->members,
                                                  .holds = {self_, from_ ? from_->step() : step_id{0}, all_layers(about.layers()), {}}});
    state_ = std::move(began.state);
    action_ = std::move(began.action);
    auto const version = from_ ? from_->step() : step_id{0};
    job_->record->start({begins->id, version, static_cast<int>(begins->members.size()), from_.has_value()}, begins->members.front() == self_);
    if (job_->energies != nullptr) {
        job_->energies->resume_from(version);
    }
    generation_ = std::move(begins);
}

training_end trainer::run()
{
    auto const planner = [this](auto const& holdings, auto const& in_force, auto const& departing) { return plan_for(holdings, in_force, departing); };
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
                end_ = {.message = fmt::format("rank {} left after step {}", self_.value, state_.now.step.value), .steps = state_.now.step};
            }
            return {end->reason, end_, resume_from_, resume_totals_};
        }
        protocol_event event;
        auto const perform_it = [&](auto const& action) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(action)>, leave>) {
                event = perform(action);
            }
        };
        if (!mpi::unless_peer_lost([&] { std::visit(perform_it, action_); })) {
            if (!recovery_) {
                recovery_.emplace();
                recovery_->detect = since(progress_);
                before_ = generation_->members;
                trace(activity::detect, progress_);
            }
            event = rheo::peer_lost{};
        }
        progress_ = job_->clock.now();
        job_->progress();
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

void trainer::trace(activity what, seconds start)
{
    job_->record->event({.rank = self_,
                         .what = what,
                         .generation = state_.now.generation,
                         .step = state_.now.step,
                         .attempt = state_.now.attempt,
                         .start = start,
                         .end = job_->clock.now()});
}

membership_plan trainer::plan_for(std::vector<rank_holdings> const& holdings, membership_plan const& in_force, std::vector<rank_id> const& departing)
{
    auto const start = job_->clock.now();
    bool const begins = in_force.pipelines.empty();
    auto places = first_.spares.size();
    for (auto const& pipeline : first_.pipelines) {
        places += ranks_of(pipeline).size();
    }
    membership_plan result;
    if (begins && holdings.size() == places && departing.empty()) {  // nobody has been lost yet: the plan that was asked for
        recomposition chosen;
        chosen.pipelines = first_.pipelines;
        chosen.spares = first_.spares;
        for (auto const& work : first_.work) {
            chosen.shares.push_back(static_cast<int>(work.size()));
        }
        result = plan_as_chosen(holdings, known_, rules_, std::move(chosen));
    } else {
        result = plan_membership(holdings, begins ? first_.pipelines : in_force.pipelines, departing, known_, rules_);
    }
    trace(activity::plan, start);
    if (recovery_) {
        recovery_->plan = since(start);
    }
    return result;
}

plan trainer::whole_step(membership_plan const& p) const
{
    plan whole{first_.schedule, p.pipelines, deal(p.shares), p.spares, first_.recompute, first_.own, {}, first_.slices};
    if (whole.pipelines == first_.pipelines) {
        whole.recomputed = first_.recomputed;
        whole.recompute_levels = first_.recompute_levels;
    }
    if (whole.pipelines != first_.pipelines || whole.work != first_.work) {
        choose_recomputation(whole, job_->model, job_->config);
    }
    return whole;
}

plan trainer::plan_in_force(section_work work) const
{
    auto p = whole_step(state_.plan);
    if (work == section_work::remainder) {
        p.work = state_.plan.salvage.work;
    }
    return p;
}

/// Which pipelines do not run the family that was asked for, and why.
void trainer::report_other_schedules() const
{
    for (std::size_t i = 0; i < plan_.pipelines.size(); ++i) {
        if (auto const runs = schedule_of(plan_, i); !runs.error.empty()) {
            auto const ranks = ranks_of(plan_.pipelines[i]).size();
            job_->record->note(fmt::format("pipeline {} of {} rank{} runs {}: {}", i, ranks, ranks == 1 ? "" : "s",
                                           runs.name == "list" ? "an order by list scheduling" : runs.name, runs.error));
        }
    }
}

std::vector<program> const& trainer::programs_for(section_work work)
{
    if (programs_are_for_ != work) {
        plan_ = plan_in_force(work);
        programs_ = programs_of(plan_, job_->units, job_->layers());
        if (auto const proof = deadlock_free<rendezvous>(std::span<program const>{programs_}); !proof) {
            throw std::logic_error{"the plan cannot be run: " + proof.message()};
        }
        programs_are_for_ = work;
        if (work == section_work::whole) {
            report_other_schedules();
        }
        choose_clocks();
        if (work == section_work::whole && job_->clocks != nullptr) {
            plan_.clocks = chosen_.clocks;
            if (!std::exchange(clocks_are_precomputed_, true)) {
                precompute_clocks();
            }
        }
        if (auto const place = position_of(plan_, self_); place.found && work == section_work::whole) {
            planned_activations_ = activations_of(plan_, job_->model, job_->config, self_);
        }
    }
    return programs_;
}

}  // namespace rheo::inline v0
