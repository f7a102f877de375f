// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/profile_sweep.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "executor/config/text_file.hpp"
#include "executor/plan/planning.hpp"
#include "executor/state/collectives.hpp"
#include "rheo/energy/profile/profile_csv.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

profile_sweep::profile_sweep(job const& about, rank_device* device, records& record) : job_{&about}, device_{device}, record_{&record} {}

void profile_sweep::begin_section(mpi::messenger& messages)
{
    if (runs() && clocks_.empty()) {
        clocks_ = device_->clocks();
    }
    if (sweep_.ended() && !is_written_) {
        gather(messages);
    }
}

std::span<megahertz const> profile_sweep::row(std::size_t computations)
{
    row_.assign(computations, clocks_[sweep_.place()]);
    return row_;
}

void profile_sweep::reduced(step_totals const& totals, joules counted, seconds when)
{
    computing_ = in_joules(totals.computing);
    common_clocks_ = std::max<std::size_t>(1, totals.device_clocks);
    drawn_ = counted - std::exchange(counted_, counted);
    interval_ = when - std::exchange(reduced_at_, when);
}

bool profile_sweep::settled(bool committed, computed_sums const& sums, std::span<layer_id const> cuts, bool is_reporter)
{
    if (gathered_) {
        write(is_reporter);
        is_written_ = true;
    }
    if (!runs() || !committed) {
        return false;
    }
    bool const throttled = device_->throttled();  // also asked in steps that settle, so that the next answer is about the next step
    if (!cuts.empty() && sweep_.measures()) {
        measure(sums, cuts, throttled);
    }
    sweep_.committed(computing_, common_clocks_);
    return sweep_.ended();
}

void profile_sweep::measure(computed_sums const& sums, std::span<layer_id const> cuts, bool throttled)
{
    std::vector<seconds> modelled;  // none is zero: an embedding computes little, but moves bytes
    for (auto const& layer : planned_layers(job_->model, job_->config)) {
        modelled.push_back(layer.forward + layer.backward);
    }
    rows_.take(clocks_[sweep_.place()], sums, cuts, modelled, throttled);
    computed_sum all;
    for (auto const& [computation, sum] : sums) {
        all.time += sum.time;
        all.energy += sum.energy;
    }
    rows_.waited(interval_ - all.time, drawn_ - all.energy);
}

void profile_sweep::close(mpi::messenger& messages, bool is_reporter)
{
    if (asked_for() && !is_written_) {
        gather(messages);
        write(is_reporter);
    }
}

void profile_sweep::gather(mpi::messenger& messages)
{
    sweep_rows all;
    for (auto const& words : all_gather(messages, rows_.words())) {
        all.add(words);
    }
    gathered_ = std::move(all);
}

void profile_sweep::write(bool is_reporter)
{
    auto const& file = job_->config.power.sweep;
    if (is_reporter) {
        auto const measured = gathered_->rows();
        try {
            write_whole(file, to_csv(measured));
            record_->note(
                fmt::format("{}: {} rows of a profile by layer; a device that waits draws {:.2f} W", file, measured.rows.size(), measured.blocking.count));
            if (auto const marked = std::count_if(measured.rows.begin(), measured.rows.end(), [](profile_row const& row) { return row.throttled; });
                marked > 0) {
                record_->note(fmt::format("{} of them are marked as throttled: the device did not hold that clock, and no plan will have it there", marked));
            }
        } catch (exit_error const& error) {
            record_->note(fmt::format("the profile is lost: {}", error.what()));
        }
    }
    gathered_.reset();
}

}  // namespace rheo::inline v0
