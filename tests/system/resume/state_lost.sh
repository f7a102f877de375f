#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# state_lost.sh <rheo> <work folder>: the last copy of a layer is lost (without failures to survive there is no second one). Where there is a checkpoint the others
# continue from it in the same job, with the undisturbed job's bits; where there is none the job ends with 6.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 16
train.microbatch = { sequences = 2, tokens = 16 }
plan.failures = 0
checkpoint.at_end = false
END
train undisturbed 2 --set plan.pipelines=[2]
expect "the undisturbed job ends" 0 $?
digest=$(value digest undisturbed)
[[ -n $digest ]] || { cat undisturbed.out; exit 1; }

train lost 2 --set plan.pipelines=[2] --max-time 0.001s
expect "a job that is stopped leaves a checkpoint" 75 $?
kept=$(cd lost && echo step-*)
train lost 3 --set plan.pipelines=[3] --inject kill:1@13:backward
expect "it runs to the end" 0 $?
expect "with the digest" "$digest" "$(value digest lost)"
expect "and says from where" 1 "$(grep -c "^state lost: .*; resuming from the checkpoint of step ${kept#step-}\$" lost.out)"
((failures > 0)) && tail -20 lost.out

train nothing 3 --set plan.pipelines=[3] --inject kill:1@3:backward
expect "without a checkpoint it ends" 6 $?
expect "and says what is lost" 1 "$(grep -c '^  ended .*state lost: no survivor holds a copy of layer' nothing.out)"

exit $((failures > 0))
