#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# levels.sh <rheo> <work folder>: checkpoints that are safe on node-local storage, then on other nodes, then published. Four ranks on two nodes, each with a
# folder of its own. After kills of ranks, of whole jobs and of nodes with their folders the same command resumes from the newest that is whole, and ends with the same bits.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 120
train.microbatch = { sequences = 2, tokens = 32 }
plan.node_size = 2
checkpoint.every_steps = 20
END
same() { # <run folder> <exit code>
  expect "$1: runs to the end" 0 "$2"
  expect "$1: the digest" "$digest" "$(value digest "$1")"
  [[ $(value digest "$1") == "$digest" ]] || tail -20 "$1.out"
}
leveled() { # <run folder> <ranks> [arguments]
  local folder=$1 ranks=$2
  shift 2
  train "$folder" "$ranks" --set "checkpoint.local=$PWD/$folder.node-{node}" --set checkpoint.replicas=1 --set checkpoint.publish_every=1000 "$@"
}
safe() { # <run folder> <step> <level>: waits until the metrics say so
  for _ in {1..2400}; do
    grep -q "\"kind\":\"safe\",\"step\":$2,\"level\":\"$3\"" "$1/metrics.jsonl" 2>/dev/null && return
    sleep 0.01
  done
}
power_cut() { # <run folder> <step> <level> [arguments]: the job starts, and all its processes are killed when that step is as safe as that
  local folder=$1 step=$2 level=$3
  shift 3
  leveled "$folder" 4 "$@" &
  local job=$!
  safe "$folder" "$step" "$level"
  kill_job "$folder"
  wait $job 2>/dev/null
}

train undisturbed 4 --set checkpoint.every_steps=0
expect "the undisturbed job ends" 0 $?
digest=$(value digest undisturbed)
[[ -n $digest ]] || { cat undisturbed.out; exit 1; }

# All levels, each after the one before, and nothing left on the nodes when the last state is published.
leveled all 4 --set checkpoint.publish_every=2
same all $?
expect "levels come in order" "local replicated checkpoint" \
  "$(grep -o '"kind":"safe","step":40,"level":"[a-z]*"\|"kind":"checkpoint","step":40' all/metrics.jsonl | sed 's/.*"level":"//; s/.*"kind":"\(checkpoint\)".*/\1/; s/"//' | xargs)"
expect "one of two is published" 0 "$(grep -c '"kind":"checkpoint","step":20,' all/metrics.jsonl)"
expect "no part is left on the nodes" 0 "$(find all.node-* -name 'part-*' | wc -l)"

# The power fails: the newest step is taken from the nodes, on another number of ranks, too.
power_cut power 40 local
leveled power 4
same power $?
expect "it says from where it took the state" 1 "$(grep -c '^the checkpoint of step [4-9][0-9]* on node-local storage was newer than any that was published' power.out)"
power_cut fewer 60 replicated
leveled fewer 3 --set plan.pipelines=[3]
same fewer $?
expect "three ranks resume" 1 "$(grep -c '^resuming after [6-9]' fewer.out)"

# A node is lost with its folder: its parts come from their copies.
power_cut node 40 replicated
"$rheo" checkpoint list node >list.out
expect "the nodes' parts are listed" yes "$( (($(grep -c 'node-local: parts of ranks 0, 1, 2, 3 in .*/node.node-[01]/' list.out) >= 2)) && echo yes || cat list.out)"
rm -rf node.node-1
leveled node 4
same node $?
expect "it says that copies were used" 1 "$(grep -c '^the checkpoint of step .*of them from copies on other nodes' node.out)"

# Without copies what is published is the newest that is whole; of steps beyond it the output says why they are not used.
power_cut bare 60 local --set checkpoint.replicas=0 --set checkpoint.publish_every=2
rm -rf bare.node-0
leveled bare 4 --set checkpoint.replicas=0
same bare $?
expect "it says what is not whole" 1 "$(grep -c '^the checkpoint of step [0-9]* on node-local storage is not whole, so it is not used' bare.out | sed 's/[1-9].*/1/')"
expect "and takes what was published" 1 "$(grep -c '^resuming after 40 steps' bare.out)"

# A flipped byte: the copy is used, and the sentence names the file.
power_cut flipped 40 replicated
newest=$(find flipped.node-0 -name 'part-0.json' | sort -V | tail -1)
printf '\xff\xff\xff' | dd of="${newest%part-0.json}state-0.safetensors" bs=1 seek=9000 conv=notrunc status=none
leveled flipped 4
same flipped $?
expect "it names the file" 1 "$(grep -c "state-0.safetensors': bytes .* are not what was written" flipped.out)"

# A rank is lost while parts and copies are written: the others continue.
for fault in 0@20:local_torn 2@20:local 1@20:replica_torn 3@20:replica; do
  rm -rf lost lost.node-*
  leveled lost 4 --inject "kill:$fault" --set checkpoint.publish_every=1
  same lost $?
  expect "it died at $fault" 1 "$(grep -c "ends itself .* at '${fault#*:}'" lost.out)"
  rm lost.out
done

# The last copy of a layer is lost: survivors take the newest step from the nodes, in the same job.
leveled last 4 --set plan.pipelines=[4] --set plan.failures=0 --inject kill:1@90:backward
same last $?
expect "the job goes back to it" 1 "$(grep -c '^state lost: .*; resuming from the checkpoint of step [4-9]' last.out)"

# A rank leaves while copies are under way.
leveled leaves 4 --inject drain:3@20
same leaves $?

# Bad folders.
refused() { # <code> <sentence> [arguments]
  local code=$1 text=$2
  shift 2
  rm -f bad.out
  train bad 4 "$@"
  expect "refused: $text" "$code 1" "$? $(grep -c "$text" bad.out | sed 's/[1-9].*/1/')"
}
refused 2 'checkpoint.replicas = 1 needs checkpoint.local' --set checkpoint.replicas=1
refused 2 'checkpoint.replicas = 2 needs 3 nodes, but 4 ranks with plan.node_size = 2 are on 2' --set "checkpoint.local=$PWD/x" --set checkpoint.replicas=2
refused 2 'must be an absolute path' --set checkpoint.local=x
refused 5 'nodes 0 and 1 have one folder' --set "checkpoint.local=$PWD/x"
refused 5 'cannot be made' --set checkpoint.local=/proc/x-{node}
exit $((failures > 0))
