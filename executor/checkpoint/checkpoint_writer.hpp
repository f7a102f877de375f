#pragma once
// SPDX-License-Identifier: Apache-2.0

// Writing checkpoints while training continues. Between two steps a rank copies what it has to write; a thread
// of its own puts the copy on disk, in `.step-N.<generation>`. When the parts of all ranks are there
// (each consents by a bit of a later decide) one rank publishes: manifest, rename to `step-N`, sync. Whatever dies
// wherever in between, the folder has its own name only when everything in it is on disk, and older
// checkpoints go only after that. The thread never calls MPI.
//
//   between steps      writer.begin(take_part(...));            // rank r writes the tensors t with writers[t] == r
//   before each vote   two bits: wrote nothing or state() == ready; state() != failed
//   all ready          one rank: writer.publish(...);            the others: writer.hand_over()
//   one failed         all: writer.abandon()                     // training continues, the next one is tried when it is due
//   a generation ends  writer.abandon(); start again what was being written
//   at the end         writer.wait()

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/state_snapshot.hpp"
#include "executor/config/checkpoint_point.hpp"
#include "executor/state/resident_state.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Where the values of a box are among arrays that are copied beside the training.
struct copied_beside {
    std::size_t array;       ///< of the parameter; its moments are the next two
    std::int64_t first = 0;  ///< element
    std::int64_t row = 0;    ///< elements from a row of the box to the next one

    friend bool operator==(copied_beside const&, copied_beside const&) = default;
};

/// A box of a parameter: all of it, or a piece of the part that a shard has.
struct tensor_snapshot {
    tensor_id tensor;
    std::string name;    ///< of the parameter
    tensor_shape shape;  ///< of the parameter
    index_box box;
    tensor_values values;  ///< where they are not copied beside
    std::optional<copied_beside> beside{};
};

/// What one rank writes of a checkpoint: a private copy.
struct checkpoint_part {
    rank_id rank;
    step_id step;              ///< committed steps: the next one to run
    generation_id generation;  ///< in which it was begun; with the step it names the folder
    std::vector<tensor_snapshot> tensors;
    std::shared_ptr<state_snapshot> copies{};  ///< made beside the training; null: there are none
};

enum class snapshot_kind : std::uint8_t {
    now,     ///< the state may change when the part is there
    beside,  ///< it may change after part.copies->release(), where there are copies; elsewhere at once
};

/// Which rank writes each tensor, so that every parameter is written once: tensors in the order of their size go to the holder
/// who has least to write so far, the lowest of equals. A pure function: all ranks know the whole answer.
/// @param holders tensor -> ranks that hold it  @returns tensor -> writer; rank -1 for what is no parameter
/// @pre every parameter has a holder
std::vector<rank_id> deal_writing(collection const& state, std::vector<std::vector<rank_id>> const& holders);

/// Copies the tensors that `me` has to write; beside the training only from floats that the processor reaches. Cost: 12 bytes read and written per element.
checkpoint_part take_part(resident_state const& state, std::span<rank_id const> writers, rank_id self, step_id step, generation_id generation,
                          snapshot_kind kind = snapshot_kind::now);

/// What the rank that publishes adds to the parts.
struct checkpoint_publication {
    step_id step;
    generation_id generation;
    std::vector<rank_id> parts;              ///< whose parts make the checkpoint: the distinct ranks of deal_writing
    std::vector<checkpoint_tensor> tensors;  ///< see tensors_for_manifest
    std::vector<fingerprint_line> fingerprint;
    std::string config;  ///< TOML, effective
    std::string data_digest;
    int keep_last = 3;  ///< how many checkpoints stay, this one included; 0: all
};

/// The collection with the scales that were chosen for the step that comes next.
std::vector<checkpoint_tensor> tensors_for_manifest(resident_state const& state);
/// The same before any were chosen.
std::vector<checkpoint_tensor> tensors_for_manifest(collection const& state);

/// Of all values in a checkpoint with these tensors.
bytes bytes_of(std::span<checkpoint_tensor const> tensors);

enum class writer_state : std::uint8_t {
    idle,  ///< nothing at hand
    writing,
    ready,  ///< my part is on disk
    publishing,
    published,  ///< the checkpoint is there; until the next begin
    failed,     ///< see sentence(); nothing of it will become a checkpoint
};

/// What was written last, for the metrics.
struct writing_record {
    step_id step;
    bytes written;
    seconds duration;  ///< of writing and syncing, beside the training
};

struct part_progress;

/// Where a rank's part of a checkpoint is written.
struct part_place {
    std::filesystem::path folder;
    rank_id rank;
    step_id step;
};

class checkpoint_writer {
public:
    /// @param at called at every named moment, in the writing thread
    explicit checkpoint_writer(std::filesystem::path run_folder, std::function<void(checkpoint_point)> at = {});
    ~checkpoint_writer();  ///< abandons what is not published; a publication that has begun is ended first
    checkpoint_writer(checkpoint_writer const&) = delete;
    checkpoint_writer& operator=(checkpoint_writer const&) = delete;

    /// Starts to write; returns at once, unless an earlier checkpoint is just being published: then when that is done.
    /// @pre state() is neither writing nor ready
    void begin(checkpoint_part part);
    /// The same of a part that comes from elsewhere, or goes elsewhere. @param write puts it there: called in the writing thread; may throw exit_error
    void begin(part_place place, std::function<bytes(part_progress const&)> write);
    writer_state state() const;
    std::string message() const;     ///< why it failed, with the file's name; empty unless failed
    writing_record written() const;  ///< of the last part that became ready

    /// Starts to publish what all ranks have written; returns at once. @pre all parts are ready; exactly one rank calls it, whether it
    /// has a part itself or not
    void publish(checkpoint_publication publication);
    /// The part at hand belongs to the rank that publishes now: idle again, the files stay. @pre state() is ready
    void hand_over();
    /// Forgets the part at hand: what is being written ends soon and is removed, by and by. A publication continues.
    void abandon();
    /// Until nothing is being written or published. @returns state()
    writer_state wait();

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

/// Removes what writers of earlier generations left behind that became no checkpoint. What cannot be removed stays, harmless.
/// @param before left out: of all generations, when no rank writes
void drop_unfinished_checkpoints(std::filesystem::path const& run_folder, generation_id before = generation_id{INT32_MAX});

}  // namespace rheo::inline v0
