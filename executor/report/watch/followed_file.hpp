#pragma once
// SPDX-License-Identifier: Apache-2.0

// A file of lines that another process writes: its whole lines since the last look. A file that was replaced or cut begins again.

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rheo::inline v0 {

class followed_file {
public:
    explicit followed_file(std::string path) : path_{std::move(path)} {}

    struct news {
        bool is_there = false;
        bool began_again = false;  ///< lines of before no longer count
        std::vector<std::string> lines{};
    };

    /// Reads what is new. A line without its end waits until it has it. Cost: one stat where nothing is new.
    news poll();

private:
    std::string path_;
    dev_t device_ = 0;
    ino_t node_ = 0;
    std::int64_t read_ = 0;  ///< bytes, to the end of a line
};

}  // namespace rheo::inline v0
