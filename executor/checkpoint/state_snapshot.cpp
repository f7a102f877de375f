// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/state_snapshot.hpp"

#include <algorithm>
#include <utility>

#include "executor/os/background_thread.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

state_snapshot::state_snapshot(std::vector<std::span<float const>> arrays) : arrays_{std::move(arrays)}, copies_(arrays_.size()), left_(arrays_.size(), 0)
{
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
        copies_[a] = std::make_unique_for_overwrite<float[]>(arrays_[a].size());
        for (std::size_t first = 0; first < arrays_[a].size(); first += piece_elements) {
            pieces_.push_back({a, first, std::min(piece_elements, arrays_[a].size() - first)});
            ++left_[a];
        }
    }
    thread_ = background_thread([this] {
        while (copy_next()) {
        }
    });
}

state_snapshot::~state_snapshot()
{
    give_up();
    thread_.join();
}

/// @returns whether there was one
bool state_snapshot::copy_next()
{
    std::unique_lock lock{mutex_};
    if (given_up_ || next_ == pieces_.size()) {
        return false;
    }
    auto const& one = pieces_[next_++];
    ++being_copied_;
    lock.unlock();
    std::copy_n(arrays_[one.array].begin() + static_cast<std::ptrdiff_t>(one.first), one.count, copies_[one.array].get() + one.first);
    lock.lock();
    --being_copied_;
    if (--left_[one.array] == 0 || being_copied_ == 0) {
        changed_.notify_all();
    }
    return true;
}

void state_snapshot::release()
{
    while (copy_next()) {
    }
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return being_copied_ == 0; });
}

void state_snapshot::give_up()
{
    std::unique_lock lock{mutex_};
    given_up_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return being_copied_ == 0; });
}

std::span<float const> state_snapshot::array(std::size_t which)
{
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return left_[which] == 0 || given_up_; });
    if (left_[which] > 0) {
        throw exit_error{exit_code::environment, "a copy of the state was given up before it was whole"};
    }
    return {copies_[which].get(), arrays_[which].size()};
}

}  // namespace rheo::inline v0
