#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# launches.sh <rheo> <work folder> <no_locks>: a second launch in a run folder is refused as long as any rank of the first one lives, and
# touches nothing; a killed job keeps no other out. Where the file system has no locks, the job says so and runs.
set -u
rheo=$1 no_locks=$3
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 1000000
train.microbatch = { sequences = 2, tokens = 32 }
checkpoint.every_steps = 50
run.watchdog = { factor = 20, least_s = 2, stopped_s = 0 }
END
steps() { # <run folder>: that are recorded
  grep -c '"kind":"step"' "$1/metrics.jsonl" 2>/dev/null
}
refused() { # <what> <exit code> <process that began the folder>
  expect "$1: refused" 5 "$2"
  expect "$1: who is there" 1 "$(grep -c "^rheo: run folder run: another launch is at work in it, begun .* UTC by process $3 on host $(uname -n); " second.out)"
}

train run 4 &
job=$!
reached run 5
first=$(pid_of run 0)
out=second train run 4 --resume never
refused "a second launch" $? "$first"
expect "it has set nothing aside" "" "$(cd run && compgen -G 'before-*')"
before=$(steps run)
reached run $((before + 5))
expect "the first one continues" yes "$( (($(steps run) >= before + 5)) && echo yes)"

# The rank that began the folder dies; the others are the same launch.
kill -KILL "$first"
reached run $(($(steps run) + 20))
rm second.out
out=second train run 2 --set plan.pipelines=[2]
refused "a launch after a loss" $? "$first"
kill -USR1 "$(pid_of run 1)"
wait $job
expect "the first job ends by SIGUSR1" 75 $?

# All of a job is killed: the next one takes its place at once.
train run 4 &
job=$!
reached run $(($(steps run) + 20))
kill_job run
wait $job 2>/dev/null
out=third train run 4 --max-time 0.2s
expect "a killed job keeps no other out" 75 $?
expect "it resumes" 1 "$(grep -c '^resuming after' third.out)"

# Two at the same moment: one of them.
train race 2 --set plan.pipelines=[2] --max-time 4s &
one=$!
train race 2 --set plan.pipelines=[2] --max-time 4s &
other=$!
wait $one
codes=$?
wait $other
codes="$codes $?"
expect "one of two runs" yes "$([[ $codes == "5 75" || $codes == "75 5" ]] && echo yes || echo "$codes")"

# File systems without locks: NFS without its lock service (ENOLCK), others that refuse the call.
for reason in 37 95; do
  folder=unlocked-$reason
  LD_PRELOAD=$no_locks RHEO_NO_LOCKS=$reason ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 train $folder 4 --set train.steps=3
  expect "without locks ($reason) a job runs" 0 $?
  words=$([[ $reason == 37 ]] && echo "No locks available" || echo "Operation not supported")
  expect "and says so" "run folder $folder: its file system has no locks ($words), so nothing keeps a second launch out of it" "$(grep 'no locks' $folder.out)"
  expect "also in its records" 1 "$(grep -c '"kind":"note".*has no locks' $folder/metrics.jsonl)"
done

exit $((failures > 0))
