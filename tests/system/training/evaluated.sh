#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# evaluated.sh <rheo> <work folder>    `rheo evaluate` finds the loss that a training recorded of its validation split, to the last bit: of every checkpoint,
# of models on a grid of shards and with sequences in slices, for any threads. `rheo generate` writes from the same run folders, the same text on any number
# of ranks.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 4
train.microbatch.tokens = 24
train.eval_every = 2
checkpoint.every_steps = 2
data.validation_fraction = 0.2
END
recorded() { # <run folder> <step>
  grep '"kind":"evaluation"' "$1/metrics.jsonl" | grep "\"step\":$2[,}]" | sed -n 's/.*"loss":\([0-9.e+-]*\).*/\1/p' | head -n 1
}
evaluated() { # <model> [arguments]
  "$rheo" evaluate "$@" --json 2>&1 | sed -n 's/^ *"loss": \(.*\),$/\1/p'
}
same_number() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a != "" && a + 0 == b + 0)}' && echo yes || echo "'$1' against '$2'"; }
check() { # <run folder> [arguments of the training]
  train "$1" 4 "${@:2}" || { tail -n 3 "$1.out" && failures=$((failures + 1)); }
  expect "$1: loss of the last step" yes "$(same_number "$(recorded "$1" 4)" "$(evaluated "$1")")"
  expect "$1: loss of step 2" yes "$(same_number "$(recorded "$1" 2)" "$(evaluated "$1/step-2" --threads 2)")"
}
check plain
check llama --set model.family=llama --set model.kv_heads=1
check slices --set train.slices=3 --set model.family=qwen3
check shards --set train.shards=2
expect "generate: as many bytes as asked for" 24 "$("$rheo" generate shards --prompt 'line 1' --tokens 18 --seed 2 --temperature 0.5 2>/dev/null | head -c -1 | wc -c)"
expect "generate: the same for any threads" "$("$rheo" generate slices --prompt line --tokens 20 2>/dev/null | md5sum)" \
  "$("$rheo" generate slices --prompt line --tokens 20 --threads 2 --no-cache 2>/dev/null | md5sum)"
printf 'line 1 of\nline 20 of a text\nof\n' >prompts
generated() { # <ranks> <model> [arguments]
  "$RHEO_MPIRUN" "${flags[@]}" -n "$1" "$rheo" generate "${@:2}" --prompts prompts --tokens 12 --seed 3 2>/dev/null | md5sum
}
for model in plain llama slices shards; do
  one=$("$rheo" generate "$model" --prompts prompts --tokens 12 --seed 3 2>/dev/null | md5sum)
  expect "generate: $model writes a text" no "$([[ $one == "$(md5sum </dev/null)" ]] && echo empty || echo no)"
  for ranks in 1 2 4; do
    expect "generate: the text of $model on $ranks ranks" "$one" "$(generated "$ranks" "$model" --batch 2)"
  done
done
expect "generate: more ranks than layers" 2 "$("$RHEO_MPIRUN" "${flags[@]}" -n 5 "$rheo" generate plain --prompt x >many.out 2>&1; echo $?)"
expect "generate: and the sentence" 1 "$(grep -c 'rheo: 5 ranks are started, but the model has 4 layers to share between them' many.out)"
exit $((failures > 0))
