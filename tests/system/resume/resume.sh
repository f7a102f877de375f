#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# resume.sh <rheo> <work folder>: jobs that are stopped, killed whole, or lose the last copy of a layer resume from
# their newest checkpoint, on other numbers of ranks and under another schedule, and end with the undisturbed job's bits.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
model.dropout = 0.1
train.steps = 200
train.microbatch = { sequences = 2, tokens = 32 }
train.eval_every = 60
checkpoint.every_steps = 20
END
same() { # <run folder> <exit code>
  expect "$1: runs to the end" 0 "$2"
  expect "$1: the digest" "$digest" "$(value digest "$1")"
  [[ $(value digest "$1") == "$digest" ]] || tail -20 "$1.out"
}

train undisturbed 4
expect "the undisturbed job ends" 0 $?
digest=$(value digest undisturbed)
[[ -n $digest ]] || { cat undisturbed.out; exit 1; }
kept=$(cd undisturbed && echo step-*) # one is left out when the one before is still being written
expect "two checkpoints are kept, the last state's among them" 2 "$(wc -w <<<"$kept")"
expect "the last state's" "step-200" "${kept##* }"
recorded=$(grep -c '"kind":"checkpoint".*"bytes":[1-9].*"bytes_per_s":[1-9]' undisturbed/metrics.jsonl)
expect "size and rate of checkpoints are in the metrics" yes "$( ((recorded >= 2)) && echo yes || echo "$recorded")"
train undisturbed 3 --set plan.pipelines=[]
same undisturbed $?

# A signal to one rank stops all of them after the step.
train signal 4 &
job=$!
reached signal 30
kill -TERM "$(pid_of signal 2)"
wait $job
expect "SIGTERM ends the job with 75" 75 $?
expect "it says how to resume" 1 "$(grep -c 'steps: the same command resumes' signal.out | sed 's/[1-9].*/1/')"
train signal 3 --set plan.pipelines=[3] --set plan.schedule=gpipe
same signal $?

train time 2 --set plan.pipelines=[2] --max-time 0.2s
expect "--max-time ends the job with 75" 75 $?
before=$(grep -c '"kind":"checkpoint"' time/metrics.jsonl)
train time 4 --set checkpoint.every_steps=0 --set checkpoint.every_minutes=0.002
same time $?
recorded=$(($(grep -c '"kind":"checkpoint"' time/metrics.jsonl) - before))
expect "checkpoints by the clock, besides that of the last state" yes "$( ((recorded >= 2)) && echo yes || echo "$recorded")"

# The power fails: everything is killed at once, twice.
for step in 50 110; do
  train power 4 &
  job=$!
  reached power $step
  saved power
  kill_job power
  wait $job 2>/dev/null
done
train power 4
same power $?
expect "it did resume" 2 "$(grep -c '^resuming after' power.out)"

# A rank dies while it writes, at moments of its own part and of the whole: the others continue, and so does the next job. A checkpoint is left out
# while the one before is being written, so those in which a rank dies are the first of their jobs.
died() { # <run folder> <fault>
  expect "it died at $2" 1 "$(grep -c "ends itself .* at '${2#*:}'" "$1.out")"
}
for fault in 1@60:weights_torn 1@60:part 0@60:manifest_torn 0@60:renamed; do
  rm -rf writing
  train writing 4 --set checkpoint.every_steps=60 --inject "kill:$fault"
  same writing $?
  died writing $fault
  rm writing.out
  [[ $fault == *manifest_torn ]] && expect "what has no name is not a checkpoint in the metrics" 0 "$(grep -c '"kind":"checkpoint","step":60,' writing/metrics.jsonl)"
done
train removes 4 --set plan.pipelines=[4] --set plan.min_ranks=4 --set checkpoint.every_steps=0 --inject kill:1@30:backward
expect "a job ends with one checkpoint" "75 step-30" "$? $(cd removes && echo step-*)"
train removes 4 --set checkpoint.every_steps=140 --set checkpoint.keep_last=1 --inject kill:0@140:removing
same removes $?
died removes 0@140:removing

# The last copy of a layer is lost (without failures = 1 there is no second one): the others continue from the checkpoint in the same job.
train lost 3 --set plan.pipelines=[3] --set plan.failures=0 --inject kill:1@90:backward
same lost $?
expect "it says so" 1 "$(grep -c '^state lost: .*; resuming from the checkpoint of step' lost.out)"

# The others are too few for a pipeline: the job ends, and the same command resumes where there are more ranks.
train few 3 --set plan.pipelines=[3] --set plan.min_ranks=3 --inject kill:1@90:backward
expect "too few ranks end the job with 75" 75 $?
expect "it says how to continue" 1 "$(grep -c '^  ended .*no plan: .* is saved, and the same command resumes' few.out)"
train few 3 --set plan.pipelines=[3] --set plan.min_ranks=3
same few $?

# What would change the bits is refused, with both values; a fork takes the state along, and never starts over.
train undisturbed 4 --set train.seed=2
expect "another seed is refused" 2 $?
expect "with a sentence" 1 "$(grep -c 'seed was 1 and is now 2' undisturbed.out | sed 's/[1-9].*/1/')"
train fork 4 --set train.steps=40
expect "a shorter job" 0 $?
train fork 4 --set train.steps=60 --resume fork
expect "its fork" 0 $?
expect "has a folder of its own" "step-40 step-60" "$(cd fork && ls -d step-40) $(cd fork-fork-1 && ls -d step-60)"
# Another kernel type of the BLAS, as another machine has it: the same.
if OPENBLAS_CORETYPE=Prescott "$rheo" info | grep -q "kernel type Prescott"; then
  OPENBLAS_CORETYPE=Prescott train undisturbed 4
  expect "another BLAS is refused" 2 $?
  expect "with a sentence" 1 "$(grep -cE 'BLAS was [A-Za-z]+ and is now Prescott: .*the bits stay the same where the run began, or with OPENBLAS_CORETYPE=' undisturbed.out)"
  OPENBLAS_CORETYPE=Prescott train fork 4 --set train.steps=50 --resume fork
  expect "it can be forked" 0 $?
  expect "and the output says so" 1 "$(grep -cE '"kind":"note".*BLAS was [A-Za-z]+ and is now Prescott' fork-fork-2/metrics.jsonl)"
  "$RHEO_MPIRUN" "${flags[@]}" -n 1 "$rheo" train job.toml --set run.folder=mixed : \
    -n 3 -x OPENBLAS_CORETYPE=Prescott "$rheo" train job.toml --set run.folder=mixed >mixed.out 2>&1
  expect "a mixture is refused" 5 $?
  expect "with both" 1 "$(grep -cE 'BLAS is [A-Za-z]+ on rank 0 and Prescott on rank 1: all ranks must have the same' mixed.out)"
else
  echo "left out: this BLAS has no kernel type Prescott, so there is no second one to resume with"
fi
train undisturbed 1 --set plan.pipelines=[1] --resume never
same undisturbed $?
expect "what was there is set aside" "$kept" "$(cd undisturbed/before-1 && echo step-*)"

# A flipped bit: the older checkpoint is taken, and the sentence names the file.
weights=(power/step-200/model-*.safetensors)
printf '\xff' | dd of="${weights[0]}" bs=1 seek=5000 conv=notrunc status=none
train power 4
same power $?
expect "it names the file" 1 "$(grep -c 'step-200/model-.*safetensors' power.out | sed 's/[1-9].*/1/')"

exit $((failures > 0))
