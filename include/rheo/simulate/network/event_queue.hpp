#pragma once
// SPDX-License-Identifier: Apache-2.0

// What is going to happen, taken out in the order of time and, at one time, in the order of its number. A heap with four
// children per node: half the levels of a binary one, and the children share cache lines.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rheo::inline v0 {

template <class Time, class Subject>
class event_queue {
public:
    struct event {
        Time at;
        std::uint64_t number;
        Subject subject;
    };

    bool empty() const { return heap_.empty(); }
    /// What comes next. @pre not empty
    event const& front() const { return heap_.front(); }

    void push(event const& put)
    {
        heap_.push_back(put);
        auto hole = heap_.size() - 1;
        while (hole > 0 && before(put, heap_[(hole - 1) / 4])) {
            heap_[hole] = heap_[(hole - 1) / 4];
            hole = (hole - 1) / 4;
        }
        heap_[hole] = put;
    }

    /// @pre not empty
    event pop()
    {
        auto const first = heap_.front();
        auto const last = heap_.back();
        heap_.pop_back();
        if (!heap_.empty()) {
            sift_down(last);
        }
        return first;
    }

private:
    static bool before(event const& a, event const& b) { return a.at < b.at || (!(b.at < a.at) && a.number < b.number); }

    /// Puts an event into the hole at the top.
    void sift_down(event const& put)
    {
        std::size_t hole = 0;
        for (auto const size = heap_.size();;) {
            auto const begin = 4 * hole + 1;
            if (begin >= size) {
                break;
            }
            auto least = begin;
            for (auto child = begin + 1; child < std::min(begin + 4, size); ++child) {
                least = before(heap_[child], heap_[least]) ? child : least;
            }
            if (!before(heap_[least], put)) {
                break;
            }
            heap_[hole] = heap_[least];
            hole = least;
        }
        heap_[hole] = put;
    }

    std::vector<event> heap_;
};

}  // namespace rheo::inline v0
