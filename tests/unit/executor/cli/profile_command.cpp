// SPDX-License-Identifier: Apache-2.0
// `rheo profile` as its users start it, and what it writes as `rheo plan --layer-profile` reads it.
#include <string>

#include "rheo/model/footprint.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/partition/layer_profile_csv.hpp"
#include "support/catch.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

constexpr char const* config = R"(schema = 1
[model]
vocabulary = 61
context = 16
width = 24
heads = 3
blocks = 3
[train]
microbatches = 4
microbatch = { sequences = 2, tokens = 16 }
)";

}  // namespace

TEST_CASE("profile_command: measured layers make a plan")
{
    temporary_folder const folder;
    folder.write("job.toml", config);
    auto const printed = run_rheo(folder, "profile job.toml --repeats 3");
    INFO(printed.err);
    REQUIRE(printed.exit_code == 0);
    auto const layers = parse_layer_profile(printed.out, "standard output");
    INFO(layers.error());
    REQUIRE(layers);
    gpt_shape const shape{.vocabulary = 61, .context = 16, .width = 24, .heads = 3, .blocks = 3};
    auto const model = fused(gpt_model(shape));
    microbatch_shape const batch{.sequences = 2, .tokens = 16};
    REQUIRE(layers->size() == model.layers.size());
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
        INFO("layer " << l);
        auto const& layer = (*layers)[l];
        CHECK(layer.forward.count > 0.0);
        CHECK(layer.backward.count > 0.0);
        CHECK(layer.persistent == persistent_bytes(model.layers[l]));
        CHECK(layer.per_microbatch == activation_bytes(model.layers[l], batch));
        CHECK(layer.boundary == boundary_bytes(model.layers[l], batch));
    }
    auto const written = run_rheo(folder, "profile job.toml --repeats 1 --out layers.csv --set run.fuse=false");
    INFO(written.err);
    CHECK(written.exit_code == 0);
    CHECK(written.out.starts_with("layers.csv: 5 layers, "));
    auto const planned = run_rheo(folder, "plan job.toml --ranks 3 --layer-profile layers.csv");
    INFO(planned.err);
    CHECK(planned.exit_code == 0);
    auto const compared = run_rheo(folder, "plan job.toml --ranks 3 --schedule 1f1b --layer-profile layers.csv");
    CHECK(compared.exit_code == 0);
}

TEST_CASE("profile_command: what cannot be measured is rejected")
{
    temporary_folder const folder;
    folder.write("job.toml", config);
    CHECK(run_rheo(folder, "profile").exit_code == 2);
    CHECK(run_rheo(folder, "profile job.toml --repeats 0").exit_code == 2);
    CHECK(run_rheo(folder, "profile job.toml --set model.heads=5").exit_code == 2);
    auto const nowhere = run_rheo(folder, "profile job.toml --repeats 1 --out none/layers.csv");
    CHECK(nowhere.exit_code == 5);
    CHECK(nowhere.err == "rheo: none/layers.csv: this profile cannot be written\n");
}
