#pragma once
// SPDX-License-Identifier: Apache-2.0

// The classes of a job's time, in the order of time. What was good may be lost later, and of a broken step a part may have been good.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "rheo/job/job_account.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

template <class OnlyWhenCalled = void>
class job_history {
public:
    using time_class = job_time_class::member;

    /// Time passes in a class. @param is_broken whether settle() may say otherwise
    void add(whole_nanoseconds begin, whole_nanoseconds end, time_class into, bool is_broken = false)
    {
        if (begin == end) {
            return;
        }
        if (!is_broken && spans_.size() > joinable_from_ && spans_.back().into == into) {
            spans_.back().end = end;
            return;
        }
        spans_.push_back({begin, end, into});
        if (is_broken) {
            broken_.push_back(spans_.size() - 1);
            joinable_from_ = spans_.size();
        }
    }

    /// So much of the broken step was good after all: its begin.
    void settle(whole_nanoseconds kept)
    {
        if (broken_.empty()) {
            return;
        }
        for (std::size_t moved = 0; auto const place : std::exchange(broken_, {})) {
            auto& span = spans_[place + moved];
            auto const good = std::min(kept, span.end - span.begin);
            kept -= good;
            if (good == span.end - span.begin) {
                span.into = &job_account::good;
            } else if (good > whole_nanoseconds{}) {
                auto const begin = std::exchange(span.begin, span.begin + good);
                spans_.insert(spans_.begin() + static_cast<std::ptrdiff_t>(place + moved++), {begin, begin + good, &job_account::good});
            }
        }
        joinable_from_ = spans_.size();
    }

    /// What was done so far will stay if a checkpoint that begins now ends.
    void begin_keeping() { joinable_from_ = keeping_ = spans_.size(); }

    /// It has ended.
    void keep() { kept_ = keeping_; }

    /// What was good since then is lost.
    void undo()
    {
        broken_.clear();
        for (auto k = kept_; k < spans_.size(); ++k) {
            auto& into = spans_[k].into;
            into = into == &job_account::good || into == &job_account::evaluation ? &job_account::lost : into;
        }
        joinable_from_ = spans_.size();
    }

    /// Spans that touch and are of one class are one.
    std::vector<job_time_span> take()
    {
        std::vector<job_time_span> joined;
        for (auto const& span : spans_) {
            if (!joined.empty() && joined.back().into == span.into) {
                joined.back().end = span.end;
            } else {
                joined.push_back(span);
            }
        }
        return joined;
    }

private:
    std::vector<job_time_span> spans_;
    std::vector<std::size_t> broken_;  ///< spans of the running step
    std::size_t kept_ = 0;             ///< spans that stay
    std::size_t keeping_ = 0;          ///< spans before the checkpoint that is being written
    std::size_t joinable_from_ = 0;    ///< earlier spans are not made longer
};

}  // namespace detail
}  // namespace rheo::inline v0
