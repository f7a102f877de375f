#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# group_losses.sh <rheo> <work folder>    ranks that share stages are killed, at every phase, in the exchanges of a stage too: the others go on with the
# digest of one rank. The rest of a group share its shards, a rank that waits takes them over, an empty position borrows a rank, ranks leave in order.
set -u
rheo=$1
# shellcheck source=tests/system/training/on_shards.sh
. "$(dirname "$0")/on_shards.sh"
begin_on_shards "$2" 2 2 </dev/null
survives() { # <run folder> <ranks> [arguments]
  same "$@"
  expect "$1: a recovery" some "$(grep -q '"kind":"recovery"' "$1/metrics.jsonl" && echo some)"
}
twos=(--set plan.pipelines=[2,2] --set plan.tensor=2)
threes=(--set plan.pipelines=[3,4] --set plan.tensor=[3,1,3] --set plan.schedule=zb-h1)
for phase in gather sum sum_gradient forward backward input_gradient weight_gradient reduce decide commit; do
  [[ $phase == *_gradient && $phase != sum_gradient ]] || survives "twos-$phase" 4 "${twos[@]}" --inject "kill:3@1:$phase"
  [[ $phase == backward ]] || survives "threes-$phase" 7 "${threes[@]}" --inject "kill:5@1:$phase"
done
for phase in shrink copy; do # in the recovery of another loss, of other shards
  survives "threes-$phase" 7 "${threes[@]}" --inject kill:5@1:sum_gradient --inject "kill:0@1:$phase"
done
survives waiting 5 "${twos[@]}" --set plan.spares=1 --inject kill:1@1:sum_gradient
expect "waiting: the rank that waited has work" some "$(grep -q '"name":"F"' waiting/trace/rank-4.jsonl && echo some)"
# A group lies in one node: a rank that waits on another one stays there, unless a position has lost all of its ranks.
on_nodes=("${twos[@]}" --set plan.spares=1 --set plan.node_size=2)
has_work() { grep -q '"name":"F"' "$1/trace/rank-$2.jsonl" && echo some || echo none; }
survives other-node 5 "${on_nodes[@]}" --inject kill:1@1:sum_gradient
expect "other-node: the rank that waits" none "$(has_work other-node 4)"
survives node-lost 5 "${on_nodes[@]}" --inject kill:2@1:gather --inject kill:3@1:gather
expect "node-lost: the rank that waited" some "$(has_work node-lost 4)"
# One node holds each stage, and the other one keeps copies: its loss is survived.
survives kept-copies 4 --set plan.pipelines=[4] --set plan.tensor=2 --set plan.node_size=2 --inject kill:0@1:backward --inject kill:1@1:backward
survives own-node 6 "${twos[@]}" --set plan.pipelines=[] --set plan.spares=2 --set plan.node_size=3 --inject kill:4@1:backward
expect "own-node: the ranks that waited" "none some" "$(has_work own-node 2) $(has_work own-node 5)"
survives borrowed 5 --set plan.pipelines=[3,2] --set plan.tensor=[2,1,2] --inject kill:2@1:forward
survives both 4 "${twos[@]}" --inject kill:2@1:gather --inject kill:3@1:sum
survives left 4 "${twos[@]}" --inject drain:1@0
survives rows 4 "${twos[@]}" --set plan.recompute=true --inject kill:0@1:sum_gradient
for phase in input_gradient weight_gradient; do
  survives "split-$phase" 4 "${twos[@]}" --set plan.schedule=zb-h1 --inject "kill:2@1:$phase"
done
for phase in recompute backward; do
  survives "recomputed-$phase" 7 --set plan.pipelines=[4,3] --set plan.tensor=[3,1,3] --set plan.recompute=true --inject "kill:1@1:$phase"
done
exit $((failures > 0))
