#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a device says: a value, or why not in one sentence. Permission is lost in the middle of a run, counters are
// missing, devices fall off the bus; none of that is an error of training, so none of it is an exception.

#include <string>
#include <utility>
#include <variant>

namespace rheo::inline v0::power {

enum class refusal_cause {
    no_permission,  ///< another way to the same device may have it
    not_found,
    not_supported,
    lost,           ///< it was there before
    failed,
};

struct refusal {
    refusal_cause cause = refusal_cause::failed;
    std::string sentence;

    friend bool operator==(refusal const&, refusal const&) = default;
};

/// The answer that has nothing more to say.
struct done {
    friend bool operator==(done, done) = default;
};

template <class T>
class [[nodiscard]] answer {
public:
    answer(T value) : is_{std::in_place_index<0>, std::move(value)} {}
    answer(refusal why) : is_{std::in_place_index<1>, std::move(why)} {}

    explicit operator bool() const { return is_.index() == 0; }

    /// @pre it is a value
    T const& operator*() const { return std::get<0>(is_); }
    T& operator*() { return std::get<0>(is_); }
    T const* operator->() const { return &std::get<0>(is_); }
    T* operator->() { return &std::get<0>(is_); }

    /// @pre it is none
    refusal const& why() const { return std::get<1>(is_); }

private:
    std::variant<T, refusal> is_;
};

}  // namespace rheo::inline v0::power
