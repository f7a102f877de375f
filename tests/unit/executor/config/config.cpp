// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "executor/config/config_fields.hpp"
#include "executor/config/files/schedule_file.hpp"
#include "executor/config/toml.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

std::string refusal(std::string const& text, std::vector<std::string> const& settings = {})
{
    try {
        read_config(text, "c.toml", settings);
    } catch (exit_error const& error) {
        return error.what();
    }
    return "taken";
}

std::string setting_refusal(std::string const& setting) { return refusal("schema = 1\n", {setting}); }

/// Every key as the text in which it is written back.
std::string written(run_config const& config) { return to_toml(config); }

}  // namespace

TEST_CASE("config: an empty config is the defaults")
{
    auto const read = read_config("schema = 1", "c.toml");
    CHECK(written(read.config) == written(run_config{}));
    CHECK(read.places.empty());
}

TEST_CASE("config: what is written back reads as the same config")
{
    run_config config;
    config.model = {.vocabulary = 300, .context = 77, .width = 96, .heads = 3, .blocks = 5, .dropout_per_mille = 123, .tied = false};
    config.family = model_family::llama;
    config.model.dropout_per_mille = 0;
    config.llama = {.kv_heads = 1, .head_dim = 34, .mlp_width = 50, .rope_base = 7, .scaling = {rope_scaling_kind::llama3, 8500, 1001, 4000, 8192}};
    config.model.norm_epsilon_e9 = 1001;
    config.data = {.paths = {"a \"quoted\" path", "back\\slash", "line\nbreak \x01\x7f", "\xc3\xbc"}, .validation_fraction = 1.0 / 3};
    config.train = {
        .steps = 7, .seed = 9007199254740993U, .microbatches = 3, .microbatch = {5, 6}, .eval_every = 2, .eval_microbatches = 4, .skip_not_finite = true};
    config.optimizer = {.learning_rate = 0.1 + 0.2,
                        .final_learning_rate = 1e-300,
                        .warmup_steps = 8,
                        .beta1 = 0,
                        .beta2 = 0.5,
                        .epsilon = 5,
                        .weight_decay = 0,
                        .clip_norm = 1e10};
    config.plan = {.schedule = gpipe{}, .pipelines = {2, 3}, .shares = {1, 2}, .failures = 0, .min_ranks = 2};
    config.power = {.device = power_source::emulated,
                    .clock_profile = "p \"q\".csv",
                    .blocking = {83.25},
                    .deadline = {0.1},
                    .switch_latency = {1e-4},
                    .straggler = false,
                    .slow = {.threshold = 1.5, .recovered = 1.25, .change = 0.5, .steps = 3},
                    .pace = emulation_pace::profile,
                    .nvml = "/l.so",
                    .sysfs = "/s",
                    .zeusd = "z",
                    .lock_command = "set {device} {mhz}",
                    .restore_command = "back {device}",
                    .sweep = "s.csv",
                    .claims = "/c",
                    .guardian = "g"};
    config.run = {.folder = "f", .trace = false, .fuse = false, .threads = 2, .sample_tokens = 9, .inject = {"kill:1@2", "kill:0@3:idle"}};
    auto const read = read_config(to_toml(config), "c.toml").config;
    CHECK(written(read) == written(config));
    CHECK(read.data.paths == config.data.paths);
    CHECK(read.data.validation_fraction == config.data.validation_fraction);
    CHECK(read.train.seed == config.train.seed);
    CHECK(read.optimizer.learning_rate == config.optimizer.learning_rate);
    CHECK(read.optimizer.final_learning_rate == config.optimizer.final_learning_rate);
    CHECK(read.model == config.model);
    CHECK(read.llama == config.llama);
    CHECK(model_of(read) == model_of(config));
    CHECK(running_model(read) == model_of(config));  // run.fuse is false
    CHECK(read.plan.shares == config.plan.shares);
    CHECK(read_config("schema = 1\nplan.recompute = \"auto\"\nplan.memory_mib = 1", "c.toml").config.plan.recompute == recompute_policy::automatic);
    CHECK(read_config("schema = 1\nplan.recompute = true", "c.toml").config.plan.recompute == recompute_policy::always);
    CHECK(read_config("schema = 1\nplan.recompute = false", "c.toml").config.plan.recompute == recompute_policy::never);
    CHECK(read.run.inject == config.run.inject);
    CHECK(read.power.clock_profile == config.power.clock_profile);
    CHECK(read.power.lock_command == config.power.lock_command);
    CHECK_FALSE(read.power.straggler);
    config.power.clock_profile.clear();
    config.power.device = power_source::nvml;
    config.plan.memory = kibibytes(512);
    for (auto const recompute : {recompute_policy::never, recompute_policy::always, recompute_policy::automatic, recompute_policy::selective}) {
        config.plan.recompute = recompute;
        CHECK(read_config(to_toml(config), "c.toml").config.plan.recompute == recompute);
    }
    CHECK(read.power.slow == config.power.slow);
}

TEST_CASE("config: every key can be read and set")
{
    run_config const defaults;
    for_each_field(defaults, [](std::string_view key, auto const&, field_limits const&, std::string_view) {
        // A date fits no key: the refusal must be one about the type, not about the name.
        auto const message = refusal("schema = 1\n" + std::string{key} + " = 2020-01-01\n");
        CHECK(message.find("c.toml:2: " + std::string{key} + " must be ") == 0);
        CHECK(message.find("not a date or time") != std::string::npos);
    });
}

TEST_CASE("config: settings override the file and need no quotes")
{
    auto const read = read_config("schema = 1\n[train]\nsteps = 3\n", "c.toml",
                                  std::vector<std::string>{"train.steps=4", "train.steps=5", "run.folder=runs/a#b", "plan.pipelines=[1, 2]", "data.paths=/a",
                                                           "model.dropout=0.25", "train.microbatch={sequences=2,tokens=3}", "optimizer.clip_norm=2"});
    CHECK(read.config.train.steps == 5);
    CHECK(read.config.run.folder == "runs/a#b");
    CHECK(read.config.plan.pipelines == std::vector{1, 2});
    CHECK(read.config.data.paths == std::vector<std::string>{"/a"});
    CHECK(read.config.model.dropout_per_mille == 250);
    CHECK(read.config.train.microbatch == microbatch_shape{2, 3});
    CHECK(read.config.optimizer.clip_norm == 2);
    CHECK(read.places.at("train.steps") == "--set train.steps=5");
    CHECK(read_config("schema = 1", "c", std::vector<std::string>{"run.folder=2026"}).config.run.folder == "2026");
}

TEST_CASE("config: microbatch as inline table, dotted keys or table")
{
    for (auto const* text :
         {"schema = 1\n[train]\nmicrobatch = { sequences = 2, tokens = 3 }", "schema = 1\n[train]\nmicrobatch.sequences = 2\nmicrobatch.tokens = 3",
          "schema = 1\n[train.microbatch]\nsequences = 2\ntokens = 3"}) {
        CHECK(read_config(text, "c.toml").config.train.microbatch == microbatch_shape{2, 3});
    }
}

TEST_CASE("config: an error names the place and what was expected")
{
    CHECK(refusal("") == "c.toml: schema = 1 is missing; a config begins with the version of its form");
    CHECK(refusal("schema = 2") == "c.toml:1: schema = 2 is not known; this version reads schema = 1");
    CHECK(refusal("schema = \"1\"") == "c.toml:1: schema must be the number 1");
    CHECK(refusal("schema = 1\n[train]\n\nstep = 4") == "c.toml:4: unknown key train.step; the nearest known one is train.steps");
    CHECK(refusal("schema = 1\n[trian]\nseed = 4") == "c.toml:2: unknown table trian; the nearest known one is train");
    CHECK(refusal("schema = 1\n[train.microbatches]\ntokens = 4") == "c.toml:2: train.microbatches must be a whole number, not a table");
    CHECK(refusal("schema = 1\n[model]\nsteps = 4") == "c.toml:3: unknown key model.steps; the nearest known one is train.steps");
    CHECK(refusal("schema = 1\ntrain = 4") == "c.toml:2: train is a table of keys, not a value");
    CHECK(refusal("schema = 1\n[train]\nsteps = \"many\"") == "c.toml:3: train.steps must be a whole number, not a text");
    CHECK(refusal("schema = 1\n[train]\nsteps = 1.0") == "c.toml:3: train.steps must be a whole number, not a number with a fraction");
    CHECK(refusal("schema = 1\n[train]\nsteps = -1") == "c.toml:3: train.steps must be at least 0, not -1");
    CHECK(refusal("schema = 1\n[train]\nseed = -1") == "c.toml:3: train.seed = -1 is out of range; expected 0 to 18446744073709551615");
    CHECK(refusal("schema = 1\n[train]\nmicrobatches = 3000000000") ==
          "c.toml:3: train.microbatches = 3000000000 is out of range; expected -2147483648 to 2147483647");
    CHECK(refusal("schema = 1\n[model]\ntied = 1") == "c.toml:3: model.tied must be true or false, not a whole number");
    CHECK(refusal("schema = 1\n[run]\nfolder = 7") == "c.toml:3: run.folder must be a text, not a whole number");
    CHECK(refusal("schema = 1\n[data]\npaths = \"x\"") == "c.toml:3: data.paths must be a list of texts, not a text");
    CHECK(refusal("schema = 1\n[data]\npaths = [\"x\", 1]") == "c.toml:3: data.paths must be a list of texts, but holds a whole number");
    CHECK(refusal("schema = 1\n[plan]\npipelines = [2, \"3\"]") == "c.toml:3: plan.pipelines must be a list of whole numbers, not a text");
    CHECK(refusal("schema = 1\n[plan]\npipelines = [2, 0]") == "c.toml:3: each element of plan.pipelines must be at least 1 and at most 1048576, not 0");
    CHECK(refusal("schema = 1\n[optimizer]\nbeta1 = 1") == "c.toml:3: optimizer.beta1 must be at least 0 and below 1, not 1");
    CHECK(refusal("schema = 1\n[optimizer]\nepsilon = 0.0") == "c.toml:3: optimizer.epsilon must be above 0, not 0");
    CHECK(refusal("schema = 1\n[optimizer]\nlearning_rate = nan") == "c.toml:3: optimizer.learning_rate must be at least 0, not nan");
    CHECK(refusal("schema = 1\n[optimizer]\nlearning_rate = inf") == "c.toml:3: optimizer.learning_rate must be at least 0, not inf");
    CHECK(refusal("schema = 1\n[model]\ndropout = 0.0001") == "c.toml:3: model.dropout must be a multiple of 0.001, not 0.0001");
    CHECK(refusal("schema = 1\n[power]\ndevice = \"gpu\"") == "c.toml:3: power.device must be one of none, emulated, nvml, cpu, auto, not 'gpu'");
    CHECK(refusal("schema = 1\n[power]\nsweep = \"s.csv\"").find("c.toml: power.device = \"none\" has no clock") == 0);
    CHECK(refusal("schema = 1\n[power]\npace = \"slow\"") == "c.toml:3: power.pace must be one of machine, profile, not 'slow'");
    CHECK(refusal("schema = 1\n[power]\nblocking_w = -1") == "c.toml:3: power.blocking_w must be at least 0, not -1");
    CHECK(refusal("schema = 1\n[power]\nstraggler_threshold = 1") == "c.toml:3: power.straggler_threshold must be above 1, not 1");
    CHECK(refusal("schema = 1\n[power]\nstraggler_recovered = 1.2")
              .find("c.toml:3: power.straggler_recovered = 1.2 must be at most power.straggler_threshold = 1.1") == 0);
    CHECK(refusal("schema = 1\n[power]\nclock_profile = \"p.csv\"").find("c.toml: power.device = \"none\" has no clock") == 0);
    CHECK(refusal("schema = 1\n[power]\ndevice = \"emulated\"") ==
          "c.toml: power.clock_profile must name a file where power.device = \"emulated\": it is what is emulated");
    CHECK(refusal("schema = 1\npower = { device = \"nvml\", clock_profile = \"p\" }\nplan.recompute = true").find("c.toml:3: plan.recompute has no profile") ==
          0);
    CHECK(refusal("schema = 1\nrun.inject = [\"slow:1@2-3:1.5\"]").find("needs power.device = \"emulated\"") != std::string::npos);
    CHECK(refusal("schema = 1\n[model]\ndropout = 1") == "c.toml:3: model.dropout must be at least 0 and below 1, not 1");
    CHECK(refusal("schema = 1\n[model]\ndropout = inf") == "c.toml:3: model.dropout must be a multiple of 0.001, not inf");
    CHECK(refusal("schema = 1\n[model]\nwidth = 65\nheads = 4") == "c.toml:3: model.width = 65 must be a multiple of model.heads = 4");
    CHECK(refusal("schema = 1\n[train]\nmicrobatch.tokens = 200") == "c.toml:3: train.microbatch.tokens = 200 must be at most model.context = 128");
    CHECK(refusal("schema = 1\n[train\nsteps = 1").find("c.toml:2: no valid TOML: ") == 0);
    CHECK(refusal("schema = 1\nschema = 1").find("c.toml:2: no valid TOML: ") == 0);
    CHECK(refusal(std::string("schema = 1\n\0x", 13)).find("c.toml:2: no valid TOML: ") == 0);
}

TEST_CASE("config: the keys of the plan may not contradict each other")
{
    CHECK(refusal("schema = 1\n[train]\nslices = 3") == "c.toml:3: train.slices = 3 must divide train.microbatch.tokens = 64");
    CHECK(refusal("schema = 1\n[train]\nslices = 65") == "c.toml:3: train.slices must be at least 1 and at most 64, not 65");
    CHECK(refusal("schema = 1\n[plan]\nschedule = \"seq1f1b\"") ==
          "c.toml:3: plan.schedule = \"seq1f1b\" cuts sequences: train.slices must say into how many slices, 2 or more");
    CHECK(refusal("schema = 1\n[train]\nslices = 2\n[plan]\nschedule = \"seq1f1b\"") == "taken");
    CHECK(refusal("schema = 1\n[train]\nslices = 2\n[plan]\nrecompute = true") ==
          "c.toml:5: plan.recompute with train.slices = 2 is not possible: later slices attend to what would be evicted");
    CHECK(refusal("schema = 1\n[plan]\nrecompute = \"auto\"") == "c.toml:3: plan.recompute = \"auto\" keeps ranks within plan.memory_mib, which must be set");
    CHECK(refusal("schema = 1\n[plan]\nrecompute = \"auto\"\nmemory_mib = 64") == "taken");
    CHECK(refusal("schema = 1\n[plan]\nrecompute = \"selective\"") ==
          "c.toml:3: plan.recompute = \"selective\" keeps ranks within plan.memory_mib, which must be set");
    CHECK(refusal("schema = 1\n[train]\nslices = 2\n[plan]\nrecompute = \"selective\"\nmemory_mib = 64") == "taken");
    CHECK(refusal("schema = 1\n[plan]\nrecompute = \"all\"") == "c.toml:3: plan.recompute must be true, false, \"auto\" or \"selective\", not a text");
    CHECK(refusal("schema = 1\n[plan]\nschedule = \"auto\"") == "taken");
    CHECK(read_config("schema = 1\n[plan]\nschedule = \"auto\"", "c.toml").config.plan.schedule == automatic_schedule());
    CHECK(refusal("schema = 1\n[plan]\nschedule = \"1f1c\"") == "c.toml:3: no schedule is called '1f1c'; the nearest known name is '1f1b'");
    CHECK(refusal("schema = 1\n[plan]\npipelines = [1, 2]\nmin_ranks = 2") ==
          "c.toml:3: plan.pipelines = [1, 2] has a pipeline of fewer than plan.min_ranks = 2 ranks");
    CHECK(refusal("schema = 1\n[plan]\nlayers = [3, 5]") == "c.toml:3: plan.layers = [3, 5] cuts pipelines that plan.pipelines must name");
    CHECK(refusal("schema = 1\n[plan]\nshares = [3, 5]") == "c.toml:3: plan.shares = [3, 5] must name as many shares as plan.pipelines = [] names pipelines");
    CHECK(refusal("schema = 1\n[plan]\npipelines = [1, 1]\nshares = [3, 4]") ==
          "c.toml:4: plan.shares = [3, 4] must add up to train.microbatches = 8, not to 7");
    CHECK(refusal("schema = 1\n[plan]\npipelines = [1, 1]\nshares = [3, 5]") == "taken");

    auto read = read_config("schema = 1\n[plan]\npipelines = [2, 3]", "c.toml");
    CHECK_FALSE(check_ranks(read.config, 5));
    REQUIRE(check_ranks(read.config, 4));
    CHECK(read.message(*check_ranks(read.config, 4)) == "c.toml:3: plan.pipelines = [2, 3] asks for 5 ranks, but 4 are started");
    CHECK_FALSE(check_ranks(run_config{}, 4));
    read.config.plan.spares = 2;
    CHECK_FALSE(check_ranks(read.config, 7));
    CHECK(check_ranks(read.config, 5)->message == "plan.pipelines = [2, 3] with plan.spares = 2 asks for 7 ranks, but 5 are started");
    run_config waiting;
    waiting.plan.spares = 2;
    CHECK_FALSE(check_ranks(waiting, 3));
    CHECK(check_ranks(waiting, 2)->message == "plan.spares = 2 leaves none of the 2 ranks that are started a place");
}

TEST_CASE("config: a fault to inject names rank, step and phase")
{
    for (auto const* good : {"kill:0@0", "kill:12@34", "kill:2@3:forward", "kill:2@3:idle", "kill:2@3:copy", "kill:2@0.1", "kill:2@0.1:reduce"}) {
        CHECK(setting_refusal("run.inject=[\"" + std::string{good} + "\"]") == "taken");
    }
    for (auto const* bad : {"", "kill", "kill:1", "kill:@3", "kill:1@", "kill:1@2:", "kill:1@2:late", "kill:1@2.", "kill:1@2.x:idle", "kill:1@.1", "halt:1@2",
                            "kill:-1@2", "kill:1@2 ", "kill:99999999999@1"}) {
        auto const message = setting_refusal("run.inject=[\"" + std::string{bad} + "\"]");
        INFO(message);
        CHECK(message.starts_with("--set run.inject=[\"" + std::string{bad} + "\"]: the fault '" + std::string{bad} + "' "));
    }
}

TEST_CASE("config: a setting that is none is refused as it was written")
{
    CHECK(setting_refusal("train.steps") == "--set train.steps: expected key=value, for example train.steps=5");
    CHECK(setting_refusal("=5") == "--set =5: expected key=value, for example train.steps=5");
    CHECK(setting_refusal("train.steps=") == "--set train.steps=: train.steps must be a whole number, not a text");
    CHECK(setting_refusal("steps=4") == "--set steps=4: unknown key steps; the nearest known one is train.steps");
    CHECK(setting_refusal("train={seed=1,step=2}") == "--set train={seed=1,step=2}: unknown key train.step; the nearest known one is train.steps");
    CHECK(setting_refusal("schema=2") == "--set schema=2: schema = 2 is not known; this version reads schema = 1");
}

TEST_CASE("config: a config that cannot be read is refused by its name")
{
    CHECK_THROWS_WITH(read_config_file("/nowhere/c.toml"), "/nowhere/c.toml: cannot be read: No such file or directory");
    CHECK_THROWS_WITH(read_config_file("/"), "/: is a folder; expected a config file in TOML");
}

TEST_CASE("config: model family is selected; foreign keys rejected")
{
    auto const of = [](std::string const& text) { return read_config("schema = 1\n" + text, "c.toml").config; };
    CHECK(running_model(of("")) == fused(gpt_model({})));
    CHECK(model_of(of("model.family = \"llama\"")) == llama_model({.kv_heads = 4, .tied = true}));
    CHECK(model_of(of("model.family = \"llama\"\nmodel.kv_heads = 2\nmodel.mlp_width = 9\nmodel.rope_base = 3\nmodel.tied = false")) ==
          llama_model({.mlp_width = 9, .rope_base = 3}));
    CHECK(refusal("schema = 1\nmodel.family = \"lama\"") == "c.toml:2: model.family must be one of gpt2, llama, mistral, qwen2, qwen3, not 'lama'");
    CHECK(refusal("schema = 1\nmodel.mlp_width = 9") == "c.toml:2: model.mlp_width is a llama's: it needs model.family = \"llama\", or another but gpt2");
    auto const family = [&](char const* name, char const* more = "") {
        return model_of(of(("model.family = \"" + std::string{name} + "\"\nmodel.kv_heads = 2\nmodel.mlp_width = 9\nmodel.tied = false\n" + more).c_str()));
    };
    CHECK(family("mistral") == llama_model({.mlp_width = 9}));
    CHECK(family("qwen2") == llama_model({.mlp_width = 9, .qkv_bias = true}));
    CHECK(family("qwen3", "model.head_dim = 20\nmodel.norm_epsilon = 1e-6") ==
          llama_model({.mlp_width = 9, .head_dim = 20, .norm_epsilon_e9 = 1000, .qk_norm = true}));
    CHECK(family("llama", "model.rope_scaling = \"linear\"\nmodel.rope_factor = 2.5") ==
          llama_model({.mlp_width = 9, .scaling = {.kind = rope_scaling_kind::linear, .factor_per_mille = 2500}}));
    CHECK(refusal("schema = 1\nmodel.family = \"llama\"\nmodel.rope_scaling = \"linear\"") ==
          "c.toml:3: model.rope_scaling = \"linear\" must have a factor of at least 1: see model.rope_factor and the keys behind it");
    CHECK(refusal("schema = 1\nmodel.family = \"llama\"\nmodel.rope_factor = 2") ==
          "c.toml: model.rope_scaling = \"none\" has factors but no kind: see model.rope_factor and the keys behind it");
    CHECK(refusal("schema = 1\nmodel.rope_scaling = \"yarn\"") == "c.toml:2: model.rope_scaling must be one of none, linear, llama3, not 'yarn'");
    CHECK(refusal("schema = 1\nmodel.norm_epsilon = 1.5e-9") == "c.toml:2: model.norm_epsilon must be a multiple of 1e-09, not 1.5e-09");
    CHECK(refusal("schema = 1\nmodel.norm_epsilon = 0.0") == "c.toml:2: model.norm_epsilon must be at least 1e-09 and at most 0.001, not 0");
    CHECK(refusal("schema = 1\nmodel.family = \"llama\"\nmodel.head_dim = 5") ==
          "c.toml:3: model.head_dim = 5 must be even: a llama turns pairs of a head's columns");
    CHECK(refusal("schema = 1\nmodel.family = \"llama\"\nmodel.dropout = 0.1") == "c.toml:3: model.dropout must be 0: a llama has none");
    CHECK(refusal("schema = 1\nmodel.family = \"llama\"\nmodel.width = 12") ==
          "c.toml:3: model.width = 12 must be an even multiple of model.heads = 4: a llama turns pairs of a head's columns");
    CHECK(refusal("schema = 1\nmodel.family = \"llama\"\nmodel.kv_heads = 3") == "c.toml:3: model.kv_heads = 3 must divide model.heads = 4");
}
