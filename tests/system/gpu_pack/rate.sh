#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rate.sh <rheo> <work folder> <run folder> <steps> [keys of a config]    trains with one rank on a device and kills it once so many steps are recorded:
# without a checkpoint, an evaluation or a digest, none of which says how long a step takes.
set -u
rheo=$1 folder=$3 steps=$4
mkdir -p "$2" && cd "$2" || exit 1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
cat >"$folder.toml" <<'END_OF_CONFIG'
schema = 1
train.steps = 1000000
train.eval_microbatches = 1
checkpoint.at_end = false
checkpoint.every_minutes = 0
plan.pipelines = [1]
plan.failures = 0
run.device = "cuda"
run.watchdog.factor = 0
END_OF_CONFIG
keys=()
for key in "${@:5}"; do keys+=(--set "$key"); done
"$RHEO_MPIRUN" "${flags[@]}" -n 1 "$rheo" train "$folder.toml" --set "run.folder=$folder" "${keys[@]}" &
launcher=$!
recorded() { grep -s '"kind":"step"' "$folder/metrics.jsonl" | wc -l; } # each step's line is written at its end
until (($(recorded) >= steps)); do
  kill -0 $launcher 2>/dev/null || { wait $launcher; exit; }
  sleep 0.1
done
# the launcher first, or it would report on the rank
# shellcheck disable=SC2046
kill -KILL $launcher $(pid_of "$folder" '*') 2>/dev/null
wait $launcher 2>/dev/null
exit 0
