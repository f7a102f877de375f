#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh <rheo> <mpirun> <work folder>: trains the same small GPT twice on five ranks in two pipelines and compares the digests of the final states. The
# second run loses a rank to kill -9 in the middle of a step; later, rheo reshape puts the four others into one pipeline. Every rank has an
# emulated device (clocks.csv: times of the model's layers as on a quick processor, ratios and powers of an A100 at its clocks), whose clock follows the plan
# and whose joules are counted: those of the file for what is computed, those of waiting for the rest of the time. Ranks share the cores, so each is slow
# by turns: that is no straggler.
set -u
rheo=$1 mpirun=$2 work=$3
here=$(dirname "$0")
config=$here/demo.toml
ranks=5 victim=3 kill_after_steps=${RHEO_DEMO_KILL_AFTER:-100} reshape_after_steps=${RHEO_DEMO_RESHAPE_AFTER:-250}

launch() { # <run folder> [arguments of rheo train...]
  folder=$1
  shift
  set -- "$rheo" train "$config" --set "run.folder=$folder" --set power.device=emulated --set "power.clock_profile=$here/clocks.csv" --set power.pace=profile --set power.straggler=false "$@"
  [ "$(id -u)" = 0 ] && set -- --allow-run-as-root "$@"
  # More ranks than cores: unbound, so that they share all of them.
  OMP_NUM_THREADS=1 "$mpirun" --with-ft ulfm --mca pml ob1 --oversubscribe --bind-to none -n $ranks "$@"
}

reached() { # <run folder> <steps>: waits for so many steps
  done=0
  while [ "$done" -lt "$2" ]; do
    sleep 0.05
    done=$(grep -c '"kind":"step"' "$1/metrics.jsonl" 2>/dev/null)
    done=${done:-0}
  done
}

disturb() { # <run folder>: kills the victim's process wherever in its step it is, and later asks the others for one pipeline in place of two
  reached "$1" "$kill_after_steps"
  sleep 0.04
  pid=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$1/ranks/$victim.json")
  printf '\ndemo: kill -9 %s, which is rank %s\n' "$pid" "$victim"
  kill -9 "$pid"
  reached "$1" "$reshape_after_steps"
  printf '\ndemo: rheo reshape %s --set pipelines=[4]\n' "$1"
  "$rheo" reshape "$1" --set 'pipelines=[4]'
}

value() { # <key> <run folder>: a text of the report
  sed -n "s/^  \"$1\": \"\(.*\)\",\{0,1\}\$/\1/p" "$2/report.json"
}

mkdir -p "$work" || exit 1
rm -rf "$work/undisturbed" "$work/disturbed"

echo "demo: five ranks, two pipelines, no rank is lost"
launch "$work/undisturbed" || { echo "demo: the undisturbed run failed"; exit 1; }

echo
echo "demo: the same run again; rank $victim will be killed after step $kill_after_steps, and the plan changes after step $reshape_after_steps"
disturb "$work/disturbed" &
other=$!
trap 'kill $other 2>/dev/null' EXIT
launch "$work/disturbed" || { echo "demo: the run that lost a rank failed"; exit 1; }
kill $other 2>/dev/null

grep -q '"energy_J"' "$work/disturbed/report.json" || { echo "demo: no joules were counted"; exit 1; }
grep -q '"lost": \[$' "$work/disturbed/report.json" || { echo "demo: the run ended before its rank could be killed"; exit 1; }
grep -q '"change"' "$work/disturbed/report.json" || { echo "demo: the run ended before its plan could change"; exit 1; }
undisturbed=$(value digest "$work/undisturbed")
disturbed=$(value digest "$work/disturbed")
echo
echo "  digest of the undisturbed run                 $undisturbed"
echo "  digest with rank $victim killed and another plan    $disturbed"
if [ -n "$undisturbed" ] && [ "$undisturbed" = "$disturbed" ]; then
  echo "  equal: neither the loss nor the change has changed a bit of the result"
  echo
  echo "Run folders with metrics, reports and traces (trace.json opens in https://ui.perfetto.dev): $work"
else
  echo "  NOT equal"
  exit 1
fi
