#pragma once
// SPDX-License-Identifier: Apache-2.0

// NVML, loaded when the program runs. A machine without it builds and runs the same program, which reports that in a
// sentence what is missing.

#include <memory>
#include <string>
#include <string_view>

#include "executor/power/device_result.hpp"
#include "executor/power/devices/nvml_abi.hpp"

namespace rheo::inline v0::power {

class nvml_library {
public:
    static constexpr char const* default_name = "libnvidia-ml.so.1";

    /// Loads and initialises it. A relative name without a slash is looked up as the loader does.
    static device_result<std::shared_ptr<nvml_library const>> load(std::string const& name = default_name);
    ~nvml_library();
    nvml_library(nvml_library const&) = delete;
    nvml_library& operator=(nvml_library const&) = delete;

    std::string const& name() const { return name_; }
    nvml::functions const& call() const { return call_; }

    /// How many devices it sees.
    device_result<unsigned> devices() const;

    /// The sentence for a code that is not success. @param query what was tried, e.g. "locking the clock of GPU-1"
    device_error refused(nvml::result code, std::string_view query) const;

    /// The sentence for a function that the library does not have.
    device_error missing(std::string_view function) const;

private:
    nvml_library() = default;

    std::string name_;
    void* handle_ = nullptr;
    bool initialised_ = false;
    nvml::functions call_;
};

}  // namespace rheo::inline v0::power
