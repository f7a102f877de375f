#pragma once
// SPDX-License-Identifier: Apache-2.0

// The bytes of TensorBoard's event files. A file is a sequence of records as TFRecord frames them: length (8 bytes, little-endian), its masked CRC-32C,
// data, their masked CRC-32C. The data are an Event message of Protocol Buffers (tensorflow/core/util/event.proto); the first one names the version.
// A session start with step s makes TensorBoard drop the points of steps >= s that it has read before, so a run that repeats steps has each of them once.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rheo::inline v0 {

/// A point of the curve that has this name; the step is that of its event.
struct tagged_scalar {
    std::string tag;
    double value = 0;  ///< written in single precision, as a summary has it; NaN: not finite
};

/// Data as a record of TFRecord: 16 bytes more.
std::string tf_record(std::string_view data);

/// The record that begins every file. @param unix_time s
std::string version_event(double unix_time);

/// The record that hides points of this step and later ones that were read before it.
std::string session_start_event(double unix_time, std::int64_t first_step);

/// The record with points of a step.
std::string scalars_event(double unix_time, std::int64_t step, std::span<tagged_scalar const> points);

}  // namespace rheo::inline v0
