#pragma once
// SPDX-License-Identifier: Apache-2.0

// The special tokens that a tokenizer puts before and after a text: TemplateProcessing of Hugging Face's tokenizer.json, for one text. ByteLevel as a
// post-processor changes offsets alone, which nothing here has.

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "executor/text/bpe_model.hpp"

namespace rheo::inline v0 {

struct post_processor {
    std::vector<token_id> before;
    std::vector<token_id> after;
    friend bool operator==(post_processor const&, post_processor const&) = default;
};

/// @param value the member `post_processor` of a tokenizer.json @throws json_error naming key and value
post_processor read_post_processor(nlohmann::json const& value);

}  // namespace rheo::inline v0
