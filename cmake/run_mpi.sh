#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_mpi.sh <mpirun> --ft|--plain <ranks> <seconds> <command...>     runs the command on the ranks (0: the command starts mpirun)
# run_mpi.sh --skipped <sentence>                                     skips (77), or fails under CI=true
# Every process of the test carries RHEO_TEST_RUN in its environment, by which it is found and ended at the time-out. One
# that is still there two seconds after a good end makes the test fail: no process may stay behind.
set -u
ulimit -c 0 # tests that kill ranks leave no core files
if [[ $1 == --skipped ]]; then
  echo "skipped: $2"
  [[ ${CI:-} == true ]] && { echo "CI=true: a test that cannot be run is a failure"; exit 1; }
  exit 77
fi
mpirun=$1 kind=$2 ranks=$3 seconds=$4
shift 4

export RHEO_MPIRUN=$mpirun
RHEO_TEST_RUN="$$-$(date +%s%N)"
export RHEO_TEST_RUN
work=$(mktemp -d) || exit 1
export TMPDIR=$work # the launcher's session files go away with it
# So do shared-memory segments, which two jobs of a host may otherwise call by the same name.
segments=$work
[[ -w /dev/shm ]] && { segments=$(mktemp -d --tmpdir=/dev/shm --suffix=.rheo-test) || exit 1; }
export OMPI_MCA_btl_sm_backing_directory=$segments
export OMPI_MCA_btl=^ofi # one host: libfabric is not used, and looking for it takes a second of each start
flags=()
[[ $kind == --ft ]] && flags+=(--with-ft ulfm --mca pml ob1)
# Ranks share the cores with other tests; bound ones would share one.
flags+=(--oversubscribe --bind-to none)
((EUID == 0)) && flags+=(--allow-run-as-root)

ours() { # the processes that carry our mark: this shell got it only after its start, so its own environ file has it not
  local files=(/proc/[0-9]*/environ) file pid # listed before grep starts, which carries it too
  while read -r file; do
    pid=${file//[!0-9]/}
    [[ $pid == "$BASHPID" ]] || echo "$pid"
  done < <(grep -lszx "RHEO_TEST_RUN=$RHEO_TEST_RUN" "${files[@]}")
}
end_all() {
  local pids
  for _ in 1 2 3 4 5; do
    pids=$(ours)
    [[ -z $pids ]] && return
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null
    sleep 0.1
  done
}
trap 'end_all; rm -rf "$work" "$segments"' EXIT
trap 'exit 143' TERM INT HUP

if ((ranks > 0)); then set -- "$mpirun" "${flags[@]}" -n "$ranks" "$@"; fi
setsid "$@" </dev/null &
leader=$!
# A clock without our mark; `wait` returns as soon as either ends.
env -i sleep "$seconds" &
clock=$!
wait -n "$leader" "$clock"
rc=$?
if ! kill -0 "$clock" 2>/dev/null; then
  echo "run_mpi.sh: not done after $seconds s"
  exit 124
fi
kill "$clock"
wait "$clock" 2>/dev/null

for _ in 1 2 3 4 5 6 7 8 9 10; do
  left=$(ours)
  [[ -z $left ]] && exit "$rc"
  sleep 0.2
done
for pid in $left; do echo "run_mpi.sh: left behind: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"; done
exit 1
