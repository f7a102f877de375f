#pragma once
// SPDX-License-Identifier: Apache-2.0

// The part of NVML's binary interface that clocks and energy need, declared here, so that neither its header nor its
// library is needed to build. Names, numbers and signatures are those of NVIDIA's "NVML API Reference Guide"
// (docs.nvidia.com/deploy/nvml-api); the versioned names (_v2) are what its header maps the plain ones to.

namespace rheo::inline v0::power::nvml {

struct device_state;
using device = device_state*;
using result = int;  ///< nvmlReturn_t

inline constexpr result success = 0;
inline constexpr result error_invalid_argument = 2;
inline constexpr result error_not_supported = 3;
inline constexpr result error_no_permission = 4;
inline constexpr result error_not_found = 6;
inline constexpr result error_insufficient_size = 7;
inline constexpr result error_driver_not_loaded = 9;
inline constexpr result error_gpu_is_lost = 15;
inline constexpr result error_unknown = 999;

inline constexpr int clock_graphics = 0;  ///< nvmlClockType_t

// Bits of nvmlDeviceGetCurrentClocksEventReasons, earlier called throttle reasons. Idle (0x1), clocks that a user has
// set (0x2) and the display's (0x100) are no throttling.
inline constexpr unsigned long long event_power_cap = 0x4;
inline constexpr unsigned long long event_hardware_slowdown = 0x8;
inline constexpr unsigned long long event_sync_boost = 0x10;
inline constexpr unsigned long long event_thermal_software = 0x20;
inline constexpr unsigned long long event_thermal_hardware = 0x40;
inline constexpr unsigned long long event_power_brake = 0x80;

inline constexpr unsigned name_size = 96;
inline constexpr unsigned uuid_size = 96;

/// nvmlPciInfo_t
struct pci_info {
    char bus_id_legacy[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned pci_device_id;
    unsigned pci_subsystem_id;
    char bus_id[32];
};

/// The functions by their names in the library. Those of the second half are missing in older drivers.
struct functions {
    result (*nvmlInit_v2)() = nullptr;
    result (*nvmlShutdown)() = nullptr;
    char const* (*nvmlErrorString)(result) = nullptr;
    result (*nvmlDeviceGetCount_v2)(unsigned*) = nullptr;
    result (*nvmlDeviceGetHandleByIndex_v2)(unsigned, device*) = nullptr;
    result (*nvmlDeviceGetHandleByUUID)(char const*, device*) = nullptr;
    result (*nvmlDeviceGetHandleByPciBusId_v2)(char const*, device*) = nullptr;
    result (*nvmlDeviceGetName)(device, char*, unsigned) = nullptr;
    result (*nvmlDeviceGetUUID)(device, char*, unsigned) = nullptr;

    result (*nvmlDeviceGetPciInfo_v3)(device, pci_info*) = nullptr;
    result (*nvmlDeviceGetSupportedMemoryClocks)(device, unsigned*, unsigned*) = nullptr;
    result (*nvmlDeviceGetSupportedGraphicsClocks)(device, unsigned, unsigned*, unsigned*) = nullptr;
    result (*nvmlDeviceSetGpuLockedClocks)(device, unsigned, unsigned) = nullptr;
    result (*nvmlDeviceResetGpuLockedClocks)(device) = nullptr;
    result (*nvmlDeviceGetClockInfo)(device, int, unsigned*) = nullptr;
    result (*nvmlDeviceGetTotalEnergyConsumption)(device, unsigned long long*) = nullptr;  ///< in mJ
    result (*nvmlDeviceGetCurrentClocksEventReasons)(device, unsigned long long*) = nullptr;
    result (*nvmlDeviceGetCurrentClocksThrottleReasons)(device, unsigned long long*) = nullptr;
};

}  // namespace rheo::inline v0::power::nvml
