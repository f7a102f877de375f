#pragma once
// SPDX-License-Identifier: Apache-2.0

// A terminal whose whole screen shows lines that change. It uses the terminal's second screen, so what stood there before is back afterwards, and
// it leaves the terminal's settings alone. Each picture is one write, over the last one without clearing it, so nothing flickers.

#include <span>
#include <string>

namespace rheo::inline v0 {

class full_screen {
public:
    /// Begins. @param descriptor of the terminal
    explicit full_screen(int descriptor) : descriptor_{descriptor} { enter(); }
    ~full_screen() { leave(); }
    full_screen(full_screen const&) = delete;
    full_screen& operator=(full_screen const&) = delete;

    /// @param lines that fit the terminal. @returns false when the terminal is gone
    bool show(std::span<std::string const> lines);

    void enter();
    void leave() noexcept;  ///< the terminal is as before; enter() begins again

private:
    int descriptor_;
    bool is_entered_ = false;
};

/// What show writes.
std::string picture_of(std::span<std::string const> lines);

}  // namespace rheo::inline v0
