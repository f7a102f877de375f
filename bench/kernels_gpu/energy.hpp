#pragma once
// SPDX-License-Identifier: Apache-2.0

// The energy of a call by NVML, where the device has a counter: the call is repeated for long enough
// that the counter's steps do not matter.

#include <functional>
#include <memory>
#include <string>

namespace bench {

class energy_reader {
public:
    /// @param library of NVML; empty: the loader's
    explicit energy_reader(std::string const& library);
    ~energy_reader();
    energy_reader(energy_reader const&) = delete;
    energy_reader& operator=(energy_reader const&) = delete;

    /// Joules of one call that takes about `seconds`, repeated for about `long_enough`, the counter moving every 20 to 100 ms; 0: they cannot be read.
    double of_one(std::function<void()> const& call, double seconds, double long_enough) const;
    double clock_mhz() const;  ///< now; 0: it cannot be read
    /// What is read, or why nothing is.
    std::string const& message() const { return message_; }

private:
    struct device;
    std::unique_ptr<device> device_;
    std::string message_;
};

}  // namespace bench
