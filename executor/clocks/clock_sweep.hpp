#pragma once
// SPDX-License-Identifier: Apache-2.0

// A profile made in a running training: some steps at each clock, from the highest down, until the energy of computing has
// risen five times one after the other (Chung et al., Perseus, SOSP 2024, section 5, whose profiler does so) or the clocks or the
// steps are at an end. Bits do not depend on clocks, so the training is the same. A rank measures its stages; what a
// stage takes is shared out to its layers by their modelled times, so that the profile serves every plan.

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "rheo/energy/profile/profile.hpp"
#include "rheo/partition/cuts.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// All computations of one kind on one stage, together.
struct computed_sum {
    std::int64_t count = 0;
    seconds time{};
    joules energy{};

    friend bool operator==(computed_sum const&, computed_sum const&) = default;
};

using computed_sums = std::map<std::pair<int, instruction_kind>, computed_sum>;  ///< by stage of one copy of the model

struct sweep_rule {
    int settle = 1;   ///< steps at a clock that are not counted: it may not be there yet
    int measure = 3;  ///< and those that are
    int rises = 5;    ///< of the energy, one after the other: then no lower clock is tried

    friend bool operator==(sweep_rule, sweep_rule) = default;
};

/// At which of its clocks, counted from the highest, every rank is now. Only what all ranks know alike goes in.
class clock_sweep {
public:
    explicit clock_sweep(sweep_rule rule = {}) : rule_{rule} {}

    bool ended() const { return ended_; }
    std::size_t place() const { return at_; }
    bool measures() const { return !ended_ && step_ >= rule_.settle; }  ///< the step at hand counts

    /// A step is committed. @param computing the energy that all computations of all ranks drew in it
    /// @param clocks that every rank has, at least one
    void committed(joules computing, std::size_t clocks);

private:
    sweep_rule rule_;
    std::size_t at_ = 0;
    bool ended_ = false;
    int step_ = 0;
    joules drawn_{};   ///< in the steps that count at this clock
    joules before_{};  ///< at the clock before
    int rises_ = 0;
};

/// What this rank has measured, layer by layer.
class sweep_rows {
public:
    /// Takes note of a step. @param cuts of the stages  @param layer_times as modelled: only their ratios count
    /// @param throttled the device did not hold the clock all the time
    void take(megahertz clock, computed_sums const& sums, std::span<layer_id const> cuts, std::span<seconds const> layer_times, bool throttled = false);

    /// How long this rank waited in a step, and what it drew meanwhile.
    void waited(seconds time, joules energy);

    /// For others, and back: clock, layer and kind with count, time and energy.
    std::vector<std::int64_t> words() const;
    void add(std::span<std::int64_t const> words);

    /// The mean of each computation, as a profile; computations that drew nothing known are left out. What was measured at a clock only while a
    /// device was throttled is marked; else such measurements do not count.
    profile rows() const;

    /// What a device draws while it waits; 0: not known.
    watts blocking() const { return waiting_.time > seconds{} ? waiting_.energy / waiting_.time : watts{}; }

private:
    struct key {
        int layer;
        instruction_kind kind;
        double below;   ///< the clock, negative: the highest comes first
        int throttled;  ///< 0 or 1
        friend auto operator<=>(key const&, key const&) = default;
    };
    std::map<key, computed_sum> sums_;
    computed_sum waiting_;
};

}  // namespace rheo::inline v0
