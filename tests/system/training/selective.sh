#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# selective.sh <rheo> <work folder>    layers that recompute what they drop, as little as plan.memory_mib asks for: the digest of a run that keeps
# everything, whatever the schedule, in slices, when a rank is lost and from a plan file; ranks hold what the plan said; what cannot be kept is refused.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
model.dropout = 0.1
train.steps = 3
train.microbatch = { sequences = 4, tokens = 32 }
END
needed() { # [arguments]: MiB of the fullest rank
  "$rheo" plan job.toml --json "$@" | sed -n 's/.*"needed_bytes": \([0-9]*\).*/\1/p' | sort -n | tail -1 | awk '{printf "%.6f", $1 / 1048576}'
}
of() { awk -v part="$1" -v whole="$2" 'BEGIN {printf "%.6f", part * whole}'; }
train one 1 --set plan.pipelines=[1] --set plan.failures=0
expect "one rank ends" 0 $?
train sliced 1 --set plan.pipelines=[1] --set plan.failures=0 --set train.slices=2
expect "in slices, too" 0 $?
selective() { # <run folder> <base> <ranks> <part of the memory> [arguments]
  local name=$1 base=$2 ranks=$3 part=$4
  shift 4
  local less=(--set plan.recompute=selective --set "plan.memory_mib=$(of "$part" "$(needed "$@")")")
  "$rheo" plan job.toml "$@" "${less[@]}" >"$name.plan" 2>&1
  expect "$name: the plan makes something again" yes "$(grep -q 'recomputes' "$name.plan" && echo yes || cat "$name.plan")"
  train "$name" "$ranks" "$@" "${less[@]}"
  expect "$name ends" 0 $?
  expect "$name: the digest" "$(value digest "$base")" "$(value digest "$name")"
}
two=(--set plan.pipelines=[2] --set plan.failures=0)
selective early one 2 0.9 "${two[@]}"
as_planned early
selective all one 2 0.5 "${two[@]}" --set plan.schedule=gpipe
as_planned all
expect "whole layers are recomputed" 1 "$(grep -c 'recomputes.*all of layer' all.plan | sed 's/[1-9].*/1/')"
selective split one 2 0.9 "${two[@]}" --set plan.schedule=zb-h1
as_planned split
selective copies one 2 0.9 "${two[@]}" --set plan.schedule=dualpipe --set run.threads=2
as_planned copies
selective cut sliced 2 0.9 "${two[@]}" --set plan.layers=[2,3] --set train.slices=2 --set plan.schedule=seq1f1b
as_planned cut
expect "no whole layers of slices" 0 "$(grep -c 'recomputes.*all of layer' cut.plan)"
selective lost one 4 0.9 --set 'run.inject=["kill:2@2:backward"]'
expect "one recovery" 1 "$(grep -c '"kind":"recovery"' lost/metrics.jsonl)"
less=(--set plan.recompute=selective --set "plan.memory_mib=$(of 0.9 "$(needed "${two[@]}")")")
"$rheo" plan job.toml --json "${two[@]}" "${less[@]}" >plan.json
train file 2 "${two[@]}" --plan plan.json
expect "a plan file ends" 0 $?
expect "with the digest" "$(value digest one)" "$(value digest file)"
as_planned file
little=(--set plan.recompute=selective --set "plan.memory_mib=$(of 0.3 "$(needed "${two[@]}")")")
train refused 2 "${two[@]}" "${little[@]}"
expect "too little is refused" 3 $?
expect "nothing is begun" no "$([[ -e refused ]] && echo yes || echo no)"
expect "the plan says it in a sentence" 1 "$("$rheo" plan job.toml "${two[@]}" "${little[@]}" 2>&1 | grep -c 'keeps within plan.memory_mib = ')"
exit $((failures > 0))
