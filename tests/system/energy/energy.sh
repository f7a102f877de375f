#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# energy.sh <rheo> <work folder> <energy_judge>: with clocks that follow the plan a training ends with the bits of one without, also when a
# rank is slow for a while and when one is lost; its ranks ran at the clocks that the library chooses and drew what it foretells.
set -u
rheo=$1
judge=$3
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 16
train.microbatch = { sequences = 1, tokens = 16 }
plan.shares = [3, 3]
END
# Five layers at four clocks; a backward is two forwards. Long enough that a processor shared by all ranks is never what is waited for.
awk 'BEGIN {
  split("0.4 1 1 1 0.8", weight); split("1400 1200 1000 800", clock); split("1 1.12 1.3 1.6", time); split("1 0.8 0.68 0.62", energy)
  print "stage,instruction,frequency,time,energy"
  for (layer = 1; layer <= 5; ++layer) for (kind = 1; kind <= 2; ++kind) for (c = 1; c <= 4; ++c) {
    work = weight[layer] * kind * 0.003
    printf "%d,%s,%d,%.9g,%.9g\n", layer - 1, kind == 1 ? "forward" : "backward", clock[c], work * time[c], work * 300 * energy[c]
  }
}' >layers.csv
emulated=(--set power.device=emulated --set power.clock_profile=layers.csv --set power.pace=profile)
in_records() { # <kind> <key> <run folder>: how many records of that kind have the key
  grep "\"kind\":\"$1\"" "$3/metrics.jsonl" | grep -c "\"$2\":"
}

sum_of_joules() { # <run folder>: of all attempts that its records hold
  grep -E '"kind":"(step|redo)"' "$1/metrics.jsonl" | sed -n 's/.*"energy_J":\([0-9.e+-]*\),.*/\1/p' | awk '{ sum += $1 } END { printf "%.3f\n", sum }'
}

train without 4
expect "without a device the job ends" 0 $?
digest=$(value digest without)
[[ -n $digest ]] || { cat without.out; exit 1; }
expect "and its records know no energy" 0 "$(in_records step energy_J without)"

train clocked 4 "${emulated[@]}"
expect "with clocks it ends" 0 $?
expect "with the same bits" "$digest" "$(value digest clocked)"
expect "every step has its energy" 16 "$(in_records step energy_J clocked)"
expect "the table has it, too" 1 "$(grep -c '^  energy  .* J per step, .* J per token$' clocked.out)"
"$judge" clocked 1 15
expect "clocks, energy and time are the library's" 0 $?

"$rheo" plan job.toml --ranks 4 --json "${emulated[@]}" >planned.json
plan_lines() { grep -oE '"digest": *"[0-9a-f]*"|"clocks_MHz": *.*\]' "$1" | tr -d ' ' | sort; }
expect "rheo plan shows the plan that was run, clocks included" "$(plan_lines clocked/plan.json)" "$(plan_lines planned.json)"
train again 4 --plan planned.json "${emulated[@]}"
expect "which is read again" "0 $digest" "$? $(value digest again)"

# Slow from step 3 to step 8: two steps until all ranks count it as slow, two until none does.
train straggler 4 "${emulated[@]}" --inject slow:1@3-8:1.4
expect "with a slow rank it ends" 0 $?
expect "with the same bits" "$digest" "$(value digest straggler)"
"$judge" straggler 1 2
expect "before it is slow the clocks are the usual ones" 0 $?
"$judge" straggler 5 8 1 1.4
expect "while it is slow the others do not hurry" 0 $?
"$judge" straggler 11 15
expect "and afterwards they do again" 0 $?

# Seven microbatches, which three ranks cannot share evenly: after the loss one pipeline waits for the other, and runs at lower clocks.
seven=(--set train.microbatches=7 --set plan.shares=[4,3])
train seven 4 "${seven[@]}"
train lost 4 "${emulated[@]}" "${seven[@]}" --inject kill:3@6:backward
expect "with a rank lost it ends" 0 $?
expect "with the same bits" "$(value digest seven)" "$(value digest lost)"
expect "every step has planned joules but the one in which it is lost" 15 "$(in_records step planned_energy_J lost)"
expect "their clocks are other ones" 2 "$(grep -c '^clocks for a step of ' lost.out)"
expect "which were precomputed" "yes 0" "$(grep -q '^clocks precomputed for .* plans after losses: .* frontiers in .* ms$' lost.out && echo yes) $(grep -c 'had not been precomputed' lost.out)"
"$judge" lost carried 6
expect "what was left of that step and the evaluation ran at clocks of the plan" 0 $?
expect "what the lost rank drew is counted" 0 "$(grep -c 'its meter was not read' lost.out)"

# Two losses in one step: their plan was precomputed, too. Without a page that the ranks of a host share, no rank has seen the meters of the lost ones.
train two-lost 4 "${emulated[@]}" --set run.watchdog.stopped_s=0 --inject kill:2@8:idle --inject kill:3@8:idle
expect "with two ranks lost it ends" 0 $?
expect "with the same bits" "$digest" "$(value digest two-lost)"
expect "the clocks for two ranks were there" 0 "$(grep -c 'had not been precomputed' two-lost.out)"
expect "what the lost ranks drew at last is reported missing" 2 "$(grep -c 'what rank [23] drew at last is not included' two-lost.out)"

"$rheo" report lost >/dev/null && "$rheo" report without >/dev/null
in_page() { grep -o "$1" "$2/report.html" | wc -l; } # the data of a page are one line
expect "its page has power and clocks over time" "1 1 1" "$(in_page '"name":"Energy"' lost) $(in_page '"name":"Power, W"' lost) $(in_page '"name":"Clock, MHz"' lost)"
expect "that of the job without a device has none" 0 "$(in_page '"name":"Energy"' without)"

train slow-and-lost 4 "${emulated[@]}" --set power.pace=machine --inject slow:0@2-12:2 --inject kill:2@8:forward
expect "with a slow rank and a lost one it ends" 0 $?
expect "with the same bits" "$digest" "$(value digest slow-and-lost)"

# Stopped on the way and resumed: the joules of both parts are in the last table, as they are in the records.
train stopped 4 "${emulated[@]}" --set train.steps=100000 --max-time 2s
expect "a job that runs out of time ends so" 75 $?
steps=$(grep -c '"kind":"step"' stopped/metrics.jsonl)
before=$(sum_of_joules stopped)
train stopped 4 "${emulated[@]}" --set train.steps=100000 --max-time 1s
expect "and resumes" 75 $?
expect "further" yes "$( (($(grep -c '"kind":"step"' stopped/metrics.jsonl) > steps)) && echo yes)"
expect "its joules are those of both" "$(sum_of_joules stopped)" "$(sed -n 's/^  "energy_J": \([0-9.]*\),*$/\1/p' stopped/report.json | awk '{ printf "%.3f\n", $1 }')"
expect "which are more" yes "$(awk -v a="$before" -v b="$(sum_of_joules stopped)" 'BEGIN { if (b > a && a > 0) print "yes" }')"

sed 's/^4,.*//' layers.csv >short.csv
train refused 4 "${emulated[@]}" --set power.clock_profile=short.csv
expect "a profile of too few layers is bad data" 4 $?
expect "and reports it" 1 "$(grep -c 'short.csv: a profile of 4 stages, but the model has 5 layers' refused.out)"
exit $((failures > 0))
