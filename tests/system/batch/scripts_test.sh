#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts_test.sh <pbs|flux> <script> <rheo, or empty>: what mpirun is given, when it is started again, when the next job is submitted and how.
set -u
scheduler=$1 script=$2 real_rheo=$3
# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../../support/expect.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bash -n "$script"
expect "syntax" 0 $?

mkdir "$work/bin"
cat >"$work/bin/rheo" <<'END'
#!/usr/bin/env bash
if [[ $1 == info ]]; then
  echo "{ \"ulfm\": { \"compiled_in\": ${FAKE_ULFM:-true} } }"
else # train ... --ended
  safe=$(sed -n "$(grep -c . "$FAKE_WORK/mpirun")p" <<<"${FAKE_SAFE:-0}")
  echo "runs/run: has not ended; all its ranks were lost, or it runs; ${safe:-0} steps are safe in its newest checkpoint"
  exit "${FAKE_ENDED:-0}"
fi
END
# mpirun: ends with the codes in FAKE_EXIT, one after the other.
cat >"$work/bin/mpirun" <<'END'
#!/usr/bin/env bash
echo "$*" >>"$FAKE_WORK/mpirun"
exit "$(cut -d' ' -f"$(grep -c . "$FAKE_WORK/mpirun")" <<<"${FAKE_EXIT:-0}")"
END
cat >"$work/bin/qstat" <<'END'
#!/usr/bin/env bash
[[ $* == "-f 4711.host" ]] && printf 'Job Id: 4711.host\n    Resource_List.select = 2:ncpus=4:mpiprocs=2\n    Resource_List.walltime = 01:00:10\n'
END
cat >"$work/bin/qsub" <<'END'
#!/usr/bin/env bash
echo "$*" >>"$FAKE_WORK/submitted"
END
cat >"$work/bin/flux" <<'END'
#!/usr/bin/env bash
case "$*" in
  "job timeleft") [[ -n ${FAKE_OUTSIDE:-} ]] && exit 1; echo 3610 ;;
  "hostlist --expand local") echo "${FAKE_HOSTS:-a1 a2}" ;;
  "--parent batch "*) echo "$*" >>"$FAKE_WORK/submitted" ;;
  *) exit 9 ;;
esac
END
chmod +x "$work/bin/"*
export PATH="$work/bin:$PATH" FAKE_WORK=$work
unset RHEO RHEO_MPIRUN RHEO_MPIRUN_FLAGS RHEO_MOST_CRASHES RHEO_SCRIPT RHEO_ARGUMENTS RHEO_RANKS_PER_NODE
printf 'a1\na1\na2\na2\n' >"$work/nodes"
printf 'a1\na1\n' >"$work/one_node"

run() { # [variable=value...] : the script in the pretended environment; its exit code
  rm -f "$work/mpirun" "$work/submitted"
  if [[ $scheduler == pbs ]]; then
    env PBS_O_WORKDIR="$work" PBS_JOBID=4711.host PBS_NODEFILE="$work/nodes" RHEO_ARGUMENTS="run.toml --data text" "$@" bash "$script" >"$work/out" 2>"$work/err"
  else
    env RHEO_RANKS_PER_NODE=2 "$@" bash "$script" run.toml --data text >"$work/out" 2>"$work/err"
  fi
}
submitted() { cat "$work/submitted" 2>/dev/null; }
starts() { grep -c . "$work/mpirun"; }
hosts=(--hostfile "$work/nodes")
one=(PBS_NODEFILE="$work/one_node" FAKE_HOSTS=a1)
one_host=(--hostfile "$work/one_node")
next="-l select=2:ncpus=4:mpiprocs=2 -l walltime=01:00:10 -v RHEO_ARGUMENTS cmake/pbs/train.pbs"
if [[ $scheduler == flux ]]; then
  hosts=(--host a1:2,a2:2)
  one_host=(--host a1:2)
  next="--parent batch -N 2 -x -t 3610s cmake/flux/train.flux run.toml --data text"
fi

run FAKE_EXIT=0
expect "a run that is done ends the job" "0 1 " "$? $(starts) $(submitted)"
expect "mpirun with ULFM on two nodes, five minutes less than the time" \
  "${hosts[*]} -n 4 --with-ft ulfm --mca pml ob1 --mca coll ^han,cuda rheo train run.toml --data text --max-time 3310s" "$(cat "$work/mpirun")"
run FAKE_ULFM=false "RHEO_MPIRUN_FLAGS=--map-by node" "${one[@]}"
expect "mpirun without ULFM on one node" "${one_host[*]} -n 2 --map-by node" "$(sed 's/ rheo .*//' "$work/mpirun")"
run FAKE_EXIT=75
expect "stopped with a checkpoint" "75 1 $next" "$? $(starts) $(submitted)"
run FAKE_EXIT=0 FAKE_ENDED=75
expect "so it was, and the launcher returned 0" "75 1 $next" "$? $(starts) $(submitted)"
run "FAKE_EXIT=137 0"
expect "lost ranks, and mpirun is started again" "0 2 " "$? $(starts) $(submitted)"
run "FAKE_EXIT=1 1 1 1" FAKE_SAFE=$'40\n40\n40'
expect "three crashes at one checkpoint end the job" "1 3 " "$? $(starts) $(submitted)"
run "FAKE_EXIT=1 1 1 1 75" FAKE_SAFE=$'40\n40\n80\n80'
expect "a newer checkpoint, and crashes are counted from 1 again" "75 5 $next" "$? $(starts) $(submitted)"
for code in 2 3 4 5 6 7; do
  run FAKE_EXIT=$code
  expect "exit code $code ends the job" "$code 1 " "$? $(starts) $(submitted)"
done
if [[ $scheduler == pbs ]]; then
  run RHEO_ARGUMENTS=
  expect "without a config" 2 $?
  run FAKE_EXIT=75 RHEO="$work/bin/rheo" RHEO_MOST_CRASHES=5
  expect "the next job has the same variables" "-v RHEO_ARGUMENTS,RHEO,RHEO_MOST_CRASHES" "$(submitted | grep -o -e '-v [^ ]*')"
else
  bash "$script" >/dev/null 2>&1
  expect "without a config" 2 $?
  run FAKE_OUTSIDE=1
  expect "outside of a job" 2 $?
fi

if [[ -n $real_rheo ]]; then
  for option in --max-time --ended; do
    "$real_rheo" train --help | grep -q -e "$option"
    expect "rheo train has $option" 0 $?
  done
fi
exit $((failures > 0))
