#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# unreadable.sh <rheo> <work folder>: a run whose state is there but cannot be read, or was there, is refused with exit code 4 and nothing of
# it is touched; only --resume never begins at step 0, and sets all of it aside.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 32
train.microbatch = { sequences = 2, tokens = 32 }
END
hashes() { (cd "$1" && find . -type f ! -name lock ! -path './before-*' ! -name '*after-*' -exec sha256sum {} + | sort -k 2); }
on=(2 --set "plan.pipelines=[2]")
train run "${on[@]}" --max-time 0.001s
train run "${on[@]}" --max-time 0.001s
checkpoints=(run/step-*)
expect "a job was stopped twice and has two checkpoints" "run/step-1 run/step-2" "${checkpoints[*]}"

for c in "${checkpoints[@]}"; do
  for weights in "$c"/model-0.safetensors; do
    cp "$weights" "$weights.good"
    printf '\xff' | dd of="$weights" bs=1 seek=4000 conv=notrunc status=none
  done
done
before=$(hashes run)
for mode in auto fork; do
  out=flipped-$mode train run "${on[@]}" --resume $mode
  expect "a byte flipped in each, --resume $mode: exit code" 4 $?
  for c in "${checkpoints[@]}"; do
    expect "a line about $c" 1 "$(grep -c "^rheo: '$c/model-0.safetensors' has other values of .* than the manifest says: .*; restore it from a copy, " flipped-$mode.out)"
  done
  expect "it says what to do" 1 "$(grep -c "^rheo: run folder 'run': no checkpoint can be read, .* nothing was changed: restore one of them, or start with --resume never, " flipped-$mode.out)"
  expect "nothing is touched" "$before" "$(hashes run)"
done
expect "no fork was begun" "" "$(compgen -G 'run-fork-*')"

# A folder is missing for a moment.
mkdir away && mv run/step-* away
before=$(hashes run)
out=missing train run "${on[@]}"
expect "checkpoints that are recorded but not there: exit code" 4 $?
expect "a line about the newest" 1 "$(grep -c "^rheo: '${checkpoints[1]}' is not there, but 'metrics.jsonl' says that it was written: expected a folder with manifest.json; " missing.out)"
expect "nothing is touched" "$before" "$(hashes run)"
mv away/step-* run
for c in "${checkpoints[@]}"; do mv "$c/model-0.safetensors.good" "$c/model-0.safetensors"; done
mv "${checkpoints[1]}" away
out=older train run "${on[@]}" --max-time 0.01s
expect "with an older one it resumes" 75 $?
expect "and says what is missing" 1 "$(grep -c "^'${checkpoints[1]}' is not there, but " older.out)"

# Only on demand it begins again.
before=$(hashes run)
out=never train run "${on[@]}" --resume never
expect "--resume never ends" 0 $?
expect "all of the earlier run is aside" "$before" "$(hashes run/before-1)"
expect "that is a run folder" "run/before-1/report.html" "$("$rheo" report run/before-1)"
expect "the new one began at step 0" "0 0" "$(sed -n 's/^{"kind":"\(start\|step\)","step":\([0-9]*\),.*/\2/p' run/metrics.jsonl | head -2 | xargs)"
exit $((failures > 0))
