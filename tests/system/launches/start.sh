#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# start.sh <rheo> <work folder> <lost_in_start>: a rank that is killed or stopped while the job begins. Until all ranks have found each other the job
# ends with exit code 5 and an error; from then on it begins without that rank.
set -u
rheo=$1 lost_in_start=$3
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 3
train.microbatch = { sequences = 2, tokens = 32 }
run.watchdog = { factor = 20, least_s = 2, start_s = 5, stopped_s = 1 }
END
limited() { # <command...>: what it ends with, 124 after a minute
  timeout -s KILL 60 "$@"
}

# Before MPI_Init: a shell that becomes rheo on the other ranks.
# shellcheck disable=SC2016
for signal in KILL STOP; do
  limited "$RHEO_MPIRUN" "${flags[@]}" -n 4 sh -c '[ "$OMPI_COMM_WORLD_RANK" = 2 ] && kill -'$signal' $$; exec "$@"' sh \
    "$rheo" train job.toml --set run.folder=before-$signal >before-$signal.out 2>&1
  expect "SIG$signal before MPI_Init ends the job with 5" 5 $?
  expect "with an error" yes "$(grep -qE '^rheo: rank [013]: has waited 5\.0 s for MPI_Init: another rank was lost, .*\(exit code 5\); start it again' before-$signal.out && echo yes)"
done

lost() { # <in> <signal> <folder> [arguments]
  local folder=$3
  limited "$RHEO_MPIRUN" "${flags[@]}" -x LD_PRELOAD="$lost_in_start" -x RHEO_LOSE_RANK=2 -x RHEO_LOSE_IN="$1" -x RHEO_LOSE_SIGNAL="$2" \
    -x ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" -n 4 "$rheo" train job.toml --set "run.folder=$folder" "${@:4}" >"$folder.out" 2>&1
}
lost dup 9 dup-killed
expect "a rank killed while communicators are made ends the job with 5" 5 $?
expect "with an error" 1 "$(($(grep -cE '^rheo: (a rank was lost before the job began|rank [013]: has waited)' dup-killed.out) > 0))"
lost dup 19 dup-stopped
expect "a rank stopped there, too" 5 $?
expect "with an error that says where" yes "$(grep -qE '^rheo: rank [013]: has waited 5\.0 s for all ranks to make communicators' dup-stopped.out && echo yes)"
for signal in 9 19; do
  lost lock $signal lock-$signal --set run.watchdog.start_s=10
  expect "a rank lost while the job begins (signal $signal): the others begin" 0 $?
  expect "all steps" "all 3 steps are committed" "$(value message lock-$signal)"
  expect "by three ranks" 1 "$(grep -c '"kind":"step","step":2,.*"ranks":3' lock-$signal/metrics.jsonl)"
done

exit $((failures > 0))
