#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ending.sh <rheo> <work folder> <long_agreement> <repetitions>: ranks die one after the other while the last records are written. The others wait for that
# in no agreement, and the job ends by itself.
set -u
rheo=$1 long_agreement=$3 repetitions=$4
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 3
train.microbatch = { sequences = 2, tokens = 32 }
run.watchdog = { factor = 20, least_s = 10, stopped_s = 0 }
END
job() { # <run folder> [flags of mpirun]
  local folder=$1
  shift
  timeout -s KILL 60 "$RHEO_MPIRUN" "${flags[@]}" "$@" -n 5 "$rheo" train job.toml --set plan.pipelines=[2,3] --set "run.folder=$folder" >"$folder.out" 2>&1
}
job undisturbed
expect "the undisturbed job ends" 0 $?
digest=$(value digest undisturbed)
expect "traces are on one time line" yes "$([[ -s undisturbed/trace.json && ! -e undisturbed/trace.json.partial ]] && echo yes)"

kill_three() { # <run folder> <seconds apart>: ranks 1, 2 and 3, when the last record is there
  local others pid
  until grep -qs '"kind":"step","step":1,' "$1/metrics.jsonl"; do sleep 0.001; done
  others=("$(pid_of "$1" 1)" "$(pid_of "$1" 2)" "$(pid_of "$1" 3)")
  until grep -qs '"kind":"end"' "$1/metrics.jsonl"; do sleep 0.001; done
  for pid in "${others[@]}"; do kill -KILL "$pid" 2>/dev/null && sleep "$2"; done
}

# The rank that writes takes two seconds for it.
job slow -x LD_PRELOAD="$long_agreement" -x ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" &
running=$!
kill_three slow 0.02
wait $running
expect "a slow end with losses" 0 $?
expect "has its report" "$digest" "$(value digest slow)"

for ((i = 1; i <= repetitions; ++i)); do
  rm -rf job job.out
  job job &
  running=$!
  gap=0.0$((10 + RANDOM % 21))
  kill_three job $gap
  wait $running
  code=$?
  [[ "$code $(value digest job)" == "0 $digest" ]] || { expect "repetition $i, $gap s apart" "0 $digest" "$code $(value digest job)"; tail -5 job.out; }
done
expect "repetitions" "$repetitions" $((i - 1))

exit $((failures > 0))
