#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# real_device.sh <rheo> <work folder> <stand-in for NVML>: four ranks on two GPUs whose clocks follow the plan. However they end, no clock is left behind.
set -u
rheo=$1
library=$3
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 40
train.microbatch = { sequences = 4, tokens = 32 }
plan.shares = [3, 3]
END
mkdir standin claims
export RHEO_STANDIN=$PWD/standin
printf '%s\n' "1410 474" "1305 401" "1200 352" "1005 280" "810 221" >standin/table
awk 'BEGIN {
  split("0.4 1 1 1 0.8", weight); split("1410 1305 1200 1005 810", clock); split("1 1.05 1.12 1.3 1.6", time); split("474 401 352 280 221", power)
  print "stage,instruction,frequency,time,energy"
  for (layer = 1; layer <= 5; ++layer) for (kind = 1; kind <= 2; ++kind) for (c = 1; c <= 5; ++c) {
    work = weight[layer] * kind * 0.003 * time[c]
    printf "%d,%s,%d,%.9g,%.9g\n", layer - 1, kind == 1 ? "forward" : "backward", clock[c], work, work * power[c]
  }
}' >layers.csv
gpu=(--set power.device=nvml --set "power.nvml=$library" --set power.clock_profile=layers.csv --set power.claims=claims)
locked() { # <device>: the clock that it is locked to; 0: none
  awk '{ print $1 }' "standin/device-$1"
}
nothing_is_left() { # waits a while: guardians work behind a rank's back
  for _ in {1..100}; do
    [[ $(locked 0) == 0 && $(locked 1) == 0 ]] && break
    sleep 0.05
  done
  echo "$(locked 0) $(locked 1)"
}
changes() { grep -c "^set " standin/log 2>/dev/null; }

train without 4
expect "without a device the job ends" 0 $?
digest=$(value digest without)

train clocked 4 "${gpu[@]}"
expect "with real clocks the job ends" 0 $?
expect "with the same bits" "$digest" "$(value digest clocked)"
expect "it says by whose permission" 1 "$(grep -c 'Stand-in A100: .*direct' clocked.out)"
expect "for all ranks" 1 "$(grep -c '^clocks: direct on 4 ranks$' clocked.out)"
expect "clocks were set" yes "$( (($(changes) > 20)) && echo yes)"
expect "lower ones than the highest, too" yes "$(grep -Eq '^set [01] (1305|1200|1005|810)' standin/log && echo yes)"
expect "and put back" "0 0" "$(nothing_is_left)"
expect "joules are known" 40 "$(grep '"kind":"step"' clocked/metrics.jsonl | grep -c '"energy_J":')"

before=$(changes)
train lost 4 "${gpu[@]}" --inject kill:2@6:backward
expect "with a rank lost it ends" 0 $?
expect "with the same bits" "$digest" "$(value digest lost)"
expect "clocks were set again" yes "$( (($(changes) > before)) && echo yes)"
expect "and put back" "0 0" "$(nothing_is_left)"

train killed 4 "${gpu[@]}" --set train.steps=100000 &
job=$!
reached killed 5
for _ in {1..400}; do # in the middle of it
  [[ $(locked 0) != 0 && $(locked 1) != 0 ]] && break
  sleep 0.01
done
expect "in the middle of a job clocks are locked" yes "$([[ $(locked 0) != 0 && $(locked 1) != 0 ]] && echo yes)"
kill_job killed
wait $job 2>/dev/null
expect "when all ranks are killed at once their guardians put the clocks back" "0 0" "$(nothing_is_left)"

# Rank 1 has a device of its own on a host of its own, as far as it can see: one where no rank may set clocks.
mkdir elsewhere elsewhere-claims
cp standin/table elsewhere
echo "permission 0" >elsewhere/behaviour
cat >one_elsewhere <<'END'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 1 ] && { export RHEO_STANDIN=$PWD/elsewhere; set -- "$@" --set power.claims=elsewhere-claims; }
exec "$@"
END
chmod +x one_elsewhere
"$RHEO_MPIRUN" "${flags[@]}" -n 4 ./one_elsewhere "$rheo" train job.toml --set run.folder=mixed "${gpu[@]}" >mixed.out 2>&1
expect "with a rank that has no permission the job ends" 0 $?
expect "with the same bits" "$digest" "$(value digest mixed)"
expect "and all ranks' permissions are printed in one line" 1 "$(grep -c '^clocks: direct on 3 ranks, advise only on 1 rank$' mixed.out)"
expect "clocks are put back" "0 0" "$(nothing_is_left)"

echo "permission_after 30" >standin/behaviour
rm -f standin/device-*
train taken 4 "${gpu[@]}"
expect "with a permission that is lost in the middle the job ends" 0 $?
expect "with the same bits" "$digest" "$(value digest taken)"
expect "it began with it" 1 "$(grep -c '^clocks: direct on 4 ranks$' taken.out)"
expect "and says that it is gone" yes "$(grep -q 'clocks are advised only: NVML refuses' taken.out && echo yes)"
echo >standin/behaviour
rm -f standin/device-*

# A profile made by real devices: one is throttled, and then one clock is all there is.
echo "reasons 4" >standin/behaviour
"$RHEO_MPIRUN" "${flags[@]}" -n 4 "$rheo" profile job.toml --clocks --out hot.csv --set run.folder=hot --set power.device=nvml --set "power.nvml=$library" --set power.claims=claims >hot.out 2>&1
expect "a profile is made where devices are throttled" 0 $?
expect "with the same bits" "$digest" "$(value digest hot)"
expect "what was measured is marked" yes "$(head -1 hot.csv | grep -q ',throttled$' && [[ $(grep -cE ',(forward|backward),.*,0$' hot.csv) == 0 ]] && echo yes)"
expect "and reports it" 1 "$(grep -c 'are marked as throttled' hot.out)"
"$rheo" frontier hot.csv --microbatches 6 >frontier.out 2>&1
expect "nothing is planned with it" 4 $?
echo "permission 0" >standin/behaviour
"$RHEO_MPIRUN" "${flags[@]}" -n 4 "$rheo" profile job.toml --clocks --out one.csv --set run.folder=one --set power.device=nvml --set "power.nvml=$library" --set power.claims=claims >one.out 2>&1
expect "without permission the one clock that there is gets a profile" 0 $?
expect "with the same bits" "$digest" "$(value digest one)"
expect "of one clock" 1 "$(awk -F, 'NR > 1 && $2 != "blocking" { print $3 }' one.csv | sort -u | grep -c .)"
expect "which is a forward and a backward of each layer" 10 "$(grep -cE ',(forward|backward),' one.csv)"
"$rheo" frontier one.csv --microbatches 6 >frontier.out 2>&1
expect "from which nothing can be chosen" "4 yes" "$? $(grep -q 'was measured at one clock only' frontier.out && echo yes)"

echo "permission 0" >standin/behaviour
train forbidden 4 "${gpu[@]}"
expect "without permission the job ends" 0 $?
expect "with the same bits" "$digest" "$(value digest forbidden)"
expect "and says that clocks are advised only" yes "$(grep -q 'clocks are advised only: NVML refuses' forbidden.out && echo yes)"  # at the start, or when the first one is refused
expect "no clock is locked" "0 0" "$(nothing_is_left)"

train none 4 --set power.device=nvml --set power.nvml=no-such-library.so
expect "a device that is not there is the environment's fault" 5 $?
expect "and reports it" yes "$(grep -q 'no-such-library.so' none.out && echo yes)"
exit $((failures > 0))
