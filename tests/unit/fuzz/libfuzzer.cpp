// SPDX-License-Identifier: Apache-2.0
// The entry of libFuzzer: the reader that RHEO_FUZZ_READER names. What a reader throws beyond its own error ends the process, and that is a find.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "readers.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    static auto const* const chosen = [] {
        char const* const name = std::getenv("RHEO_FUZZ_READER");
        for (auto const& reader : fuzz::readers()) {
            if (name != nullptr && reader.name == std::string_view{name}) {
                return &reader;
            }
        }
        fuzz::broken("RHEO_FUZZ_READER names a reader");
    }();
    chosen->read({data, size});
    return 0;
}
