#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# membership.sh <rheo> <work folder>: jobs whose members change end with the bits of the undisturbed job, and say what can be lost.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 8
train.microbatch = { sequences = 2, tokens = 16 }
plan.min_ranks = 2
checkpoint.at_end = false
END
judge() { # <run folder> <line that it says>
  expect "$1: the digest" "$digest" "$(value digest "$1")"
  expect "$1: '$2'" 1 "$(($(grep -cE "$2" "$1.out") > 0))"
  expect "$1: each step once" "0 1 2 3 4 5 6 7 " "$(sed -n 's/^{"kind":"step","step":\([0-9]*\),.*/\1/p' "$1/metrics.jsonl" | tr '\n' ' ')"
  [[ $(value digest "$1") == "$digest" ]] || tail -20 "$1.out"
}
run() { # <run folder> <ranks> <line that it says> [arguments]: the job runs to its end
  local folder=$1 ranks=$2 says=$3
  shift 3
  train "$folder" "$ranks" "$@"
  expect "$folder: it ends" 0 $?
  judge "$folder" "$says"
}
recovered() { # <key> <run folder>: of each change of the members
  sed -n "s/^{\"kind\":\"recovery\",.*\"$1\":\(\[[^]]*\]\|[0-9]*\).*/\1/p" "$2/metrics.jsonl" | tr '\n' ' '
}
undone() { # <run folder>: contributions that were made and lost
  echo $(($(recovered pairs_total "$1") - $(recovered pairs_missing "$1")))
}

train undisturbed 1 --set plan.pipelines=[1] --set plan.min_ranks=1
digest=$(value digest undisturbed)
[[ -n $digest ]] || { cat undisturbed.out; exit 1; }

# A rank leaves after a step: nothing is recomputed, and the process ends with 0.
run drained 5 'rank 3 left after step 3: 4 ranks in 2 pipelines continued after ' --set plan.pipelines=[2,3] --inject drain:3@2
expect "drained: who left" "[3] " "$(recovered left drained)"
expect "drained: no rank was lost" "[] " "$(recovered lost drained)"
expect "drained: its step had not begun" 0 "$(undone drained)"
grep -q peak_memory_bytes drained/ranks/3.json
expect "drained: it ended in order" 0 $?
run first_leaves 5 'rank 0 left after step 1' --set plan.pipelines=[2,3] --inject drain:0@0
run leaves_in_a_loss 5 'lost rank 2 in step 4' --set plan.pipelines=[2,3] --inject drain:0@2 --inject kill:2@3:copy
expect "leaves_in_a_loss: it leaves one step later" "[] [0] " "$(recovered left leaves_in_a_loss)"

# By a signal to the rank.
train signal 5 --set plan.pipelines=[2,3] --set train.steps=150 &
job=$!
reached signal 10
kill -USR2 "$(pid_of signal 1)"
wait $job
expect "signal: it ends" 0 $?
expect "signal: who left" "[1] " "$(recovered left signal)"

# A rank that waits takes the place of one that is lost, or leaves.
run waits 5 'lost rank 3 in step 3: 4 ranks in 2 pipelines' --set plan.spares=1 --inject kill:3@2:backward
run waits_for_a_drain 5 'rank 0 left after step 3: 4 ranks in 2 pipelines' --set plan.spares=1 --inject drain:0@2
# Two that have no place in the plan get one between two steps, because that makes the step shorter.
"$rheo" plan job.toml --ranks 6 --set plan.spares=2 --json >plan.json
run joins 6 'ranks were reassigned after step 1: 6 ranks in 3 pipelines' --set plan.pipelines=[] --plan plan.json

# Whole nodes, and two pipelines at once. Rank 0 + 1 are a node, 2 + 3, and so on.
run node 8 'lost ranks 2, 3 in step 4: 6 ranks in [23] pipelines .* any [12] ranks? and any [12] nodes? can be lost' --set plan.pipelines=[] --node-size 2 --inject kill:2@2:commit --inject kill:3@2:commit
run two_pipelines 8 'lost ranks 0, 5 in step 4: 6 ranks in [23] pipelines' --set plan.pipelines=[4,4] --inject kill:0@2:commit --inject kill:5@2:commit

# Fewer pipelines than f + 1: the job continues, reports it, and loses nothing when the only holder of a layer is lost at any moment.
for phase in forward reduce decide commit idle; do
  run "degraded_$phase" 4 'fewer pipelines than f \+ 1 = 2: the loss of rank [0-9, ]+ would lose state until its copies are made' \
    --inject kill:1@2:backward --inject kill:0@4:$phase
  expect "degraded_$phase: both losses" 2 "$(recovered ranks "degraded_$phase" | wc -w)"
done

# All that are left leave: a checkpoint and exit code 75; more ranks resume from it.
train all_leave 4 --inject drain:0@2 --inject drain:1@2 --inject drain:2@2
expect "all_leave: too few stay" 75 $?
train all_leave 5 --set plan.pipelines=[2,3] --resume auto
expect "all_leave: the same command resumes" 0 $?
expect "all_leave: the digest" "$digest" "$(value digest all_leave)"

exit $((failures > 0))
