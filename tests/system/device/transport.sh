#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# transport.sh <rheo> <work folder> <folder of libnccl.so.2>    trainings on emulated devices that exchange by a stand-in for NCCL: the digest is that of one
# rank, for schedules, dtypes, what NCCL does, and ranks that are killed at any phase; what it cannot do is an error, or left to the MPI.
set -u
rheo=$1
standin=$3
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 7
train.microbatch = { sequences = 1, tokens = 12 }
train.eval_every = 3
train.eval_microbatches = 2
checkpoint.every_steps = 100
run.device = "cuda"
END
sed -i 's/^model.width = 32/model.width = 16/; s/^model.blocks = 3/model.blocks = 2/; s/^model.context = 32/model.context = 12/; s/^train.microbatches = 6/train.microbatches = 4/' job.toml
export RHEO_EMULATED_DEVICES=8
by_nccl() { # <run folder> <ranks> [arguments]
  local folder=$1 ranks=$2
  shift 2
  LD_LIBRARY_PATH="$standin:${LD_LIBRARY_PATH:-}" RHEO_STANDIN_NCCL="${mode:-} log=$PWD/$folder.log" train "$folder" "$ranks" --set 'run.transport="nccl"' "$@"
}
alone=(--set plan.pipelines=[1] --set plan.failures=0)
declare -A keys=([fp32]="train.sums=\"int64\"" [bf16]="train.dtype=bf16" [rows]="train.sums=\"int32\"")
ends_the_same() { # <run folder> <kind> <exit code>: with the digest of one rank, and NCCL has summed
  expect "$1 ends" 0 "$3"
  expect "$1: the digest" "$(value digest "$2-one")" "$(value digest "$1")"
}
uses() { # <run folder> <operation>: NCCL has performed it, or the second argument is none
  expect "$1: NCCL performs $2" yes "$(grep -q "$2" "$1.log" 2>/dev/null && echo yes)"
}
for kind in fp32 bf16 rows; do
  train "$kind-one" 1 --set "${keys[$kind]}" "${alone[@]}"
  by_nccl "$kind-pipelines" 4 --set "${keys[$kind]}"
  ends_the_same "$kind-pipelines" "$kind" $?
  for operation in Send Recv AllReduce; do uses "$kind-pipelines" "$operation"; done
done
