#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# resumed.sh <work folder> <rheo of the build with ULFM>: jobs on an MPI that ends all ranks when one is lost. They train to
# the same bits as one rank of the other build; they say that losses are resumed only and keep the line that goes
# on; after kill -9 of a rank the same command resumes, from node-local storage, too.
set -u
other=$2 rheo=$1/build/bin/rheo
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$1/jobs" <<'END'
train.steps = 150
train.microbatch = { sequences = 2, tokens = 16 }
checkpoint.every_steps = 10
END
flags=() # they are Open MPI's; to the launchers of others the environment says this
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

"$RHEO_MPIRUN" -n 4 "$rheo" info --json >info.json
expect "info says what a loss does" '  "losses": "resumed",' "$(grep '"losses"' info.json)"

train undisturbed 4
expect "it trains" 0 $?
[[ -e undisturbed/report.json ]] || cat undisturbed.out
expect "the first line" "losses of ranks are resumed only: a lost rank ends the job, and the same command resumes from the newest checkpoint" \
  "$(head -1 undisturbed.out)"
expect "the command is kept" "cd $PWD && " "$(grep -o "^cd $PWD && " undisturbed/command)"
expect "the command is printed" 1 "$(grep -cF "$(cat undisturbed/command)" undisturbed.out)"
"$other" train job.toml --set run.folder=other --set plan.pipelines=[1] --set plan.failures=0 >other.out 2>&1
expect "the digest is that of the build with the other MPI" "$(value digest other)" "$(value digest undisturbed)"
[[ -n $(value digest undisturbed) ]] || failures=$((failures + 1))

train killed 4 &
job=$!
reached killed 40
saved killed
kill -9 "$(pid_of killed 2)"
wait $job
rc=$?
expect "the launcher ends the job with the lost rank" 1 $((rc != 0))
[[ -e killed/report.json ]] && { echo "FAILED: the job ended before its rank was killed"; failures=$((failures + 1)); }
sh killed/command >again.out 2>&1
expect "the kept line resumes the job" 0 $?
expect "from a checkpoint" 1 "$(grep -cE 'resuming after [0-9]+0 steps' again.out)"
expect "to the digest of the undisturbed job" "$(value digest undisturbed)" "$(value digest killed)"
[[ $(value digest killed) == $(value digest undisturbed) ]] || cat again.out

# Checkpoints on the nodes' own storage: nothing was published, and one node is lost with its folder.
nodes=(--set "checkpoint.local=$PWD/node-{node}" --set checkpoint.replicas=1 --set checkpoint.publish_every=1000 --set plan.node_size=2)
train levels 4 "${nodes[@]}" &
job=$!
for _ in {1..2400}; do
  grep -q '"kind":"safe","step":[4-9]0,"level":"replicated"' levels/metrics.jsonl 2>/dev/null && break
  sleep 0.01
done
kill -9 "$(pid_of levels 2)"
wait $job
rm -rf node-1
train levels 4 "${nodes[@]}"
expect "a relaunch takes up copies from the other node" "0 1" "$? $(grep -c 'of them from copies on other nodes' levels.out)"
expect "to the same digest" "$(value digest undisturbed)" "$(value digest levels)"

exit $((failures > 0))
