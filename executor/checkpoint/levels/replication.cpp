// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/levels/replication.hpp"

#include <algorithm>
#include <utility>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

replication::replication(rank_id self, std::function<void(checkpoint_point)> at) : self_{self}, rank_{.at = std::move(at)} {}
replication::~replication() { rank_.files.wait(); }

void replication::begin(std::span<replica_route const> routes, std::filesystem::path const& folder, std::shared_ptr<growing_part> own)
{
    expects(done(), "copies of a checkpoint begin when those of the last one are at their end");
    rank_.files.wait();
    incoming_.clear();
    outgoing_.clear();
    rank_.given_up = false;
    for (auto const& route : routes) {
        if (route.to == self_) {
            incoming_.push_back(std::make_unique<incoming_copy>(route, folder, rank_));
        }
        if (route.from == self_) {
            outgoing_.push_back(std::make_unique<outgoing_copy>(route, route.origin == self_ ? own : nullptr, rank_));
        }
    }
}

void replication::progress(mpi::messenger& messages)
{
    for (auto const& one : incoming_) {
        one->progress(messages);
    }
    for (auto const& one : outgoing_) {
        for (auto const& source : incoming_) {
            if (!one->has_part() && one->origin() == source->origin() && source->part() != nullptr) {
                one->take(source->part());
            }
        }
        one->progress(messages);
    }
}

bool replication::done() const
{
    auto const is_done = [](auto const& one) { return one->done(); };
    return std::all_of(incoming_.begin(), incoming_.end(), is_done) && std::all_of(outgoing_.begin(), outgoing_.end(), is_done);
}

std::string replication::message() const
{
    for (auto const& one : incoming_) {
        if (auto message = one->message(); !message.empty()) {
            return message;
        }
    }
    return {};
}

void replication::give_up() { rank_.given_up = true; }

void replication::forget()
{
    rank_.given_up = true;
    rank_.files.wait();
    for (auto const& one : incoming_) {
        if (!one->is_whole()) {
            one->remove();
        }
    }
    incoming_.clear();
    outgoing_.clear();
    rank_.given_up = false;
}

}  // namespace rheo::inline v0
