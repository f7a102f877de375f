#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# host.sh <rheo> <work folder>    that a pack is whole, on a machine without a device: two ranks train on the host, to one digest whether one is killed
# or not, and a device is refused in a sentence where there is none.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 4
train.eval_microbatches = 1
train.microbatch = { sequences = 1, tokens = 12 }
END
two=(--set plan.pipelines=[1,1])
train whole 2 "${two[@]}"
expect "two ranks end" 0 $?
train lost 2 "${two[@]}" --inject kill:1@2:backward
expect "one of them is killed, the other ends" 0 $?
expect "the digest" "$(value digest whole)" "$(value digest lost)"
if "$rheo" info | grep -q '^GPUs *none'; then
  train device 1 --set plan.pipelines=[1] --set plan.failures=0 --set run.device=cuda
  expect "a device is refused" 5 $?
  expect "in a sentence" 1 "$(grep -c 'run.device is cuda, but there is no device' device.out)"
fi
exit $((failures > 0))
