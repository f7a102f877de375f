#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bf16_state.sh <rheo> <work folder>    trainings on a device whose optimizer keeps its state in bf16: one digest for one rank, pipelines, ranks that share a
# stage, optimizer shards, lost ranks and a job that resumes, with sums in 64 and in 32 bits; losses near those of a state in fp32; memory as planned.
#   RHEO_EMULATED_DEVICE=1     the program's device is the emulated one: it does everything as late as it may
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
late() { # <0|1>: whether the emulated device does everything as late as it may
  if [[ ${RHEO_EMULATED_DEVICE:-} == 1 ]] && (($1)); then export RHEO_EMULATED_LATE=1; else unset RHEO_EMULATED_LATE; fi
}
begin_in "$2" <<'END'
model.dropout = 0.1
train.steps = 6
train.shards = 2
train.dtype = "bf16"
train.state = "bf16"
train.microbatch = { sequences = 1, tokens = 12 }
train.eval_microbatches = 1
checkpoint.every_steps = 2
run.device = "cuda"
END
sed -i 's/^model.blocks = 3/model.blocks = 1/; s/^model.context = 32/model.context = 12/; s/^train.microbatches = 6/train.microbatches = 4/' job.toml
losses() { sed -n 's/.*"kind":"step".*"loss":\([0-9.]*\).*/\1/p' "$1/metrics.jsonl"; }
alone=(--set plan.pipelines=[1] --set plan.failures=0)
one=one
same() { # <run folder> <exit code>
  expect "$1 ends" 0 "$2"
  expect "$1: the digest" "$(value digest "$one")" "$(value digest "$1")"
}

train one 1 "${alone[@]}"
expect "one rank ends" 0 $?
as_planned one
late 1
train pipelines 4 --set plan.pipelines=[2,2]
same pipelines $?
as_planned pipelines
train lost 4 --set plan.pipelines=[2,2] --inject kill:2@2:backward
same lost $?
expect "one recovery" 1 "$(grep -c '"kind":"recovery"' lost/metrics.jsonl)"
train group 3 --set plan.pipelines=[2,1] --set plan.tensor=[2,1]
same group $?
as_planned group
sharded=(--set plan.optimizer_shards=true --set plan.pipelines=[1,1,2])
train optimizer 4 "${sharded[@]}"
same optimizer $?
as_planned optimizer
train keeper 4 "${sharded[@]}" --inject kill:0@2:parameters
same keeper $?
late 0
train resumed 1 "${alone[@]}" --inject drain:0@2
train resumed 2 --set plan.pipelines=[2] --set plan.failures=0
same resumed $?

train kept 1 "${alone[@]}" --set train.state=fp32
expect "a state in fp32: one rank ends" 0 $?
expect "losses are near those of a state in fp32" 6 "$(paste <(losses one) <(losses kept) | awk '{d = $1 - $2; if (d < 0.05 && d > -0.05) ++n} END {print n + 0}')"
expect "the digests differ" 1 "$([[ -n $(value digest kept) && $(value digest kept) != "$(value digest one)" ]] && echo 1)"

one=rows
rows=(--set 'train.sums="int32"')
train rows 1 "${alone[@]}" "${rows[@]}"
expect "sums in 32 bits: one rank ends" 0 $?
as_planned rows
late 1
train rows_lost 3 --set plan.pipelines=[1,2] "${rows[@]}" --inject kill:1@2:backward
same rows_lost $?
late 0

train refused 1 "${alone[@]}" --set train.dtype=fp32
expect "a state in bf16 beside parameters in fp32" 2 $?
expect "is refused by its key" 1 "$(grep -c 'train.state = "bf16" needs train.dtype = "bf16": the model computes with' refused.out)"
train one 1 "${alone[@]}" --set train.state=fp32 --set train.steps=8
expect "another state does not resume" 2 $?
expect "the error names the key" 1 "$(grep -c 'dtypes was bf16 with a state in bf16.* is now bf16, .*with train.state = "bf16" the bits stay' one.out)"
exit $((failures > 0))
