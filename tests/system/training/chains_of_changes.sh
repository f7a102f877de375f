#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# chains_of_changes.sh <rheo> <work folder>    twenty jobs of six ranks change their plan six times each, to random degrees, pipelines and
# cuts. Every second job also loses a rank, some in the copy of a change. All end with the digest of one rank.
set -u
rheo=$1
# shellcheck source=tests/system/training/on_shards.sh
. "$(dirname "$0")/on_shards.sh"
blocks=3
begin_on_shards "$2" 8 $blocks </dev/null
RANDOM=25
plan_of_six() { # sets `degrees` and `pipelines`: positions of at most four ranks, pipelines of at most four positions
  local left=6 positions=0 degree
  degrees=() pipelines=(0) stages=(0)
  while ((left > 0)); do
    degree=$((1 + RANDOM % 4))
    ((degree > left)) && degree=$left
    if ((positions == 4 || (positions > 0 && RANDOM % 2 == 0))); then
      pipelines+=(0) stages+=(0)
      positions=0
    fi
    degrees+=("$degree")
    pipelines[-1]=$((pipelines[-1] + degree))
    left=$((left - degree)) positions=$((positions + 1))
    stages[-1]=$positions
  done
  layers=() # of each stage, at least one; those that are left go to random stages
  local count first layer
  for count in "${stages[@]}"; do
    first=${#layers[@]}
    for ((layer = 0; layer < blocks + 2; layer++)); do
      if ((layer < count)); then layers+=(1); else ((layers[first + RANDOM % count] += 1)); fi
    done
  done
}
listed() { local IFS=,; echo "[$*]"; }
phases=(forward backward gather sum_gradient reduce decide commit copy)
for chain in {1..20}; do
  plan_of_six
  begin=(--set "plan.tensor=$(listed "${degrees[@]}")" --set "plan.pipelines=$(listed "${pipelines[@]}")" --set "plan.layers=$(listed "${layers[@]}")")
  changes=() degree_at=(1)
  for step in {1..6}; do
    plan_of_six
    if ((chain % 2 == 0)); then # ranks are lost, so the planner makes pipelines of those that are left
      degree_at[step]=$((1 + RANDOM % 4))
      changes+=("\"$step: tensor=${degree_at[step]} pipelines=[]\"")
    else
      cuts="" # of the planner
      ((RANDOM % 3)) && cuts=" layers=$(listed "${layers[@]}")"
      changes+=("\"$step: tensor=$(listed "${degrees[@]}") pipelines=$(listed "${pipelines[@]}")$cuts\"")
    fi
  done
  fault=()
  run=(6 "${begin[@]}" --set "plan.changes=$(listed "${changes[@]}")" --set checkpoint.every_steps=1)
  if ((chain % 2 == 0)); then # the only copy of a shard may be lost with its rank: a checkpoint is there then
    step=$((2 + RANDOM % 5)) phase=${phases[RANDOM % 8]}
    ((degree_at[step] == 1)) && [[ $phase == gather || $phase == sum_gradient ]] && phase=forward # nothing is exchanged
    ((degree_at[step] == 4)) && phase=decide                                                      # two ranks wait
    fault=(--inject "kill:$((RANDOM % 6))@$step:$phase")
    with_checkpoint "chain-$chain" "${run[@]}"
  fi
  same "chain-$chain" "${run[@]}" "${fault[@]}"
  if ((chain % 2 == 0)); then
    expect "chain-$chain: it changed" some "$(grep -q '"change":' "chain-$chain/metrics.jsonl" && echo some)"
    expect "chain-$chain: losses" 1 "$(grep -c '"lost":\[[0-9]' "chain-$chain/metrics.jsonl")"
  else
    expect "chain-$chain: changes" 6 "$(grep -c '"change":' "chain-$chain/metrics.jsonl")"
  fi
done
exit $((failures > 0))
