// SPDX-License-Identifier: Apache-2.0
#include "executor/mpi/messenger.hpp"

#include <algorithm>

namespace rheo::inline v0::mpi {

namespace {

// MPI counts are ints; longer messages go as several of the same tag, which MPI keeps in order.
constexpr std::size_t largest_message = std::size_t{1} << 30;

template <class Start>
void in_pieces(std::size_t size, std::vector<MPI_Request>& requests, Start start)
{
    std::size_t offset = 0;
    do {
        auto const piece = std::min(largest_message, size - offset);
        requests.push_back(MPI_REQUEST_NULL);
        start(offset, static_cast<int>(piece), requests.back());
        offset += piece;
    } while (offset < size);
}

}  // namespace

int messenger::largest_item()
{
    void* value = nullptr;
    int found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
    int const largest_tag = found != 0 ? *static_cast<int*>(value) : 32767;
    return (largest_tag - channels * sections + 1) / (channels * sections);
}

messenger::ticket messenger::fresh()
{
    ticket which = pending_.size();
    if (free_.empty()) {
        pending_.emplace_back();
    } else {
        which = free_.back();
        free_.pop_back();
    }
    pending_[which].in_use = true;
    pending_[which].requests.clear();
    return which;
}

messenger::ticket messenger::start_send(rank_id to, int tag, void const* data, std::size_t size, bool synchronous)
{
    auto const which = fresh();
    work_.sent += 1;
    work_.bytes += static_cast<std::int64_t>(size);
    in_pieces(size, pending_[which].requests, [&](std::size_t offset, int count, MPI_Request& request) {
        expect_success((synchronous ? MPI_Issend : MPI_Isend)(static_cast<std::byte const*>(data) + offset, count, MPI_BYTE, generation_->address_of(to), tag,
                                                              generation_->data().handle(), &request),
                       synchronous ? "MPI_Issend" : "MPI_Isend");
    });
    return which;
}

messenger::ticket messenger::start_receive(rank_id from, int tag, void* data, std::size_t size)
{
    auto const which = fresh();
    in_pieces(size, pending_[which].requests, [&](std::size_t offset, int count, MPI_Request& request) {
        expect_success(
            MPI_Irecv(static_cast<std::byte*>(data) + offset, count, MPI_BYTE, generation_->address_of(from), tag, generation_->data().handle(), &request),
            "MPI_Irecv");
    });
    return which;
}

bool messenger::done(ticket which)
{
    auto& entry = pending_[which];
    if (!entry.in_use) {
        return true;
    }
    for (auto& request : entry.requests) {
        if (request == MPI_REQUEST_NULL) {
            continue;
        }
        int flag = 0;
        expect_success(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), "MPI_Test");
        if (flag == 0) {
            return false;
        }
    }
    entry.in_use = false;
    free_.push_back(which);
    return true;
}

/// Where cores are shared, a look that finds nothing lets another thread have the core: so there is one look, not one at each message.
bool messenger::look_at_requests()
{
    handles_.clear();
    for (auto const* const request : requests_) {
        handles_.push_back(*request);
    }
    indices_.resize(handles_.size());
    statuses_.resize(handles_.size());
    int count = MPI_UNDEFINED;
    auto const code = MPI_Testsome(static_cast<int>(handles_.size()), handles_.data(), &count, indices_.data(), statuses_.data());
    for (std::size_t i = 0; i < handles_.size(); ++i) {  // before an error is looked at: what has ended is no longer pending
        *requests_[i] = handles_[i];
    }
    for (int i = 0; code != MPI_SUCCESS && count != MPI_UNDEFINED && i < count; ++i) {
        expect_success(statuses_[static_cast<std::size_t>(i)].MPI_ERROR, "MPI_Testsome");
    }
    expect_success(code, "MPI_Testsome");
    return count != 0;
}

std::vector<std::size_t> const& messenger::done_among(std::span<ticket const> all)
{
    requests_.clear();
    for (auto const which : all) {
        for (auto& request : pending_[which].requests) {
            requests_.push_back(&request);
        }
    }
    done_.clear();
    if (!look_at_requests() && !look_at_requests()) {  // a look that finds nothing makes progress, and another sees what came of it
        return done_;
    }
    for (std::size_t place = 0; place < all.size(); ++place) {
        auto& entry = pending_[all[place]];
        if (std::all_of(entry.requests.begin(), entry.requests.end(), [](MPI_Request r) { return r == MPI_REQUEST_NULL; })) {
            entry.in_use = false;
            free_.push_back(all[place]);
            done_.push_back(place);
        }
    }
    return done_;
}

void messenger::wait(ticket which)
{
    wait_until([&] { return done(which); });
}

void messenger::pause(polling& pace)
{
    beat();
    ++work_.polls;
    if (pace.pause()) {
        look_for_losses();
        if (idle_work_) {
            idle_work_();
        }
    }
}

void messenger::look_for_losses()
{
    // a look for a message from itself, because others may be known to be lost
    int arrived = 0;
    expect_success(MPI_Iprobe(generation_->address_of(generation_->self), MPI_ANY_TAG, generation_->data().handle(), &arrived, MPI_STATUS_IGNORE),
                   "MPI_Iprobe");
    throw_if_failed();
}

void messenger::expect_success(int code, char const* call)
{
    if (is_loss(code)) {
        lose();
    }
    check(code, call);
}

void messenger::lose()
{
    generation_->revoke();
    drain();
    throw peer_lost{};
}

void messenger::drain() noexcept
{
    for (auto& entry : pending_) {
        for (auto& request : entry.requests) {
            if (entry.in_use && request != MPI_REQUEST_NULL) {
                MPI_Wait(&request, MPI_STATUS_IGNORE);
                if (request != MPI_REQUEST_NULL) {
                    MPI_Request_free(&request);
                }
            }
        }
        entry.in_use = false;
    }
    pending_.clear();
    free_.clear();
}

}  // namespace rheo::inline v0::mpi
