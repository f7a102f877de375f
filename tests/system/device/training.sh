#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# training.sh <rheo> <work folder> [keys of a config, as model.width=256, ...]    whole trainings on a device, of several ranks that share it: per
# dtype one digest for one rank, pipelines, split backwards and copies of the model, also when a rank is lost and when a job resumes from a
# checkpoint; the losses are near the host's; what is not possible is an error. The keys go to every job.
#   RHEO_EMULATED_DEVICE=1     the program's device is the emulated one: it does everything as late as it may, it is absent, it has another library
#   RHEO_TRAININGS=losses      only one rank, several ranks one of whom is lost, and a job that resumes
set -u
rheo=$1
keys=()
for key in "${@:3}"; do keys+=(--set "$key"); done
emulated() { [[ ${RHEO_EMULATED_DEVICE:-} == 1 ]]; }
all() { [[ ${RHEO_TRAININGS:-all} == all ]]; }
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
job() { # <run folder> <ranks> [arguments]: a training with the keys, which come before its other arguments
  local folder=$1 ranks=$2
  shift 2
  train "$folder" "$ranks" "${keys[@]}" "$@"
}
continued() { # <run folder>: whose only rank left after step 2, with a checkpoint
  expect "$1: from the checkpoint" 1 "$(grep -c "^resuming after 3 steps, from $1/step-3\$" "$1.out")"
}
late() { # <0|1>: whether the emulated device does everything as late as it may
  if emulated && (($1)); then export RHEO_EMULATED_LATE=1; else unset RHEO_EMULATED_LATE; fi
}
begin_in "$2" <<'END'
model.dropout = 0.1
train.steps = 4
train.microbatch = { sequences = 1, tokens = 12 }
train.eval_microbatches = 1
checkpoint.every_steps = 2
run.sample_tokens = 3
END
sed -i 's/^model.width = 32/model.width = 16/; s/^model.blocks = 3/model.blocks = 1/; s/^model.context = 32/model.context = 12/; s/^train.microbatches = 6/train.microbatches = 4/' job.toml
losses() { sed -n 's/.*"kind":"step".*"loss":\([0-9.]*\).*/\1/p' "$1/metrics.jsonl"; }
alone=(--set plan.pipelines=[1] --set plan.failures=0)
job host 1 "${alone[@]}"
expect "the host ends" 0 $?
for dtype in fp32 bf16; do
  device=(--set run.device=cuda --set "train.dtype=$dtype")
  job "$dtype-one" 1 "${device[@]}" "${alone[@]}"
  expect "$dtype: one rank ends" 0 $?
  same() { # <run folder> <exit code>
    expect "$1 ends" 0 "$2"
    expect "$1: the digest" "$(value digest "$dtype-one")" "$(value digest "$1")"
  }
  late 1
  job "$dtype-lost" 4 "${device[@]}" --inject kill:2@2:backward
  same "$dtype-lost" $?
  expect "$dtype: one recovery" 1 "$(grep -c '"kind":"recovery"' "$dtype-lost/metrics.jsonl")"
  late 0
  job "$dtype-resumed" 1 "${device[@]}" "${alone[@]}" --inject drain:0@2
  job "$dtype-resumed" 2 "${device[@]}" --set plan.pipelines=[1,1] --set run.graphs=false
  same "$dtype-resumed" $?
  continued "$dtype-resumed"
  expect "$dtype: the loss is near the host's" 4 "$(paste <(losses host) <(losses "$dtype-one") | awk -v near="$([[ $dtype == fp32 ]] && echo 1e-4 || echo 0.05)" \
    '{d = $1 - $2; if (d < near && d > -near) ++n} END {print n + 0}')"
  as_planned "$dtype-one"
  if [[ " ${*:3} " == *" train.shards=2 "* ]]; then # its ranks can share stages
    late 1
    job "$dtype-group" 3 "${device[@]}" --set plan.pipelines=[2,1] --set plan.tensor=[2,1]
    same "$dtype-group" $?
    as_planned "$dtype-group"
    late 0
  fi
  all || continue
  late 1
  job "$dtype-pipelines" 4 "${device[@]}"
  same "$dtype-pipelines" $?
  job "$dtype-split" 2 "${device[@]}" --set plan.pipelines=[2] --set plan.failures=0 --set plan.schedule=zb-h1
  same "$dtype-split" $?
  sharded=(--set plan.optimizer_shards=true --set plan.pipelines=[1,1,2])
  job "$dtype-optimizer" 4 "${device[@]}" "${sharded[@]}"
  same "$dtype-optimizer" $?
  job "$dtype-keeper" 4 "${device[@]}" "${sharded[@]}" --inject kill:0@2:parameters
  same "$dtype-keeper" $?
  late 0
  job "$dtype-copies" 2 "${device[@]}" --set plan.pipelines=[2] --set plan.failures=0 --set plan.schedule=dualpipe --set plan.recompute=true
  same "$dtype-copies" $?
  gpipe=(--set plan.pipelines=[2] --set plan.failures=0 --set plan.schedule=gpipe)
  most=$("$rheo" plan job.toml --json "${keys[@]}" "${device[@]}" "${gpipe[@]}" | sed -n 's/.*"needed_bytes": \([0-9]*\).*/\1/p' | sort -n | tail -1)
  job "$dtype-selective" 2 "${device[@]}" "${gpipe[@]}" --set plan.recompute=selective --set "plan.memory_mib=$(awk -v most="$most" 'BEGIN {printf "%.6f", most * 0.95 / 1048576}')"
  same "$dtype-selective" $?
  expect "$dtype: layers are recomputed" 1 "$(grep -c '"recompute_levels"' "$dtype-selective/plan.json")"
  for run in pipelines split copies selective optimizer; do
    as_planned "$dtype-$run"
  done
done
device=(--set run.device=cuda --set train.dtype=bf16 --set train.sums='"int32"')
job rows-one 1 "${device[@]}" "${alone[@]}"
expect "sums in 32 bits: one rank ends" 0 $?
rows_same() { # <run folder> <exit code>
  expect "$1 ends" 0 "$2"
  expect "$1: the digest" "$(value digest rows-one)" "$(value digest "$1")"
}
late 1
job rows-lost 3 "${device[@]}" --set plan.pipelines=[3] --inject kill:1@2:backward
rows_same rows-lost $?
late 0
job rows-resumed 1 "${device[@]}" "${alone[@]}" --inject drain:0@2
job rows-resumed 2 "${device[@]}" --set plan.pipelines=[2] --set plan.failures=0
rows_same rows-resumed $?
continued rows-resumed
expect "sums in 32 bits: the loss is near that of 64" 4 "$(paste <(losses bf16-one) <(losses rows-one) | awk '{d = $1 - $2; if (d < 0.02 && d > -0.02) ++n} END {print n + 0}')"
expect "dtypes differ" 1 "$([[ $(value digest fp32-one) != "$(value digest bf16-one)" ]] && echo 1)"
all || exit $((failures > 0))
late 1
job rows-split 2 "${device[@]}" --set plan.pipelines=[2] --set plan.failures=0 --set plan.schedule=zb-h1
rows_same rows-split $?
late 0
job rows-pipelines 4 "${device[@]}"
rows_same rows-pipelines $?
job refused 1 "${alone[@]}" --set train.dtype=bf16
expect "bf16 on the host" 2 $?
expect "is refused by its key" 1 "$(grep -c 'train.dtype = "bf16" is computed by a device' refused.out)"
job fp32-one 1 "${alone[@]}" --set train.steps=6
expect "a device's state does not resume on a host" 2 $?
expect "the error names the key" 1 "$(grep -c 'run.device was cuda and is now cpu: .*with run.device = "cuda" the bits stay those of the run that began; ' fp32-one.out)"
job host 1 "${alone[@]}" --set train.steps=6 --set run.device=cuda
expect "nor a host's on a device" 2 $?
expect "with its key, too" 1 "$(grep -c 'run.device was cpu and is now cuda: ' host.out)"
job bf16-one 1 "${alone[@]}" --set train.steps=6 --set run.device=cuda
expect "another dtype is refused" 2 $?
expect "with the one to set" 1 "$(grep -c 'dtypes was bf16.* is now fp32.*with train.dtype = "bf16"' bf16-one.out)"
expect "no machine is blamed for it" 0 "$(cat fp32-one.out host.out bf16-one.out | grep -c 'OPENBLAS_CORETYPE\|this machine')"

# Layers are measured on the device that the config names, with the activations and messages of its dtype.
for dtype in fp32 bf16; do
  "$rheo" profile job.toml --repeats 1 "${keys[@]}" --set run.device=cuda --set "train.dtype=$dtype" --out "$dtype.csv" >>profile.out 2>&1
  expect "$dtype: the profile ends" 0 $?
done
expect "the same parameters, activations and messages by dtype" "yes" "$(paste -d , fp32.csv bf16.csv |
  awk -F , 'NR > 1 {++n; if ($2 > 0 && $3 > 0 && $4 == $10 && $11 < $5 && $6 == 2 * $12) ++good} END {print (n >= 3 && n == good ? "yes" : "no")}')"
emulated || exit $((failures > 0))

# A rank whose library would choose other algorithms than the first one's takes over its choice, and so does a job that resumes.
RHEO_EMULATED_ALGORITHM=2 job other-one 1 --set run.device=cuda "${alone[@]}"
expect "another algorithm: one rank ends" 0 $?
expect "with other bits" 1 "$([[ $(value digest other-one) != "$(value digest fp32-one)" ]] && echo 1)"
other_same() { # <run folder> <exit code>
  expect "$1 ends" 0 "$2"
  expect "$1: the digest" "$(value digest other-one)" "$(value digest "$1")"
}
"$RHEO_MPIRUN" "${flags[@]}" -n 1 -x RHEO_EMULATED_ALGORITHM=2 "$rheo" train job.toml "${keys[@]}" --set run.folder=other-first --set run.device=cuda : \
  -n 3 -x RHEO_EMULATED_ALGORITHM=1 "$rheo" train job.toml "${keys[@]}" --set run.folder=other-first --set run.device=cuda >other-first.out 2>&1
other_same other-first $?
RHEO_EMULATED_ALGORITHM=2 job other-resumed 1 --set run.device=cuda "${alone[@]}" --inject drain:0@2
job other-resumed 2 --set run.device=cuda --set plan.pipelines=[1,1]
other_same other-resumed $?
continued other-resumed

# Rows longer than a tile, so that kinds of attention add in another order.
long=(--set run.device=cuda --set train.dtype=bf16 --set model.width=128 --set model.context=136 --set train.microbatch.tokens=136 --set train.microbatches=2
  --set train.steps=1 --set checkpoint.every_steps=1)
groups=("${long[@]}" --set run.attention=warpgroup)
job groups-one 1 "${groups[@]}" "${alone[@]}"
expect "warpgroups: one rank ends" 0 $?
job groups-two 2 "${groups[@]}" --set plan.pipelines=[1,1]
expect "warpgroups: two pipelines end" 0 $?
expect "warpgroups: the digest" "$(value digest groups-one)" "$(value digest groups-two)"
job groups-none 1 "${groups[@]}" "${alone[@]}" --set run.attention=warp
expect "warpgroups: other bits than a warp's" 1 "$([[ $(value digest groups-none) != "$(value digest groups-one)" ]] && echo 1)"
job groups-one 1 "${groups[@]}" "${alone[@]}" --set run.attention=warp --set train.steps=2
expect "warpgroups: others do not resume from them" 2 $?
expect "the error names the key" 1 "$(grep -c 'run.attention was warpgroup and is now warp: .*with run.attention = "warpgroup" the bits stay' groups-one.out)"

cudnn=("${long[@]}" --set run.attention=cudnn --set model.dropout=0)
job cudnn-one 1 "${cudnn[@]}" "${alone[@]}"
expect "cuDNN: one rank ends" 0 $?
late 1
job cudnn-two 2 "${cudnn[@]}" --set plan.pipelines=[1,1] --inject kill:1@1:backward
expect "cuDNN: two pipelines end, one of them lost" 0 $?
late 0
expect "cuDNN: the digest" "$(value digest cudnn-one)" "$(value digest cudnn-two)"
job cudnn-none 1 "${cudnn[@]}" "${alone[@]}" --set run.attention=warp
expect "cuDNN: other bits than a warp's" 1 "$([[ $(value digest cudnn-none) != "$(value digest cudnn-one)" ]] && echo 1)"
expect "cuDNN: bits that repeat are nothing to speak of" 0 "$(grep -c 'run.deterministic' cudnn-one.out)"
job cudnn-any 1 "${cudnn[@]}" "${alone[@]}" --set run.deterministic=false
expect "cuDNN in any order: one rank ends" 0 $?
expect "the output says so" 1 "$(grep -c 'run.deterministic is false: gradients of attention are added in any order' cudnn-any.out)"
expect "and has other bits" 1 "$([[ $(value digest cudnn-any) != "$(value digest cudnn-one)" ]] && echo 1)"
job cudnn-one 1 "${cudnn[@]}" "${alone[@]}" --set run.deterministic=false --set train.steps=2
expect "cuDNN: any order does not resume from one" 2 $?
expect "the error names the key, too" 1 "$(grep -c 'run.deterministic was true and is now false: ' cudnn-one.out)"
for no in model.dropout=0.1 train.slices=2 train.dtype=fp32; do
  job "cudnn-no-$no" 1 "${cudnn[@]}" "${alone[@]}" --set "$no"
  expect "cuDNN: refused with $no" 2 $?
  expect "in a sentence" 1 "$(grep -c 'run.attention = "cudnn"' "cudnn-no-$no.out")"
done
job cudnn-narrow 1 "${cudnn[@]}" "${alone[@]}" --set model.width=24
expect "cuDNN: has no plan for heads of 12" 5 $?
expect "the error names the shape" 1 "$(grep -c 'cuDNN .* has no plan for .*12 elements' cudnn-narrow.out)"

# The quickest that computes the model: cuDNN where it has plans, else a warpgroup's tensor cores.
automatic=("${long[@]}" --set run.attention=auto)
job auto-cudnn 1 "${automatic[@]}" "${alone[@]}" --set model.dropout=0
expect "auto: cuDNN computes whole sequences without dropout" "$(value digest cudnn-one)" "$(value digest auto-cudnn)"
job auto-groups 1 "${automatic[@]}" "${alone[@]}"
expect "auto: a warpgroup computes dropout" "$(value digest groups-one)" "$(value digest auto-groups)"
job auto-narrow 1 "${automatic[@]}" "${alone[@]}" --set model.dropout=0 --set model.width=24
expect "auto: heads that cuDNN has no plan for" 0 $?
expect "the output says that they are slow" 1 "$(grep -c 'without tensor cores, many times slower: its heads are 12 elements wide' auto-narrow.out)"

# A recovery takes no more of a device than a job that begins with the plan that it leads to, but for 64 KiB: a worker beside the next one would be more.
full=(--set run.device=cuda --set model.width=64 --set model.blocks=2 --set model.context=64 --set 'train.microbatch={sequences=4,tokens=64}'
  --set train.steps=3 --set checkpoint.every_steps=0)
mkdir -p peak
RHEO_EMULATED_PEAK=peak job full-three 3 "${full[@]}" --set plan.pipelines=[2,1]
expect "memory: three ranks end" 0 $?
mib=$(cat peak/* | sort -n | tail -1 | awk '{printf "%.6f", $1 / 1048576 + 0.0625}')
RHEO_EMULATED_MIB=$mib job full-lost 4 "${full[@]}" --inject kill:2@2:backward
expect "memory: four ranks go on after a loss" 0 $?
expect "memory: the digest" "$(value digest full-three)" "$(value digest full-lost)"

for what in driver device; do
  RHEO_EMULATED_ABSENT=$what job "no-$what" 1 "${alone[@]}" --set run.device=cuda
  expect "no $what: exit code" 5 $?
done
expect "no driver" 1 "$(grep -c 'run.device is cuda, but there is no device: no NVIDIA driver is loaded' no-driver.out)"
expect "no device" 1 "$(grep -c 'run.device is cuda, but there is no device: the NVIDIA driver has none' no-device.out)"
RHEO_EMULATED_CAPABILITY=75 job too-old 1 "${alone[@]}" --set run.device=cuda
expect "no code for a device: exit code" 5 $?
expect "no code for a device" 1 \
  "$(grep -c 'no code for an emulated device, which has compute capability 7.5: it was built for sm_90a, PTX of compute_80 for later ones. Build' too-old.out)"
RHEO_EMULATED_MIB=1 job too-small 1 "${alone[@]}" --set run.device=cuda --set model.width=128
expect "a small device: exit code" 3 $?
expect "the output says so" 1 "$(grep -c 'rank 0 would hold [0-9]* MiB, but its device has 1 MiB free; the largest part is' too-small.out)"
RHEO_EMULATED_ABSENT=driver "$rheo" profile job.toml --repeats 1 "${keys[@]}" --set run.device=cuda >no-profile.out 2>&1
expect "no device to measure" 5 $?
expect "the output says so" 1 "$(grep -c 'no NVIDIA driver is loaded' no-profile.out)"
exit $((failures > 0))
