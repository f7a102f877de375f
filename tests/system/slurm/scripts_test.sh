#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts_test.sh <folder of the scripts>: syntax, what mpirun is given, when the job goes back into the queue, signals.
set -u
scripts=$1
# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../../support/expect.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for script in "$scripts"/*; do
  bash -n "$script"
  expect "syntax of ${script##*/}" 0 $?
done

mkdir "$work/bin"
cat >"$work/bin/rheo" <<'END'
#!/usr/bin/env bash
if [[ $1 == info ]]; then
  echo "{ \"ulfm\": { \"compiled_in\": ${FAKE_ULFM:-true} } }"
else # train ... --ended
  echo "$*" >"$FAKE_WORK/rheo"
  echo "runs/run: has not ended; all its ranks were lost, or it runs; ${FAKE_SAFE:-0} steps are safe in its newest checkpoint"
  exit "${FAKE_ENDED:-0}"
fi
END
cat >"$work/bin/mpirun" <<'END'
#!/usr/bin/env bash
echo "$*" >"$FAKE_WORK/mpirun"
if [[ -n ${FAKE_STOP:-} ]]; then # a job that is stopped by SIGUSR1, as rheo is
  trap 'exit 75' USR1
  echo ready >"$FAKE_WORK/ready"
  for _ in {1..200}; do sleep 0.05; done
fi
exit "${FAKE_EXIT:-0}"
END
cat >"$work/bin/scontrol" <<'END'
#!/usr/bin/env bash
echo "$*" >>"$FAKE_WORK/scontrol"
END
# sbatch: reads the options in the script's head as Slurm does, and runs it at once.
cat >"$work/bin/sbatch" <<'END'
#!/usr/bin/env bash
grep -E '^#SBATCH ' "$1" >"$FAKE_WORK/sbatch"
export SLURM_JOB_ID=4711 SLURM_NTASKS=8
exec bash "$@"
END
chmod +x "$work/bin/"*
export PATH="$work/bin:$PATH" FAKE_WORK=$work
export SLURM_SUBMIT_DIR=$work
unset SLURM_RESTART_COUNT SLURM_JOB_NUM_NODES RHEO RHEO_MPIRUN RHEO_MPIRUN_FLAGS RHEO_MOST_RESTARTS RHEO_MOST_CRASHES

keep_crashes=0
run() { # [variable=value...] : train.sbatch in the pretended environment; its exit code
  rm -f "$work/scontrol" "$work/mpirun" "$work/rheo"
  ((keep_crashes)) || rm -f "$work"/.rheo-*
  env "$@" sbatch "$scripts/train.sbatch" run.toml --set "data.paths=[\"a b\"]" >"$work/out" 2>"$work/err"
}
queue() { cat "$work/scontrol" 2>/dev/null; }

run FAKE_EXIT=0
expect "a run that is done ends the job" "0 " "$? $(queue)"
expect "mpirun with ULFM" '--with-ft ulfm --mca pml ob1 -n 8 rheo train run.toml --set data.paths=["a b"]' "$(cat "$work/mpirun")"
expect "the signal before the time limit" "#SBATCH --signal=B:USR1@300" "$(grep signal "$work/sbatch")"
expect "the run folder is asked with the same arguments" 'train run.toml --set data.paths=["a b"] --ended' "$(cat "$work/rheo")"
run FAKE_EXIT=0 FAKE_ENDED=1
expect "all ranks were lost, and the launcher returned 0" "1 requeue 4711" "$? $(queue)"
run FAKE_EXIT=0 FAKE_ENDED=1 SLURM_RESTART_COUNT=20
expect "not for ever either" "1 " "$? $(queue)"
run FAKE_EXIT=0 FAKE_ENDED=75
expect "stopped with a checkpoint, and the launcher returned 0" "75 requeue 4711" "$? $(queue)"
run FAKE_EXIT=0 FAKE_ENDED=4
expect "a report that cannot be read ends the job" "4 " "$? $(queue)"
run SLURM_JOB_NUM_NODES=2 "RHEO_MPIRUN_FLAGS=--map-by node"
expect "mpirun on several nodes" '--with-ft ulfm --mca pml ob1 --mca coll ^han,cuda --map-by node -n 8' "$(sed 's/ rheo .*//' "$work/mpirun")"
run FAKE_ULFM=false
expect "mpirun without ULFM" '-n 8' "$(sed 's/ rheo .*//' "$work/mpirun")"
run FAKE_EXIT=75
expect "stopped with a checkpoint" "75 requeue 4711" "$? $(queue)"
run FAKE_EXIT=137
expect "a lost rank that was not survived" "137 requeue 4711" "$? $(queue)"
run FAKE_EXIT=137 SLURM_RESTART_COUNT=20
expect "not for ever" "137 " "$? $(queue)"
keep_crashes=1
rm -f "$work"/.rheo-*
for count in 1 2; do
  run FAKE_EXIT=1 FAKE_SAFE=40 SLURM_RESTART_COUNT=$count
  expect "crash $count at one checkpoint" "1 requeue 4711" "$? $(queue)"
done
run FAKE_EXIT=1 FAKE_SAFE=80
expect "a newer checkpoint, and crashes are counted from 1 again" "1 requeue 4711" "$? $(queue)"
run FAKE_EXIT=1 FAKE_SAFE=80
expect "the second crash there" "1 requeue 4711" "$? $(queue)"
run FAKE_EXIT=1 FAKE_SAFE=80
expect "the third crash there ends the job" "1 " "$? $(queue)"
expect "and leaves no count behind" "" "$(find "$work" -name '.rheo-*')"
keep_crashes=0
for code in 2 3 4 5 6 7; do
  run FAKE_EXIT=$code
  expect "exit code $code ends the job" "$code " "$? $(queue)"
done
sbatch "$scripts/train.sbatch" >/dev/null 2>&1
expect "without a config" 2 $?

rm -f "$work/scontrol" "$work/ready"
FAKE_STOP=1 sbatch "$scripts/train.sbatch" run.toml >/dev/null 2>&1 &
job=$!
for _ in {1..200}; do [[ -e $work/ready ]] && break; sleep 0.05; done
kill -USR1 $job
wait $job
expect "SIGUSR1 reaches mpirun, and 75 the queue" "75 requeue 4711" "$? $(queue)"

exit $((failures > 0))
