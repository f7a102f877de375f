#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# analyze.sh <rheo> <work folder>: traces say with whom a rank exchanged what, as the plan has it, and what it held. rheo analyze names the rank that is
# slow, with its computations; the step and the rank of a process that was stopped for two seconds; nothing of either kind where nothing is wrong; and after
# a loss it counts the steps that were cut off.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 12
train.microbatch = { sequences = 1, tokens = 16 }
plan.shares = [3, 3]
END
# Five layers on an emulated device, long enough that nearly all of a step is computed: ranks that share processors do not wait for them. The other
# clock is never worth its time.
awk 'BEGIN {
  split("0.4 1 1 1 0.8", weight)
  print "stage,instruction,frequency,time,energy"
  for (layer = 1; layer <= 5; ++layer) for (kind = 1; kind <= 2; ++kind) for (clock = 1; clock <= 2; ++clock) {
    work = weight[layer] * kind * 0.01
    printf "%d,%s,%d,%.9g,%.9g\n", layer - 1, kind == 1 ? "forward" : "backward", 1100 - 100 * clock, work * clock, work * 300
  }
}' >layers.csv
paced=(--set power.device=emulated --set power.clock_profile=layers.csv --set power.pace=profile --set power.straggler=false)
findings() { "$rheo" analyze "$1" --json | sed -n '/"findings"/,/^  \]/s/^ *"name": "\(.*\)",$/\1/p'; }
message() { # <run folder> <finding>: its text
  "$rheo" analyze "$1" --json | grep -A2 "\"name\": \"$2\"" | sed -n 's/^ *"message": "\(.*\)",$/\1/p'
}
count() { # <run folder> <key>: of steps
  "$rheo" analyze "$1" --json | sed -n "/\"steps\": {/,/}/s/^ *\"$2\": \([0-9]*\),\$/\1/p"
}

train usual 4 "${paced[@]}"
expect "an undisturbed job ends" 0 $?
expect "no rank is slow" 0 "$(findings usual | grep -c '^slow rank$')"
expect "all of its steps are whole" "$(grep -cE '"kind":"(step|redo)"' usual/metrics.jsonl) 0" "$(count usual count) $(count usual partial)"

# Ranks 0 and 1, 2 and 3 are a pipeline: 16 tokens of width 32 in fp32 go from one to the other.
expect "messages have their peer and the bytes of the boundary" "0" "$(cat usual/trace/rank-*.jsonl | awk -F '[:,]' '
  /"(SEND|RECV)_[FB]"/ {++n; peer = $2 + 1 - 2 * ($2 % 2); if ($0 !~ "\"peer\":" peer ",\"bytes\":2048}$") ++wrong}
  END {print wrong + (n < 4 * 3 * 2 * 12)}')"
expect "so have computations whose input is a message" "0" "$(cat usual/trace/rank-*.jsonl | awk -F '[:,]' '
  /"name":"[FB]"/ {++n; odd = $2 % 2; takes = /"name":"F"/ ? odd : !odd; if (/"peer":/ != takes) ++wrong}
  END {print wrong + (n < 4 * 3 * 2 * 12)}')"
# The sums of a unit have 8 bytes a parameter: the second stage has a block of 12 width^2 + 13 width, and a norm.
expect "reductions have the bytes of their sums" "512 $((8 * (12 * 32 * 32 + 13 * 32)))" \
  "$(sed -n 's/.*"name":"AWAIT",.*"item":[34],.*"bytes":\([0-9]*\)}$/\1/p' usual/trace/rank-1.jsonl | sort -n -u | paste -s -d ' ')"
expect "the most activations that a rank held are those that it measured" "$(sed -n 's/.*"measured_activations_bytes": *\([0-9]*\).*/\1/p' usual/ranks/{0,1,2,3}.json)" \
  "$(for rank in 0 1 2 3; do sed -n 's/.*"held_bytes":\([0-9]*\).*/\1/p' "usual/trace/rank-$rank.jsonl" | sort -n | tail -1; done)"
arrows() { grep "^{\"ph\":\"$1\"" usual/trace.json | grep -o '"id":"0x[0-9a-f]*"' | sort; }
expect "each arrow of trace.json has both ends" "$(arrows s)" "$(arrows f)"
expect "and there is one for each message" "$(cat usual/trace/rank-*.jsonl | grep -c '"SEND_')" "$(arrows s | wc -l)"
expect "without traces there is nothing to analyze" 4 "$(train silent 4 "${paced[@]}" --set run.trace=false; "$rheo" analyze silent >/dev/null 2>&1; echo $?)"

train slow 4 "${paced[@]}" --inject slow:3@0-11:1.3
expect "a job with a slow rank ends" 0 $?
expect "its rank is named" "rank 3" "$(message slow 'slow rank' | grep -oE '^rank [0-9]+')"
expect "with its computations" 1 "$(message slow 'slow rank' | grep -cE 'computes 1\.[23][0-9] times as long')"

stop_for_a_while() {
  reached stopped 5
  kill -STOP "$(pid_of stopped 1)"
  sleep 2
  kill -CONT "$(pid_of stopped 1)"
}
stop_for_a_while &
train stopped 4 "${paced[@]}"
expect "a job of which a rank is stopped for two seconds ends" 0 $?
wait
expect "the step is named" 1 "$(message stopped 'slow step' | grep -cE '^step [567] took [23]\.[0-9]* s because')"
expect "with its rank" "rank 1" "$(message stopped 'slow step' | grep -oE 'rank [0-9]+')"

train lost 4 "${paced[@]}" --inject kill:2@6:backward
expect "a job that loses a rank ends" 0 $?
expect "one step was cut off" "1" "$(count lost partial)"
exit $((failures > 0))
