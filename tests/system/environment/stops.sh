#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# stops.sh <rheo> <work folder> <clock_ahead>: a limit of time counts from the launch, whatever a host's time of day says; and a job stops in
# order by SIGUSR1 to the launcher, as its start says.
set -u
rheo=$1 ahead=$3
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 12
train.microbatch = { sequences = 2, tokens = 32 }
END

# The host of rank 2 is a day ahead; an hour has not passed, and the traces of its rank are where the others' are.
LD_PRELOAD=$ahead RHEO_CLOCK_AHEAD=2 ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 train ahead 4 --max-time 1h
expect "a clock that is ahead ends nothing" 0 $?
expect "all steps are done" "$(train plain 4; value digest plain)" "$(value digest ahead)"
expect "the traces are on one time line" yes \
  "$(grep -ho '"start_s":[0-9.e+-]*' ahead/trace/rank-2.jsonl | awk -F : '$2 < 0 || $2 > 3600 {late = 1} END {print (NR && !late) ? "yes" : "no"}')"
LD_PRELOAD=$ahead RHEO_CLOCK_AHEAD=0 ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 train limited 4 --set train.steps=1000000 --max-time 1.5s
expect "nor does a reporter's clock put the end off" 75 $?

# The signal goes to the launcher, which passes it on to all ranks.
train signalled 4 --set train.steps=1000000 &
job=$!
reached signalled 5
line=$(sed -n 's/^to stop with a checkpoint: \(kill -USR1 [0-9]*\).*/\1/p' signalled.out)
expect "the start says how to stop" 1 "$(grep -cE '^kill -USR1 [0-9]+$' <<<"$line")"
$line
wait $job
expect "SIGUSR1 to the launcher stops the job in order" 75 $?
expect "with a checkpoint" yes "$(compgen -G 'signalled/step-*' >/dev/null && echo yes)"

exit $((failures > 0))
