#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sweep.sh <rheo> <work folder>: a profile that is made in a training is the one that the devices emulate, its bits are those of the
# undisturbed training, and clocks are planned with it.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 24
train.microbatch = { sequences = 1, tokens = 16 }
plan.shares = [3, 3]
END
awk 'BEGIN {
  split("0.4 1 1 1 0.8", weight); split("1400 1200 1000 800", clock); split("1 1.12 1.3 1.6", time); split("1 0.8 0.68 0.62", energy)
  print "stage,instruction,frequency,time,energy"
  for (layer = 1; layer <= 5; ++layer) for (kind = 1; kind <= 2; ++kind) for (c = 1; c <= 4; ++c) {
    work = weight[layer] * kind * 0.003
    printf "%d,%s,%d,%.9g,%.9g\n", layer - 1, kind == 1 ? "forward" : "backward", clock[c], work * time[c], work * 300 * energy[c]
  }
}' >layers.csv
emulated=(--set power.device=emulated --set power.clock_profile=layers.csv --set power.pace=profile)
sums() { # <profile>: times and energies of all layers together, by computation and clock
  awk -F, 'NR > 1 && $2 ~ /^(forward|backward)$/ { time[$2 " " $3] += $4; energy[$2 " " $3] += $5 }
    END { for (k in time) printf "%s %.5f %.4f\n", k, time[k], energy[k] }' "$1" | sort
}

train plain 4
expect "the training without clocks ends" 0 $?
"$RHEO_MPIRUN" "${flags[@]}" -n 4 "$rheo" profile job.toml --clocks --out made.csv --set run.folder=sweep "${emulated[@]}" >sweep.out 2>&1
expect "the training that makes a profile ends" 0 $?
[[ -e made.csv ]] || cat sweep.out
expect "with the same bits" "$(value digest plain)" "$(value digest sweep)"
expect "the profile is what was emulated" "$(sums layers.csv)" "$(sums made.csv)"
expect "blocking power is printed" 1 "$(grep -cE 'made.csv: 40 rows .* draws 83.6[0-9] W' sweep.out)"
expect "and has a row" 1 "$(grep -cE '^0,blocking,0,1,83\.6' made.csv)"
"$rheo" frontier made.csv --ranks 2..4 --microbatches 6 >frontier.out 2>&1
expect "rheo frontier reads it" 0 $?
blocking() { sed 's/^0,blocking,.*/0,blocking,0,2,100/' made.csv >other.csv; "$rheo" frontier other.csv --schedule 1f1b --microbatches 6 "$@" --json | grep -oE '"blocking_power_W": *[0-9.]*' | grep -oE '[0-9.]+$'; }
expect "it takes from it what waiting draws, unless given" "50 70" "$(blocking | head -1 | sed 's/\.0$//') $(blocking --blocking-power 70W | head -1 | sed 's/\.0$//')"
train clocked 4 "${emulated[@]}" --set power.clock_profile=made.csv
expect "a training takes its clocks from it" 0 $?
expect "and has the same bits" "$(value digest plain)" "$(value digest clocked)"

# Not enough steps, and a rank lost on the way: what there is is written.
"$RHEO_MPIRUN" "${flags[@]}" -n 4 "$rheo" profile job.toml --clocks --out part.csv --set run.folder=part --set train.steps=9 "${emulated[@]}" --set 'run.inject=["kill:3@5:backward"]' >part.out 2>&1
expect "a short training that loses a rank ends" 0 $?
expect "the two clocks that it tried are written" "1200 1400 " "$(awk -F, 'NR > 1 && $2 != "blocking" { print $3 }' part.csv | sort -n -u | tr '\n' ' ')"
"$rheo" profile job.toml --clocks 2>refusal
expect "a profile of clocks goes to a file" 2 $?
exit $((failures > 0))
