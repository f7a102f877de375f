// SPDX-License-Identifier: Apache-2.0
#include "driver.hpp"

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>

namespace campaign {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t at_once = 2;

/// A profile of so many layers at four clocks; a backward is two forwards, and layers differ.
fs::path write_clocks(fs::path const& folder, int layers)
{
    auto const path = folder / "clocks.csv";
    std::ofstream file{path};
    file << "stage,instruction,frequency,time,energy\n";
    for (int layer = 0; layer < layers; ++layer) {
        for (int const forwards : {1, 2}) {
            double const work = 1e-4 * forwards * (1.0 + 0.5 * (layer % 3));
            for (auto const& [clock, time, energy] : {std::tuple{1400, 1.0, 1.0}, {1200, 1.12, 0.8}, {1000, 1.3, 0.68}, {800, 1.6, 0.62}}) {
                file << layer << ',' << (forwards == 1 ? "forward," : "backward,") << clock << ',' << work * time << ',' << work * 300.0 * energy << '\n';
            }
        }
    }
    return path;
}

/// At most so many: where a folder is not kept, what they say is all that is known.
std::string last_lines(fs::path const& path, std::size_t most = 20)
{
    std::ifstream file{path};
    std::deque<std::string> lines;
    for (std::string line; std::getline(file, line);) {
        lines.push_back(line);
        if (lines.size() > most) {
            lines.pop_front();
        }
    }
    std::string text;
    for (auto const& line : lines) {
        text += "        | " + line + '\n';
    }
    return text;
}

}  // namespace

trial::trial(fs::path const& train_once, fs::path const& work, job_case what) : what_{std::move(what)}
{
    static std::atomic<int> next{0};
    folder_ = work / std::to_string(next++);
    fs::create_directories(folder_);
    command start{std::getenv("RHEO_MPIRUN"), train_once, what_.where.ranks, arguments_of(what_), folder_ / "output"};
    start.arguments.push_back("folder=" + run_folder().string());
    start.arguments.push_back("data=" + (work / "text").string());
    if (what_.where.clocks) {
        start.arguments.push_back("clocks=" + write_clocks(folder_, what_.where.blocks + 2).string());
    }
    job_.emplace(start);
}

evidence trial::finish(std::chrono::seconds until)
{
    auto end = job_->finish(until);
    job_.reset();
    std::ifstream file{folder_ / "output", std::ios::binary};
    return read_evidence(run_folder(), std::string{std::istreambuf_iterator<char>{file}, {}}, std::move(end));
}

bool trial::judged(std::vector<std::string> const& wrong) const
{
    if (wrong.empty()) {
        fs::remove_all(folder_);
        return true;
    }
    static std::mutex one_at_a_time;
    std::lock_guard const lock{one_at_a_time};
    std::printf("FAILED  %s\n        kept in %s\n", name_of(what_).c_str(), folder_.c_str());
    for (auto const& message : wrong) {
        std::printf("        %s\n", message.c_str());
    }
    std::printf("        the end of what the job printed:\n%s", last_lines(folder_ / "output").c_str());
    std::fflush(stdout);
    return false;
}

driver::driver(fs::path const& train_once, fs::path const& work) : train_once_{fs::absolute(train_once)}, work_{fs::absolute(work)}
{
    fs::remove_all(work_);
    fs::create_directories(work_);
    // Words of a small language: something to learn, the same bytes everywhere.
    std::ofstream text{work_ / "text"};
    std::minstd_rand draw{7};
    constexpr std::array words{"water", "flows", "around", "the", "stone", "and", "on", "to", "sea", "a", "river", "never", "waits"};
    for (int i = 0; i < 20000; ++i) {
        text << words[draw() % words.size()] << (draw() % 9 == 0 ? ".\n" : " ");
    }
}

reference driver::undisturbed(int steps, int blocks, int slices, int shards)
{
    job_case const what{.where = {.pipelines = "1", .ranks = 1, .shares = "8", .blocks = blocks, .slices = slices, .shards = shards}, .steps = steps};
    auto alone = start(what);
    auto const found = alone.finish();
    reference expected{found.digest, found.attempts.empty() ? 0 : found.attempts.begin()->second, found.validation};
    auto wrong = faults_of(what, found, expected);
    if (expected.pairs <= 0 || found.pairs_by_survivors != expected.pairs * (steps + 1)) {
        wrong.push_back("the pairs of the run are not those of its attempts");
    }
    if (!alone.judged(wrong)) {
        throw std::runtime_error{"without the undisturbed job on one rank nothing can be compared"};
    }
    std::printf("undisturbed, one rank, %d steps: digest %s, %" PRId64 " pairs a step\n", steps, expected.digest.c_str(), expected.pairs);
    return expected;
}

bool driver::all(std::size_t count, std::function<bool(std::size_t)> const& each) const
{
    std::atomic<std::size_t> next{0};
    std::atomic<std::size_t> failed{0};
    auto const work = [&] {
        for (std::size_t i = 0; (i = next++) < count;) {
            try {
                failed += each(i) ? 0 : 1;
            } catch (std::exception const& error) {
                std::printf("FAILED  %s\n", error.what());
                ++failed;
            }
        }
    };
    std::vector<std::thread> others;
    for (std::size_t t = 1; t < at_once; ++t) {
        others.emplace_back(work);
    }
    work();
    for (auto& other : others) {
        other.join();
    }
    if (failed != 0) {
        std::printf("%zu of %zu runs failed\n", failed.load(), count);
    }
    return failed == 0;
}

}  // namespace campaign
