#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# groups.sh <rheo> <work folder>    ranks that share stages: one digest for every degree of every stage, even or uneven, side by side, whatever the schedule,
# slices, sums, threads, and what is recomputed; ranks hold what the plan said; a checkpoint of one configuration is resumed by another.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
model.dropout = 0.1
train.steps = 4
train.shards = 4
train.microbatch = { sequences = 2, tokens = 16 }
plan.failures = 0
END
sed -i 's/^model.width = .*/model.width = 64/; s/^model.heads = .*/model.heads = 4/' job.toml
train alone 1 --set plan.pipelines=[1]
expect "one rank ends" 0 $?
digest=$(value digest alone)
expect "there is a digest" 32 "$(printf %s "$digest" | wc -c)"
same() { # <run folder> <ranks> [arguments]
  local name=$1 ranks=$2
  shift 2
  train "$name" "$ranks" "$@"
  expect "$name ends" 0 $?
  expect "$name: the digest" "$digest" "$(value digest "$name")"
}
same two 2 --set plan.pipelines=[2] --set plan.tensor=2
as_planned two
same three 3 --set plan.pipelines=[3] --set plan.tensor=3
as_planned three
same four 4 --set plan.pipelines=[4] --set plan.tensor=4
same stages 4 --set plan.pipelines=[4] --set plan.tensor=2
as_planned stages
same uneven 6 --set plan.pipelines=[6] --set plan.tensor=[3,1,2] --set plan.layers=[1,4,1]
same beside 5 --set plan.pipelines=[2,3] --set plan.tensor=[2,1,2]
