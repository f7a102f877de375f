#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# changes.sh <rheo> <work folder>    running jobs change their degrees of tensor, pipeline and data parallelism, by plan.changes and by rheo reshape, and end
# with the digest of one rank. Ranks are lost before, in and after a change, leave, and wait as spares.
set -u
rheo=$1
# shellcheck source=tests/system/training/on_shards.sh
. "$(dirname "$0")/on_shards.sh"
begin_on_shards "$2" 6 2 </dev/null
changes() { # <number of changes> <run folder> <ranks> [arguments]
  local count=$1
  shift
  same "$@"
  expect "$1: changes" "$count" "$(grep -c '"change":' "$1/metrics.jsonl")"
}
single=(--set plan.pipelines=[2,2])
changes 5 chain 4 --set plan.pipelines=[1,1,1,1] --set 'plan.changes=["1: tensor=2 pipelines=[2,2]", "2: tensor=4 pipelines=[4]", "3: tensor=[3,1] layers=[1,3]", "4: tensor=1 pipelines=[2,2]", "5: pipelines=[1,3] shares=[2,4]"]'
as_planned chain
changes 2 spares 5 "${single[@]}" --set plan.spares=1 --set 'plan.changes=["2: tensor=2 pipelines=[4]", "4: pipelines=[5] spares=0 tensor=[2,3]"]'
changes 2 rendezvous 4 "${single[@]}" --set plan.schedule=zb-h1 --set run.rendezvous=true \
  --set 'plan.changes=["1: tensor=[1,2,1]  pipelines=[3, 1]", "3: tensor=[1,3] pipelines=[1,3]"]'
to_twos='plan.changes=["2: tensor=2"]'
changes 1 lost-before 4 "${single[@]}" --set "$to_twos" --inject kill:1@1:backward
changes 1 lost-in-copy 4 "${single[@]}" --set "$to_twos" --inject kill:2@2:copy
changes 1 to-threes 6 --set plan.pipelines=[3,3] --set 'plan.changes=["2: tensor=3"]' --inject kill:4@2:copy
changes 1 from-threes 6 --set plan.pipelines=[3,3] --set plan.tensor=3 --set 'plan.changes=["2: tensor=1"]' --inject kill:1@2:copy
changes 1 lost-after 4 "${single[@]}" --set "$to_twos" --inject kill:3@3:sum_gradient
changes 1 two-lost 6 --set plan.pipelines=[2,4] --set "$to_twos" --inject kill:0@2:copy --inject kill:4@4:gather
changes 2 chosen 6 --set plan.pipelines=[2,4] --set plan.tensor=2 --set 'plan.changes=["2: tensor=0 pipelines=[]", "4: tensor=3"]' --inject kill:1@3:forward
changes 1 left 6 --set plan.pipelines=[2,4] --set "$to_twos" --inject drain:0@1
changes 2 nodes 4 "${single[@]}" --set plan.node_size=2 --set 'plan.changes=["2: tensor=[1,2,1] pipelines=[3,1]", "4: tensor=2 pipelines=[]"]' --inject kill:1@3:gather
# Little memory: accumulators make room, then ranks change in rounds, also after a loss; a change that cannot is refused.
to_fours=(--set plan.pipelines=[4] --set plan.failures=0 --set 'plan.changes=["2: tensor=4"]')
changes 1 at-once 4 "${to_fours[@]}"
changes 1 in-rounds 4 "${to_fours[@]}" --set plan.change_memory_mib=0.55
expect "in rounds" 1 "$(grep -c 'plan changed after step 2 (tensor=4), [0-9.]* MiB copied in [2-9] rounds' in-rounds.out)"
changes 1 lost-in-rounds 4 "${single[@]}" --set "$to_twos" --set plan.change_memory_mib=0.9 --inject kill:2@2:copy
changes 0 no-room 4 "${to_fours[@]}" --set plan.change_memory_mib=0.3
expect "no room: both numbers" 1 "$(grep -c 'the plan stays as it is after step 2: tensor=4: on the way rank [0-3] would hold 0.[0-9]* MiB of state, but has 0.3 by plan.change_memory_mib' no-room/metrics.jsonl)"
changes 0 too-few 4 "${single[@]}" --set 'plan.changes=["2: tensor=2 pipelines=[2,2]"]' --inject kill:2@1:forward
expect "too few ranks: a sentence" 1 "$(grep -c 'stays as it is after step 2: tensor=2 pipelines=\[2,2\]: plan.pipelines = \[2, 2\] asks for 4 ranks, but the job has 3' too-few/metrics.jsonl)"

# rheo reshape: the running job answers, and ends with the digest of a job without requests.
reshape() { "$rheo" reshape "$@" >reshape.out 2>&1; }
refusal() { # <claim> <exit code> <sentence> [arguments of reshape]
  local claim=$1 code=$2 sentence=$3
  shift 3
  reshape "$@"
  expect "$claim: refused" "$code" $?
  expect "$claim: a sentence" 1 "$(grep -cF "$sentence" reshape.out)"
}
long=(--set train.steps=250 --set plan.pipelines=[2,2] --set run.trace=false)
train unasked 4 "${long[@]}"
expect "the job that is not asked ends" 0 $?
train asked 4 "${long[@]}" &
job=$!
reached asked 3
refusal "a key of the bits" 2 "train.shards cannot change while a job runs; plan.pipelines, plan.tensor, plan.layers, plan.shares, plan.spares can" \
  asked --set train.shards=2
refusal "an unknown key" 2 "unknown key plan.tenso; the nearest known one is plan.tensor; a change can set plan.pipelines, plan.tensor" asked --set tenso=2
refusal "a value of no kind" 2 "plan.pipelines must be a list of whole numbers" asked --set pipelines=two
refusal "more ranks than there are" 3 "plan.pipelines = [4, 4] asks for 8 ranks, but the job has 4" asked --set pipelines=[4,4]
refusal "a degree above the grid" 3 "plan.tensor = 8 needs train.shards of 8 or more; it is 4" asked --set tensor=8 --set pipelines=[]
reshape asked --set tensor=2 --set pipelines=[2,2]
expect "a change" 0 $?
expect "what it did" 1 "$(grep -c '^plan changed after step [0-9]* (tensor=2 pipelines=\[2,2\]), .* MiB copied: 4 ranks in 2 pipelines continued after' reshape.out)"
refusal "only spares" 3 "plan.spares = 4 leaves none of the 4 ranks of the job a place" asked --set spares=4 --set pipelines=[]
reshape asked --set plan.tensor=[3,1] --set plan.pipelines=[4]
expect "another" 0 $?
reshape asked --set shares=[6]
expect "shares of the pipelines that the job has now" 0 $?
reshape asked --set tensor=2 --set pipelines=[2,2] --timeout 0
expect "asked without waiting" 0 $?
wait $job
expect "the job that is asked ends" 0 $?
alike "asked and unasked" asked unasked
expect "four changes and three refusals" "4 3" "$(ls asked | grep -c '^reshape-.*done$') $(ls asked | grep -c '^reshape-.*refused$')"
refusal "no job" 5 "no job runs there" asked --set tensor=2
refusal "no run" 2 "is no run folder" nothing --set tensor=2
exit $((failures > 0))
