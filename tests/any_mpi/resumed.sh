#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# resumed.sh <work folder> <rheo of the build with ULFM>: jobs on an MPI that ends everybody when a rank is lost. They train to
# the same bits as one rank of the other build; they say that losses are resumed only and keep the line that goes
# on; after kill -9 of a rank that same line goes on.
set -u
work=$1 other=$2 rheo=$1/build/bin/rheo
failures=0
expect() { # expect <what> <wanted> <got>
  if [[ $2 != "$3" ]]; then echo "FAILED: $1: expected '$2', got '$3'"; failures=$((failures + 1)); else echo "ok: $1"; fi
}
mkdir -p "$work/jobs" && cd "$work/jobs" && rm -rf ./* || exit 1
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

for i in {1..400}; do echo "line $i of a text that is always the same"; done >text
cat >job.toml <<'END'
schema = 1
[model]
context = 16
width = 16
heads = 2
blocks = 2
[data]
paths = ["text"]
[train]
steps = 150
microbatches = 4
microbatch = { sequences = 2, tokens = 16 }
[plan]
failures = 1
[checkpoint]
every_steps = 10
END
value() { sed -n "s/^  \"$1\": \"\(.*\)\",\{0,1\}\$/\1/p" "$2/report.json" 2>/dev/null; }

mpirun=("$RHEO_MPIRUN" -n 4)
"${mpirun[@]}" "$rheo" info --json >info.json
expect "info says what a loss does" '  "losses": "resumed",' "$(grep '"losses"' info.json)"

"${mpirun[@]}" "$rheo" train job.toml --set run.folder=undisturbed >undisturbed.out 2>&1
expect "it trains" 0 $?
[[ -e undisturbed/report.json ]] || cat undisturbed.out
expect "the first line" "losses of ranks are resumed only: a lost rank ends the job, and the same command goes on from the newest checkpoint" \
  "$(head -1 undisturbed.out)"
expect "the command is kept" "cd $PWD && " "$(grep -o "^cd $PWD && " undisturbed/command)"
expect "the command is said" 1 "$(grep -cF "$(cat undisturbed/command)" undisturbed.out)"
"$other" train job.toml --set run.folder=other --set plan.failures=0 >other.out 2>&1
expect "the digest is that of the build with the other MPI" "$(value digest other)" "$(value digest undisturbed)"
[[ -n $(value digest undisturbed) ]] || failures=$((failures + 1))

"${mpirun[@]}" "$rheo" train job.toml --set run.folder=killed >killed.out 2>&1 &
job=$!
for _ in {1..2000}; do
  steps=$(grep -c '"kind":"step"' killed/metrics.jsonl 2>/dev/null)
  ((${steps:-0} >= 40)) && break
  sleep 0.01
done
kill -9 "$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' killed/ranks/2.json)"
wait $job
rc=$?
expect "the launcher ends the job with the lost rank" 1 $((rc != 0))
[[ -e killed/report.json ]] && { echo "FAILED: the job ended before its rank was killed"; failures=$((failures + 1)); }
sh killed/command >again.out 2>&1
expect "the kept line goes on" 0 $?
expect "from a checkpoint" 1 "$(grep -cE 'going on after [0-9]+0 steps' again.out)"
expect "to the digest of the undisturbed job" "$(value digest undisturbed)" "$(value digest killed)"
[[ $(value digest killed) == $(value digest undisturbed) ]] || cat again.out

exit $((failures > 0))
