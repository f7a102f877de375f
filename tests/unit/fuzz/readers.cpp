// SPDX-License-Identifier: Apache-2.0
#include "readers.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/checkpoint_manifest.hpp"
#include "executor/checkpoint/convert/distributed_checkpoint.hpp"
#include "executor/checkpoint/huggingface/model_json.hpp"
#include "executor/checkpoint/safetensors.hpp"
#include "executor/config/cluster/cluster_file.hpp"
#include "executor/config/files/grid_file.hpp"
#include "executor/config/files/layout_file.hpp"
#include "executor/config/strict_json.hpp"
#include "executor/config/toml.hpp"
#include "executor/data/data.hpp"
#include "executor/plan/plan_file.hpp"
#include "executor/plan/planning.hpp"
#include "executor/records/chakra/chakra_groups.hpp"
#include "folder_reader.hpp"
#include "rheo/model/model.hpp"
#include "rheo/partition/cuts.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/simulate/chakra/play_traces.hpp"
#include "rheo/simulate/network/network_model.hpp"
#include "rheo/trace/chakra/lenient.hpp"
#include "rheo/units/exit_error.hpp"
#include "text_readers.hpp"
#include "token_readers.hpp"

namespace fuzz {

namespace {

using namespace rheo;

/// The bytes as a file of this process, gone at its end; a TMPDIR in memory makes fuzzing faster.
std::string const& as_file(std::span<std::uint8_t const> bytes, std::string const& suffix)
{
    struct file {
        std::string name;
        explicit file(std::string const& end) : name{(std::filesystem::temp_directory_path() / ("rheo-fuzz-" + std::to_string(::getpid()) + end)).string()} {}
        ~file() { ::unlink(name.c_str()); }
        file(file const&) = delete;
        file& operator=(file const&) = delete;
    };
    static file const tokens{".bin"};
    static file const other{".json"};
    auto const& name = suffix == ".bin" ? tokens.name : other.name;
    std::ofstream{name, std::ios::binary | std::ios::trunc}.write(reinterpret_cast<char const*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return name;
}

/// Whatever a reader refuses ends with the exit code that is documented for it.
void refused_as(exit_code code, exit_error const& error) { promise(error.code == code, "a refusal has the exit code of its reader"); }

void config(std::span<std::uint8_t const> bytes)
{
    try {
        auto const read = read_config(text_of(bytes), "c.toml");
        auto const text = to_toml(read.config);
        promise(to_toml(read_config(text, "again").config) == text, "a config that was read is written so that it reads the same");
    } catch (exit_error const& error) {
        refused_as(exit_code::usage, error);
        promise(std::string_view{error.what()}.find("again") != 0, "a config that was written can be read");
    }
    try {
        std::string const setting[] = {std::string{text_of(bytes)}};
        (void)read_config("schema = 1\n", "c.toml", setting);
    } catch (exit_error const& error) {
        refused_as(exit_code::usage, error);
    }
}

void plan_file(std::span<std::uint8_t const> bytes)
{
    static auto const model = gpt_model({.vocabulary = 8, .context = 4, .width = 4, .heads = 1, .blocks = 3});
    run_config about;
    about.train.microbatches = 3;
    try {
        (void)plan_error(read_plan_file(as_file(bytes, ".json")), model, about, 3);
    } catch (exit_error const& error) {
        refused_as(exit_code::usage, error);
    }
    // Any plan at all, not only those whose digest is right: the bytes are its numbers, 255 ends a list.
    plan any{.schedule = one_f_one_b{}, .pipelines = {}, .work = {}, .spares = {}};
    std::size_t next = 0;
    auto const list = [&](auto add) {
        while (next < bytes.size() && bytes[next] != 255) {
            std::int32_t const byte = bytes[next++];
            add(byte < 50 ? byte : byte < 250 ? byte * 8000000 : 249 - byte);
        }
        ++next;
    };
    while (next < bytes.size() && any.pipelines.size() < 4) {
        pipeline_instance instance;
        std::vector<microbatch_work> work;
        list([&](std::int32_t cut) { instance.cuts.push_back(layer_id{cut}); });
        list([&](std::int32_t rank) { instance.stages.push_back({rank_id{rank}}); });
        list([&](std::int32_t m) { work.push_back({microbatch_id{m}, layer_id{0}}); });
        any.pipelines.push_back(instance);
        any.work.push_back(work);
    }
    (void)plan_error(any, model, about, 3);
}

void manifest(std::span<std::uint8_t const> bytes)
{
    auto const take = [](std::string_view text) {
        try {
            auto const read = parse_manifest(text, "manifest.json");
            promise(parse_manifest(format_manifest(read), "again") == read, "a manifest that was read is written so that it reads the same");
        } catch (exit_error const& error) {
            refused_as(exit_code::bad_data, error);
            promise(std::string_view{error.what()}.find("'again'") != 0, "a manifest that was written can be read");
        }
        try {
            auto const read = parse_part(text, "part.json");
            promise(parse_part(format_part(read), "again") == read, "a part that was read is written so that it reads the same");
        } catch (exit_error const& error) {
            refused_as(exit_code::bad_data, error);
            promise(std::string_view{error.what()}.find("'again'") != 0, "a part that was written can be read");
        }
    };
    take(text_of(bytes));
    try {  // behind the digest, which no change would pass
        auto const inner = parse_strict(text_of(bytes), 9);
        take(seal("checkpoint", inner.is_object() && inner.contains("checkpoint") ? inner["checkpoint"] : inner));
        take(seal("part", inner.is_object() && inner.contains("part") ? inner["part"] : inner));
    } catch (json_error const&) {
    }
}

/// What `rheo.json` says, sealed or not.
void state(std::string_view text)
{
    try {
        auto const read = parse_state(text, "rheo.json");
        promise(parse_state(format_state(read), "again") == read, "a state that was read is written so that it reads the same");
    } catch (exit_error const& error) {
        refused_as(exit_code::bad_data, error);
        promise(std::string_view{error.what()}.find("'again'") != 0, "a state that was written can be read");
    }
}

/// Two shards of PyTorch's distributed checkpoint, one behind the other: two bytes with the length of the first come before. The bytes are `rheo.json`, too.
void shards(std::span<std::uint8_t const> bytes)
{
    state(text_of(bytes));
    try {
        auto const inner = parse_strict(text_of(bytes), 9);
        state(seal("state", inner.is_object() && inner.contains("state") ? inner["state"] : inner));
    } catch (json_error const&) {
    }
    if (bytes.size() < 2) {
        return;
    }
    auto const first = std::min<std::size_t>(bytes.size() - 2, bytes[0] + 256U * bytes[1]);
    try {
        std::vector<shard_header> headers;
        for (auto const shard : {bytes.subspan(2, first), bytes.subspan(2 + first)}) {
            if (!shard.empty()) {
                auto const name = fmt::format("{}.safetensors", headers.size());
                headers.push_back({name, parse_safetensors(std::as_bytes(shard), std::ssize(shard), name)});
            }
        }
        auto const read = assemble_shards("folder", headers);
        std::vector<std::int64_t> count(read.tensors.size(), 0);
        for (auto const& piece : read.pieces) {
            auto const& tensor = read.tensors[at(piece.tensor)].about;
            auto const& header = headers[piece.file].header;
            auto const size = elements(piece.box) * tensor.element.front().size.count;
            promise(contains(whole(tensor.shape), piece.box), "a shard is in its tensor");
            promise(piece.begin >= header.data_begin && piece.begin + size <= header.file_bytes, "a shard is in its file");
            count[at(piece.tensor)] += elements(piece.box);
        }
        for (std::size_t t = 0; t < count.size(); ++t) {
            promise(count[t] == elements(whole(read.tensors[t].about.shape)), "each element is in one shard");
        }
    } catch (exit_error const& error) {
        refused_as(exit_code::bad_data, error);
    }
}

void safetensors(std::span<std::uint8_t const> bytes)
{
    try {
        auto const size = static_cast<std::int64_t>(bytes.size());
        auto const header = parse_safetensors(std::as_bytes(bytes), size, "x.safetensors");
        promise(header.file_bytes == size && header.data_begin <= size, "the data are in the file");
        std::int64_t end = 0;
        for (auto const& entry : header.entries) {
            promise(entry.begin == end && entry.end >= end && header.data_begin + entry.end <= size, "entries lie in the file, one behind the other");
            end = entry.end;
        }
        promise(header.data_begin + end == size, "entries are all of the file");
        safetensors_file const file{as_file(bytes, ".json")};
        promise(file.header() == header, "a file has the header of its bytes");
        for (auto const& entry : header.entries) {
            if (entry.dtype == "F32") {
                promise(static_cast<std::int64_t>(file.read(entry).size()) * 4 == entry.end - entry.begin, "all values of an entry are read");
            }
        }
    } catch (exit_error const& error) {
        refused_as(exit_code::bad_data, error);
    }
}

void tokens(std::span<std::uint8_t const> bytes)
{
    data_config about;
    about.paths = {as_file(bytes, ".bin")};
    about.validation_fraction = 0.3;
    try {
        dataset const data{about, 300, {.sequences = 1, .tokens = 4}};
        std::array<std::int32_t, 4> in{};
        std::array<std::int32_t, 4> out{};
        for (int m = 0; m < 4; ++m) {
            data.training_microbatch(1, step_id{m}, microbatch_id{m}, in, out);
            data.validation_microbatch(microbatch_id{m}, in, out);
            for (std::size_t i = 0; i < 4; ++i) {
                promise(in[i] >= 0 && in[i] < 300 && out[i] >= 0 && out[i] < 300, "tokens are in the vocabulary");
            }
        }
    } catch (exit_error const& error) {
        refused_as(exit_code::bad_data, error);
    }
}

void huggingface(std::span<std::uint8_t const> bytes)
{
    try {
        auto const model = parse_huggingface_config(text_of(bytes), "config.json");
        promise(parse_huggingface_config(format_huggingface_config(model), "again") == model, "a model that was read is written so that it reads the same");
    } catch (exit_error const& error) {
        refused_as(exit_code::bad_data, error);
        promise(std::string_view{error.what()}.find("'again'") != 0, "a model that was written can be read");
    }
}

void layout(std::span<std::uint8_t const> bytes)
{
    try {
        auto const read = parse_layout(text_of(bytes), "layout.json");
        promise(parse_layout(format_layout(read), "again") == read, "a layout that was read is written so that it reads the same");
    } catch (exit_error const& error) {
        refused_as(exit_code::bad_data, error);
        promise(std::string_view{error.what()}.starts_with("layout.json: "), "a refusal names the file, and a layout that was written can be read");
    }
}

/// The bytes behind a line of ==== are the file that the cluster names, whichever it is.
void cluster(std::span<std::uint8_t const> bytes)
{
    constexpr std::string_view line = "\n====\n";
    auto const text = text_of(bytes);
    auto const end = std::min(text.find(line), text.size());
    auto const named = text.substr(std::min(end + line.size(), text.size()));
    try {
        auto const read = parse_cluster(text.substr(0, end), "c.toml", [&](std::string const&) { return std::string{named}; });
        promise(cluster_fault(read).empty(), "a cluster that was read can be");
        promise(parse_cluster(to_toml(read), "again", [](std::string const&) { return std::string{}; }) == read,
                "a cluster that was read is written so that it reads the same");
    } catch (exit_error const& error) {
        refused_as(exit_code::usage, error);
        promise(std::string_view{error.what()}.find("again") != 0, "a cluster that was written can be read");
    }
}

void grid(std::span<std::uint8_t const> bytes)
{
    try {
        auto const read = parse_grid(text_of(bytes), "g.toml");
        promise(points_of(read) >= 1 && points_of(read) <= most_grid_points, "a grid that was read has points, and not too many");
        auto const last = values_at(read, points_of(read) - 1);
        for (std::size_t k = 0; k < read.axes.size(); ++k) {
            promise(last[k] + 1 == read.axes[k].values.size(), "the last point of a grid has the last value of each axis");
        }
    } catch (exit_error const& error) {
        refused_as(exit_code::usage, error);
    }
}

/// The bytes are the trace of each of two ranks, whatever they say, and the process groups of a node.
void trace_import(std::span<std::uint8_t const> bytes)
{
    auto const text = text_of(bytes);
    try {
        for (auto const& [name, ranks] : parse_process_groups(text, 2)) {
            promise(!ranks.empty() && ranks.size() <= 2, "a process group has ranks of the job");
        }
    } catch (exit_error const& error) {
        refused_as(exit_code::bad_data, error);
    }
    chakra_trace_set traces{{}, with_all_ranks({{1, {1, 0}}}, 2)};
    std::vector<chakra_group_name> const names{{"0", 0}, {"1", 1}};
    for (std::int32_t rank = 0; rank < 2; ++rank) {
        auto read = read_leniently(chakra_bytes{text}, {{rank, 2, traces.groups}, names, false});
        if (!read) {
            promise(read.error().find("node") != std::string::npos || read.error().starts_with("byte "), "a reason names the node or the byte");
            return;
        }
        traces.ranks.push_back(std::move(read->trace));
    }
    std::vector<network_level<integer_link>> const levels{{2, network_topology::full, {500.0, {50.0}}}};
    for (bool const of_consumers : {false, true}) {
        auto const played = play_traces<integer_contended_network>(traces, levels, {.of_consumers = of_consumers});
        for (std::size_t rank = 0; played && rank < 2; ++rank) {
            promise(played->ranks[rank].end <= played->end && idle_time(*played, rank) >= whole_nanoseconds{0}, "each nanosecond is in one class");
        }
    }
}

constexpr reader all[] = {{"config", config},
                          {"plan", plan_file},
                          {"manifest", manifest},
                          {"safetensors", safetensors},
                          {"tokens", tokens},
                          {"huggingface", huggingface},
                          {"schedule", schedule},
                          {"layers", layer_profile},
                          {"clocks", clock_profile},
                          {"trace", trace_lines},
                          {"records", records},
                          {"layout", layout},
                          {"chakra", chakra_file},
                          {"shards", shards},
                          {"goodput", goodput_tables},
                          {"kineto", kineto},
                          {"cluster", cluster},
                          {"import", trace_import},
                          {"grid", grid},
                          {"tokenizer", tokenizer_file},
                          {"texts", json_texts}};

}  // namespace

std::span<reader const> readers() { return all; }

void promise(bool kept, char const* which)
{
    if (!kept) {
        broken(which);
    }
}

std::string_view text_of(std::span<std::uint8_t const> bytes) { return {reinterpret_cast<char const*>(bytes.data()), bytes.size()}; }

void broken(char const* promise) { throw std::logic_error{std::string{"broken: "} + promise}; }

}  // namespace fuzz
