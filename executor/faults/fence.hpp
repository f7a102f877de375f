#pragma once
// SPDX-License-Identifier: Apache-2.0

// The fence of law 4: before a membership does anything it links, atomically, the file named after the
// generation that it ends. Only one membership can; the others find that they were left behind. The run
// folder is the one thing that all ranks must share. It is held open from the start, so it may be renamed while the job runs; and a file
// for the next loss is made before it is needed, so that a disk that has filled up since does not end the job.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rheo/recover/action.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

/// The run folder is not usable at the moment: there is no room, say. It may be later, so the trainer tries again.
struct folder_not_writable : exit_error {
    explicit folder_not_writable(std::string const& message) : exit_error{exit_code::environment, message} {}
};

class fence {
public:
    /// @throws exit_error
    fence(std::filesystem::path folder, rank_id self);
    ~fence();
    fence(fence const&) = delete;
    fence& operator=(fence const&) = delete;

    /// Links `after-<ended>` with launch and members. True when it is there with this content, by any rank of this
    /// membership; false when another membership was first. The lowest member
    /// removes what ranks that died had not linked. @throws exit_error when the folder was removed, else folder_not_writable
    bool link(link_generation const& generation);

    /// Makes a file with room for what the members that are left will link. Where that is not possible link() tries without.
    void prepare(link_generation const& now) noexcept;

private:
    bool is_ours(std::string const& target, std::string const& text, bool& there) const;
    void write(std::string const& text, bool whole) const;
    bool linked_by_member(link_generation const& generation) const;

    std::filesystem::path folder_;
    rank_id self_;
    std::string room_;     ///< the name of this rank's file
    int descriptor_ = -1;  ///< of the folder
};

/// The last generation that any launch began in the folder; 0 when there was none (the first one is 1).
generation_id last_generation(std::filesystem::path const& folder);

/// fence::link, once. @throws exit_error
bool link_generation_file(std::filesystem::path const& folder, link_generation const& generation, rank_id self);

}  // namespace rheo::inline v0
