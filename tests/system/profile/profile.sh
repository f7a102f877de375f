#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# profile.sh <rheo> <work folder>: three ranks measure the layers and the exchanges that sharing each takes; plans are made from the file.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.microbatch = { sequences = 2, tokens = 32 }
END
profile() { # <ranks> <file> [arguments]
  "$RHEO_MPIRUN" "${flags[@]}" -n "$1" "$rheo" profile job.toml --repeats 3 --out "$2" "${@:3}" 2>&1
}
columns() { # <file>: names of its columns; each row has a positive number in every all_reduce column but the last layer's
  head -1 "$1"
  awk -F, 'NR > 1 && NR < 6 { for (c = 7; c <= NF; ++c) if (!($c > 0)) print "line " NR ": " $c }' "$1"
}

said=$(profile 3 layers.csv)
expect "three ranks measure" 0 $?
expect "one of them says so" 1 "$(grep -c '^layers.csv: 5 layers, .* ms backward per microbatch; exchanges between up to 3 ranks of a node$' <<<"$said")"
expect "and no rank prints anything else" 1 "$(wc -l <<<"$said")"
expect "sums between two and three ranks" "layer,forward,backward,parameters,activations,boundary,all_reduce_2,all_reduce_3" "$(columns layers.csv)"

"$rheo" plan job.toml --set plan.pipelines=[] --ranks 6 --node-size 3 --layer-profile layers.csv >plan.out
expect "a plan of nodes of three" 0 $?
expect "uses them" 2 "$(grep -cE '^templates (\(as profiled in layers.csv|of whole nodes of 3 devices)' plan.out)"
# Without them the template of a node is at least as quick.
makespan() { # <profile>: of the template of one node
  "$rheo" plan job.toml --set plan.pipelines=[] --ranks 3 --node-size 3 --layer-profile "$1" --json | sed -n '/"node_templates"/,/instantiations/s/^ *"makespan_s": \(.*\),$/\1/p' | head -1
}
awk -F, -v OFS=, 'NR > 1 { $7 = 0; $8 = 0 } { print }' layers.csv >free.csv
expect "sums cost time" yes "$(awk -v measured="$(makespan layers.csv)" -v free="$(makespan free.csv)" 'BEGIN { print (measured >= free && free > 0) ? "yes" : measured " " free }')"

# On a grid of two shards two ranks gather rows and sum partial products, and three, of whom no stage could have all, sum the output as before.
profile 3 grid.csv --set train.shards=2 >grid.out
expect "three ranks measure on a grid" 0 $?
expect "the same columns" "layer,forward,backward,parameters,activations,boundary,all_reduce_2,all_reduce_3" "$(columns grid.csv)"
groups=(--ranks 4 --set train.shards=2 --set plan.pipelines=[4] --set plan.tensor=2)
exchanging() { # <profile>: part of the ranks' time
  "$rheo" plan job.toml "${groups[@]}" --layer-profile "$1" --json | sed -n 's/^ *"exchanging": \(.*\),$/\1/p'
}
awk -F, -v OFS=, 'NR > 1 { $7 *= 100 } { print }' grid.csv >slow.csv
expect "groups exchange, slower links for longer" yes "$(awk -v measured="$(exchanging grid.csv)" -v slow="$(exchanging slow.csv)" 'BEGIN { print (measured > 0 && slow > measured) ? "yes" : measured " " slow }')"

said=$(profile 1 alone.csv)
expect "one rank measures" 0 $?
expect "no sums" "layer,forward,backward,parameters,activations,boundary" "$(columns alone.csv)"
"$rheo" plan job.toml --set plan.pipelines=[] --ranks 6 --node-size 3 --layer-profile alone.csv >refused.out 2>&1
expect "too little for nodes of three" "4 rheo: alone.csv: stages of up to 3 devices need the columns all_reduce_2 to all_reduce_3" "$? $(cat refused.out)"

# The machine as a cluster that plans are made for.
said=$("$RHEO_MPIRUN" "${flags[@]}" -n 3 "$rheo" info --cluster cluster.toml --repeats 1 2>&1)
expect "three ranks measure the machine" 0 $?
expect "one of them says so" "1 1" "$(grep -c '^cluster.toml: a node of 3 ranks, .* TFLOP/s, .* GB/s of memory and .* GiB each; in a node .* us and .* GB/s$' <<<"$said") $(wc -l <<<"$said")"
"$rheo" plan job.toml --set plan.pipelines=[] --ranks 3 --cluster cluster.toml >plan.out 2>&1
expect "a plan is made for it" 0 $?
"$rheo" simulate job.toml --set plan.pipelines=[3] --cluster cluster.toml --steps 3 --network fitted >simulated.out 2>&1
expect "a job is simulated on it" "0 3 ranks on cluster.toml" "$? $(grep -o '^3 ranks on cluster.toml' simulated.out)"
said=$("$rheo" info --cluster alone.toml --repeats 1)
expect "alone no messages are measured" "0 1" "$? $(grep -c '^alone.toml: a node of one rank, .*; messages are not measured, that takes mpirun with two ranks or more$' <<<"$said")"
"$rheo" info --cluster no.toml --set run.devise=cuda >refused.out 2>&1
expect "an unknown key" "2 rheo: run.devise=cuda: unknown key run.devise; the nearest known one is run.device" "$? $(cat refused.out)"

exit $((failures > 0))
