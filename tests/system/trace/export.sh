#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# export.sh <rheo> <work folder>: what rheo trace export writes of a plan and of runs of it are the same nodes, which every consumer takes and which end:
# of an undisturbed job, of the step in which a rank was lost, of steps after it, with recomputation, and of pairs that are computed at once.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 6
train.microbatch = { sequences = 1, tokens = 16 }
END
check_exported() { # <exit code of the export> <prefix>
  expect "$2 is exported" 0 "$1"
  expect "consumers take $2" 0 "$("$rheo" trace check "traces/$2" >/dev/null; echo $?)"
}
export_run() { # <run folder> <prefix> [--step N]
  local run=$1 prefix=$2
  shift 2
  "$rheo" trace export "$run" --chakra "traces/$prefix" "$@" >/dev/null
  check_exported $? "$prefix"
}
export_plan() { # <plan> <run folder> <prefix>
  "$rheo" trace export "$1" --config "$2/config.toml" --chakra "traces/$3" >/dev/null
  check_exported $? "$3"
}
same() { # <prefix> <prefix>
  expect "$1 and $2 have the same nodes" 0 "$("$rheo" trace diff "traces/$1" "traces/$2" >diff.out; echo $?)"
}

train usual 4
expect "an undisturbed job ends" 0 $?
export_plan usual/plan.json usual planned
export_run usual last
export_run usual second --step 1
same planned last
same planned second
expect "a run has times" 1 "$("$rheo" trace diff traces/planned traces/last --times | grep -c 'differ: rank 0, node 0')"
expect "a step that was not run is refused" 4 "$("$rheo" trace export usual --step 99 --chakra traces/none >/dev/null 2>&1; echo $?)"

expect "exported runs are compared" 1 "$("$rheo" analyze traces/second traces/last | grep -cE '^(no difference to speak of|the longest span is)')"
expect "without times there is nothing to analyze" 4 "$("$rheo" analyze traces/planned >/dev/null 2>&1; echo $?)"
cat >cluster.toml <<'END'
schema = 1
[device]
compute_tflops = 0.001
memory_rate_gb_per_s = 1.0
memory_gib = 1.0
[[level]]
name = "node"
members = 4
topology = "full"
latency_us = 1.0
rate_gb_per_s = 1.0
END
for prefix in planned last; do
  expect "$prefix plays on a cluster" 1 "$("$rheo" trace import "traces/$prefix" --cluster cluster.toml | grep -cE '^4 ranks end after [0-9.]+ .?s; rank [0-3] ends last$')"
done

train lost 5 --set 'plan.pipelines=[2,3]' --inject kill:3@3:backward
expect "a job that loses a rank ends" 0 $?
export_run lost lost_before --step 1
export_run lost lost_in --step 3
export_run lost lost_after --step 5
export_plan lost/plan.json lost lost_planned
same lost_planned lost_before
newest=$(find lost -name 'plan-*.json' | sort -V | tail -n 1)
export_plan "$newest" lost lost_replanned
same lost_replanned lost_after
expect "what is left of the step is less" 1 "$("$rheo" trace diff traces/lost_in traces/lost_after | grep -c differ)"

train recomputed 4 --set plan.recompute=true
expect "a job that recomputes ends" 0 $?
export_plan recomputed/plan.json recomputed recomputed_planned
export_run recomputed recomputed_run
same recomputed_planned recomputed_run

train paired 4 --set plan.schedule=dualpipe --set 'plan.pipelines=[4]' --set train.microbatches=8 --set model.blocks=6
expect "a job that computes pairs at once ends" 0 $?
export_plan paired/plan.json paired paired_planned
export_run paired paired_run
same paired_planned paired_run
exit $((failures > 0))
