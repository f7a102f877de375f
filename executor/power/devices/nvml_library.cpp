// SPDX-License-Identifier: Apache-2.0
#include "executor/power/devices/nvml_library.hpp"

#include <dlfcn.h>

namespace rheo::inline v0::power {

namespace {

/// Takes a function out of the library; one that is not there stays null.
template <class Function>
bool take(void* handle, char const* name, Function*& into)
{
    into = reinterpret_cast<Function*>(::dlsym(handle, name));
    return into != nullptr;
}

/// @return the first name that is missing among those without which nothing works
char const* take_all(void* handle, nvml::functions& f)
{
    char const* missing = nullptr;
    auto const needed = [&](char const* name, auto*& into) {
        if (!take(handle, name, into) && missing == nullptr) {
            missing = name;
        }
    };
    needed("nvmlInit_v2", f.nvmlInit_v2);
    needed("nvmlShutdown", f.nvmlShutdown);
    needed("nvmlErrorString", f.nvmlErrorString);
    needed("nvmlDeviceGetCount_v2", f.nvmlDeviceGetCount_v2);
    needed("nvmlDeviceGetHandleByIndex_v2", f.nvmlDeviceGetHandleByIndex_v2);
    needed("nvmlDeviceGetHandleByUUID", f.nvmlDeviceGetHandleByUUID);
    needed("nvmlDeviceGetHandleByPciBusId_v2", f.nvmlDeviceGetHandleByPciBusId_v2);
    needed("nvmlDeviceGetName", f.nvmlDeviceGetName);
    needed("nvmlDeviceGetUUID", f.nvmlDeviceGetUUID);
    take(handle, "nvmlDeviceGetPciInfo_v3", f.nvmlDeviceGetPciInfo_v3);
    take(handle, "nvmlDeviceGetSupportedMemoryClocks", f.nvmlDeviceGetSupportedMemoryClocks);
    take(handle, "nvmlDeviceGetSupportedGraphicsClocks", f.nvmlDeviceGetSupportedGraphicsClocks);
    take(handle, "nvmlDeviceSetGpuLockedClocks", f.nvmlDeviceSetGpuLockedClocks);
    take(handle, "nvmlDeviceResetGpuLockedClocks", f.nvmlDeviceResetGpuLockedClocks);
    take(handle, "nvmlDeviceGetClockInfo", f.nvmlDeviceGetClockInfo);
    take(handle, "nvmlDeviceGetTotalEnergyConsumption", f.nvmlDeviceGetTotalEnergyConsumption);
    take(handle, "nvmlDeviceGetCurrentClocksEventReasons", f.nvmlDeviceGetCurrentClocksEventReasons);
    take(handle, "nvmlDeviceGetCurrentClocksThrottleReasons", f.nvmlDeviceGetCurrentClocksThrottleReasons);
    return missing;
}

device_error_code cause_of(nvml::result code)
{
    switch (code) {
    case nvml::error_no_permission: return device_error_code::no_permission;
    case nvml::error_not_supported: return device_error_code::not_supported;
    case nvml::error_not_found:
    case nvml::error_driver_not_loaded: return device_error_code::not_found;
    case nvml::error_gpu_is_lost: return device_error_code::lost;
    default: return device_error_code::failed;
    }
}

}  // namespace

device_result<std::shared_ptr<nvml_library const>> nvml_library::load(std::string const& name)
{
    std::shared_ptr<nvml_library> library{new nvml_library};
    library->name_ = name;
    library->handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library->handle_ == nullptr) {
        char const* const why = ::dlerror();
        return device_error{device_error_code::not_found, "NVML cannot be loaded: " + std::string{why != nullptr ? why : name}};
    }
    if (char const* const missing = take_all(library->handle_, library->call_)) {
        return library->missing(missing);
    }
    if (auto const code = library->call_.nvmlInit_v2(); code != nvml::success) {
        return library->refused(code, "initialising it");
    }
    library->initialised_ = true;
    return std::shared_ptr<nvml_library const>{library};
}

nvml_library::~nvml_library()
{
    if (initialised_) {
        call_.nvmlShutdown();
    }
    if (handle_ != nullptr) {
        ::dlclose(handle_);
    }
}

device_result<unsigned> nvml_library::devices() const
{
    unsigned count = 0;
    if (auto const code = call_.nvmlDeviceGetCount_v2(&count); code != nvml::success) {
        return refused(code, "counting devices");
    }
    return count;
}

device_error nvml_library::refused(nvml::result code, std::string_view query) const
{
    char const* const text = call_.nvmlErrorString(code);
    return {cause_of(code),
            "NVML refuses " + std::string{query} + ": " + (text != nullptr ? text : "an error without a name") + " (" + std::to_string(code) + ")"};
}

device_error nvml_library::missing(std::string_view function) const { return {device_error_code::not_supported, name_ + " has no " + std::string{function}}; }

}  // namespace rheo::inline v0::power
