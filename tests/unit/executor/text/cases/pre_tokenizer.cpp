// SPDX-License-Identifier: Apache-2.0
#include "executor/text/pre_tokenizer.hpp"

#include <string>

#include <nlohmann/json.hpp>

#include "executor/config/strict_json.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

pre_tokenizer read(std::string const& json) { return read_pre_tokenizer(nlohmann::json::parse(json)); }

/// The pieces of a text, between bars.
std::string pieces(std::string const& json, std::string const& text, bool begins = true)
{
    std::string out = "|";
    read(json).split(text, begins, 0, [&](std::string_view piece) { out.append(piece) += '|'; });
    return out;
}

std::string split(char const* behavior, char const* invert = "false")
{
    return std::string{R"({"type": "Split", "pattern": {"String": "-"}, "behavior": ")"} + behavior + R"(", "invert": )" + invert + "}";
}

std::string refusal(char const* json)
{
    try {
        read(json);
    } catch (json_error const& error) {
        return error.what();
    }
    return "taken";
}

}  // namespace

TEST_CASE("pre_tokenizer: behaviors are those of the documentation")
{
    // The example of Hugging Face's documentation of SplitDelimiterBehavior.
    std::string const text = "the-final--countdown";
    CHECK(pieces(split("Removed"), text) == "|the|final|countdown|");
    CHECK(pieces(split("Isolated"), text) == "|the|-|final|-|-|countdown|");
    CHECK(pieces(split("MergedWithPrevious"), text) == "|the-|final-|-|countdown|");
    CHECK(pieces(split("MergedWithNext"), text) == "|the|-final|-|-countdown|");
    CHECK(pieces(split("Contiguous"), text) == "|the|-|final|--|countdown|");
    CHECK(pieces(split("Removed", "true"), text) == "|-|-|-|");
}

TEST_CASE("pre_tokenizer: ByteLevel splits as GPT-2 does")
{
    std::string const plain = R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true})";
    CHECK(pieces(plain, "it's 12a  b\n\n c") == "|it|'s| 12|a| | b|\n\n| c|");
    CHECK(pieces(plain, "a  ") == "|a|  |");
    CHECK(pieces(R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true})", "a b") == "| a| b|");
    CHECK(pieces(R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": false})", "a b") == "| a b|");
    CHECK(read(plain).is_byte_level());
    CHECK(read(plain).resumable_step() == 0U);
}

TEST_CASE("pre_tokenizer: digits, words, punctuation")
{
    CHECK(pieces(R"({"type": "Digits", "individual_digits": true})", "a12\xc2\xbd") == "|a|1|2|\xc2\xbd|");
    CHECK(pieces(R"({"type": "Digits", "individual_digits": false})", "a12b") == "|a|12|b|");
    CHECK(pieces(R"({"type": "Whitespace"})",
                 "it's  a\xe2\x80\x8d"
                 "b.") ==
          "|it|'|s|a\xe2\x80\x8d"
          "b|.|");
    CHECK(pieces(R"({"type": "WhitespaceSplit"})", " it's\n a ") == "|it's|a|");
    CHECK(pieces(R"({"type": "Punctuation"})",
                 "a.\xc2\xab"
                 "b$") == "|a|.|\xc2\xab|b|$|");
    CHECK(pieces(R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Digits", "individual_digits": false}]})", "a1 2") ==
          "|a|1|2|");
    CHECK(pieces("null", "a b") == "|a b|");
}

TEST_CASE("pre_tokenizer: Metaspace marks blanks, and one before")
{
    auto const with = [](char const* scheme, char const* divides) {
        return std::string{R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": ")"} + scheme + R"(", "split": )" + divides + "}";
    };
    CHECK(pieces(with("always", "true"), "a  b") == "|_a|_|_b|");
    CHECK(pieces(with("always", "false"), "a b", false) == "|_a_b|");
    CHECK(pieces(with("first", "false"), "a b", false) == "|a_b|");
    CHECK(pieces(with("first", "false"), "a b") == "|_a_b|");
    CHECK(pieces(with("first", "false"), " a") == "|_a|");
    CHECK(pieces(with("never", "false"), "a") == "|a|");
    CHECK(pieces(R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": true})", "a b") == "|_a|_b|");
}

TEST_CASE("pre_tokenizer: what is not supported is named")
{
    CHECK_THAT(refusal(R"({"type": "BertPreTokenizer"})"), Catch::Matchers::ContainsSubstring("pre_tokenizer.type = 'BertPreTokenizer'"));
    CHECK_THAT(refusal(R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Kept", "invert": false})"),
               Catch::Matchers::ContainsSubstring("pre_tokenizer.behavior = 'Kept'"));
    CHECK_THAT(refusal(R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": false}, {"type": "WhitespaceSplit"}]})"),
               Catch::Matchers::ContainsSubstring("'WhitespaceSplit', which rheo does not support; expected one of: nothing after ByteLevel"));
}
