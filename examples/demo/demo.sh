#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh <rheo> <mpirun> <work folder>: trains the same small GPT twice on five ranks in two pipelines, once undisturbed
# and once with a rank killed from outside in the middle of a step, and compares the digests of the final states. Every rank has an
# emulated device (clocks.csv: times of the model's layers as on a quick processor, ratios and powers of an A100 at its clocks), whose clock follows the plan
# and whose joules are counted: those of the file for what is computed, those of waiting for the rest of the time. Ranks share the cores, so each is slow
# by turns: that is no straggler.
set -u
rheo=$1 mpirun=$2 work=$3
here=$(dirname "$0")
config=$here/demo.toml
ranks=5 victim=3 kill_after_steps=${RHEO_DEMO_KILL_AFTER:-100}

launch() { # <run folder> [arguments of rheo train...]
  folder=$1
  shift
  set -- "$rheo" train "$config" --set "run.folder=$folder" --set power.device=emulated --set "power.clock_profile=$here/clocks.csv" --set power.pace=profile --set power.straggler=false "$@"
  [ "$(id -u)" = 0 ] && set -- --allow-run-as-root "$@"
  # More ranks than cores: unbound, so that they share all of them.
  OMP_NUM_THREADS=1 "$mpirun" --with-ft ulfm --mca pml ob1 --oversubscribe --bind-to none -n $ranks "$@"
}

kill_one() { # <run folder>: waits for the steps, then kills the victim's process wherever in its step it is
  done=0
  while [ "$done" -lt "$kill_after_steps" ]; do
    sleep 0.05
    done=$(grep -c '"kind":"step"' "$1/metrics.jsonl" 2>/dev/null)
    done=${done:-0}
  done
  sleep 0.04
  pid=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$1/ranks/$victim.json")
  printf '\ndemo: kill -9 %s, which is rank %s\n' "$pid" "$victim"
  kill -9 "$pid"
}

value() { # <key> <run folder>: a text of the report
  sed -n "s/^  \"$1\": \"\(.*\)\",\{0,1\}\$/\1/p" "$2/report.json"
}

mkdir -p "$work" || exit 1
rm -rf "$work/undisturbed" "$work/killed"

echo "demo: five ranks, two pipelines, no rank is lost"
launch "$work/undisturbed" || { echo "demo: the undisturbed run failed"; exit 1; }

echo
echo "demo: the same run again; rank $victim will be killed after step $kill_after_steps"
kill_one "$work/killed" &
killer=$!
trap 'kill $killer 2>/dev/null' EXIT
launch "$work/killed" || { echo "demo: the run that lost a rank failed"; exit 1; }
kill $killer 2>/dev/null

grep -q '"energy_J"' "$work/killed/report.json" || { echo "demo: no joules were counted"; exit 1; }
grep -q '"lost": \[' "$work/killed/report.json" || { echo "demo: the run ended before its rank could be killed"; exit 1; }
undisturbed=$(value digest "$work/undisturbed")
killed=$(value digest "$work/killed")
echo
echo "  digest of the undisturbed run   $undisturbed"
echo "  digest with rank $victim killed       $killed"
if [ -n "$undisturbed" ] && [ "$undisturbed" = "$killed" ]; then
  echo "  equal: the loss changed no bit of the result"
  echo
  echo "Run folders with metrics, reports and traces (trace.json opens in https://ui.perfetto.dev): $work"
else
  echo "  NOT equal"
  exit 1
fi
