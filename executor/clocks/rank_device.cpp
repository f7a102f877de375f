// SPDX-License-Identifier: Apache-2.0
#include "executor/clocks/rank_device.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "executor/power/devices/cpu_device.hpp"
#include "executor/power/devices/nvml_device.hpp"
#include "executor/power/devices/zeusd.hpp"
#include "rheo/energy/profile/profile_csv.hpp"
#include "rheo/energy/profile/split_backward.hpp"
#include "rheo/energy/profile/stage_profile.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

using power::device_error_code;

namespace {

/// A device twice: to be set, and to be read.
struct opened_device {
    power::any_power_device to_set;
    power::any_power_device to_read;
    power::any_power_device to_watch;
    std::string pci_address{};
    bool counts = true;
};

power::device_result<opened_device> open_gpu(power_config const& config, int place)
{
    auto const library = power::nvml_library::load(config.nvml);
    if (!library) {
        return library.error();
    }
    auto to_set = power::nvml_devices(*library);
    auto to_read = power::nvml_devices(*library);
    auto to_watch = power::nvml_devices(*library);
    if (to_set.empty() || to_read.size() != to_set.size() || to_watch.size() != to_set.size()) {
        return power::device_error{device_error_code::not_found, fmt::format("{} sees no device", config.nvml)};
    }
    auto const which = static_cast<std::size_t>(place) % to_set.size();
    auto address = to_set[which].pci_address();
    return opened_device{std::move(to_set[which]), std::move(to_read[which]), std::move(to_watch[which]), std::move(address),
                         static_cast<std::size_t>(place) < to_set.size()};
}

power::device_result<opened_device> open_processor(power_config const& config, int place)
{
    auto to_set = power::cpu_device::open(-1, config.sysfs);
    auto to_read = power::cpu_device::open(-1, config.sysfs);
    auto to_watch = power::cpu_device::open(-1, config.sysfs);
    if (!to_set || !to_read || !to_watch) {
        return !to_set ? to_set.error() : !to_read ? to_read.error() : to_watch.error();
    }
    return opened_device{std::move(*to_set), std::move(*to_read), std::move(*to_watch), {}, place == 0};
}

power::device_result<opened_device> open_device(power_config const& config, int place)
{
    if (config.device == power_source::cpu) {
        return open_processor(config, place);
    }
    auto gpu = open_gpu(config, place);
    if (gpu || config.device == power_source::nvml) {
        return gpu;
    }
    auto processor = open_processor(config, place);
    return processor ? std::move(processor) : power::device_error{device_error_code::not_found, gpu.error().message + "; " + processor.error().message};
}

}  // namespace

power::device_result<std::unique_ptr<rank_device>> rank_device::open(power_config const& config, profile const& layers, rank_id self, int place,
                                                                     group_exchanges exchanges)
{
    std::unique_ptr<rank_device> device{new rank_device};
    auto& d = *device;
    d.layers_ = layers;
    d.exchanges_ = std::move(exchanges);
    d.blocking_ = blocking_of(layers, config.blocking);
    if (config.device == power_source::emulated) {
        d.emulated_.emplace(
            layers, power::emulated_options{.rank = self,
                                            .blocking = d.blocking_,
                                            .switch_latency = config.switch_latency,
                                            .pace = config.pace == emulation_pace::profile ? power::emulated_pace::profile : power::emulated_pace::machine});
        d.clocks_ = *d.emulated_->clocks();
        d.highest_ = d.requested_ = d.clocks_.front();
        d.name_ = d.emulated_->name();
        return device;
    }
    auto opened = open_device(config, place);
    if (!opened) {
        return opened.error();
    }
    d.name_ = opened->to_read.name();
    d.counts_ = opened->counts;
    d.sampler_ = std::make_unique<power::energy_sampler>(std::move(opened->to_read));
    d.begun_ = d.sampler_->at(std::chrono::steady_clock::now());
    if (layers.rows.empty() && config.sweep.empty()) {
        return device;
    }
    auto const clocks = opened->to_set.clocks();
    if (!clocks) {
        return clocks.error();
    }
    d.clocks_ = *clocks;
    d.highest_ = d.clocks_.front();
    d.watched_.emplace(std::move(opened->to_watch));
    power::setter_config setting;
    setting.ladder = {.zeusd = config.zeusd.empty() ? power::zeusd_socket() : config.zeusd,
                      .pci_address = opened->pci_address,
                      .lock_command = config.lock_command,
                      .restore_command = config.restore_command};
    setting.guardian = config.guardian;
    if (!config.claims.empty()) {
        setting.claims = config.claims;
    }
    setting.say = [&d, first = true](std::string const& message) mutable {
        if (std::exchange(first, false)) {
            return;  // on which rung it is, which sentence() shows
        }
        std::lock_guard const lock{d.mutex_};
        d.news_.push_back(message);
    };
    d.setter_ = std::make_unique<power::clock_setter>(std::move(opened->to_set), std::move(setting));
    return device;
}

std::string rank_device::message() const
{
    if (emulated_) {
        return name_;
    }
    if (!setter_) {
        return name_ + ": its clock is left alone";
    }
    setter_->settled_within({5.0});
    return fmt::format("{}: {}", name_, setter_->status().message);
}

bool rank_device::throttled()
{
    auto const throttling = watched_ ? watched_->throttled() : power::device_result<power::throttling>{power::throttling{}};
    return throttling && static_cast<bool>(*throttling);
}

std::string rank_device::permission() const
{
    if (!setter_) {
        return emulated_ ? "emulated" : "";
    }
    setter_->settled_within({5.0});
    return std::string{name_of(setter_->status().rung)};
}

std::vector<megahertz> rank_device::clocks()
{
    if (!setter_) {
        return clocks_;
    }
    setter_->settled_within({5.0});
    if (setter_->status().rung != power::clock_rung::advise_only) {
        return clocks_;
    }
    auto const now = watched_->clock_now();
    return {now ? *now : highest_};
}

std::vector<std::string> rank_device::news()
{
    std::lock_guard const lock{mutex_};
    return std::exchange(news_, {});
}

void rank_device::computes(pipeline_instance const& pipeline, rank_id self)
{
    if (layers_.rows.empty()) {
        return;
    }
    auto stages = profile_of_stages(layers_, pipeline.cuts);
    expects(static_cast<bool>(stages), "stages of a plan with clocks have a profile");
    auto const chain = static_cast<std::size_t>(stage_count(pipeline.cuts));
    std::vector<char> done(chain);  // two copies of the model have the same stages
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
        auto const& group = pipeline.stages[s];
        auto const member = std::find(group.begin(), group.end(), self);
        if (member == group.end() || std::exchange(done[s % chain], 1) != 0) {
            continue;
        }
        auto const sharing = sharing_of(pipeline, stage_id{static_cast<int>(s)}, exchanges_, static_cast<int>(member - group.begin()));
        for (auto& row : stages->rows) {
            if (at(row.stage) == s % chain && is_compute(row.kind)) {
                row = shared_by_member(row, sharing, blocking_);
            }
        }
    }
    rows_.clear();
    for (auto const& row : stages->rows) {
        if (auto& options = rows_[{row.stage.value, row.kind}]; options.empty()) {
            options = options_of(*stages, rank_id{-1}, row.stage, row.kind);
        }
    }
    if (emulated_) {
        emulated_->computes(*stages);
    }
}

void rank_device::request(megahertz clock)
{
    auto const wanted = clock.count > 0.0 ? clock : highest_;
    if (wanted == requested_) {
        return;
    }
    requested_ = wanted;
    if (setter_) {
        setter_->request(wanted);
    } else if (emulated_) {
        expects(static_cast<bool>(emulated_->lock(wanted)), "a plan has clocks of its profile");
    }
}

power::computation rank_device::computed(instruction_kind kind, stage_id stage, seconds took, double slowness)
{
    if (emulated_) {
        return emulated_->computed(kind, stage, took, slowness);
    }
    auto const now = std::chrono::steady_clock::now();
    auto const began = now - std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>{took.count});
    auto const before = sampler_->at(began);
    power::computation account{{}, sampler_->at(now) - before, took, {}};
    if (auto const status = setter_ ? setter_->status() : power::setter_status{}; status.holds) {
        account.clock = *status.holds;
        if (auto const row = rows_.find({stage.value, kind}); row != rows_.end()) {
            for (auto const& option : row->second) {
                account.expected = option.clock == account.clock || option.clock.count == 0.0 ? option.time : account.expected;
            }
        }
    }
    return account;
}

joules rank_device::energy()
{
    if (emulated_) {
        return *emulated_->energy();
    }
    return counts_ ? sampler_->at(std::chrono::steady_clock::now()) - begun_ : joules{};
}

power::device_result<profile> read_clock_profile(power_config const& config, int layers)
{
    std::ifstream file{config.clock_profile, std::ios::binary};
    if (!file) {
        return power::device_error{device_error_code::not_found, fmt::format("{}: this profile cannot be read", config.clock_profile)};
    }
    auto read = parse_profile(std::string{std::istreambuf_iterator<char>{file}, {}}, config.clock_profile);
    if (!read) {
        return power::device_error{device_error_code::failed, read.error()};
    }
    if (stages_of(*read) != layers) {
        return power::device_error{device_error_code::failed, fmt::format("{}: a profile of {} stages, but the model has {} layers, and its rows are by layer",
                                                                          config.clock_profile, stages_of(*read), layers)};
    }
    std::vector<megahertz> clocks;
    for (auto const& row : read->rows) {
        if (row.rank.value >= 0) {
            return power::device_error{device_error_code::failed,
                                       fmt::format("{}: a profile by rank serves no training, whose ranks may change their places", config.clock_profile)};
        }
        if (row.clock.count > 0.0 && !row.throttled && std::find(clocks.begin(), clocks.end(), row.clock) == clocks.end()) {
            clocks.push_back(row.clock);
        }
    }
    if (clocks.size() < 2) {
        return power::device_error{device_error_code::failed,
                                   fmt::format("{}: this profile has {} clocks that can be held; to choose takes two", config.clock_profile, clocks.size())};
    }
    return with_split_backwards(*std::move(read), 0.5);
}

int place_on_host()
{
    for (auto const* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
        if (auto const* text = std::getenv(name); text != nullptr) {
            return std::atoi(text);
        }
    }
    return 0;
}

}  // namespace rheo::inline v0
