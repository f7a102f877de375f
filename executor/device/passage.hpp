#pragma once
// SPDX-License-Identifier: Apache-2.0

// What comes from another rank or goes to one: where kernels use it, and where messages do. In a back end with one memory these are the
// same place and nothing is copied.

#include <cstddef>
#include <deque>
#include <span>

#include "executor/device/back_end.hpp"

namespace rheo::inline v0 {

/// What a message reads of something that kernels have written: itself or, where messages have another memory, a copy, which is added to `copies`
/// and lives as long. Waits.
template <class T>
std::span<T const> for_message(back_end& on, std::deque<array<T>>& copies, T const* from, std::size_t count)
{
    if (on.has_one_memory()) {
        return {from, count};
    }
    auto& copy = copies.emplace_back(on.messages(), count);
    on.copy(copy.data(), from, count * sizeof(T));
    on.wait();
    return copy;
}

/// A matrix that is used here and in messages, again and again.
class passage {
public:
    explicit passage(back_end& on) : on_{&on}, here_{on.own()}, in_message_{on.messages()} {}

    void resize(std::size_t size)
    {
        here_.resize(size);
        in_message_.resize(on_->has_one_memory() ? 0 : size);
    }
    std::size_t size() const { return here_.size(); }
    bool empty() const { return here_.empty(); }

    void* here() { return here_.data(); }
    std::span<std::byte> in_message()
    {
        return on_->has_one_memory() ? std::span{here_.data(), here_.size()} : std::span{in_message_.data(), in_message_.size()};
    }

    /// What a message brought goes where kernels use it.
    void has_come()
    {
        if (!on_->has_one_memory()) {
            on_->copy(here_.data(), in_message_.data(), size());
        }
    }
    /// What kernels left goes where a message takes it. Waits.
    void will_go()
    {
        if (!on_->has_one_memory()) {
            on_->copy(in_message_.data(), here_.data(), size());
            on_->wait();
        }
    }

private:
    back_end* on_;
    array<std::byte> here_;
    array<std::byte> in_message_;
};

}  // namespace rheo::inline v0
