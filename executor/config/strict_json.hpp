#pragma once
// SPDX-License-Identifier: Apache-2.0

// JSON that comes from outside. Depth is bounded, no object has a key twice, and every member is asked for by name, kind and limits,
// so that a file which is wrong anywhere is refused with a sentence instead of being half believed.

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "rheo/tensor/digest.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

/// What is wrong, to be put behind the file's name: "has no 'step'". A type of its own, so that who knows the name can add it.
struct json_error : exit_error {
    explicit json_error(std::string const& message) : exit_error{exit_code::bad_data, message} {}
};

/// @throws json_error: no JSON, nested deeper than `depth`, a key twice, a number that is none
nlohmann::json parse_strict(std::string_view text, int depth);

/// The text that was parsed, formatted; bytes that are no UTF-8 are replaced.
std::string format_json(nlohmann::json const& value, int indent = -1);

/// Members by name and kind. @throws json_error
nlohmann::json const& member(nlohmann::json const& object, char const* key);
nlohmann::json const& list_member(nlohmann::json const& object, char const* key);
std::string text_member(nlohmann::json const& object, char const* key);
bool truth_member(nlohmann::json const& object, char const* key);
state_digest digest_member(nlohmann::json const& object, char const* key);

struct integer_limits {
    std::int64_t least = 0;
    std::int64_t most = INT64_MAX;
};

std::int64_t integer_member(nlohmann::json const& object, char const* key, integer_limits limits);
/// @param name how the sentence calls the value
std::int64_t integer_of(nlohmann::json const& value, char const* name, integer_limits limits);

/// {"digest": ..., "<kind>": value}: a flipped bit anywhere in the value is seen when it is opened.
std::string seal(char const* kind, nlohmann::json const& value);
nlohmann::json open_sealed(char const* kind, std::string_view text, int depth);

/// A digest of bytes: their number counts too.
state_digest digest_of_bytes(std::string_view bytes);

}  // namespace rheo::inline v0
