#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A training as a Flux job that submits its continuation until it is done:
#
#   RHEO_RANKS_PER_NODE=8 flux batch -N 4 -x -t 12h cmake/flux/train.flux run.toml [arguments of rheo train...]
#
# mpirun starts its daemons on the hosts of the allocation by ssh. Five minutes before the time limit rheo writes a checkpoint
# after the step and ends with 75; then the next job is submitted to the enclosing instance, with as many nodes and the same time.
# After a lost rank where losses are not survived, mpirun is started again in the same allocation. An error with an exit code of its
# own (a wrong config, bad data, an impossible plan) ends the job, and so do RHEO_MOST_CRASHES crashes in a row between which no
# newer checkpoint was written.
#
#   RHEO_RANKS_PER_NODE   default 1
#   RHEO, RHEO_MPIRUN     the programs, when they are not in the path
#   RHEO_MPIRUN_FLAGS     more arguments for mpirun
#   RHEO_MOST_CRASHES     default 3
#   RHEO_SCRIPT           this file, for the next job; default: cmake/flux/train.flux of the folder that the job was submitted from
#flux: --job-name=rheo
set -u
if (($# == 0)); then
  echo "usage: flux batch [options] train.flux <config.toml> [arguments of rheo train...]" >&2
  exit 2
fi
rheo=${RHEO:-rheo} mpirun=${RHEO_MPIRUN:-mpirun} most_crashes=${RHEO_MOST_CRASHES:-3} script=${RHEO_SCRIPT:-cmake/flux/train.flux}
ranks_per_node=${RHEO_RANKS_PER_NODE:-1}
time_left=$(flux job timeleft) || { echo "train.flux: start this with flux batch" >&2; exit 2; }
time_left=${time_left%%.*}
read -ra hosts <<<"$(flux hostlist --expand local)"

flags=(--host "$(printf "%s:$ranks_per_node\n" "${hosts[@]}" | paste -sd,)" -n $((${#hosts[@]} * ranks_per_node)))
if "$rheo" info --json | grep -q '"compiled_in": true'; then
  flags+=(--with-ft ulfm --mca pml ob1)
  # Collectives over several nodes that know of failures.
  ((${#hosts[@]} > 1)) && flags+=(--mca coll '^han,cuda')
fi
read -ra more <<<"${RHEO_MPIRUN_FLAGS:-}"
flags+=(${more[@]+"${more[@]}"})

# Until five minutes before the limit, counted from here.
ends=$((SECONDS + time_left - 300))
crashes=0 last_safe=
while :; do
  "$mpirun" "${flags[@]}" "$rheo" train "$@" --max-time "$((ends > SECONDS ? ends - SECONDS : 1))s"
  rc=$?
  # A launcher whose ranks were all lost, or that lost a whole node, may return 0 for a run that is not done: its folder says how it ended.
  if ((rc == 0)); then
    "$rheo" train "$@" --ended
    rc=$?
  fi
  case $rc in
    0 | 2 | 3 | 4 | 5 | 6 | 7 | 75) break ;;
  esac
  safe=$("$rheo" train "$@" --ended 2>/dev/null | sed -n 's/.*; \([0-9]*\) steps are safe.*/\1/p')
  [[ $last_safe == "${safe:-0}" ]] || crashes=0
  last_safe=${safe:-0} crashes=$((crashes + 1))
  if ((crashes >= most_crashes)); then
    echo "train.flux: ended with $rc, $crashes times in a row without a newer checkpoint: read what the ranks printed, then submit the same command again" >&2
    exit "$rc"
  fi
  echo "train.flux: ranks were lost (ended with $rc), mpirun is started again"
done

if ((rc == 75)); then
  echo "train.flux: stopped with a checkpoint (75), the next job is submitted"
  flux --parent batch -N "${#hosts[@]}" -x -t "${time_left}s" "$script" "$@" || exit 5
elif ((rc != 0)); then
  echo "train.flux: ended with $rc, which another start would not change" >&2
fi
exit "$rc"
