#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# optimizer_shards.sh <rheo> <work folder>    ranks that keep a part of the moments of their layers: the digest is that of one rank, whatever the pipelines,
# degrees, sums and schedules, after kills at every phase, changes of the plan and a resume; ranks hold what the plan said.
set -u
rheo=$1
# shellcheck source=tests/system/training/on_shards.sh
. "$(dirname "$0")/on_shards.sh"
begin_on_shards "$2" 4 2 <<'END'
plan.optimizer_shards = true
END
moments() { # <run folder>: the bytes of all ranks
  cat "$1"/ranks/*.json | tr -d ' \n' | grep -o '"measured_moments_bytes":[0-9]*' | awk -F: '{ sum += $2 } END { print sum }'
}
three=(--set plan.pipelines=[1,1,1])
five=(--set plan.pipelines=[1,2,2])
four=(--set plan.pipelines=[1,1,1,2] --set plan.failures=2)
mixed=(--set plan.pipelines=[2,3,2] --set plan.tensor=[2,1,2,1,1])
same three 3 "${three[@]}"
as_planned three
same all 3 "${three[@]}" --set plan.optimizer_shards=false
expect "two of three ranks keep each moment" "$(($(moments all) * 2 / 3))" "$(moments three)"
same five 5 "${five[@]}" --set checkpoint.every_steps=1
as_planned five
same alone_keeps 3 "${three[@]}" --set plan.failures=0
as_planned alone_keeps
same mixed 7 "${mixed[@]}" --set plan.schedule=zb-h1
as_planned mixed
same copies 6 --set plan.pipelines=[2,2,2] --set plan.schedule=dualpipe
same threads 4 --set plan.pipelines=[2,2] --set run.threads=2 --set plan.node_size=2

int32=(--set 'train.sums="int32"')
train rows 1 --set plan.pipelines=[1] --set plan.failures=0 "${int32[@]}"
train rows_shared 5 "${five[@]}" "${int32[@]}"
alike "sums of 32 bits" rows rows_shared
as_planned rows_shared

survives() { # <run folder> <ranks> [arguments]
  same "$@"
  expect "$1: a recovery" some "$(grep -q '"kind":"recovery"' "$1/metrics.jsonl" && echo some)"
}
for phase in forward backward reduce parameters decide commit idle; do
  survives "five-$phase" 5 "${five[@]}" --inject "kill:3@1:$phase"
  [[ $phase == forward || $phase == idle ]] || survives "mixed-$phase" 7 "${mixed[@]}" --inject "kill:0@2:$phase"
done
for phase in shrink copy; do # in the recovery of another loss
  survives "four-$phase" 5 "${four[@]}" --inject kill:4@1:parameters --inject "kill:0@1:$phase"
done
survives left 5 "${five[@]}" --inject drain:1@1
survives waits 6 "${five[@]}" --set plan.spares=1 --inject kill:0@1:parameters
survives changed 6 --set plan.pipelines=[2,2,2] --set 'plan.changes=["2: pipelines=[1,1,1,1,2]","3: pipelines=[3,3] tensor=[2,1,3]"]'

# Both keepers of a moment: the parameters live on, the job resumes from its checkpoint. And any plan reads a checkpoint of sharded moments.
long=(--set train.steps=40 --set checkpoint.every_steps=5)
train long 1 --set plan.pipelines=[1] --set plan.failures=0 "${long[@]}"
train gone 3 "${three[@]}" "${long[@]}" --inject kill:0@30:backward --inject kill:1@30:backward
expect "resumes" 0 $?
alike "from a checkpoint" long gone
expect "because moments are lost" 1 "$(grep -c '^state lost: no survivor holds a copy of the moments of layer' gone.out)"
# shellcheck disable=SC2046
train half 5 "${five[@]}" "${long[@]}" $(printf -- '--inject kill:%d@30:backward ' 0 1 2 3 4)
expect "all die" "" "$(value digest half)"
train half 2 --set plan.pipelines=[2] --set plan.failures=0 --set plan.optimizer_shards=false "${long[@]}"
expect "which began later" yes "$(grep -q 'resum' half.out && echo yes)"
alike "a plan without optimizer shards" long half
expect "and cannot change while a job runs" 2 "$(train refused 3 "${three[@]}" --set 'plan.changes=["2: optimizer_shards=false"]'; echo $?)"
exit $((failures > 0))
