// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/section_transport.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "executor/nccl/error.hpp"
#include "executor/state/collectives.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

section_transport::section_transport(std::shared_ptr<nccl::library const> library, int multiprocessors, compute_backend& backend, records& record,
                                     bool required, seconds patience)
    : library_{std::move(library)}, multiprocessors_{multiprocessors}, backend_{&backend}, record_{&record}, required_{required}, patience_{patience}
{
}

/// What a plan has connected; what stays quiet may serve another one.
void section_transport::leave()
{
    if (by_nccl_ != nullptr) {
        auto quiet = by_nccl_->take_quiet();
        std::move(quiet.begin(), quiet.end(), std::back_inserter(kept_));
        by_nccl_.reset();
    }
    state_ = state::asked;
}

void section_transport::begin_plan(std::vector<nccl::connection> all)
{
    leave();
    all_ = std::move(all);
}

void section_transport::generation_ended(bool lost_members)
{
    if (by_nccl_ != nullptr && !lost_members && !by_nccl_->failure().empty()) {
        failure_ = by_nccl_->failure();
    }
    leave();
}

void section_transport::begin_section(mpi::messenger& messages)
{
    if (state_ == state::planned) {
        try {
            by_nccl_ = std::make_unique<nccl::nccl_transport>(library_, *backend_, messages, all_, std::exchange(kept_, {}), multiprocessors_);
            state_ = state::coming_up;
            if (std::ssize(all_) > nccl::most_connections()) {
                failure_ = fmt::format("the plan connects this rank {} times, and CUDA_DEVICE_MAX_CONNECTIONS leaves {} streams for that", all_.size(),
                                       nccl::most_connections());
            }
        } catch (nccl::error const& e) {  // members of its connections wait for names
            failure_ = e.what();
            messages.lose();
        }
    }
    poll();
    if (state_ == state::settled) {
        by_nccl_->prove();
        state_ = state::in_use;
    }
}

void section_transport::poll()
{
    if (state_ != state::coming_up || !failure_.empty()) {
        return;
    }
    try {
        state_ = by_nccl_->come_up(patience_) ? state::up : state::coming_up;
    } catch (nccl::error const& e) {
        failure_ = e.what();
    }
}

void section_transport::share_failure(mpi::messenger& messages)
{
    auto const all = gather_texts(messages, failure_);
    failure_ = *std::find_if(all.begin(), all.end(), [](std::string const& why) { return !why.empty(); });
}

void section_transport::settle(bool any_is_coming_up, bool any_has_failed)
{
    if (library_ == nullptr) {
        return;
    }
    if (any_has_failed) {
        by_nccl_.reset();
        kept_.clear();
        state_ = state::asked;
        library_.reset();
        if (required_ && !has_served_) {
            throw exit_error{exit_code::environment, fmt::format("run.transport = \"nccl\": {}", failure_)};
        }
        record_->note(fmt::format("messages go by MPI from here on: {}", failure_));
    } else if (state_ == state::asked) {
        state_ = state::planned;
    } else if (state_ == state::up && !any_is_coming_up) {
        state_ = state::settled;
    } else if (state_ == state::in_use && !std::exchange(has_served_, true)) {
        record_->note(fmt::format("NCCL {} moves activations and gradients", nccl::version_text(library_->version())));
    }
}

}  // namespace rheo::inline v0
