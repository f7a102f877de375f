#pragma once
// SPDX-License-Identifier: Apache-2.0

// The one exception that ends in a message and an exit code. Where it is thrown is known what is wrong, so the code is chosen there,
// and a catch needs no list of types. A type derives from it only where a catch tells it apart. A broken contract is a
// precondition_error, and the loss of a peer is an event with types of its own (executor/mpi/error.hpp).

#include <exception>
#include <stdexcept>
#include <string>

#include "rheo/units/exit_code.hpp"

namespace rheo::inline v0 {

/// Something outside of the program's control is wrong: a sentence that says what, where, and what was expected.
struct exit_error : std::runtime_error {
    exit_error(exit_code ends_with, std::string const& message) : std::runtime_error{message}, code{ends_with} {}
    exit_code code;
};

/// The code of any exception: its own, or `environment` for those of the standard library (no memory, say).
inline exit_code exit_code_of(std::exception const& error)
{
    auto const* const known = dynamic_cast<exit_error const*>(&error);
    return known != nullptr ? known->code : exit_code::environment;
}

}  // namespace rheo::inline v0
