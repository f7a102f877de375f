#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# errors.sh <rheo> <work folder>: a job ends with 0 only when it has done what it was to do. Errors that all ranks have end with their exit code; a state
# that cannot be saved is one; and a run folder that cannot be written when a rank is lost is waited for.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 200
train.microbatch = { sequences = 2, tokens = 32 }
run.watchdog = { factor = 20, least_s = 5, stopped_s = 0 }
END
ended() { # <run folder> [arguments]
  local folder=$1
  shift
  "$rheo" train job.toml --set "run.folder=$folder" "$@" --ended >ended.out 2>&1
}
limit() { # <run folder> <bytes>: of the files that its ranks may write, as a quota or a full disk has it
  local pid
  for pid in $(pid_of "$1" '*'); do prlimit --pid "$pid" --fsize="$2:unlimited"; done
}
train undisturbed 4
expect "the undisturbed job ends" 0 $?
digest=$(value digest undisturbed)

# No room for the last state.
train unsaved 4 &
job=$!
reached unsaved 20
limit unsaved 131072
wait $job
expect "the last state could not be saved: 5" 5 $?
expect "it says so" "all 200 steps are committed, but the last state could not be saved" "$(value message unsaved)"
ended unsaved
expect "and so does its folder" 5 $?
train unstopped 4 --set train.steps=1000000 &
job=$!
reached unstopped 20
limit unstopped 65536
kill -USR1 "$(pid_of unstopped 1)"
wait $job
expect "stopped, and the state could not be saved: 5" 5 $?

# No room when a rank is lost: the others wait for it, and have their state.
train full 4 &
job=$!
reached full 20
limit full 0
kill -KILL "$(pid_of full 2)"
for _ in {1..600}; do grep -q 'waits for its run folder' full.out && break; sleep 0.05; done
sleep 1
expect "the ranks that are left live" yes "$(kill -0 "$(pid_of full 0)" "$(pid_of full 1)" "$(pid_of full 3)" 2>/dev/null && echo yes)"
expect "and say what they wait for" yes "$(grep -q '^rheo: the job waits for its run folder, for 0 s now: cannot write .*File too large.* no state is lost' full.out && echo yes)"
limit full unlimited
wait $job
expect "then they continue" 0 $?
expect "with the same bits" "$digest" "$(value digest full)"

# The run folder has another name when the rank that reports is lost.
train renamed 4 &
job=$!
reached renamed 20
mv renamed elsewhere
kill -KILL "$(pid_of elsewhere 0)"
for _ in {1..600}; do grep -q '^lost rank' renamed.out && break; sleep 0.05; done
mv elsewhere renamed
wait $job
expect "a loss while the folder has another name" 0 $?
expect "ends with the same bits" "$digest" "$(value digest renamed)"

# Checkpoints that are already beyond the last step.
train beyond 2 --set plan.pipelines=[2] --set train.steps=4
for mode in auto fork; do
  out=beyond-$mode train beyond 2 --set plan.pipelines=[2] --set train.steps=2 --resume $mode
  expect "beyond the last step ($mode): 2" 2 $?
  expect "with a sentence" 1 "$(grep -c '^rheo: cannot resume from the checkpoint of step 4 in beyond: train.steps = 2 ends before it' beyond-$mode.out)"
done

# Records that no rank can write.
train records 4 --set train.steps=1000000 --max-time 0.3s
for rank in 0 1 2 3; do rm records/trace/rank-$rank.jsonl && mkdir records/trace/rank-$rank.jsonl; done
out=unwritable train records 4 --set train.steps=1000000 --max-time 0.3s
expect "records that cannot be written: 5" 5 $?
expect "with the file's name" 1 "$(grep -c "^rheo: rank 0: 'records/trace/rank-0.jsonl' cannot be written" unwritable.out)"
# Of one rank alone: it is lost, and the others continue.
for rank in 0 2 3; do rmdir records/trace/rank-$rank.jsonl; done
out=one train records 4 --set train.steps=1000000 --max-time 0.5s
expect "records of one rank: the others continue" 75 $?
expect "without it" 1 "$(($(grep -c '"ranks":3' records/metrics.jsonl) > 0))"

# A file of data is cut while it is mapped.
for _ in {1..200}; do cat text; done >long
train cut 4 --set 'data.paths=["long"]' --set train.steps=1000000 &
job=$!
reached cut 10
: >long
wait $job
expect "data that was cut: 4" 4 $?
expect "with the file's name" 1 "$(($(grep -cE "'long' (became shorter while it was in use|was changed in place)" cut.out) > 0))"

# All ranks find a fault in the config before they have an MPI; the one that says so starts last.
"$RHEO_MPIRUN" "${flags[@]}" -n 1 bash -c 'sleep 0.3; exec "$@"' rheo "$rheo" train job.toml --set plan.schedule=none : -n 3 "$rheo" train job.toml --set plan.schedule=none \
  >late.out 2>&1
expect "a config that no rank can use: 2" 2 $?
expect "and the reason, once" 1 "$(grep -c "^rheo: .*plan.schedule" late.out)"

exit $((failures > 0))
