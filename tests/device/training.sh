#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# training.sh <rheo> <work folder>    whole trainings on the emulated device, of several ranks that share it: per dtype one digest for one rank,
# pipelines, split backwards and copies of the model, also when a rank is lost, when a job goes on from a checkpoint, and when the
# device does everything as late as it may; the losses are near the host's; what cannot be is said.
set -u
rheo=$1
# shellcheck source=tests/jobs.sh
. "$(dirname "$0")/../jobs.sh"
begin_in "$2" <<'END'
model.dropout = 0.1
train.steps = 4
train.microbatch = { sequences = 1, tokens = 12 }
train.eval_microbatches = 1
checkpoint.every_steps = 2
run.sample_tokens = 3
END
sed -i 's/^model.width = 32/model.width = 16/; s/^model.blocks = 3/model.blocks = 1/; s/^model.context = 32/model.context = 12/; s/^train.microbatches = 6/train.microbatches = 4/' job.toml
losses() { sed -n 's/.*"kind":"step".*"loss":\([0-9.]*\).*/\1/p' "$1/metrics.jsonl"; }
alone=(--set plan.pipelines=[1] --set plan.failures=0)
train host 1 "${alone[@]}"
expect "the host ends" 0 $?
for dtype in fp32 bf16; do
  device=(--set run.device=cuda --set "train.dtype=$dtype")
  train "$dtype-one" 1 "${device[@]}" "${alone[@]}"
  expect "$dtype: one rank ends" 0 $?
  same() { # <run folder> <exit code>
    expect "$1 ends" 0 "$2"
    expect "$1: the digest" "$(value digest "$dtype-one")" "$(value digest "$1")"
  }
  export RHEO_EMULATED_LATE=1
  train "$dtype-pipelines" 4 "${device[@]}"
  same "$dtype-pipelines" $?
  train "$dtype-lost" 4 "${device[@]}" --inject kill:2@2:backward
  same "$dtype-lost" $?
  expect "$dtype: one recovery" 1 "$(grep -c '"kind":"recovery"' "$dtype-lost/metrics.jsonl")"
  train "$dtype-split" 2 "${device[@]}" --set plan.pipelines=[2] --set plan.failures=0 --set plan.schedule=zb-h1
  same "$dtype-split" $?
  unset RHEO_EMULATED_LATE
  train "$dtype-copies" 2 "${device[@]}" --set plan.pipelines=[2] --set plan.failures=0 --set plan.schedule=dualpipe --set plan.recompute=true
  same "$dtype-copies" $?
  train "$dtype-resumed" 1 "${device[@]}" "${alone[@]}" --inject kill:0@3:forward
  train "$dtype-resumed" 2 "${device[@]}" --set plan.pipelines=[1,1]
  same "$dtype-resumed" $?
  expect "$dtype: the loss is near the host's" 4 "$(paste <(losses host) <(losses "$dtype-one") | awk -v near="$([[ $dtype == fp32 ]] && echo 1e-4 || echo 0.05)" \
    '{d = $1 - $2; if (d < near && d > -near) ++n} END {print n + 0}')"
  for run in one pipelines split copies; do
    expect "$dtype-$run: measured activations are those planned" 0 "$(cat "$dtype-$run"/ranks/*.json | tr -d ' \n' | grep -o '"peak_activation_bytes":[0-9]*,"planned_activation_bytes":[0-9]*' |
      awk -F '[:,]' '$2 != $4 || $2 == 0 {++n} END {print n + (NR == 0)}')"
  done
done
expect "dtypes differ" 1 "$([[ $(value digest fp32-one) != "$(value digest bf16-one)" ]] && echo 1)"
train refused 1 "${alone[@]}" --set train.dtype=bf16
expect "bf16 on the host" 2 $?
expect "is refused by its key" 1 "$(grep -c 'train.dtype = "bf16" is computed by a device' refused.out)"
train fp32-one 1 "${alone[@]}" --set train.steps=6
expect "a device's state goes on on no host" 2 $?
expect "which is said" 1 "$(grep -c 'kernels was CUDA' fp32-one.out)"
exit $((failures > 0))
