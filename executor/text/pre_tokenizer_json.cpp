// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/config/strict_json.hpp"
#include "executor/text/json_parts.hpp"
#include "executor/text/pre_tokenizer.hpp"
#include "executor/text/utf8.hpp"

namespace rheo::inline v0 {

namespace {

/// GPT-2's pattern (Radford et al., encoder.py), which ByteLevel has built in.
constexpr auto gpt2_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// \w+|[^\w\s]+ as Rust's regular expressions have it: words hold joiners, too.
constexpr auto rust_words = R"([\w\u200c\u200d]+|[^\w\u200c\u200d\s]+)";

split_behavior read_behavior(nlohmann::json const& object)
{
    auto const name = text_member(object, "behavior");
    for (auto const& [known, behavior] : {std::pair{"Removed", split_behavior::removed}, std::pair{"Isolated", split_behavior::isolated},
                                          std::pair{"MergedWithPrevious", split_behavior::merged_with_previous},
                                          std::pair{"MergedWithNext", split_behavior::merged_with_next}, std::pair{"Contiguous", split_behavior::contiguous}}) {
        if (name == known) {
            return behavior;
        }
    }
    refuse_part("pre_tokenizer.behavior", name, "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

metaspace read_metaspace(nlohmann::json const& value)
{
    only_keys(value, "pre_tokenizer", {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
    auto const mark = text_member(value, "replacement");
    if (mark.empty() || utf8_at(mark, 0).bytes != mark.size()) {
        refuse_part("pre_tokenizer.replacement", mark, "one character");
    }
    auto const split = truth_or(value, "split", true);
    if (!value.contains("prepend_scheme")) {  // as it was written before there were schemes
        return {mark, truth_or(value, "add_prefix_space", true) ? metaspace::prepended::always : metaspace::prepended::never, split};
    }
    auto const scheme = text_member(value, "prepend_scheme");
    if (scheme != "always" && scheme != "first" && scheme != "never") {
        refuse_part("pre_tokenizer.prepend_scheme", scheme, "always, first, never");
    }
    return {mark, scheme == "always" ? metaspace::prepended::always : scheme == "first" ? metaspace::prepended::first : metaspace::prepended::never, split};
}

void read_into(nlohmann::json const& value, std::vector<pre_tokenizer::step>& steps)
{
    if (value.is_null()) {
        return;
    }
    auto const type = text_member(value, "type");
    if (!steps.empty() && std::holds_alternative<byte_symbols>(steps.back())) {
        refuse_part("pre_tokenizer.type", type, "nothing after ByteLevel");
    }
    if (type == "Sequence") {
        only_keys(value, "pre_tokenizer", {"type", "pretokenizers"});
        for (auto const& part : list_member(value, "pretokenizers")) {
            read_into(part, steps);
        }
    } else if (type == "ByteLevel") {
        only_keys(value, "pre_tokenizer", {"type", "add_prefix_space", "trim_offsets", "use_regex"});
        if (truth_member(value, "add_prefix_space")) {
            steps.emplace_back(prefix_blank{});
        }
        if (truth_or(value, "use_regex", true)) {
            steps.emplace_back(split_by_regex{regex{gpt2_pattern}, split_behavior::isolated, false});
        }
        steps.emplace_back(byte_symbols{});
    } else if (type == "Split") {
        only_keys(value, "pre_tokenizer", {"type", "pattern", "behavior", "invert"});
        auto const behavior = read_behavior(value);
        auto const invert = truth_or(value, "invert", false);
        auto const pattern = read_pattern(member(value, "pattern"));
        if (pattern.is_regex) {
            steps.emplace_back(split_by_regex{regex{pattern.text}, behavior, invert});
        } else {
            steps.emplace_back(split_by_text{pattern.text, behavior, invert});
        }
    } else if (type == "Digits") {
        only_keys(value, "pre_tokenizer", {"type", "individual_digits"});
        steps.emplace_back(split_digits{truth_member(value, "individual_digits")});
    } else if (type == "Punctuation") {
        only_keys(value, "pre_tokenizer", {"type", "behavior"});
        steps.emplace_back(split_punctuation{value.contains("behavior") ? read_behavior(value) : split_behavior::isolated});
    } else if (type == "Whitespace") {
        only_keys(value, "pre_tokenizer", {"type"});
        steps.emplace_back(split_by_regex{regex{rust_words}, split_behavior::removed, true});
    } else if (type == "WhitespaceSplit") {
        only_keys(value, "pre_tokenizer", {"type"});
        steps.emplace_back(split_white_space{});
    } else if (type == "Metaspace") {
        steps.emplace_back(read_metaspace(value));
    } else {
        refuse_part("pre_tokenizer.type", type, "ByteLevel, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, Metaspace, Sequence");
    }
}

}  // namespace

pre_tokenizer read_pre_tokenizer(nlohmann::json const& value)
{
    std::vector<pre_tokenizer::step> steps;
    read_into(value, steps);
    return pre_tokenizer{std::move(steps)};
}

}  // namespace rheo::inline v0
