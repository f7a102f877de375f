// SPDX-License-Identifier: Apache-2.0
// Checkpoints in another layout: whatever the layout, whatever the memory, through PyTorch's form or not, the state is the same bit by bit and
// training's own reader puts it together.
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "executor/checkpoint/convert/box_runs.hpp"
#include "executor/checkpoint/convert/convert.hpp"
#include "executor/checkpoint/convert/distributed_checkpoint.hpp"
#include "executor/checkpoint/convert/file_layout.hpp"
#include "executor/checkpoint/convert/target_files.hpp"
#include "executor/checkpoint/convert/value_reader.hpp"
#include "rheo/reshard/layout_fault.hpp"
#include "rheo/reshard/mesh.hpp"
#include "support/catch.hpp"
#include "support/random_layouts.hpp"
#include "support/temporary_folder.hpp"
#include "unit/executor/checkpoint/small_job.hpp"

using namespace rheo;
namespace fs = std::filesystem;

namespace {

/// As `rheo convert` reads a folder.
conversion source(fs::path const& from)
{
    conversion what;
    if (fs::exists(from / "manifest.json")) {
        what.from = stored_in(checkpoint{from});
        return what;
    }
    what.from = read_distributed_checkpoint(from);
    if (auto const about = read_state_manifest(from)) {
        what.from = named_like(what.from, about->about);
        what.said = about->digest;
    }
    return what;
}

converted convert_to(fs::path const& from, fs::path const& out, array_layout const& layout, stored_form form, bytes memory)
{
    auto what = source(from);
    what.layout = fit_layout(layout, what.from, "a layout");
    what.form = form;
    what.memory = memory;
    what.out = out;
    return convert(what);
}

std::vector<layout_tensor> tensors_of_job()
{
    std::vector<layout_tensor> tensors;
    for (auto const& tensor : mesh_tensors(gpt_model(small_job::shape))) {
        tensors.push_back(tensor.tensor);
    }
    return tensors;
}

/// All of the files of a folder under their names.
std::map<std::string, std::string> contents(temporary_folder const& folder, std::string const& name)
{
    std::map<std::string, std::string> all;
    for (auto const& entry : fs::directory_iterator{folder.path / name}) {
        auto const file = entry.path().filename().string();
        all[file] = folder.read(name + "/" + file);
    }
    return all;
}

/// Random bytes as one file per tensor, each a whole one of a dtype that has its size.
void write_arrays(temporary_folder const& folder, std::string const& name, std::vector<layout_tensor> const& tensors, std::mt19937& draw)
{
    std::map<std::int64_t, std::string> const dtypes{{1, "U8"}, {2, "BF16"}, {4, "F32"}, {8, "I64"}};
    for (auto const& tensor : tensors) {
        std::vector<std::int64_t> const shape(tensor.shape.lengths, tensor.shape.lengths + tensor.shape.dimensions);
        std::string const key{tensor.name.view()};
        std::vector<safetensors_entry> entries{{key, dtypes.at(tensor.element[0].size.count), shape, 0, 0}};
        auto text = format_safetensors(entries, sharding_metadata({{key, std::vector<std::int64_t>(shape.size(), 0)}}));
        for (std::int64_t i = 0; i < entries[0].end; ++i) {
            text += static_cast<char>(draw());
        }
        folder.write(name + "/" + key + ".safetensors", text);
    }
}

}  // namespace

TEST_CASE("convert: runs of a box are its elements in order")
{
    std::mt19937 draw{3};
    for (int i = 0; i < 2000; ++i) {
        nd_box box;
        nd_box first;
        nd_box second;
        box.dimensions = first.dimensions = second.dimensions = 1 + random_layouts::below(draw, 4);
        for (int d = 0; d < box.dimensions; ++d) {
            auto const begin = 2 + random_layouts::below(draw, 3);
            box[d] = {begin, begin + random_layouts::below(draw, 4)};
            first[d] = {begin - random_layouts::below(draw, 3), box[d].end + random_layouts::below(draw, 2)};
            second[d] = {begin - random_layouts::below(draw, 3), box[d].end + random_layouts::below(draw, 2)};
        }
        std::vector<std::pair<std::int64_t, std::int64_t>> expected;
        std::vector<std::int64_t> at(most_dimensions, 0);
        std::function<void(int)> const walk = [&](int d) {
            if (d == box.dimensions) {
                expected.emplace_back(offset_in(first, at.data()), offset_in(second, at.data()));
                return;
            }
            for (auto k = box[d].begin; k < box[d].end; ++k) {
                at[static_cast<std::size_t>(d)] = k;
                walk(d + 1);
            }
        };
        walk(0);
        std::vector<std::pair<std::int64_t, std::int64_t>> got;
        for_each_run(box, first, second, [&](box_run const& run) {
            for (std::int64_t k = 0; k < run.count; ++k) {
                got.emplace_back(run.in_first + k, run.in_second + k);
            }
        });
        REQUIRE(got == expected);
        std::int64_t next = 0;
        auto const most = std::max<std::int64_t>(1, length(box[box.dimensions - 1])) + random_layouts::below(draw, 9);
        for_each_piece(box, most, [&](nd_box const& piece) {
            REQUIRE(elements(piece) <= most);
            for_each_run(piece, box, piece, [&](box_run const& run) {
                REQUIRE(run.in_first == next);
                next += run.count;
            });
        });
        REQUIRE(next == elements(box));
    }
}

TEST_CASE("convert: each element goes to one rank that has it")
{
    std::mt19937 draw{5};
    for (int i = 0; i < 400; ++i) {
        auto const tensors = random_layouts::padded_at_random(random_layouts::random_tensors(draw), draw);
        auto const layout = random_layouts::random_layout(tensors, 5, draw);
        auto const dealt = deal_parts(layout);
        REQUIRE_FALSE(fault(dealt));
        for (std::size_t p = 0; p < dealt.places.size(); ++p) {
            auto const& place = dealt.places[p];
            REQUIRE((p == 0 || dealt.places[p - 1].ranks.front() < place.ranks.front()));
            auto const* const has = find_place(layout, place.ranks.front());
            REQUIRE(has != nullptr);
            for (auto const& part : place.parts) {
                for (int r = 0; r < tensor_roles; ++r) {
                    auto const role = static_cast<tensor_role>(r);
                    if (!part.roles.has(role)) {
                        continue;
                    }
                    std::vector<nd_box> missing{part.box};  // what the rank does not have
                    for (auto const& own : has->parts) {
                        if (own.tensor == part.tensor && own.roles.has(role)) {
                            subtract(missing, own.box);
                        }
                    }
                    REQUIRE(missing.empty());
                    for (std::size_t q = 0; q < p; ++q) {
                        for (auto const& other : dealt.places[q].parts) {
                            REQUIRE((other.tensor != part.tensor || !other.roles.has(role) || !intersects(other.box, part.box)));
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("convert: what several ranks have is dealt evenly")
{
    auto const layout = mesh_layout(mesh_tensors(gpt_model(small_job::shape)), {.tensor = 1, .pipeline = 1, .data = 4}, even_cuts(4, 1));
    std::vector<std::int64_t> sizes;
    for (auto const& place : deal_parts(layout).places) {
        std::int64_t sum = 0;
        for (auto const& part : place.parts) {
            sum += elements(part.box);
        }
        sizes.push_back(sum);
    }
    REQUIRE(sizes.size() == 4);
    CHECK(*std::max_element(sizes.begin(), sizes.end()) < 2 * *std::min_element(sizes.begin(), sizes.end()));
}

TEST_CASE("convert: any layout of any other, with the same bits")
{
    temporary_folder const folder;
    step_id const step{40};
    fs::create_directory(folder.path / "run");
    REQUIRE(small_job::write(folder.path / "run", step, 3).state == writer_state::published);
    auto const state = small_job::state_after(step);
    std::mt19937 draw{7};
    auto from = checkpoint_folder(folder.path / "run", step);
    for (int i = 0; i < 15; ++i) {
        auto const layout = random_layouts::random_layout(random_layouts::padded_at_random(tensors_of_job(), draw), 6, draw);
        auto const out = folder.path / std::to_string(i);
        bytes const memory{i % 2 == 0 ? 4 * 32 : 1 << 20};  // no row has more than 4 x 8 values
        bool const distributed = i % 3 == 1;
        auto const done = convert_to(from, out, layout, distributed ? stored_form::distributed : stored_form::checkpoint, memory);
        REQUIRE(done.is_as_said);
        REQUIRE(done.digest == small_job::digest(*state));
        if (!distributed) {
            REQUIRE(small_job::same(checkpoint{out}, *state));
        }
        from = out;
    }
    CHECK(std::distance(fs::directory_iterator{folder.path}, fs::directory_iterator{}) == 16);  // nothing unfinished
}

TEST_CASE("convert: through PyTorch's form the files are the same")
{
    temporary_folder const folder;
    step_id const step{8};
    fs::create_directory(folder.path / "run");
    REQUIRE(small_job::write(folder.path / "run", step, 2).state == writer_state::published);
    auto const from = checkpoint_folder(folder.path / "run", step);
    auto const tensors = mesh_tensors(gpt_model(small_job::shape));
    auto const cuts = even_cuts(4, 2);
    auto const layout = mesh_layout(tensors, {.tensor = 2, .pipeline = 2, .data = 1}, cuts);
    convert_to(from, folder.path / "direct", layout, stored_form::checkpoint, mebibytes(1));
    convert_to(from, folder.path / "dcp", mesh_layout(tensors, {.tensor = 1, .pipeline = 2, .data = 2}, cuts), stored_form::distributed, mebibytes(1));
    convert_to(folder.path / "dcp", folder.path / "back", layout, stored_form::checkpoint, mebibytes(1));
    auto const direct = contents(folder, "direct");
    CHECK(direct.contains("model-3.safetensors"));
    CHECK(direct == contents(folder, "back"));
    checkpoint const was{from};
    checkpoint const back{folder.path / "back"};
    CHECK(back.manifest().fingerprint == was.manifest().fingerprint);
}

TEST_CASE("convert: arrays of any dimensions and dtypes")
{
    temporary_folder const folder;
    std::mt19937 draw{11};
    for (int i = 0; i < 12; ++i) {
        auto tensors = random_layouts::random_tensors(draw);
        for (auto& tensor : tensors) {
            tensor.shape[0] = std::max<std::int64_t>(1, tensor.shape[0]);
            tensor.element = {tensor.element[0]};
        }
        auto const name = std::to_string(i);
        write_arrays(folder, name, tensors, draw);
        auto const first =
            convert_to(folder.path / name, folder.path / (name + "a"), random_layouts::random_layout(tensors, 4, draw), stored_form::distributed, mebibytes(1));
        auto const second = convert_to(folder.path / (name + "a"), folder.path / (name + "b"), random_layouts::random_layout(tensors, 4, draw),
                                       stored_form::distributed, bytes{56});
        CHECK(first.digest == second.digest);
        array_layout whole_ones{tensors, {}};
        for (std::size_t t = 0; t < tensors.size(); ++t) {
            whole_ones.places.push_back({{rank_id{static_cast<std::int32_t>(t)}}, {{tensor_id{static_cast<std::int32_t>(t)}, whole(tensors[t].shape)}}});
        }
        convert_to(folder.path / (name + "b"), folder.path / (name + "c"), whole_ones, stored_form::distributed, mebibytes(1));
        for (std::size_t t = 0; t < tensors.size(); ++t) {
            auto const was = safetensors_file{folder.path / name / (std::string{tensors[t].name.view()} + ".safetensors")};
            auto const is = safetensors_file{folder.path / (name + "c") / ("shard-0000" + std::to_string(t + 1) + "-model-00001-of-00001.safetensors")};
            CHECK(was.header() == is.header());
            CHECK(folder.read(was.path().lexically_relative(folder.path)) == folder.read(is.path().lexically_relative(folder.path)));
        }
    }
}

TEST_CASE("convert: a box is read from the files that have it")
{
    temporary_folder const folder;
    step_id const step{3};
    fs::create_directory(folder.path / "run");
    REQUIRE(small_job::write(folder.path / "run", step, 2).state == writer_state::published);
    auto const state = small_job::state_after(step);
    std::mt19937 draw{13};
    auto const out = folder.path / "cut";
    convert_to(checkpoint_folder(folder.path / "run", step), out, random_layouts::random_layout(tensors_of_job(), 5, draw), stored_form::checkpoint,
               mebibytes(1));
    checkpoint const cut{out};
    for (tensor_id t{0}; at(t) < small_job::info().tensors.size(); ++t) {
        auto const& info = small_job::info().tensors[at(t)];
        if (!info.is_parameter) {
            continue;
        }
        auto const values = values_of(state->backend(), state->tensor(t)).first_moment;
        for (int i = 0; i < 10; ++i) {
            auto const edge = [&](std::int64_t most) { return static_cast<std::int64_t>(draw() % static_cast<unsigned>(most)); };
            index_box const box{edge(info.shape.rows), info.shape.rows, edge(info.shape.columns), info.shape.columns};
            std::vector<float> expected;
            for (auto row = box.row_begin; row < box.row_end; ++row) {
                auto const begin = values.begin() + row * info.shape.columns;
                expected.insert(expected.end(), begin + box.column_begin, begin + box.column_end);
            }
            REQUIRE(cut.read(info.name, tensor_role::first_moment, box) == expected);
        }
    }
    // Files that a box does not need may be gone.
    auto const& entry = cut.manifest().files.front().entries.front();
    auto const expected = cut.read(entry.tensor, entry.role, entry.box);
    for (std::size_t f = 1; f < cut.files().size(); ++f) {
        fs::remove(cut.files()[f].path());
    }
    CHECK(cut.read(entry.tensor, entry.role, entry.box) == expected);
    CHECK_THROWS_WITH(cut.read(entry.tensor, entry.role, {0, 1000, 0, 1}), Catch::Matchers::ContainsSubstring("rows 0 to 1000, columns 0 to 1 are asked for"));
}
