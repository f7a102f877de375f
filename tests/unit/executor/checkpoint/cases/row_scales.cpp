// SPDX-License-Identifier: Apache-2.0
// The scales of rows in a checkpoint: they come back as they were, and serve sums of the other kind, moved by the bits that 64 have more.
#include <algorithm>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/checkpoint_writer.hpp"
#include "executor/host/backend.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/state.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

model_description small_model() { return gpt_model({.vocabulary = 11, .context = 5, .width = 6, .heads = 2, .blocks = 1}); }

checkpoint written(temporary_folder const& run, resident_state& state)
{
    std::vector<std::vector<rank_id>> holders(state.info().tensors.size(), {rank_id{0}});
    initialise_layers(state, layer_id{0}, layer_id{static_cast<int>(small_model().layers.size())}, 3);
    checkpoint_writer writer{run.path};
    writer.begin(take_part(state, deal_writing(state.info(), holders), rank_id{0}, step_id{4}, generation_id{1}));
    REQUIRE(writer.wait() == writer_state::ready);
    writer.publish({step_id{4}, generation_id{1}, {rank_id{0}}, tensors_for_manifest(state), {}, "schema = 1\n", "d", 1});
    REQUIRE(writer.wait() == writer_state::published);
    return checkpoint{run.path / "step-4"};
}

/// Scales that tell their places.
void number(resident_state& state)
{
    for (std::size_t i = 0; i < state.scales.size(); ++i) {
        state.scales[i] = static_cast<int>(i % 37) - 5;
    }
}

}  // namespace

TEST_CASE("row_scales: row scales survive a checkpoint")
{
    auto const info = state_of(small_model());
    host_backend rows{1, fp32_i32}, tensors{1};
    resident_state state{info, rows};
    number(state);
    temporary_folder const run;
    auto const from = written(run, state);
    resident_state same{info, rows}, other{info, tensors};
    from.read_scales(same, 6);
    CHECK(same.scales == state.scales);
    from.read_scales(other, 6);
    for (tensor_id t{0}; at(t) < info.tensors.size(); ++t) {
        auto const of = state.scales_of(t);
        auto const each = state.contributions(t, 6);
        auto const moved = info.tensors[at(t)].is_parameter ? contribution_bound_log2(each) - row_bound_log2(each) : 0;
        CHECK(other.scales_of(t).front() == *std::min_element(of.begin(), of.end()) + moved);
    }
}

TEST_CASE("row_scales: a tensor scale applies to all of its rows")
{
    auto const info = state_of(small_model());
    host_backend rows{1, fp32_i32}, tensors{1};
    resident_state state{info, tensors};
    number(state);
    state.scales.front() = 200;  // beyond what rows take
    temporary_folder const run;
    auto const from = written(run, state);
    resident_state other{info, rows};
    from.read_scales(other, 6);
    for (tensor_id t{0}; at(t) < info.tensors.size(); ++t) {
        auto const each = state.contributions(t, 6);
        for (auto const scale : other.scales_of(t)) {
            if (at(t) == 0) {
                CHECK(scale == largest_row_scale_log2);
            } else if (info.tensors[at(t)].is_parameter) {
                CHECK(row_overflow_threshold(scale, each) == overflow_threshold(state.scales_of(t).front(), each));
            } else {
                CHECK(scale == state.scales_of(t).front());
            }
        }
    }
}

TEST_CASE("row_scales: manifest with row scales round-trips")
{
    auto const info = state_of(small_model());
    host_backend backend{1, fp32_i32};
    resident_state state{info, backend};
    number(state);
    temporary_folder const run;
    auto const from = written(run, state);
    auto manifest = from.manifest();
    CHECK(parse_manifest(format_manifest(manifest), "m") == manifest);
    CHECK(std::any_of(manifest.tensors.begin(), manifest.tensors.end(), [](auto const& tensor) { return tensor.row_scales_log2.size() == 11; }));
    for (auto& tensor : manifest.tensors) {
        if (!tensor.row_scales_log2.empty()) {
            tensor.row_scales_log2.push_back(1);
        }
    }
    CHECK_THROWS_WITH(parse_manifest(format_manifest(manifest), "m"), Catch::Matchers::ContainsSubstring("scales of rows"));
}
