// SPDX-License-Identifier: Apache-2.0
// bench_checkpoint FOLDER [--local FOLDER] [--blocks 12] [--turns 3] [--step-ms 4000]: what a checkpoint of a GPT-2's state (124M at 12 blocks, one rank) costs the training, and how fast
// it is safe. In turns: a plain sequential write and fsync of as many bytes; the part copied first, as before, and copied beside the training; the part on node-local storage and, behind
// it, in the folder. Each figure is the median. The stall is the time for which the training stands still; a step computes with one thread in its own cache meanwhile.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/checkpoint_publish.hpp"
#include "executor/checkpoint/checkpoint_writer.hpp"
#include "executor/checkpoint/part_files.hpp"
#include "executor/host/backend.hpp"
#include "executor/state/resident_state.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"

namespace {

using namespace rheo;
namespace fs = std::filesystem;
using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point start) { return std::chrono::duration<double>(clock_type::now() - start).count(); }

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// A thread that computes for so long, as far as it gets the core, and touches little memory.
void compute(double seconds)
{
    std::vector<float> values(4096, 1.0F);
    for (auto const start = clock_type::now(); seconds_since(start) < seconds;) {
        for (auto& value : values) {
            value = value * 0.999F + 0.001F;
        }
    }
}

struct options {
    fs::path folder;
    fs::path local;
    int blocks = 12;
    int turns = 3;
    double step = 4;
};

options parse(int argc, char** argv)
{
    options o;
    o.folder = argc > 1 ? argv[1] : ".";
    for (int i = 2; i + 1 < argc; i += 2) {
        std::string_view const name{argv[i]};
        std::string const value{argv[i + 1]};
        if (name == "--local") {
            o.local = value;
        } else if (name == "--blocks") {
            o.blocks = std::stoi(value);
        } else if (name == "--turns") {
            o.turns = std::stoi(value);
        } else if (name == "--step-ms") {
            o.step = std::stod(value) / 1000;
        }
    }
    o.local = o.local.empty() ? o.folder : o.local;
    return o;
}

class bench {
public:
    explicit bench(options const& o)
        : o_{o}, info_{state_of(gpt_model({.vocabulary = 50'257, .context = 1024, .width = 768, .heads = 12, .blocks = o.blocks}))}, state_{info_, backend_}
    {
        initialise_layers(state_, layer_id{0}, layer_id{o.blocks + 2}, 1);
        for (tensor_id t{0}; at(t) < info_.tensors.size(); ++t) {
            holders_.push_back(info_.tensors[at(t)].is_parameter ? std::vector{rank_id{0}} : std::vector<rank_id>{});
        }
        writers_ = deal_writing(info_, holders_);
    }

    void run()
    {
        for (int turn = 0; turn < o_.turns; ++turn) {
            plain();
            with(snapshot_kind::now, "copied first");
            with(snapshot_kind::beside, "copied beside");
            levels();
        }
        auto const mib = static_cast<double>(bytes_) / (1 << 20);
        fmt::print("{:.0f} MiB, a step of {:.1f} s, median of {} turns\n", mib, o_.step, o_.turns);
        for (auto const& name : order_) {
            auto const value = median(figures_[name]);
            bool const is_rate = name.find("rate") != std::string::npos;
            fmt::print("  {:<44} {:>10}\n", name, is_rate ? fmt::format("{:.0f} MiB/s", mib / value) : fmt::format("{:.0f} ms", value * 1000));
        }
        auto const ratio = [&](char const* name) { return median(figures_["plain write: rate"]) / median(figures_[name]); };
        fmt::print("  of a plain write: copied beside {:.2f}, local {:.2f}, folder behind it {:.2f}\n", ratio("copied beside: rate"), ratio("local: rate"),
                   ratio("folder behind local: rate"));
    }

private:
    void note(std::string const& name, double value)
    {
        if (figures_.find(name) == figures_.end()) {
            order_.push_back(name);
        }
        figures_[name].push_back(value);
    }

    checkpoint_part take(snapshot_kind kind) { return take_part(state_, writers_, rank_id{0}, step_id{1}, generation_id{1}, kind); }

    static void clean(fs::path const& folder)
    {
        fs::remove_all(folder);
        ::sync();
    }

    void plain()
    {
        auto const part = take(snapshot_kind::now);
        auto const sizes = sizes_of(part);
        bytes_ = sizes[0] + sizes[1];
        std::vector<std::byte> piece(std::size_t{4} << 20);
        auto const path = o_.folder / "plain";
        auto const start = clock_type::now();
        {
            output_file out{path};
            for (std::int64_t done = 0; done < bytes_; done += std::ssize(piece)) {
                out.write(std::span<std::byte const>{piece}.first(static_cast<std::size_t>(std::min(std::ssize(piece), bytes_ - done))));
            }
            out.sync_and_close();
        }
        note("plain write: rate", seconds_since(start));
        clean(path);
    }

    void with(snapshot_kind kind, std::string const& name)
    {
        auto const target = unfinished_folder(o_.folder, step_id{1}, generation_id{1});
        checkpoint_writer writer{o_.folder};
        auto start = clock_type::now();
        auto part = take(kind);
        auto const copies = part.copies;
        writer.begin(std::move(part));
        auto const taken = seconds_since(start);
        auto stall = taken;
        compute(o_.step);
        auto const changes = clock_type::now();
        if (copies != nullptr) {
            copies->release();
        }
        stall += seconds_since(changes);
        writer.wait();
        note(name + ": stall", stall);
        note(name + ": rate", taken + writer.written().duration.count);
        writer.hand_over();
        clean(target);
    }

    void levels()
    {
        auto const local = o_.local / "local";
        auto const target = o_.folder / "published";
        auto const start = clock_type::now();
        auto part = take(snapshot_kind::beside);
        auto const copies = part.copies;
        growing_part growing{local, rank_id{0}, sizes_of(part)};
        part_progress const quietly{[](checkpoint_point) {}, [] {}};
        std::thread writes{[&] {
            write_part(growing, part, {}, quietly);
            note("local: rate", seconds_since(start));
        }};
        double published = 0;
        std::thread behind{[&] {
            copy_part(growing, target, quietly);
            published = seconds_since(start);
        }};
        auto stall = seconds_since(start);
        compute(o_.step);
        auto const changes = clock_type::now();
        copies->release();
        stall += seconds_since(changes);
        writes.join();
        behind.join();
        note("folder behind local: rate", published);
        note("levels: stall", stall);
        clean(local);
        clean(target);
    }

    options o_;
    host_backend backend_{1};
    collection info_;
    resident_state state_;
    std::vector<std::vector<rank_id>> holders_{};
    std::vector<rank_id> writers_{};
    std::int64_t bytes_ = 0;
    std::map<std::string, std::vector<double>> figures_{};
    std::vector<std::string> order_{};
};

}  // namespace

int main(int argc, char** argv)
{
    try {
        bench{parse(argc, argv)}.run();
        return 0;
    } catch (std::exception const& error) {
        fmt::print(stderr, "bench_checkpoint: {}\n", error.what());
        return 1;
    }
}
