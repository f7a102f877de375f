#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# converted.sh <rheo> <work folder>: a job resumes from a checkpoint in another layout, cut across tensors too, and from one that went through PyTorch's
# form, and ends with the undisturbed job's bits.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 8
train.microbatch = { sequences = 2, tokens = 32 }
checkpoint.every_steps = 4
checkpoint.keep_last = 0
END
printed_digest() { sed -n 's/^digest of the state \([0-9a-f]\{32\}\)$/\1/p' "$1"; }
manifest_digest() { sed -n 's/^ *"state_digest": "\([0-9a-f]*\)",*$/\1/p' "$1/manifest.json"; }

train undisturbed 2 --set "plan.pipelines=[2]"
expect "the undisturbed job ends" 0 $?
digest=$(value digest undisturbed)
[[ -n $digest && -e undisturbed/step-4 ]] || { cat undisturbed.out; exit 1; }

"$rheo" convert undisturbed/step-4 cut/step-4 --layout 2,3,2 --memory 0.01 >cut.txt
expect "a checkpoint is converted" 0 $?
expect "its digest stays" "$(manifest_digest undisturbed/step-4)" "$(printed_digest cut.txt)"
expect "the manifest has it" "$(manifest_digest undisturbed/step-4)" "$(manifest_digest cut/step-4)"
expect "a tensor is in parts" yes "$(grep -q 'wte.weight\[0:' cut/step-4/model-0.safetensors && echo yes)"
"$rheo" convert cut dcp --layout 1,1,3 --format dcp >dcp.txt
expect "it is written in PyTorch's form" "0 $(printed_digest cut.txt)" "$? $(printed_digest dcp.txt)"
"$rheo" convert dcp back/step-4 --layout 2,1,1 >back.txt
expect "and read from there" "0 $(printed_digest cut.txt)" "$? $(printed_digest back.txt)"

for run in cut back; do
  train $run 3 --set "plan.pipelines=[3]"
  expect "$run: the job resumes and ends" 0 $?
  expect "$run: from step 4" 1 "$(grep -c '"kind":"start","step":4,.*"from_checkpoint":true' $run/metrics.jsonl)"
  expect "$run: with the bits of the undisturbed job" "$digest" "$(value digest $run)"
done
# Values that were changed elsewhere are another state: no fingerprint speaks for them.
printf 'x' | dd of=dcp/shard-00001-model-00001-of-00001.safetensors bs=1 seek=$(($(stat -c %s dcp/shard-00001-model-00001-of-00001.safetensors) - 3)) conv=notrunc 2>/dev/null
"$rheo" convert dcp changed --layout 1,1,1 >changed.txt
expect "changed values are another state" "0 1" "$? $(grep -c 'the values are others than those of step 4' changed.txt)"
exit $((failures > 0))
