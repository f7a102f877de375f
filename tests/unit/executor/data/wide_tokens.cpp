// SPDX-License-Identifier: Apache-2.0
// Token files of vocabularies above 65,536.
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "executor/data/data.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

template <class Token>
std::string file_of(std::int32_t magic, std::int32_t version, std::vector<Token> const& tokens)
{
    std::vector<std::int32_t> const begin{magic, version, static_cast<std::int32_t>(tokens.size())};
    std::string content(1024 + sizeof(Token) * tokens.size(), '\0');
    std::memcpy(content.data(), begin.data(), 12);
    std::memcpy(content.data() + 1024, tokens.data(), sizeof(Token) * tokens.size());
    return content;
}

std::string token_file(std::vector<std::uint16_t> const& tokens) { return file_of(20240520, 1, tokens); }
std::string wide_token_file(std::vector<std::uint32_t> const& tokens) { return file_of(20240801, 7, tokens); }  // as llm.c writes Llama 3's

struct microbatch {
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> targets;
    explicit microbatch(microbatch_shape shape) : tokens(static_cast<std::size_t>(rows(shape))), targets(tokens.size()) {}
    friend bool operator==(microbatch const&, microbatch const&) = default;
};

microbatch training(dataset const& data, microbatch_shape shape, int step)
{
    microbatch result{shape};
    data.training_microbatch(1, step_id{step}, microbatch_id{0}, result.tokens, result.targets);
    return result;
}

microbatch validation(dataset const& data, microbatch_shape shape, int number)
{
    microbatch result{shape};
    data.validation_microbatch(microbatch_id{number}, result.tokens, result.targets);
    return result;
}

std::string refusal(std::vector<std::string> const& paths, int vocabulary = 256)
{
    try {
        dataset{{.paths = paths, .validation_fraction = 0.5}, vocabulary, {1, 4}};
    } catch (exit_error const& error) {
        return error.what();
    }
    return "taken";
}

}  // namespace

TEST_CASE("wide_tokens: tokens of 32 bits are read as those of 16 bits")
{
    temporary_folder folder;
    std::vector<std::uint32_t> wide(100);
    std::iota(wide.begin(), wide.end(), 0U);
    std::vector<std::uint16_t> const narrow(wide.begin(), wide.end());
    auto const narrow_file = folder.write("narrow.bin", token_file(narrow));
    auto const wide_file = folder.write("wide.bin", wide_token_file(wide));
    microbatch_shape const shape{2, 16};
    dataset const a({.paths = {narrow_file}, .validation_fraction = 0.3}, 100, shape);
    dataset const b({.paths = {wide_file}, .validation_fraction = 0.3}, 100, shape);
    CHECK_FALSE(b.is_text());
    CHECK(b.unigram_entropy() == a.unigram_entropy());
    CHECK(b.digest() != a.digest());
    for (int step = 0; step < 20; ++step) {
        CHECK(training(a, shape, step) == training(b, shape, step));
        CHECK(validation(a, shape, step) == validation(b, shape, step));
    }
    std::iota(wide.begin(), wide.end(), 128'000U);
    auto const llama = folder.write("llama.bin", wide_token_file(wide));
    dataset const c({.paths = {llama}, .validation_fraction = 0.3}, 128'256, shape);
    auto const m = training(c, shape, 0);
    for (std::size_t i = 0; i < m.tokens.size(); ++i) {
        CHECK((m.tokens[i] >= 128'000 && m.tokens[i] < 128'070 && m.targets[i] == m.tokens[i] + 1));
    }
    CHECK_THAT(refusal({llama}, 128'050), Catch::Matchers::ContainsSubstring("has the token 128050 at position 50, but model.vocabulary = 128050"));
    wide[3] = 0xffffffffU;
    CHECK_THAT(refusal({folder.write("huge.bin", wide_token_file(wide))}, 200'000),
               Catch::Matchers::ContainsSubstring("has the token 2147483647 at position 3"));
    CHECK_THAT(refusal({narrow_file, wide_file}), Catch::Matchers::ContainsSubstring("has tokens of 32 bits, but '" + narrow_file + "' has tokens of 16 bits"));
    CHECK_THAT(refusal({folder.write("cut.bin", wide_token_file(wide).substr(0, 1300))}), Catch::Matchers::ContainsSubstring("which are 1424 bytes"));
}
