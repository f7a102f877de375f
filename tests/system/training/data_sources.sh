#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# data_sources.sh <rheo> <work folder>    trainings on two sources in epochs, within documents, validated on a third: the digest is that of one rank, whatever
# the pipelines, after a lost rank and a resume; another order or mixture does not continue them.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 5
train.microbatch = { sequences = 2, tokens = 16 }
train.eval_every = 2
END
sed -i 's/^data.paths = .*/data.sources = ["3: text", "1: words"]\ndata.validation = ["other"]\ndata.order = "epochs"\ndata.document_token = 10/' job.toml
for i in {1..300}; do echo "word $((i * 7919 % 10007))"; done >words
for i in {1..50}; do echo "a line of the other text, number $i"; done >other
alone=(--set plan.pipelines=[1] --set plan.failures=0)

train one 1 "${alone[@]}"
expect "one rank ends" 0 $?
expect "the map of the job names the mixture" 1 "$(grep -c '^data    each sequence once per epoch, 75 % of source 0, 25 % of source 1, within documents that end with token 10' one.out)"
same() { # <run folder> <ranks> [arguments]
  train "$@"
  expect "$1 ends" 0 $?
  expect "$1: the digest" "$(value digest one)" "$(value digest "$1")"
}
same pipelines 4
same lost 4 --inject kill:2@2:backward
expect "lost: one recovery" 1 "$(grep -c '"kind":"recovery"' lost/metrics.jsonl)"
same sliced_pipelines 3 --set plan.pipelines=[1,2]
train resumed 1 "${alone[@]}" --inject drain:0@3
expect "a checkpoint is left" 75 $?
same resumed 2 --set plan.pipelines=[2] --set plan.failures=0

train changed 1 "${alone[@]}" --max-time 0.001s
for change in 'data.order="random"' 'data.sources=["1: text","1: words"]' data.document_token=46; do
  train changed 1 "${alone[@]}" --set "$change"
  expect "$change is another run" 2 $?
done
expect "which is said" 3 "$(grep -c 'data order was .* from here on other sequences come' changed.out)"
train with_paths 1 "${alone[@]}" --data text
expect "--data takes the place of sources" 0 $?
expect "--data: one source" 0 "$(grep -c 'of source' with_paths.out)"
train bad 1 "${alone[@]}" --set 'data.sources=["text"]'
expect "a source without a weight" 2 $?
expect "is named" 1 "$(grep -c "'text' is no source; expected WEIGHT: PATH" bad.out)"
exit $((failures > 0))
