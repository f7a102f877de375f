#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a device says: a value, or why not in one sentence. Permission is lost in the middle of a run, counters are
// missing, devices fall off the bus; none of that is an error of training, so none of it is an exception. No result<T>: its errors have codes.

#include <string>
#include <utility>
#include <variant>

namespace rheo::inline v0::power {

enum class device_error_code {
    no_permission,  ///< another way to the same device may have it
    not_found,
    not_supported,
    lost,  ///< it was there before
    failed,
};

struct device_error {
    device_error_code code = device_error_code::failed;
    std::string message;

    friend bool operator==(device_error const&, device_error const&) = default;
};

/// The answer that has nothing more to say.
struct done {
    friend bool operator==(done, done) = default;
};

template <class T>
class [[nodiscard]] device_result {
public:
    device_result(T value) : is_{std::in_place_index<0>, std::move(value)} {}
    device_result(device_error error) : is_{std::in_place_index<1>, std::move(error)} {}

    explicit operator bool() const { return is_.index() == 0; }

    /// @pre it is a value
    T const& operator*() const { return std::get<0>(is_); }
    T& operator*() { return std::get<0>(is_); }
    T const* operator->() const { return &std::get<0>(is_); }
    T* operator->() { return &std::get<0>(is_); }

    /// @pre it is none
    device_error const& error() const { return std::get<1>(is_); }

private:
    std::variant<T, device_error> is_;
};

}  // namespace rheo::inline v0::power
