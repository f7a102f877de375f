#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# one_digest.sh <rheo> <work folder>: one state has one digest, wherever it is printed or kept; and a run that has ended says again how it ended.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 6
train.microbatch = { sequences = 2, tokens = 32 }
model.tied = false
END
one=(--set "plan.pipelines=[1]")
manifest_digest() { sed -n 's/^ *"state_digest": "\([0-9a-f]*\)",*$/\1/p' "$1/manifest.json"; }
printed_digest() { sed -n 's/^ *digest of the state \([0-9a-f]\{32\}\)$/\1/p' "$1" | tail -1; }
figures() { grep -E '^  (steps|loss|validation loss|digest of the state) ' "$1"; }

train run 1 "${one[@]}"
expect "the run ends" 0 $?
digest=$(value digest run)
[[ -n $digest ]] || { cat run.out; exit 1; }
expect "it prints the digest of its report" "$digest" "$(printed_digest run.out)"
expect "its checkpoint has the same" "$digest" "$(manifest_digest run/step-6)"
train rows 1 "${one[@]}" --set train.sums=int32
expect "with a scale per row, too" "0 $(value digest rows)" "$? $(manifest_digest rows/step-6)"

"$rheo" export run weights >/dev/null && "$rheo" import weights imported >import.out
expect "weights are imported" 0 $?
train imported 1 "${one[@]}" --set train.steps=0
expect "a training of no step ends" 0 $?
expect "with the digest that import printed" "$(printed_digest import.out)" "$(printed_digest imported.out)"
expect "and kept" "$(manifest_digest imported/step-0)" "$(value digest imported)"
"$rheo" report imported >/dev/null
expect "and report shows" 1 "$(grep -c "$(printed_digest import.out)" imported/report.html)"

# Again, and on other ranks.
before=$(cd run && find . -type f ! -name lock -exec sha256sum {} + | sort)
for ranks in 1 2; do
  out=again$ranks train run $ranks --set "plan.pipelines=[$ranks]"
  expect "run again on $ranks ranks: it has ended" 0 $?
  expect "with its figures" "$(figures run.out)" "$(figures again$ranks.out)"
done
expect "nothing in its folder has changed" "$before" "$(cd run && find . -type f ! -name lock -exec sha256sum {} + | sort)"
"$rheo" train job.toml --set run.folder=run "${one[@]}" --json >again.json
expect "as JSON it is the report" "" "$(cmp again.json run/report.json 2>&1)"
train unsaved 1 "${one[@]}" --max-time 0.001s
train unsaved 1 "${one[@]}" --set checkpoint.at_end=false
cp unsaved/report.json unsaved.json
train unsaved 1 "${one[@]}" --set checkpoint.at_end=false
expect "where the last state is not saved, too" "0 " "$? $(cmp unsaved.json unsaved/report.json 2>&1)"
# The report was lost: the last state is evaluated again, and the loss of the last step is in the records.
rm run/report.json
out=lost train run 1 "${one[@]}"
expect "without a report it is recomputed" "0 $(figures run.out)" "$? $(figures lost.out)"
exit $((failures > 0))
