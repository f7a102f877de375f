#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# not_finite.sh <rheo> <work folder>: losses that are not finite are shown as that, null in JSON and counted; a run that learned nothing
# finite ends with exit code 7.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 12
train.microbatch = { sequences = 2, tokens = 32 }
train.eval_every = 4
train.skip_not_finite = true
optimizer.warmup_steps = 0
END
run() { train "$1" 2 --set "plan.pipelines=[2]" "${@:2}"; }
number() { sed -n "s/^  \"$1\": \([^\",]*\),\{0,1\}\$/\1/p" "$2/report.json"; }

run good
expect "a good run ends" 0 $?
expect "and says nothing of the kind" 0 "$(cat good.out good/metrics.jsonl | grep -cE 'not finite|null')"
expect "nothing was skipped" "0 0" "$(number steps_skipped good) $(number evaluations_not_finite good)"

# The first update puts parameters where no forward is finite.
run lost --set optimizer.learning_rate=1e38 --set optimizer.final_learning_rate=1e38
expect "a run that diverges ends with" 7 $?
skipped=$(number steps_skipped lost)
expect "most steps were skipped" yes "$( ((skipped >= 9 && skipped <= 11)) && echo yes || echo "$skipped")"
expect "which the table says" 1 "$(grep -c "^  skipped  *$skipped of 12 steps: a loss or gradient was not finite\$" lost.out)"
expect "loss in the table" "not finite" "$(sed -n 's/^  loss  *//p' lost.out)"
expect "validation loss in the table" 1 "$(grep -c '^  validation loss  *not finite (' lost.out)"
expect "after an evaluation" 1 "$(grep -c '^after step 8: validation loss not finite$' lost.out)"
expect "why" 1 "$(grep -c '^  ended .*, but the validation loss of the last state is not finite: nothing finite was learned$' lost.out)"
expect "in the progress line" 1 "$(grep -c '^step 12/12  loss not finite  .*skipped: not finite$' lost.out)"
expect "null in the report" "null null" "$(number loss lost) $(number validation_loss lost)"
expect "evaluations are counted" 3 "$(number evaluations_not_finite lost)"
expect "null in the metrics" "$skipped 3" "$(grep -c '"kind":"step".*"loss":null,"gradient_norm":null' lost/metrics.jsonl) $(grep -c '"kind":"evaluation",.*"loss":null' lost/metrics.jsonl)"
expect "no zero" 0 "$(grep -cE '"loss":0\.0[,}]|loss  *0\.0000' lost.out lost/metrics.jsonl | awk -F: '{ n += $2 } END { print n }')"
"$rheo" report lost >/dev/null
expect "the page says it" "2 1" "$(grep -oE '\["(validation )?loss","not finite"\]' lost/report.html | wc -l) $(grep -c "\"$skipped of 12 recorded steps: " lost/report.html)"
"$rheo" train job.toml --set run.folder=lost --ended >/dev/null
expect "its folder says how it ended" 7 $?
out=again run lost --set optimizer.learning_rate=1e38 --set optimizer.final_learning_rate=1e38
expect "and so does a second start" "7 1" "$? $(grep -c "^  skipped  *$skipped of 12" again.out)"

# Weights that are no numbers: nothing is ever learned.
"$rheo" export good weights >/dev/null
size=$(stat -c %s weights/model.safetensors)
printf '\xff%.0s' {1..64} | dd of=weights/model.safetensors bs=1 seek=$((size - 64)) conv=notrunc status=none
"$rheo" import weights sick >/dev/null
run sick --set train.skip_not_finite=true
expect "a run that skips every step ends with" 7 $?
expect "and says so" 1 "$(grep -c '^  ended .*, but every one was skipped, because a loss or gradient was not finite: nothing was learned$' sick.out)"
run ends --set train.skip_not_finite=false --set optimizer.learning_rate=1e38
expect "without skipping it ends at the first such step, with" 7 $?
expect "and the loss of the last step that was" 1 "$(grep -cE '^  loss  *([0-9.]+ nats per token|not known)$' ends.out)"
exit $((failures > 0))
