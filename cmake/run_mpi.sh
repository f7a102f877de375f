#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_mpi.sh <mpirun> --ft|--plain <ranks> <seconds> <command...>     runs the command on the ranks (0: the command starts mpirun)
# run_mpi.sh --without-ulfm <sentence>                                skips (77), or fails under CI=true
# Every process of the test carries RHEO_TEST_RUN in its environment, by which it is found and ended at the time-out. One
# that is still there two seconds after a good end makes the test fail: no process may stay behind.
set -u
if [[ $1 == --without-ulfm ]]; then
  echo "skipped: this test needs an MPI with ULFM ($2)"
  [[ ${CI:-} == true ]] && { echo "CI=true: a missing ULFM is a failure"; exit 1; }
  exit 77
fi
mpirun=$1 kind=$2 ranks=$3 seconds=$4
shift 4

export RHEO_MPIRUN=$mpirun
RHEO_TEST_RUN="$$-$(date +%s%N)"
export RHEO_TEST_RUN
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
work=$(mktemp -d) || exit 1
export TMPDIR=$work # the launcher's session files go away with it
flags=()
[[ $kind == --ft ]] && flags+=(--with-ft ulfm --mca pml ob1)
# Ranks share the cores with other tests; bound ones would share one.
flags+=(--oversubscribe --bind-to none)
((EUID == 0)) && flags+=(--allow-run-as-root)

ours() { # process ids that carry our mark, this shell and its own children excepted
  local f pid
  for f in /proc/[0-9]*/environ; do
    pid=${f//[!0-9]/}
    [[ $pid == "$$" || $pid == "$BASHPID" ]] && continue
    if tr '\0' '\n' 2>/dev/null <"$f" | grep -qx "RHEO_TEST_RUN=$RHEO_TEST_RUN" 2>/dev/null; then
      [[ $(readlink "/proc/$pid/exe" 2>/dev/null) == */bash && $(ps_parent "$pid") == "$$" ]] || echo "$pid"
    fi
  done
}
ps_parent() { awk '{ sub(/^.*\) /, ""); print $2 }' "/proc/$1/stat" 2>/dev/null; }
end_all() {
  local pids i
  for i in 1 2 3 4 5; do
    pids=$(ours)
    [[ -z $pids ]] && return
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null
    sleep 0.1
  done
}
trap 'end_all; rm -rf "$work"' EXIT
trap 'exit 143' TERM INT HUP

if ((ranks > 0)); then set -- "$mpirun" "${flags[@]}" -n "$ranks" "$@"; fi
setsid "$@" </dev/null &
leader=$!
# A child of its own measures the time, so that `wait` below returns as soon as the run ends.
( exec -c sleep "$seconds" ) &
clock=$!
wait -n "$leader" "$clock"
rc=$?
if kill -0 "$leader" 2>/dev/null; then
  echo "run_mpi.sh: not done after $seconds s"
  exit 124
fi
wait "$leader"
rc=$?
kill "$clock" 2>/dev/null
wait "$clock" 2>/dev/null

for _ in 1 2 3 4 5 6 7 8 9 10; do
  left=$(ours)
  [[ -z $left ]] && exit "$rc"
  sleep 0.2
done
for pid in $left; do echo "run_mpi.sh: left behind: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"; done
exit 1
