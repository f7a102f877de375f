#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# watch.sh <rheo> <work folder>: jobs of two ranks that are watched from before their start, served while they run, resumed, and killed: people and tools
# read what happens, and everything that watches ends by itself.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.microbatch = { sequences = 1, tokens = 16 }
train.eval_every = 5
END
trap 'kill $(jobs -p) 2>/dev/null' EXIT
curves() { # <run folder>: its event files
  find "$1" -maxdepth 1 -name 'events.out.tfevents.*' | wc -l
}
gauge() { # <name>: of the file for Prometheus
  sed -n "s/^rheo_$1{run=\"job\"} //p" job.prom
}
fetch() { # <target>: the reply of the server at $port
  exec 5<>"/dev/tcp/127.0.0.1/$port" && printf 'GET %s HTTP/1.1\r\nHost: localhost:%s\r\nConnection: close\r\n\r\n' "$1" "$port" >&5 && cat <&5
  exec 5>&-
}

two=(--set 'plan.pipelines=[2]' --set train.microbatches=2)
"$rheo" watch job --interval 0.05 --timeout 60 >watch.out 2>&1 &
watcher=$!
train job 2 "${two[@]}" --set train.steps=12 --set checkpoint.every_steps=5 --set run.tensorboard=true --set 'run.prometheus="job.prom"'
expect "the job ends" 0 $?
wait $watcher
expect "so does what watches it, with its exit code" 0 $?
expect "it waited for the job" 1 "$(grep -c 'waiting for its records' watch.out)"
expect "it saw the last step" 1 "$(grep -c '^step 12/12  loss ' watch.out)"
steps_of() { sed -n 's/.*"kind":"checkpoint","step":\([0-9]*\),.*/\1/p' "$1/metrics.jsonl" | xargs; }
expect "it saw the checkpoints" "$(steps_of job)" "$(sed -n 's/.*checkpoint of step \([0-9]*\): .*/\1/p' watch.out | xargs)"
expect "of which there was one" 5 "$(steps_of job | cut -d ' ' -f 1)"
expect "it saw the validation losses" "5 10" "$(sed -n 's/.*after step \(5\|10\): validation loss .*/\1/p' watch.out | xargs)"
expect "it says how the job ended" 1 "$(grep -c '^ended: all 12 steps are committed (exit code 0)' watch.out)"
expect "a screen names the ranks" 1 "$("$rheo" watch job --once | grep -c 'pipeline 0: ranks 0 | 1; 2 microbatches')"
expect "both ranks have measured their memory" 2 "$(cat job/ranks/*.json | grep -c measured_activations_bytes)"
expect "there are curves" 1 "$(curves job)"
expect "gauges are of the end" "0 0 12 12" "$(gauge running) $(gauge exit_code) $(gauge committed_steps) $(gauge steps_total)"

train stopped 2 "${two[@]}" --set train.steps=100000 --set run.tensorboard=true &
reached stopped 3
"$rheo" report stopped --serve 0 >serve.out 2>&1 &
server=$!
for _ in {1..500}; do grep -q http serve.out && break; sleep 0.02; done
port=$(sed -n 's|.*http://127.0.0.1:\([0-9]*\)/ .*|\1|p' serve.out)
fetch / >page.out
expect "the page of a running job is served" 1 "$(grep -c '^HTTP/1.1 200 OK' page.out)"
expect "it is a page" 1 "$(grep -c '<!DOCTYPE html>' page.out)"
expect "a browser loads it again" 1 "$(grep -c '^Refresh: 5' page.out)"
expect "no file is served" 1 "$(fetch /metrics.jsonl | grep -c '^HTTP/1.1 404 Not Found')"
expect "a port in use is refused" 5 "$("$rheo" report stopped --serve "$port" >/dev/null 2>used.out; echo $?)"
expect "with a sentence" 1 "$(grep -c "^rheo: 127.0.0.1 port $port cannot be listened on: Address already in use; " used.out)"
"$rheo" watch stopped --interval 0.05 --timeout 60 >stopped_watch.out 2>&1 &
watcher=$!
# shellcheck disable=SC2046
kill -TERM $(pid_of stopped 0)
wait $watcher
expect "a stopped job says so to what watches it" 75 $?
fetch / >page.out
expect "the page of a job that has ended stays" "1 0" "$(grep -c '^HTTP/1.1 200 OK' page.out) $(grep -c '^Refresh' page.out)"
kill -TERM $server
wait $server
expect "SIGTERM ends the server" 0 $?
wait

steps=$(grep -c '"kind":"step"' stopped/metrics.jsonl)
train stopped 2 "${two[@]}" --set train.steps=100000 --set run.tensorboard=true &
reached stopped $((steps + 3))
"$rheo" watch stopped --interval 0.05 --timeout 60 >killed_watch.out 2>&1 &
watcher=$!
for _ in {1..500}; do grep -q running killed_watch.out && break; sleep 0.02; done
kill_job stopped
wait $watcher
expect "a killed job ends what watches it" 1 $?
expect "which says why" 1 "$(grep -c '^not running, and left no end: it was killed' killed_watch.out)"
expect "each launch had its curves" 2 "$(curves stopped)"
wait
expect "the steps are a table" "$(grep -c '"kind":"step"' stopped/metrics.jsonl)" "$("$rheo" report stopped --csv steps.csv >/dev/null; tail -n +2 steps.csv | wc -l)"
exit $((failures > 0))
