// SPDX-License-Identifier: Apache-2.0
// Every reader over its corpus, and over copies of it that were changed: bits, numbers, pieces cut out, doubled or exchanged with those of others.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "../readers.hpp"
#include "support/catch.hpp"

namespace {

using input = std::vector<std::uint8_t>;

std::vector<input> corpus_of(std::string_view reader)
{
    std::vector<input> all;
    auto const folder = std::filesystem::path{RHEO_SOURCE_DIR} / "tests" / "unit" / "fuzz" / "corpus" / reader;
    for (auto const& entry : std::filesystem::directory_iterator{folder}) {
        std::ifstream file{entry.path(), std::ios::binary};
        all.emplace_back(std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{});
    }
    std::sort(all.begin(), all.end());
    return all;
}

input changed(input const& from, input const& other, std::mt19937& draw)
{
    static std::string const pieces[] = {
        "9223372036854775808", "18446744073709551615", "-1", "1e999", "[[[[[[[[[[[[[[[[", "{\"a\":{\"a\":{\"a\":", "null", "\"\"", "\xff\xfe", "\n", "0", "= [",
        "\"\\u0000\""};
    auto result = from;
    auto const place = [&](input const& in) { return static_cast<std::ptrdiff_t>(draw() % (in.size() + 1)); };
    for (auto times = 1 + draw() % 4; times > 0; --times) {
        auto const at = place(result);
        auto const to = std::min(at + static_cast<std::ptrdiff_t>(draw() % 40), static_cast<std::ptrdiff_t>(result.size()));
        switch (draw() % 6) {
        case 0:
            if (at < to) {
                result[static_cast<std::size_t>(at)] ^= static_cast<std::uint8_t>(1U << draw() % 8);
            }
            break;
        case 1: result.erase(result.begin() + at, result.begin() + to); break;
        case 2: {
            input const piece(result.begin() + at, result.begin() + to);
            auto const where = place(result);
            result.insert(result.begin() + where, piece.begin(), piece.end());
            break;
        }
        case 3: {
            auto const& piece = pieces[draw() % std::size(pieces)];
            result.insert(result.begin() + at, piece.begin(), piece.end());
            break;
        }
        case 4: {
            auto const begin = place(other);
            auto const end = std::min(begin + static_cast<std::ptrdiff_t>(draw() % 200), static_cast<std::ptrdiff_t>(other.size()));
            result.insert(result.begin() + at, other.begin() + begin, other.begin() + end);
            break;
        }
        default: result.resize(static_cast<std::size_t>(at)); break;
        }
    }
    return result;
}

/// Changed inputs until the time is over or so many were read.
void try_changed(fuzz::reader const& reader, std::chrono::seconds time, int most)
{
    auto const corpus = corpus_of(reader.name);
    REQUIRE_FALSE(corpus.empty());
    std::mt19937 draw{20};
    auto const end = std::chrono::steady_clock::now() + time;
    for (int i = 0; i < most && std::chrono::steady_clock::now() < end; ++i) {
        auto const bytes = changed(corpus[draw() % corpus.size()], corpus[draw() % corpus.size()], draw);
        try {
            reader.read(bytes);
        } catch (std::exception const& error) {
            INFO(std::string(bytes.begin(), bytes.end()));
            FAIL(reader.name << ": " << error.what());
        }
    }
}

}  // namespace

TEST_CASE("corpus: readers accept or reject each corpus input")
{
    for (auto const& reader : fuzz::readers()) {
        auto const corpus = corpus_of(reader.name);
        INFO(reader.name);
        CHECK(corpus.size() >= 3);
        for (auto const& bytes : corpus) {
            CHECK_NOTHROW(reader.read(bytes));
        }
    }
}

TEST_CASE("corpus: readers accept or reject mutated inputs")
{
    for (auto const& reader : fuzz::readers()) {
        try_changed(reader, std::chrono::seconds{2}, 2000);
    }
}

TEST_CASE("corpus: the same for longer", "[.long]")
{
    for (auto const& reader : fuzz::readers()) {
        try_changed(reader, std::chrono::seconds{60}, 10'000'000);
    }
}
