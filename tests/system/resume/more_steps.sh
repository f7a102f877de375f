#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# more_steps.sh <rheo> <work folder>: a run that has ended goes to more steps where its learning rates do not follow from their number, and ends with the bits
# of a run that had as many from the start; where they do, it is refused.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.microbatch = { sequences = 2, tokens = 32 }
optimizer.warmup_steps = 2
END
digests=
check() { # <name> <settings>...: 3 steps, then 6, against 6 at once; with 6 steps of other rates for comparison
  local name=$1
  shift
  train "$name-6" 2 --set "plan.pipelines=[1,1]" --set train.steps=6 "$@"
  expect "$name: six steps" 0 $?
  train "$name" 2 --set "plan.pipelines=[1,1]" --set train.steps=3 "$@"
  train "$name" 2 --set "plan.pipelines=[2]" --set train.steps=6 "$@"
  expect "$name: three, then six" "0 $(value digest "$name-6")" "$? $(value digest "$name")"
  expect "$name: has a digest of its own" 0 "$(grep -c "^$(value digest "$name-6")$" <<<"$digests")"
  digests+=$(value digest "$name-6")$'\n'
}
check constant --set optimizer.schedule=constant
check wsd --set optimizer.schedule=wsd --set optimizer.stable_steps=1 --set optimizer.decay_steps=4
check table --set optimizer.schedule=table --set 'optimizer.table=["0: 1e-3", "4: 2e-4"]'
for schedule in cosine linear; do
  train $schedule 2 --set "plan.pipelines=[1,1]" --set train.steps=3 --set optimizer.schedule=$schedule
  expect "$schedule: three steps" 0 $?
  train $schedule 2 --set "plan.pipelines=[1,1]" --set train.steps=6 --set optimizer.schedule=$schedule
  expect "$schedule: six are another job" "2 1" "$? $(grep -c "optimizer was AdamW lr .* over 3 steps.* and is now AdamW lr .* over 6 steps" $schedule.out)"
done
exit $((failures > 0))
