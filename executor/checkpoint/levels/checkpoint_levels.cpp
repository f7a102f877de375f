// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/levels/checkpoint_levels.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "executor/checkpoint/levels/local_folder.hpp"
#include "executor/checkpoint/part_files.hpp"

namespace rheo::inline v0 {

namespace {

/// The moments of a part that is written to the node's disk.
std::function<void(checkpoint_point)> local_moments(std::function<void(checkpoint_point)> const& at)
{
    return [at](checkpoint_point point) {
        if (point == checkpoint_point::state_torn) {
            at(checkpoint_point::local_torn);
        } else if (point == checkpoint_point::part) {
            at(checkpoint_point::local);
        }
    };
}

}  // namespace

checkpoint_levels::checkpoint_levels(std::filesystem::path local, int node_size, int copies, rank_id self, std::function<void(checkpoint_point)> const& at)
    : local_{std::move(local)}, node_size_{node_size}, most_copies_{copies}, self_{self}, writer_{local_, local_moments(at)}, copying_{self, at}
{
}

std::shared_ptr<growing_part> checkpoint_levels::begin(std::optional<checkpoint_part> part, std::string about, begun_checkpoint const& which,
                                                       std::span<rank_id const> origins)
{
    auto const folder = local_step_folder(local_, which.step, which.generation);
    std::shared_ptr<growing_part> own;
    writes_ = part.has_value();
    if (writes_) {
        auto const shared = std::make_shared<checkpoint_part const>(std::move(*part));
        own = std::make_shared<growing_part>(folder, self_, sizes_of(*shared));
        auto write = [own, shared, text = std::move(about)](part_progress const& on) { return write_part(*own, *shared, text, on); };
        writer_.begin({folder, self_, which.step}, std::move(write));
    }
    copies_ = std::min(most_copies_, nodes_of(which.members, node_size_) - 1);
    copying_.begin(replica_routes(origins, which.members, node_size_, copies_), folder, own);
    return own;
}

void checkpoint_levels::keep_local()
{
    if (writes_) {
        writer_.hand_over();
    }
}

void checkpoint_levels::drop_before(step_id step)
{
    old_files_.add([local = local_, step] {
        drop_local_before(local, step);
        std::error_code ignored;
        std::filesystem::remove(local, ignored);  // fails while something is in it
    });
}

void checkpoint_levels::give_up()
{
    writer_.abandon();
    copying_.give_up();
}

void checkpoint_levels::forget()
{
    give_up();
    copying_.forget();
}

}  // namespace rheo::inline v0
