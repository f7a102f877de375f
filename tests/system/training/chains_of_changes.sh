#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# chains_of_changes.sh <rheo> <work folder>    twenty jobs of six ranks change their plan six times each, to random degrees and pipelines. Every second job
# also loses a rank, some in the copy of a change. All end with the digest of one rank.
set -u
rheo=$1
# shellcheck source=tests/system/training/on_shards.sh
. "$(dirname "$0")/on_shards.sh"
begin_on_shards "$2" 8 2 </dev/null
RANDOM=25
plan_of_six() { # sets `degrees` and `pipelines`: positions of at most four ranks, pipelines of at most four positions
  local left=6 positions=0 degree
  degrees=() pipelines=(0)
  while ((left > 0)); do
    degree=$((1 + RANDOM % 4))
    ((degree > left)) && degree=$left
    if ((positions == 4 || (positions > 0 && RANDOM % 2 == 0))); then
      pipelines+=(0)
      positions=0
    fi
    degrees+=("$degree")
    pipelines[-1]=$((pipelines[-1] + degree))
    left=$((left - degree)) positions=$((positions + 1))
  done
}
listed() { local IFS=,; echo "[$*]"; }
phases=(forward backward gather sum_gradient reduce decide commit copy)
for chain in {1..20}; do
  plan_of_six
  begin=(--set "plan.tensor=$(listed "${degrees[@]}")" --set "plan.pipelines=$(listed "${pipelines[@]}")")
  changes=()
  for step in {1..6}; do
    plan_of_six
    if ((chain % 2 == 0)); then # ranks are lost, so the planner makes pipelines of those that are left
      changes+=("\"$step: tensor=$((1 + RANDOM % 4)) pipelines=[]\"")
    else
      changes+=("\"$step: tensor=$(listed "${degrees[@]}") pipelines=$(listed "${pipelines[@]}")\"")
    fi
  done
  fault=()
  ((chain % 2 == 0)) && fault=(--inject "kill:$((RANDOM % 6))@$((1 + RANDOM % 6)):${phases[RANDOM % 8]}")
  # The only copy of a shard may be lost with its rank: a checkpoint of each step is there then.
  same "chain-$chain" 6 "${begin[@]}" --set "plan.changes=$(listed "${changes[@]}")" --set checkpoint.every_steps=1 "${fault[@]}"
  if ((chain % 2 == 0)); then
    expect "chain-$chain: it changed" some "$(grep -q '"change":' "chain-$chain/metrics.jsonl" && echo some)"
    expect "chain-$chain: losses" 1 "$(grep -c '"lost":\[[0-9]' "chain-$chain/metrics.jsonl")"
  else
    expect "chain-$chain: changes" 6 "$(grep -c '"change":' "chain-$chain/metrics.jsonl")"
  fi
done
exit $((failures > 0))
