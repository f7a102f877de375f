#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# groups.sh <rheo> <work folder>    ranks that share stages: one digest for every degree of every stage, even or uneven, side by side, whatever the schedule,
# slices, sums, threads, and what is recomputed; ranks hold what the plan said; a checkpoint of one configuration is resumed by another.
set -u
rheo=$1
# shellcheck source=tests/system/training/on_shards.sh
. "$(dirname "$0")/on_shards.sh"
begin_on_shards "$2" 5 3 <<'END'
plan.failures = 0
END
same two 2 --set plan.pipelines=[2] --set plan.tensor=2
as_planned two
same three 3 --set plan.pipelines=[3] --set plan.tensor=3
as_planned three
same four 4 --set plan.pipelines=[4] --set plan.tensor=4
same stages 4 --set plan.pipelines=[4] --set plan.tensor=2
as_planned stages
expect "plan shows the bytes of the exchanges" 4 "$("$rheo" plan job.toml --ranks 4 --set plan.pipelines=[4] --set plan.tensor=2 | grep -c 'shards [0-9], [0-9] of 4, receives [0-9.]* MiB for a microbatch from rank [0-9]')"
text=(--set run.sample_tokens=60)
same text_alone 1 --set plan.pipelines=[1] "${text[@]}"
same text_shared 4 --set plan.pipelines=[4] --set plan.tensor=[1,3] "${text[@]}"
expect "a sample" some "$([[ $(value sample text_alone | wc -c) -gt 60 ]] && echo some)"
expect "a sample: the same" "$(value sample text_alone)" "$(value sample text_shared)"
same uneven 6 --set plan.pipelines=[6] --set plan.tensor=[3,1,2] --set plan.layers=[1,3,1]
same nodes 3 --set plan.pipelines=[3] --set plan.tensor=[1,2] --set plan.node_size=2
expect "each group in its node" '"ranks": [[2], [0, 1]]' "$(grep -o '"ranks": .*]]' nodes/plan.json)"
same beside 5 --set plan.pipelines=[2,3] --set plan.tensor=[2,1,2]
same chosen 4 --set plan.pipelines=[] --set plan.tensor=0
same auto 4 --set plan.pipelines=[] --set plan.tensor=0 --set plan.schedule=auto --set plan.recompute=auto --set plan.memory_mib=64
auto=(--ranks 4 --set plan.pipelines=[] --set plan.tensor=0 --set plan.schedule=auto --set plan.recompute=auto --set plan.memory_mib=64)
expect "it is the planner's" "$("$rheo" plan job.toml --json "${auto[@]}" | grep -m 1 '"digest"')" "$(grep -m 1 '"digest"' auto/plan.json)"
same auto_lost 4 --set plan.pipelines=[] --set plan.failures=1 --set plan.schedule=auto --inject kill:1@3:backward
same auto_changed 4 --set plan.pipelines=[4] --set plan.schedule=auto --set 'plan.changes=["2: pipelines=[2,2]", "4: tensor=2"]'
expect "what was compared" 8 "$("$rheo" plan job.toml --ranks 4 --set plan.pipelines=[] --set plan.schedule=auto | sed -n '/^plans compared/,$p' | grep -c ' ms')"
expect "the plans that were compared" 4 "$("$rheo" plan job.toml --ranks 4 --set plan.pipelines=[] --set plan.tensor=0 | sed -n '/^plans compared/,$p' | grep -c ' ms')"
"$rheo" plan job.toml --ranks 3 --set plan.pipelines=[3] --set plan.tensor=[2,1] --json >plan.json
expect "a plan as a file" 0 $?
same planned 3 --set plan.pipelines=[3] --plan plan.json
sed -e '/"digest"/d' -e '0,/"ranks": [[][[]0, 1], [[]2]]/s//&, "shares": [[1, 3], [4]]/' plan.json >dealt.json
expect "shares by hand" 1 "$(grep -c '"shares": [[][[]1, 3], [[]4]]' dealt.json)"
same dealt 3 --set plan.pipelines=[3] --plan dealt.json
same copies 4 --set plan.pipelines=[4] --set plan.tensor=2 --set plan.schedule=dualpipe --set run.threads=2
same chunks 4 --set plan.pipelines=[4] --set plan.tensor=2 --set plan.schedule=interleaved --set run.rendezvous=true
same split 4 --set plan.pipelines=[4] --set plan.tensor=2 --set plan.schedule=zb-h1
degrees=(2 [3,1] [1,3])
runs() { # <schedule> <degrees> [arguments]: the pipeline runs the schedule itself, none in its place
  local shape=(--set plan.pipelines=[4] --set "plan.schedule=$1" --set "plan.tensor=$2")
  shift 2
  expect "${shape[3]}: it runs" 0 "$("$rheo" plan job.toml --ranks 4 "${shape[@]}" "$@" | grep -c '^    schedule ')"
}
turn=0
for family in eager-1f1b looped-bfs zb-h2 zb1p zb-v v-half v-min dualpipe-v chimera bitpipe; do
  degree=${degrees[turn++ % 3]}
  runs "$family" "$degree"
  same "$family" 4 --set plan.pipelines=[4] --set "plan.schedule=$family" --set "plan.tensor=$degree"
done
deep=(--set model.blocks=6) # eight stages on two positions
runs hanayo 2 "${deep[@]}"
train deep 1 --set plan.pipelines=[1] "${deep[@]}"
train deep_shared 4 --set plan.pipelines=[4] --set plan.tensor=2 --set plan.schedule=hanayo "${deep[@]}"
alike "hanayo" deep deep_shared
same again 2 --set plan.pipelines=[2] --set plan.tensor=2 --set plan.recompute=true
same less 2 --set plan.pipelines=[2] --set plan.tensor=2 --set plan.recompute=selective --set plan.memory_mib=2.45
expect "something is recomputed" yes "$("$rheo" plan job.toml --ranks 2 --set plan.pipelines=[2] --set plan.tensor=2 --set plan.recompute=selective --set plan.memory_mib=2.45 | grep -q recomputes && echo yes)"
as_planned less

int32=(--set 'train.sums="int32"' --set plan.schedule=gpipe)
train rows 1 --set plan.pipelines=[1] "${int32[@]}"
train rows_shared 3 --set plan.pipelines=[3] --set plan.tensor=[2,1] "${int32[@]}"
alike "sums of 32 bits" rows rows_shared
slices=(--set train.slices=2 --set plan.schedule=seq1f1b)
train cut 1 --set plan.pipelines=[1] "${slices[@]}"
train cut_shared 4 --set plan.pipelines=[4] --set plan.tensor=[1,3] "${slices[@]}"
alike "in slices" cut cut_shared
for kv in 2 4; do
  llama=(--set model.family=llama --set model.kv_heads=$kv --set model.dropout=0)
  train llama$kv 1 --set plan.pipelines=[1] "${llama[@]}"
  train llama_shared$kv 5 --set plan.pipelines=[2,3] --set plan.tensor=[2,3] "${llama[@]}"
  alike "a Llama of $kv key heads" llama$kv llama_shared$kv
done
untied=(--set model.tied=false)
train untied 1 --set plan.pipelines=[1] "${untied[@]}"
train untied_shared 3 --set plan.pipelines=[3] --set plan.tensor=[1,2] "${untied[@]}"
alike "a table that is not tied" untied untied_shared

# The only copy of a cell: the job resumes from its newest checkpoint with the groups that are left, in smaller ones where there are too few.
of_two=(--set plan.pipelines=[4] --set plan.tensor=2 --set checkpoint.every_steps=1)
with_checkpoint lost 4 "${of_two[@]}"
same lost 4 "${of_two[@]}" --inject kill:3@4:backward
expect "from a checkpoint" 1 "$(grep -c '^state lost: no survivor holds a copy of layer 3 (block) in shards 2 and 3; resuming from the checkpoint of step' lost.out)"
of_three=(--set plan.pipelines=[3] --set plan.tensor=3 --set checkpoint.every_steps=1)
with_checkpoint fewer 3 "${of_three[@]}"
same fewer 3 "${of_three[@]}" --inject kill:0@4:forward
train gone 2 --set plan.pipelines=[2] --set plan.tensor=2 --set checkpoint.every_steps=100 --inject kill:1@2:reduce
expect "without a checkpoint the state is lost" 6 $?

# A checkpoint of groups, resumed by others.
with_checkpoint half 2 --set plan.pipelines=[2] --set plan.tensor=2 --set checkpoint.every_steps=1
train half 2 --set plan.pipelines=[2] --set plan.tensor=2 --set checkpoint.every_steps=1 --inject kill:0@4:backward --inject kill:1@4:backward
expect "both members die" "" "$(value digest half)"
same half 4 --set plan.pipelines=[1,3] --set plan.tensor=[1,3]
expect "which began later" yes "$(grep -q 'resum' half.out && echo yes)"

refused() { # <ranks> <sentence> [arguments]
  local ranks=$1 sentence=$2
  shift 2
  train refused "$ranks" "$@"
  expect "refused: $sentence" 3 $?
  expect "and why" yes "$(grep -qF "$sentence" refused.out && echo yes || cat refused.out)"
  rm -rf refused refused.out
}
refused 4 "plan.tensor = 4 needs train.shards of 4 or more; it is 2 and decides the bits" --set train.shards=2 --set plan.pipelines=[4] --set plan.tensor=4
refused 3 "plan.pipelines = [3] gives pipeline 0 3 ranks, which are no whole groups of plan.tensor = 2" --set plan.pipelines=[3] --set plan.tensor=2
refused 4 "plan.tensor = [1, 3]: 2 groups do not fit into nodes of 2, 2 ranks; a group lies in one node of plan.node_size = 2" --set plan.pipelines=[4] --set plan.tensor=[1,3] --set plan.node_size=2
exit $((failures > 0))
