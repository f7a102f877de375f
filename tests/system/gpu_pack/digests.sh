#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# digests.sh <rheo> <work folder> <dtypes, as "fp32 bf16"> [keys of a config]    on a device that the ranks share: one rank, 2+2, and 2+2 one of whom
# is killed end with one digest per dtype. RHEO_KILLED_IN: the step in which it is, 2. Among the keys run.transport="nccl": NCCL serves them, too.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END_OF_CONFIG'
train.steps = 4
train.eval_microbatches = 1
checkpoint.at_end = false
checkpoint.every_minutes = 0
run.device = "cuda"
END_OF_CONFIG
keys=()
for key in "${@:4}"; do keys+=(--set "$key"); done
for dtype in $3; do
  job=("${keys[@]}" --set "train.dtype=$dtype")
  train "$dtype-one" 1 "${job[@]}" --set 'plan.pipelines=[1]' --set plan.failures=0
  expect "$dtype: one rank ends" 0 $?
  for run in whole lost; do
    kill=()
    [[ $run == lost ]] && kill=(--inject "kill:2@${RHEO_KILLED_IN:-2}:backward")
    train "$dtype-$run" 4 "${job[@]}" "${kill[@]}"
    expect "$dtype-$run ends" 0 $?
    expect "$dtype-$run: the digest" "$(value digest "$dtype-one")" "$(value digest "$dtype-$run")"
    if [[ " ${keys[*]} " == *' run.transport="nccl" '* ]]; then
      expect "$dtype-$run: NCCL serves steps" 1 "$(grep -c '^NCCL [0-9.]* moves activations and gradients' "$dtype-$run.out")"
      expect "$dtype-$run: to the end" 0 "$(grep -c 'messages go by MPI' "$dtype-$run.out")"
    fi
  done
  expect "$dtype: there is a digest" 1 "$([[ -n $(value digest "$dtype-one") ]] && echo 1)"
  expect "$dtype: one recovery" 1 "$(grep -c '"kind":"recovery"' "$dtype-lost/metrics.jsonl")"
done
exit $((failures > 0))
