#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# elsewhere.sh <cmake> <build folder> [program [folder of libnccl.so.2]]    makes gpu_pack, unpacks it elsewhere and starts it with nothing of the build in its environment. Without
# a GPU all that needs none passes, and the rest is skipped in a sentence. With the program, a rheo whose device is emulated, in place of the pack's
# the parts that train run with tiny models, and what the script does when time is short, when it is ended and when a tool is missing is looked at.
set -u
# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../../support/expect.sh"
"$1" --build "$2" --target gpu_pack || exit 1
elsewhere=$(mktemp -d) || exit 1
trap 'rm -rf "$elsewhere"' EXIT
tar xzf "$2/gpu_pack.tar.gz" -C "$elsewhere" || exit 1
start=("$elsewhere/gpu_pack/run_on_gpu.sh" "$elsewhere/results")
summary=$elsewhere/results/summary.json
clean=(env -i "PATH=$elsewhere/tools:/usr/bin:/bin")
said() { grep -c "\"what\": \"$1\", \"outcome\": \"$2\".*${3:-}" "$summary"; } # <what> <outcome> [remark]: rows of the summary that say it
is_json() { expect "$1: the summary is JSON" 0 "$(python3 -m json.tool "$summary" >/dev/null 2>&1; echo $?)"; }

"${clean[@]}" LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu "${start[@]}" # a system's libraries first, as images of CUDA have it
rc=$?
expect "rheo starts" 1 "$(said "rheo info" passed)"
expect "two ranks train" 1 "$(said "2 ranks on the host" passed)"
if [[ $rc == 77 ]]; then
  expect "what needs a device says so" 1 "$(said "all that needs a device" skipped "needs a GPU")"
else
  expect "all that needs a device passes" 0 $rc
fi
is_json "all parts"
"${clean[@]}" "${start[@]}" rates strange >/dev/null
expect "what is no part is refused" 2 $?
program=${3:-}
[[ -n $program ]] || exit $((failures > 0))

cp "$program" "$elsewhere/gpu_pack/bin/rheo"
keys="model.vocabulary=256 model.width=8 model.heads=2 model.kv_heads=0 model.mlp_width=0 model.blocks=1 model.context=4 train.microbatch.tokens=4 \
train.microbatch.sequences=1 train.microbatches=2"
mkdir "$elsewhere/tools"
cat >"$elsewhere/tools/compute-sanitizer" <<'END_OF_TOOL'
#!/bin/sh
case $2 in
  memcheck) echo "========= Error: Device not supported"; exit 1 ;;
  *) trap 'exit 1' TERM; sleep 60 ;;
esac
END_OF_TOOL
printf '#!/bin/sh\necho 143000\n' >"$elsewhere/tools/nvidia-smi"
chmod +x "$elsewhere/tools"/*
"${clean[@]}" RHEO_RATE_STEPS=3 RHEO_KEYS="$keys" "${start[@]}" rates large-rates train memcheck
expect "the parts end" 0 $?
is_json "some parts"
expect "no other part" 0 "$(said "tests of the kernels" ".*")"
for model in GPT-2-124M Llama-0.5B Llama-1.5B Llama-7B Llama-7B-bf16-state Llama-0.5B-large Llama-1.5B-large Llama-7B-large; do
  expect "$model has a rate" 1 "$(said "rate of $model" passed "[0-9] tokens/s in the last [0-9]* of [0-9]* steps")"
done
expect "beside what to reach" 1 "$(said "rate of Llama-7B" passed "target 13800, [0-9.]* % of it; 143000 MiB were free before; loss [0-9]")"
expect "digests are compared" 1 "$(said "trainings, short" passed)"
expect "with those of a loss" 2 "$(said "  train/[a-z0-9]*-lost" ended "digest [0-9a-f]")"
expect "one tool is skipped" 1 "$(said memcheck skipped "Device not supported")"
expect "the output is kept" 1 "$(grep -c '^ok: bf16-lost: the digest' "$elsewhere/results/log.txt")"
expect "few files" 3 "$(find "$elsewhere/results" -type f | wc -l)"

"${clean[@]}" LD_LIBRARY_PATH="${4:-}" RHEO_KEYS="$keys" RHEO_STANDIN_NCCL_VERSION=22809 "${start[@]}" nccl
expect "NCCL wants a device for each rank" 1 "$(said "trainings by NCCL" skipped "a device for each of 4 ranks")"
"${clean[@]}" LD_LIBRARY_PATH="${4:-}" RHEO_KEYS="$keys" RHEO_STANDIN_NCCL_VERSION=23007 "${start[@]}" nccl
expect "or shares one" 1 "$(said "trainings by NCCL" passed)"
expect "with those of a loss by NCCL" 2 "$(said "  nccl/[a-z0-9]*-lost" ended "digest [0-9a-f]")"

"${clean[@]}" RHEO_BUDGET_S=7 "${start[@]}" racecheck rates
expect "a budget is no failure" 0 $?
is_json "a budget"
expect "what runs is cut off in time" 1 "$(said "racecheck, attention" cut "no error so far")"
expect "nothing is begun after it" 5 "$(said "rate of [^\"]*" skipped "no time left in this call")"

"${clean[@]}" "${start[@]}" racecheck >/dev/null &
until grep -q compute-sanitizer "$elsewhere/results/now.txt" 2>/dev/null; do sleep 0.1; done
expect "a row is in the summary at once" 1 "$(said "rheo info" passed)"
kill -TERM $!
wait $!
expect "ended by a signal" 143 $?
is_json "a signal"
expect "which the summary says" 1 "$(said "racecheck, attention" cut "ended by TERM")"
expect "no process stays" "" "$(pgrep -f "$elsewhere/tools")"
exit $((failures > 0))
