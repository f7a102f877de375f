#pragma once
// SPDX-License-Identifier: Apache-2.0

// Reads of a mapped file that may be cut while it is mapped. The kernel answers such a read with SIGBUS, which ends the process; here it ends the
// copy, and the caller reports an error about the file.

#include <cstddef>

namespace rheo::inline v0 {

/// Copies bytes of a mapped file. @returns false when they are not in the file any more; what was copied means nothing then
bool copy_mapped(void* to, void const* from, std::size_t count) noexcept;

}  // namespace rheo::inline v0
