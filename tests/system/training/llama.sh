#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# llama.sh <rheo> <work folder>    a Llama by its config: one digest for one rank, pipelines, unfused, split backwards and two copies of the
# model, also when a rank is lost and when a checkpoint is resumed; it learns; and what is exported and
# imported trains on.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
model.family = "llama"
model.kv_heads = 1
model.mlp_width = 48
train.steps = 6
train.microbatch = { sequences = 2, tokens = 16 }
END
train one 1 --set plan.pipelines=[1] --set plan.failures=0
expect "one rank ends" 0 $?
same() { # <run folder> <exit code>
  expect "$1 ends" 0 "$2"
  expect "$1: the digest" "$(value digest one)" "$(value digest "$1")"
}
train pipelines 4
same pipelines $?
train unfused 3 --set plan.pipelines=[3] --set plan.failures=0 --set run.fuse=false
same unfused $?
train split 2 --set plan.pipelines=[2] --set plan.failures=0 --set plan.schedule=zb-h1 --set run.threads=2
same split $?
train copies 2 --set plan.pipelines=[2] --set plan.failures=0 --set plan.schedule=dualpipe
same copies $?
train lost 4 --inject kill:2@3:backward
same lost $?
train resumed 4 --set plan.pipelines=[4] --set plan.min_ranks=4 --inject kill:1@4:backward
expect "too few ranks end the job with a checkpoint" "75 step-4" "$? $(cd resumed && echo step-*)"
train resumed 1 --set plan.pipelines=[1] --set plan.failures=0
same resumed $?
expect "from the checkpoint" 1 "$(grep -c '^resuming after 4 steps' resumed.out)"
losses() { sed -n 's/.*"kind":"step".*"loss":\([0-9.]*\).*/\1/p' "$1/metrics.jsonl"; }
expect "the loss falls" 1 "$(losses one | awk 'NR == 1 {first = $1} {last = $1} END {print last < first}')"
"$rheo" export one weights >/dev/null && "$rheo" import weights tuned >/dev/null
expect "out as Hugging Face has it, and in again" 0 $?
"$RHEO_MPIRUN" "${flags[@]}" -n 2 "$rheo" train tuned/config.toml --set train.steps=2 --set plan.failures=0 --set 'data.paths=["text"]' >tuned.out 2>&1
expect "the config that an import leaves trains on" 0 $?
expect "from those weights" 1 "$(paste -d ' ' <(losses tuned | head -1) <(losses one | head -1) | awk '{print $1 < $2 - 0.1}')"
"$rheo" plan job.toml --set model.kv_heads=3 2>refusal
expect "an impossible number of heads" 2 $?
expect "by its key" 1 "$(grep -c 'model.kv_heads = 3 must divide model.heads = 2' refusal)"
exit $((failures > 0))
