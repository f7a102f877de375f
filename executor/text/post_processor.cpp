// SPDX-License-Identifier: Apache-2.0
#include "executor/text/post_processor.hpp"

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/config/strict_json.hpp"
#include "executor/text/json_parts.hpp"

namespace rheo::inline v0 {

namespace {

post_processor read_template(nlohmann::json const& value)
{
    only_keys(value, "post_processor", {"type", "single", "pair", "special_tokens"});
    auto const& known = member(value, "special_tokens");
    post_processor result;
    bool after = false;
    for (auto const& piece : list_member(value, "single")) {
        only_keys(piece, "post_processor.single", {"SpecialToken", "Sequence"});
        if (piece.contains("Sequence")) {
            auto const which = text_member(member(piece, "Sequence"), "id");
            if (which != "A" || after) {
                refuse_part("post_processor.single", format_json(piece), "the sequence A once");
            }
            after = true;
            continue;
        }
        auto const name = text_member(member(piece, "SpecialToken"), "id");
        for (auto const& id : list_member(member(known, name.c_str()), "ids")) {
            (after ? result.after : result.before).push_back(static_cast<token_id>(integer_of(id, "ids", {0, (1 << 30) - 1})));
        }
    }
    if (!after) {
        throw json_error{"has a post_processor.single without the sequence A"};
    }
    return result;
}

}  // namespace

post_processor read_post_processor(nlohmann::json const& value)
{
    if (value.is_null()) {
        return {};
    }
    auto const type = text_member(value, "type");
    if (type == "ByteLevel") {
        only_keys(value, "post_processor", {"type", "add_prefix_space", "trim_offsets", "use_regex"});
        return {};
    }
    if (type == "TemplateProcessing") {
        return read_template(value);
    }
    if (type != "Sequence") {
        refuse_part("post_processor.type", type, "ByteLevel, TemplateProcessing, Sequence");
    }
    only_keys(value, "post_processor", {"type", "processors"});
    post_processor result;
    for (auto const& part : list_member(value, "processors")) {
        auto const next = read_post_processor(part);
        result.before.insert(result.before.begin(), next.before.begin(), next.before.end());
        result.after.insert(result.after.end(), next.after.begin(), next.after.end());
    }
    return result;
}

}  // namespace rheo::inline v0
