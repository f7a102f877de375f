#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# transport.sh <rheo> <work folder> <folder of libnccl.so.2> <part>    trainings on emulated devices that exchange by a stand-in for NCCL
# (tests/unit/executor/nccl): the digest is that of one rank. Parts:
#   plans     dtypes, schedules, a plan that changes while the job runs
#   groups    ranks that share stages or the optimizer's state exchange, too; some are killed in that
#   losses    ranks that are killed at any phase, also while communicators come up
#   failures  what NCCL reports or never does, and what it cannot be used for: an error, or the MPI goes on
set -u
rheo=$1
standin=$3
part=$4
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
export RHEO_EMULATED_DEVICES=8 RHEO_EMULATED_MULTIPROCESSORS=24
mode=
by_nccl() { # <run folder> <ranks> [arguments]: NCCL does what $mode says
  local folder=$1 ranks=$2
  shift 2
  LD_LIBRARY_PATH="$standin:${LD_LIBRARY_PATH:-}" RHEO_STANDIN_NCCL="$mode log=$PWD/$folder.log" train "$folder" "$ranks" --set 'run.transport="nccl"' "$@"
}
alone=(--set plan.pipelines=[1] --set plan.failures=0)
same() { # <run folder> <exit code> [run of one rank]
  expect "$1 ends" 0 "$2"
  expect "$1: the digest" "$(value digest "${3:-one}")" "$(value digest "$1")"
}
performs() { # <run folder>: NCCL sends and sums, more than the words that prove its connections, and the MPI does not take over
  for operation in message all_reduce; do
    expect "$1: NCCL performs $operation" yes "$(awk -v operation="$operation" '$2 == operation && $3 > 4 {++n} END {if (n > 8) print "yes"}' "$1.log")"
  done
  expect "$1: NCCL goes on" 0 "$(grep -c 'messages go by MPI' "$1.out")"
}
serves() { # <run folder>: the same, and no rank breaks off: the others would go on to the same digest
  performs "$1"
  expect "$1: no rank is lost" 0 "$(grep -c '^lost rank' "$1.out")"
}
exchanges() { # <run folder>: NCCL moves what members of groups give each other, more than the words that prove its connections
  expect "$1: NCCL performs exchange" yes "$(awk '$2 == "exchange" && $3 > 100 {++n} END {if (n > 8) print "yes"}' "$1.log")"
}
says() { # <run folder> <text>: a line of its output has the text
  expect "$1 says: $2" yes "$(grep -q "$2" "$1.out" && echo yes)"
}
train one 1 "${alone[@]}"
expect "one rank ends" 0 $?

if [[ $part == plans ]]; then
  export RHEO_EMULATED_LATE=1
  by_nccl pipelines 4
  same pipelines $?
  serves pipelines
  as_planned pipelines
  says pipelines 'NCCL 2.28.9 moves activations and gradients$'
  for kind in train.dtype=bf16 train.sums=int32; do
    train "$kind-one" 1 "${alone[@]}" --set "$kind"
    by_nccl "$kind" 4 --set "$kind"
    same "$kind" $? "$kind-one"
    serves "$kind"
  done
  mode=in_progress=3
  for schedule in zb-h1 dualpipe gpipe; do
    by_nccl "$schedule" 4 --set "plan.schedule=$schedule" --set plan.pipelines=[2,2]
    same "$schedule" $?
    serves "$schedule"
  done
  mode=
  by_nccl uneven 3 --set plan.pipelines=[2,1] --set plan.recompute=true
  same uneven $?
  serves uneven
  by_nccl sharded 4 --set plan.optimizer_shards=true --set plan.pipelines=[1,1,2]
  same sharded $?
  serves sharded
  exchanges sharded
  by_nccl changed 4 --set 'plan.changes=["5: pipelines=[3,1]"]'
  same changed $?
  serves changed
fi

if [[ $part == groups ]]; then
  grid=(--set train.shards=2 --set model.width=32)
  train grid 1 "${alone[@]}" "${grid[@]}"
  export RHEO_EMULATED_LATE=1
  by_nccl stages 4 "${grid[@]}" --set plan.pipelines=[4] --set plan.tensor=2
  same stages $? grid
  exchanges stages
  expect "stages: no rank is lost" 0 "$(grep -c '^lost rank' stages.out)"
  by_nccl mixed 5 "${grid[@]}" --set plan.pipelines=[3,2] --set plan.tensor=[2,1,2] --set plan.optimizer_shards=true --set plan.failures=0
  same mixed $? grid
  serves mixed
  exchanges mixed
  # An MPI that takes device memory gets it. Where only the device may touch that, the MPI of a rank that sends ends with it.
  aware=("${grid[@]}" --set 'run.transport="mpi"' --set plan.pipelines=[4] --set plan.tensor=2)
  (unset RHEO_EMULATED_APART && RHEO_EMULATED_CUDA_AWARE=1 train aware 4 "${aware[@]}")
  same aware $? grid
  RHEO_EMULATED_CUDA_AWARE=1 RHEO_EMULATED_APART=1 train touched 2 --set plan.pipelines=[2] --set 'run.transport="mpi"'
  expect "the MPI touches device memory" 1 "$(grep -c '^lost rank 0 in step' touched.out)"
  unset RHEO_EMULATED_LATE
  for fault in kill:1@3:gather kill:2@4:sum kill:0@5:sum_gradient; do
    by_nccl "$fault" 4 "${grid[@]}" --set plan.pipelines=[2,2] --set plan.tensor=2 --inject "$fault"
    same "$fault" $? grid
    exchanges "$fault"
    expect "$fault: one recovery" 1 "$(grep -c '"kind":"recovery"' "$fault/metrics.jsonl")"
  done
  by_nccl kill:2@4:parameters 4 --set plan.optimizer_shards=true --set plan.pipelines=[1,1,2] --inject kill:2@4:parameters
  same kill:2@4:parameters $?
  exchanges kill:2@4:parameters
fi

if [[ $part == losses ]]; then
  train longer 1 "${alone[@]}" --set train.steps=9
  number=0
  for fault in kill:1@1:forward kill:2@2:backward kill:3@3:forward kill:0@3:backward kill:1@4:reduce kill:2@4:decide kill:3@4:commit kill:0@5:idle kill:1@5:backward; do
    if ((number % 3 == 2)); then mode=remote_error; else mode=; fi
    if ((number % 2)); then export RHEO_EMULATED_LATE=1; else unset RHEO_EMULATED_LATE; fi
    number=$((number + 1))
    by_nccl "$fault" 4 --inject "$fault"
    same "$fault" $?
    performs "$fault"
    expect "$fault: one recovery" 1 "$(grep -c '"kind":"recovery"' "$fault/metrics.jsonl")"
  done
  # Ranks 0 and 1 exchange through the same communicators before and after the loss of another pipeline's rank, unless messages were left there.
  unset RHEO_EMULATED_LATE
  for mode in '' eager; do
    by_nccl "kept$mode" 5 --set plan.pipelines=[2,3] --set plan.memory_mib=0.53 --inject kill:4@3:backward --set train.steps=9
    same "kept$mode" $? longer
    performs "kept$mode"
  done
  expect "communicators that prove themselves twice" yes \
    "$(awk '$2 == "message" && $3 == 4 && ++n[$1 $4] == 2 {++kept} END {if (kept >= 2) print "yes"}' kept.log)"
  mode=
  by_nccl twice 5 --set plan.pipelines=[2,3] --inject kill:4@3:backward --inject kill:0@5:forward --inject kill:1@5:recompute --set train.steps=7
  same twice $?
  performs twice
fi

if [[ $part == failures ]]; then
  mode=init_never
  by_nccl never 2 --set plan.pipelines=[1,1] --set run.watchdog.start_s=5 --set train.steps=200
  expect "NCCL never comes up" 5 $?
  says never 'rank 0: run.transport = "nccl": NCCL.s communicator of ranks 0 and 1 has not come up within 5 s'
  by_nccl never-auto 2 --set plan.pipelines=[1,1] --set run.watchdog.start_s=5 --set train.steps=60 --set 'run.transport="auto"'
  expect "the MPI goes on" 0 $?
  says never-auto 'messages go by MPI from here on: NCCL.s communicator of ranks 0 and 1 has not come up'
  mode=init_fails
  by_nccl fails 2 --set plan.pipelines=[1,1]
  expect "NCCL fails" 5 $?
  says fails 'rank 0: run.transport = "nccl": ncclComm'
  mode=
  RHEO_EMULATED_DEVICES=1 by_nccl shared 2 --set plan.pipelines=[1,1]
  expect "a device of two ranks" 5 $?
  says shared 'ranks 0 and 1 share a device, which NCCL 2.28.9 does not permit'
  RHEO_EMULATED_DEVICES=1 by_nccl shared-auto 2 --set plan.pipelines=[1,1] --set 'run.transport="auto"'
  same shared-auto $?
  says shared-auto 'messages go by MPI: ranks 0 and 1 share a device'
  RHEO_STANDIN_NCCL_VERSION=23007 NCCL_MULTI_RANK_GPU_ENABLE=1 RHEO_EMULATED_DEVICES=1 by_nccl later 4
  same later $?
  serves later
  RHEO_STANDIN_NCCL_VERSION=22000 by_nccl older 2 --set plan.pipelines=[1,1]
  expect "an older NCCL" 5 $?
  says older 'is NCCL 2.20.0; 2.27.3 or later is needed'
  LD_LIBRARY_PATH="$standin:${LD_LIBRARY_PATH:-}" "$RHEO_MPIRUN" "${flags[@]}" -n 1 "$rheo" train job.toml --set run.folder=mixed --set plan.pipelines=[1,1] --set 'run.transport="nccl"' : \
    -n 1 -x RHEO_STANDIN_NCCL_VERSION=23007 "$rheo" train job.toml --set run.folder=mixed --set plan.pipelines=[1,1] --set 'run.transport="nccl"' >mixed.out 2>&1
  expect "ranks with different ones" 5 $?
  says mixed 'rank 0 has NCCL 2.28.9 and rank 1 has NCCL 2.30.7: all ranks must have the same'
  train host 1 "${alone[@]}" --set run.device=cpu --set 'run.transport="nccl"'
  expect "NCCL without a device" 2 $?
  says host 'run.transport = "nccl" moves what lies on GPUs'
fi
exit $((failures > 0))
