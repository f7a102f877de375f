#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# families.sh <rheo> <work folder>    what Qwen and Mistral NeMo have beyond a Llama (norms of queries and keys, biases, heads of any width, scaled
# positions): one digest for one rank, pipelines, ranks that share stages, unfused, split, recomputed, and when a rank is lost; memory is as planned.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
model.kv_heads = 1
model.head_dim = 12
model.mlp_width = 48
model.norm_epsilon = 1e-6
model.rope_scaling = "llama3"
model.rope_factor = 4.0
model.rope_low_freq_factor = 1.0
model.rope_high_freq_factor = 4.0
model.rope_original_context = 16
train.steps = 3
train.shards = 2
train.microbatch = { sequences = 2, tokens = 16 }
END
for family in qwen2 qwen3; do
  of=(--set "model.family=$family")
  same() { # <run folder> <ranks> [arguments]
    local folder=$1 ranks=$2
    shift 2
    train "$folder" "$ranks" "${of[@]}" "$@"
    expect "$folder ends" 0 $?
    expect "$folder: the digest" "$(value digest "$family-one")" "$(value digest "$folder")"
    as_planned "$folder"
  }
  same "$family-one" 1 --set plan.pipelines=[1] --set plan.failures=0
  same "$family-lost" 4 --inject kill:2@1:backward
  same "$family-shared" 2 --set plan.pipelines=[2] --set plan.tensor=2 --set plan.failures=0 --set run.fuse=false
  same "$family-split" 2 --set plan.pipelines=[2] --set plan.failures=0 --set plan.schedule=zb-h1 --set run.threads=2
  same "$family-again" 1 --set plan.pipelines=[1] --set plan.failures=0 --set plan.recompute=true
  "$rheo" export "$family-one" "$family" >/dev/null && "$rheo" import "$family" "$family-tuned" >/dev/null
  expect "$family goes out and comes in" 0 $?
  "$rheo" export "$family-tuned" "$family-again-out" >/dev/null && cmp "$family/model.safetensors" "$family-again-out/model.safetensors"
  expect "$family: the same bytes" 0 $?
done
expect "families differ" other "$([[ $(value digest qwen2-one) == "$(value digest qwen3-one)" ]] || echo other)"
exit $((failures > 0))
