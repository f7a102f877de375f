// SPDX-License-Identifier: Apache-2.0
#include "energy.hpp"

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

#include "executor/power/devices/nvml_device.hpp"
#include "kernels/cuda/error.hpp"

namespace bench {

using namespace rheo;

struct energy_reader::device {
    power::nvml_device nvml;
};

energy_reader::energy_reader(std::string const& library)
{
    char address[32] = {};
    cuda::check(cudaDeviceGetPCIBusId(address, sizeof address, 0), "cudaDeviceGetPCIBusId");
    auto const loaded = power::nvml_library::load(library.empty() ? power::nvml_library::default_name : library);
    if (!loaded) {
        message_ = loaded.error().message;
        return;
    }
    auto opened = power::nvml_device::open(*loaded, address);
    if (!opened) {
        message_ = opened.error().message;
        return;
    }
    if (auto const joules = opened->energy(); !joules) {
        message_ = joules.error().message;
        return;
    }
    device_ = std::make_unique<device>(device{std::move(*opened)});
    message_ = "by NVML";
}

double energy_reader::of_one(std::function<void()> const& call, double seconds, double long_enough) const
{
    if (device_ == nullptr) {
        return 0;
    }
    auto const times = std::clamp<std::int64_t>(static_cast<std::int64_t>(long_enough / seconds) + 1, 1, 1'000'000);
    auto const joules_now = [&] {
        cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        auto const all = device_->nvml.energy();
        return all ? all->count : 0.0;
    };
    double const before = joules_now();
    for (std::int64_t i = 0; i < times; ++i) {
        call();
    }
    return std::max(0.0, (joules_now() - before) / static_cast<double>(times));
}

double energy_reader::clock_mhz() const
{
    if (device_ == nullptr) {
        return 0;
    }
    auto const clock = device_->nvml.clock_now();
    return clock ? clock->count : 0.0;
}

energy_reader::~energy_reader() = default;

}  // namespace bench
