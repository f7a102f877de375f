#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tied.sh <rheo> <work folder>    a tied table of more elements than a rank joins at a time, in the middle of a row: one rank, which has both uses and no other rank to sum with, ends with the digest of
# two that have one use each and of two pipelines of one rank, with sums of either kind.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
model.vocabulary = 18001
train.steps = 3
train.microbatch = { sequences = 1, tokens = 16 }
END
for sums in int64 int32; do
  both=(--set model.width=24 --set "train.sums=\"$sums\"" --set plan.failures=0)
  train "alone-$sums" 1 "${both[@]}" --set plan.pipelines=[1]
  expect "one rank ends" 0 $?
  train "apart-$sums" 2 "${both[@]}" --set plan.pipelines=[2]
  expect "two ranks end" 0 $?
  train "twice-$sums" 2 "${both[@]}" --set plan.pipelines=[1,1]
  expect "two pipelines end" 0 $?
  as_planned "alone-$sums"
  as_planned "apart-$sums"
  as_planned "twice-$sums"
  expect "$sums, uses apart: the digest" "$(value digest "alone-$sums")" "$(value digest "apart-$sums")"
  expect "$sums, two pipelines: the digest" "$(value digest "alone-$sums")" "$(value digest "twice-$sums")"
  expect "there is one" 32 "$(value digest "alone-$sums" | tr -d '\n' | wc -c)"
done
exit $((failures > 0))
