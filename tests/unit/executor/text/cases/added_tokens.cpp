// SPDX-License-Identifier: Apache-2.0
#include "executor/text/added_tokens.hpp"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/config/strict_json.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

std::string shown(std::vector<added_token> tokens, std::string_view text)
{
    added_tokens const added{std::move(tokens), [](std::string const& content) { return content; }};
    std::string out;
    for (auto const& part : added.cut(text, false)) {
        auto const inside = std::string{text.substr(part.begin, part.end - part.begin)};
        out += part.token != nullptr ? '<' + inside + '>' : '[' + inside + ']';
    }
    return out;
}

}  // namespace

TEST_CASE("added_tokens: the leftmost longest is found")
{
    std::vector<added_token> const tokens{{.id = 0, .content = "ab"}, {.id = 1, .content = "abcd"}, {.id = 2, .content = "bcx"}, {.id = 3, .content = "b"}};
    CHECK(shown(tokens, "zabcdab") == "[z]<abcd><ab>");
    CHECK(shown(tokens, "abcx") == "<ab>[cx]");
    CHECK(shown(tokens, "bcx") == "<bcx>");
    CHECK(shown(tokens, "bc") == "<b>[c]");
    CHECK(shown(tokens, "") == "");
    CHECK(shown({}, "abc") == "[abc]");
    CHECK(shown({{.id = 0, .content = "<s>"}}, "<<s>") == "[<]<<s>>");
}

TEST_CASE("added_tokens: white space beside them is taken")
{
    CHECK(shown({{.id = 0, .content = "x", .lstrip = true}}, "a \n xxb") == "[a]< \n x><x>[b]");
    CHECK(shown({{.id = 0, .content = "x", .rstrip = true}},
                "x \xe3\x80\x80"
                "b x") == "<x \xe3\x80\x80>[b ]<x>");
    CHECK(shown({{.id = 0, .content = "x", .single_word = true}}, "x ax x-x\xcc\x81 x") == "<x>[ ax ]<x>[-x\xcc\x81 ]<x>");
}

TEST_CASE("added_tokens: those that do not fit are named")
{
    bpe_model const model{{.vocabulary = {{"a", 0}}}};
    auto const refusal = [&](char const* json) -> std::string {
        try {
            read_added_tokens(nlohmann::json::parse(json), model);
        } catch (json_error const& error) {
            return error.what();
        }
        return "taken";
    };
    auto const rest = std::string{R"("special": true, "normalized": false, "single_word": false, "lstrip": false, "rstrip": false})"};
    CHECK(refusal((R"([{"id": 1, "content": "b", )" + rest + "]").c_str()) == "taken");
    CHECK(refusal((R"([{"id": 1, "content": "a", )" + rest + "]").c_str()) == "has the added token 'a' with id 1, but its vocabulary has it with id 0");
    CHECK(refusal((R"([{"id": 1, "content": "b", )" + rest + R"(, {"id": 1, "content": "c", )" + rest + "]").c_str()) ==
          "has the added token 'c' or its id 1 twice");
    CHECK(refusal((R"([{"id": 1, "content": "", )" + rest + "]").c_str()) == "has an added token with id 1 and no content");
    CHECK(refusal(R"([{"id": 1, "content": "b"}])") == "has no 'special'");
}
