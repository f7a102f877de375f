#pragma once
// SPDX-License-Identifier: Apache-2.0

// A copy of arrays that is made beside the training: it continues at once, because a step only reads its state, and before it changes the arrays it waits for
// what is not copied yet, and helps. So a checkpoint costs it the copy only where a step is shorter than the copy.

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace rheo::inline v0 {

class state_snapshot {
public:
    static constexpr std::size_t piece_elements = std::size_t{1} << 19;  ///< 2 MiB

    /// Begins to copy. @pre the arrays stay as they are until release()
    explicit state_snapshot(std::vector<std::span<float const>> arrays);
    ~state_snapshot();  ///< what is not copied is left
    state_snapshot(state_snapshot const&) = delete;
    state_snapshot& operator=(state_snapshot const&) = delete;

    /// Until nothing of the arrays is read any more: copies what is left, side by side with the other thread. From then on they may change.
    void release();

    /// The same where the copy is not wanted any more: what is not copied is left.
    void give_up();

    /// The copy of an array. Waits until it is there. @throws exit_error: it was given up
    std::span<float const> array(std::size_t which);

private:
    struct piece {
        std::size_t array;
        std::size_t first;
        std::size_t count;
    };

    bool copy_next();

    std::vector<std::span<float const>> arrays_;
    std::vector<std::unique_ptr<float[]>> copies_;
    std::vector<piece> pieces_;
    std::mutex mutex_{};
    std::condition_variable changed_{};
    std::size_t next_ = 0;           ///< piece; those before it are copied or being copied
    std::size_t being_copied_ = 0;   ///< pieces
    std::vector<std::size_t> left_;  ///< pieces of each array that are not copied
    bool given_up_ = false;
    std::thread thread_;
};

}  // namespace rheo::inline v0
