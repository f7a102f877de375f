#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shards.sh <rheo> <work folder>    a grid of shards on ranks that have all shards of their layers: one digest, whatever the pipelines, the schedule, threads,
# what is recomputed, and who is lost; ranks hold what the plan said; a checkpoint is resumed by others, and on another grid by a fork alone.
set -u
rheo=$1
# shellcheck source=tests/system/training/on_shards.sh
. "$(dirname "$0")/on_shards.sh"
begin_on_shards "$2" 6 3 <<'END'
plan.failures = 0
END
as_planned alone
train plain 1 --set plan.pipelines=[1] --set train.shards=1
expect "a grid of one ends" 0 $?
expect "a grid has bits of its own" other "$([[ $(value digest plain) == "$digest" ]] || echo other)"
same apart 3 --set plan.pipelines=[2,1] --set plan.layers=[1,4,5]
as_planned apart
same split 2 --set plan.pipelines=[2] --set plan.schedule=zb-h1
as_planned split
same copies 2 --set plan.pipelines=[2] --set plan.schedule=dualpipe --set run.threads=2
same less 1 --set plan.pipelines=[1] --set plan.recompute=selective --set plan.memory_mib=4.6
expect "something is recomputed" yes "$("$rheo" plan job.toml --ranks 1 --set plan.pipelines=[1] --set plan.recompute=selective --set plan.memory_mib=4.6 | grep -q recomputes && echo yes)"
as_planned less
same lost 4 --set plan.pipelines=[2,2] --inject kill:2@1:backward
expect "one recovery" 1 "$(grep -c '"kind":"recovery"' lost/metrics.jsonl)"

int32=(--set 'train.sums="int32"' --set plan.schedule=gpipe)
train rows 1 --set plan.pipelines=[1] "${int32[@]}"
train rows_apart 3 --set plan.pipelines=[2,1] "${int32[@]}"
alike "sums of 32 bits" rows rows_apart
slices=(--set train.slices=2 --set plan.schedule=seq1f1b)
train cut 1 --set plan.pipelines=[1] "${slices[@]}"
train cut_apart 2 --set plan.pipelines=[2] "${slices[@]}"
alike "in slices" cut cut_apart
llama=(--set model.family=llama --set model.kv_heads=2 --set model.dropout=0)
train llama 1 --set plan.pipelines=[1] "${llama[@]}"
train llama_apart 3 --set plan.pipelines=[2,1] "${llama[@]}"
alike "a Llama whose shards share keys and values" llama llama_apart

same resumed 3 --set plan.pipelines=[3] --set checkpoint.every_steps=1 --inject kill:1@5:backward
expect "from a checkpoint" 1 "$(grep -c '^state lost: .*; resuming from the checkpoint of step' resumed.out)"
train resumed 1 --set plan.pipelines=[1] --set train.shards=2 --set train.steps=8
expect "another grid is refused" 2 $?
expect "and named" yes "$(grep -q 'on a grid of 4 shards' resumed.out && echo yes || tail -3 resumed.out)"
train resumed 1 --set plan.pipelines=[1] --set train.shards=2 --set train.steps=8 --resume fork
expect "a fork changes the grid" 0 $?
train eight 1 --set plan.pipelines=[1] --set train.shards=8
expect "more shards than heads are refused" 2 $?
expect "in a sentence" yes "$(grep -q 'train.shards = 8 does not fit the model: layer 1 (block): .* has 4 heads, too few for 8 shards' eight.out && echo yes || cat eight.out)"
exit $((failures > 0))
