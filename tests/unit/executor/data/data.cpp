// SPDX-License-Identifier: Apache-2.0
#include "executor/data/data.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <sys/stat.h>

#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

/// A token file with the header as given, whatever it says.
std::string token_file(std::vector<std::uint16_t> const& tokens, std::int32_t magic = 20240520, std::int32_t version = 1, std::int64_t count = -1)
{
    std::vector<std::int32_t> header(256);
    header[0] = magic;
    header[1] = version;
    header[2] = static_cast<std::int32_t>(count < 0 ? static_cast<std::int64_t>(tokens.size()) : count);
    std::string content(1024 + 2 * tokens.size(), '\0');
    std::memcpy(content.data(), header.data(), 1024);
    std::memcpy(content.data() + 1024, tokens.data(), 2 * tokens.size());
    return content;
}

std::vector<std::uint16_t> counting(std::size_t count, std::uint16_t first = 0)
{
    std::vector<std::uint16_t> tokens(count);
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
}

struct microbatch {
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> targets;

    explicit microbatch(microbatch_shape shape) : tokens(static_cast<std::size_t>(rows(shape))), targets(tokens.size()) {}
    friend bool operator==(microbatch const&, microbatch const&) = default;
};

microbatch training(dataset const& data, microbatch_shape shape, std::uint64_t seed, std::int64_t step, int number)
{
    microbatch result(shape);
    data.training_microbatch(seed, step_id{step}, microbatch_id{number}, result.tokens, result.targets);
    return result;
}

microbatch validation(dataset const& data, microbatch_shape shape, int number)
{
    microbatch result(shape);
    data.validation_microbatch(microbatch_id{number}, result.tokens, result.targets);
    return result;
}

std::string refusal(std::vector<std::string> const& paths, int vocabulary = 256, microbatch_shape shape = {1, 4}, double fraction = 0.5)
{
    try {
        dataset{{.paths = paths, .validation_fraction = fraction}, vocabulary, shape};
    } catch (exit_error const& error) {
        return error.what();
    }
    return "taken";
}

}  // namespace

TEST_CASE("data: targets are the tokens shifted by one")
{
    temporary_folder folder;
    // Tokens that count up: a sequence is a run of successors, also across the files' ends.
    auto const a = folder.write("a.bin", token_file(counting(100)));
    auto const b = folder.write("b.bin", token_file(counting(7, 100)));
    auto const c = folder.write("c.bin", token_file(counting(93, 107)));
    microbatch_shape const shape{3, 20};
    dataset const data({.paths = {a, b, c}, .validation_fraction = 0.25}, 200, shape);
    CHECK(data.training_tokens() == 150);
    CHECK(data.validation_tokens() == 50);
    CHECK_FALSE(data.is_text());
    std::set<std::int32_t> starts;
    auto const check = [&](microbatch const& m, int least, int most) {
        for (std::size_t i = 0; i < m.tokens.size(); ++i) {
            REQUIRE(m.targets[i] == m.tokens[i] + 1);
            REQUIRE((i % 20 == 0 || m.tokens[i] == m.tokens[i - 1] + 1));
            REQUIRE(m.tokens[i] >= least);
            REQUIRE(m.targets[i] <= most);
        }
    };
    for (int step = 0; step < 300; ++step) {
        auto const m = training(data, shape, 1, step, 0);
        check(m, 0, 149);
        starts.insert({m.tokens[0], m.tokens[20], m.tokens[40]});
    }
    CHECK(starts.size() == 130);  // every position that has room for 21 tokens, the first and the last among them
    std::set<std::int32_t> spread;
    for (int number = 0; number < 4; ++number) {
        auto const m = validation(data, shape, number);
        check(m, 150, 199);
        spread.insert({m.tokens[0], m.tokens[20], m.tokens[40]});
    }
    CHECK(spread.size() == 12);
    auto before = *spread.begin();
    for (auto const start : spread) {
        CHECK(start - before <= 5);  // 12 multiples of the golden ratio leave no gap above 0.146 (of 30 positions)
        before = start;
    }
}

TEST_CASE("data: data depend on seed, step, microbatch and nothing else")
{
    temporary_folder folder;
    std::string text;
    for (int i = 0; i < 5000; ++i) {
        text += static_cast<char>(i * i % 251);
    }
    auto const path = folder.write("t", text);
    microbatch_shape const shape{2, 16};
    dataset const data({.paths = {path}}, 256, shape);
    auto const copy = data;
    auto const m = training(data, shape, 5, 6, 7);
    CHECK(training(data, shape, 5, 6, 8) != m);
    CHECK(training(data, shape, 5, 7, 7) != m);
    CHECK(training(data, shape, 6, 6, 7) != m);
    CHECK(training(copy, shape, 5, 6, 7) == m);
    CHECK(training(dataset({.paths = {path}}, 256, shape), shape, 5, 6, 7) == m);
    // The same first sequence in a microbatch of another size: a sequence has a stream of its own.
    microbatch_shape const one{1, 16};
    auto const alone = training(dataset({.paths = {path}}, 256, one), one, 5, 6, 7);
    CHECK(std::vector(m.tokens.begin(), m.tokens.begin() + 16) == alone.tokens);
}

TEST_CASE("data: digest covers tokens and split, not files")
{
    temporary_folder folder;
    auto const digest = [](std::vector<std::string> const& paths, double fraction = 0.5) {
        return dataset({.paths = paths, .validation_fraction = fraction}, 65536, {1, 2}).digest();
    };
    std::string const text = "0123456789abcdef0123456789abcdef";
    auto const whole = digest({folder.write("whole", text)});
    CHECK(whole == digest({folder.write("left", text.substr(0, 5)), folder.write("right", text.substr(5))}));
    CHECK(whole != digest({folder.write("whole", text)}, 0.25));
    CHECK(whole != digest({folder.write("longer", text + '\0')}));
    for (std::size_t i = 0; i < text.size(); ++i) {
        auto other = text;
        other[i] = 'x';
        CHECK(whole != digest({folder.write("other", other)}));
    }
    std::vector<std::uint16_t> words(16);
    std::memcpy(words.data(), text.data(), 32);
    CHECK(whole != digest({folder.write("words.bin", token_file(words))}));
}

TEST_CASE("data: a mapped file reads as one that was read")
{
    temporary_folder folder;
    std::string text;
    for (std::int64_t i = 0; i < (1 << 20) + 5; ++i) {
        text += static_cast<char>((i * 7919) >> 5);
    }
    microbatch_shape const shape{4, 33};
    dataset const mapped({.paths = {folder.write("one", text)}}, 256, shape);
    dataset const read({.paths = {folder.write("two", text.substr(0, 600000)), folder.write("three", text.substr(600000))}}, 256, shape);
    CHECK(mapped.digest() == read.digest());
    for (int step = 0; step < 20; ++step) {
        CHECK(training(mapped, shape, 1, step, 0) == training(read, shape, 1, step, 0));
    }
}

TEST_CASE("data: slices of a microbatch are parts of its sequences")
{
    temporary_folder folder;
    std::string text;
    for (int i = 0; i < 3000; ++i) {
        text += static_cast<char>((i * 7919) >> 4);
    }
    auto const file = folder.write("text", text);
    microbatch_shape const whole{3, 12};
    microbatch_shape const cut{3, 12, 4};
    dataset const data({.paths = {file}}, 256, whole);
    dataset const sliced({.paths = {file}}, 256, cut);
    std::vector<std::int32_t> tokens(36), targets(36), part(9), part_targets(9);
    for (bool const trains : {true, false}) {
        for (int m = 0; m < 3; ++m) {
            if (trains) {
                data.training_microbatch(3, step_id{4}, microbatch_id{m}, tokens, targets);
            } else {
                data.validation_microbatch(microbatch_id{m}, tokens, targets);
            }
            for (int slice = 0; slice < 4; ++slice) {
                if (trains) {
                    sliced.training_microbatch(3, step_id{4}, microbatch_id{m}, part, part_targets, slice);
                } else {
                    sliced.validation_microbatch(microbatch_id{m}, part, part_targets, slice);
                }
                for (std::size_t i = 0; i < 9; ++i) {
                    auto const there = i / 3 * 12 + static_cast<std::size_t>(slice) * 3 + i % 3;
                    CHECK(part[i] == tokens[there]);
                    CHECK(part_targets[i] == targets[there]);
                }
            }
        }
    }
    CHECK_THROWS_AS(sliced.training_microbatch(3, step_id{4}, microbatch_id{0}, part, part_targets, 4), precondition_error);
}

TEST_CASE("data: unigram entropy is that of the training split")
{
    temporary_folder folder;
    dataset const even({.paths = {folder.write("even", "ababababababccccccc")}, .validation_fraction = 7.5 / 19}, 256, {1, 2});
    CHECK(even.training_tokens() == 12);
    CHECK(even.unigram_entropy() == Approx(std::log(2.0)));
    dataset const same({.paths = {folder.write("same", std::string(100, 'x'))}}, 256, {1, 2});
    CHECK(same.unigram_entropy() == 0);
}

TEST_CASE("data: folders in path order, hidden files skipped")
{
    temporary_folder folder;
    folder.write("d/b/2", "22222");
    folder.write("d/a", "11111");
    folder.write("d/c", "33333");
    folder.write("d/e", "");
    folder.write("d/.hidden", "hhhhh");
    folder.write("d/.git/objects", "ggggg");
    std::filesystem::create_symlink("nowhere", folder.path / "d/broken");
    std::filesystem::create_directory_symlink("..", folder.path / "d/loop");
    REQUIRE(::mkfifo((folder.path / "d/fifo").c_str(), 0600) == 0);
    auto const whole = folder.write("whole", "111112222233333");
    dataset const data({.paths = {(folder.path / "d").string()}, .validation_fraction = 0.2}, 256, {1, 1});
    CHECK(data.digest() == dataset({.paths = {whole}, .validation_fraction = 0.2}, 256, {1, 1}).digest());
    CHECK(data.description() == "3 text files, 12 bytes to train on and 3 to validate");
}

TEST_CASE("data: default text is the C++ standard library")
{
    if (!std::filesystem::exists("/usr/include/c++")) {
        return;
    }
    CHECK(std::filesystem::exists(default_data_folder() + "/vector"));
    dataset const data({}, 256, {4, 64});
    CHECK(data.is_text());
    CHECK(data.training_tokens() > 1000000);
    CHECK(data.unigram_entropy() > 2);
    CHECK(data.unigram_entropy() < 4);
}

TEST_CASE("data: bad data: one error that names the file")
{
    temporary_folder folder;
    auto const starts = [](std::string const& message, std::string const& with) {
        INFO(message);
        CHECK(message.starts_with(with));
    };
    auto const at = [&](char const* name) { return (folder.path / name).string(); };
    CHECK(refusal({"/nowhere/x"}) == "data: '/nowhere/x' does not exist");
    CHECK(refusal({folder.write("empty", "")}) == "data: '" + at("empty") + "' is empty");
    CHECK(refusal({at("empty"), at("empty")}) == "data: all files are empty");
    std::filesystem::create_directory(folder.path / "bare");
    CHECK(refusal({at("bare")}) == "data: the folder '" + at("bare") + "' holds no files");
    CHECK(refusal({"/dev/null"}) == "data: '/dev/null' is neither a file nor a folder");
    REQUIRE(::mkfifo(at("fifo").c_str(), 0600) == 0);
    CHECK(refusal({at("fifo")}) == "data: '" + at("fifo") + "' is neither a file nor a folder");

    auto const good = token_file(counting(100));
    CHECK(refusal({folder.write("good.bin", good)}) == "taken");
    for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{11}, std::size_t{1023}}) {
        CHECK(refusal({folder.write("cut.bin", good.substr(0, size))}) ==
              "data: '" + at("cut.bin") + "' is cut off: a token file begins with a header of 1024 bytes, this one has " + std::to_string(size));
    }
    starts(refusal({folder.write("short.bin", good.substr(0, good.size() - 1))}),
           "data: '" + at("short.bin") + "' says that it holds 100 tokens, which are 1224 bytes with the header, but it has 1223 bytes");
    starts(refusal({folder.write("long.bin", good + "x")}), "data: '" + at("long.bin") + "' says that it holds 100 tokens");
    starts(refusal({folder.write("huge.bin", token_file(counting(100), 20240520, 1, 2147483647))}),
           "data: '" + at("huge.bin") + "' says that it holds 2147483647 tokens");
    for (std::int64_t count : {std::int64_t{0}, std::int64_t{4294967295}, std::int64_t{2147483648}}) {
        starts(refusal({folder.write("none.bin", token_file(counting(100), 20240520, 1, count))}),
               "data: '" + at("none.bin") + "' says that it holds " + std::to_string(static_cast<std::int32_t>(count)) + " tokens, expected at least 1");
    }
    CHECK(refusal({folder.write("text.bin", std::string(2000, 'a'))}) ==
          "data: '" + at("text.bin") +
              "' is not a token file: it begins with the number 1633771873, expected 20240520 or 20240801 (a text must not be called .bin)");
    CHECK(refusal({folder.write("version.bin", token_file(counting(100), 20240520, 2))}) ==
          "data: '" + at("version.bin") + "' is a token file of version 2, expected 1");

    CHECK(refusal({folder.write("big.bin", token_file(counting(101)))}, 100) ==
          "data: '" + at("big.bin") + "' has the token 100 at position 100, but model.vocabulary = 100 ends before it");
    CHECK(refusal({at("good.bin"), at("big.bin")}, 100) ==
          "data: '" + at("big.bin") + "' has the token 100 at position 100, but model.vocabulary = 100 ends before it");
    CHECK(refusal({folder.write("text", "plain text here")}, 100) ==
          "data: '" + at("text") + "' has the token 112 at position 0, but model.vocabulary = 100 ends before it");
    CHECK(refusal({at("text"), at("good.bin")}) ==
          "data: '" + at("good.bin") + "' is a token file, but '" + at("text") + "' is a text file; a run takes one kind");
    CHECK(refusal({at("good.bin"), at("text")}) ==
          "data: '" + at("text") + "' is a text file, but '" + at("good.bin") + "' is a token file; a run takes one kind");

    CHECK(refusal({folder.write("nine", "123456789")}) ==
          "data: the validation split has 4 tokens of 9 in all ('" + at("nine") + "'), but one sequence takes 5");
    CHECK(refusal({folder.write("ten", "1234567890")}) == "taken");
    CHECK(refusal({at("ten")}, 256, {1, 4}, 0.6) == "data: the training split has 4 tokens of 10 in all ('" + at("ten") + "'), but one sequence takes 5");
}

TEST_CASE("data: a mapped file changed in place is detected")
{
    temporary_folder folder;
    std::string const large(std::size_t{3} << 20, 'a');
    auto const small = folder.write("small", std::string(1000, 'a'));
    auto const path = folder.write("large", large);
    microbatch_shape const shape{1, 16};
    auto const open = [&] { return dataset{{.paths = {small, path}}, 256, shape}; };
    auto const touch = [&](std::string const& which, std::string const& mode) {  // one byte, and a time stamp that another second has
        auto* const file = std::fopen(which.c_str(), mode.c_str());
        std::fputc('b', file);
        std::fclose(file);
        std::filesystem::last_write_time(which, std::filesystem::last_write_time(which) + std::chrono::seconds{2});
    };
    auto const found = [](dataset const& data) { return data.change() ? data.change()->message : "unchanged"; };

    auto const overwritten = open();
    CHECK(found(overwritten) == "unchanged");
    touch(small, "r+");
    CHECK(found(overwritten) == "unchanged");
    touch(path, "r+");
    CHECK(found(overwritten).starts_with("data: '" + path + "' was changed in place while the run reads it: it was last modified at "));
    CHECK(overwritten.change()->piece == 1);
    CHECK(overwritten.path(1) == path);

    auto const longer = open();
    CHECK(found(longer) == "unchanged");
    touch(path, "a");
    CHECK(found(longer).find("it had 3145728 bytes, now it has 3145729") != std::string::npos);

    auto const cut = open();
    std::filesystem::resize_file(path, 5000);
    CHECK(found(cut).find("it had 3145729 bytes, now it has 5000") != std::string::npos);

    folder.write("large", large);
    auto const replaced = open();
    std::filesystem::rename(folder.write("other", std::string(large.size(), 'c')), path);
    CHECK(found(replaced) == "unchanged");
    CHECK(training(replaced, shape, 1, 1, 1).tokens[0] == 'a');
}

TEST_CASE("data: a mapped file that was cut is an error")
{
    temporary_folder folder;
    folder.write("long", std::string(3 << 20, 'a'));
    auto const path = (folder.path / "long").string();
    dataset const data{{.paths = {path}}, 256, {.sequences = 2, .tokens = 32}};
    std::vector<std::int32_t> tokens(64);
    std::vector<std::int32_t> targets(64);
    data.training_microbatch(1, step_id{0}, microbatch_id{0}, tokens, targets);
    std::filesystem::resize_file(path, 0);
    for (int tries = 0; tries < 2; ++tries) {
        CHECK_THROWS_WITH(data.training_microbatch(1, step_id{0}, microbatch_id{0}, tokens, targets),
                          "data: '" + path + "' became shorter while it was in use");
    }
}
