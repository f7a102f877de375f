#pragma once
// SPDX-License-Identifier: Apache-2.0

// A schedule from a file, as a value like any family: it is there for the one number of ranks and microbatches that
// it was written for, and at other sizes it cannot be made.

#include <string>
#include <utility>

#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/shape_error.hpp"

namespace rheo::inline v0 {

/// An any_schedule refers to the object, which must outlive it.
class written_schedule : public detail::schedule_family {
public:
    /// @pre the program computes a whole step of so many microbatches; its positions are numbered as its stages first name them
    written_schedule(std::string called, rheo::program written, int of_microbatches)
        : detail::schedule_family{{}, {}, &fault_there, &program_there, false, of_microbatches}, called_{std::move(called)}, written_{std::move(written)}
    {
        name = called_;
    }
    written_schedule(written_schedule const&) = delete;
    written_schedule& operator=(written_schedule const&) = delete;

private:
    static shape_error fault_there(detail::schedule_family const& family, schedule_shape shape)
    {
        auto const& self = static_cast<written_schedule const&>(family);
        bool const same = shape.ranks == static_cast<int>(self.written_.rows.size()) && shape.microbatches == self.microbatches;
        return same ? shape_error::none : shape_error::written_for_another_size;
    }
    static rheo::program program_there(detail::schedule_family const& family, schedule_shape) { return static_cast<written_schedule const&>(family).written_; }

    std::string called_;
    rheo::program written_;
};

/// The program with its rows in the order in which its stages first name them, as pipelines number their positions.
template <class OnlyWhenCalled = void>
program in_order_of_stages(program p)
{
    std::vector<int> position(p.rows.size(), -1);
    int next = 0;
    for (auto& row : p.placement) {
        auto& there = position[static_cast<std::size_t>(row)];
        if (there < 0) {
            there = next++;
        }
    }
    program result{{}, std::vector<std::vector<instruction>>(p.rows.size()), p.copies, p.slices};
    for (auto const row : p.placement) {
        result.placement.push_back(position[static_cast<std::size_t>(row)]);
    }
    for (std::size_t row = 0; row < p.rows.size(); ++row) {
        auto const to = position[row] < 0 ? next++ : position[row];  // a row without a stage comes last
        result.rows[static_cast<std::size_t>(to)] = std::move(p.rows[row]);
    }
    return result;
}

}  // namespace rheo::inline v0
