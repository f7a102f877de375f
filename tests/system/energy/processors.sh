#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# processors.sh <rheo> <work folder>: four ranks on processors whose clocks follow the plan, on a tree of files as sysfs has it. However they end, the limits
# that were there before are there again.
set -u
rheo=$1
# shellcheck source=tests/support/jobs.sh
. "$(dirname "$0")/../../support/jobs.sh"
begin_in "$2" <<'END'
train.steps = 30
train.microbatch = { sequences = 1, tokens = 16 }
plan.shares = [3, 3]
END
mkdir claims
for cpu in 0 1; do
  policy=sys/devices/system/cpu/cpufreq/policy$cpu
  mkdir -p $policy sys/devices/system/cpu/cpu$cpu/topology sys/devices/system/cpu/cpu$cpu/thermal_throttle
  echo 800000 | tee $policy/scaling_min_freq >$policy/cpuinfo_min_freq
  echo 3400000 >$policy/scaling_max_freq
  echo 3600000 >$policy/cpuinfo_max_freq
  echo 2000000 >$policy/scaling_cur_freq
  echo "3400000 2800000 2200000 1600000" >$policy/scaling_available_frequencies
  echo 0 >sys/devices/system/cpu/cpu$cpu/topology/physical_package_id
  echo 7 >sys/devices/system/cpu/cpu$cpu/thermal_throttle/core_throttle_count
  ln -s "../cpufreq/policy$cpu" sys/devices/system/cpu/cpu$cpu/cpufreq
done
zone=sys/class/powercap/intel-rapl:0
mkdir -p $zone
echo package-0 >$zone/name
echo 262143328850 >$zone/max_energy_range_uj
echo 1000000 >$zone/energy_uj
# 50 W: the counter continues while the tests run, replaced as a whole so that no reader sees half of it. It ends with this shell.
(
  for ((count = 1000000; ; count += 500000)); do
    kill -0 $$ 2>/dev/null || exit
    echo $count >counter && mv counter $zone/energy_uj
    sleep 0.01
  done
) &
meter=$!
trap 'kill $meter 2>/dev/null' EXIT
awk 'BEGIN {
  split("0.4 1 1 1 0.8", weight); split("3400 2800 2200 1600", clock); split("1 1.12 1.3 1.6", time); split("1 0.8 0.68 0.62", energy)
  print "stage,instruction,frequency,time,energy"
  for (layer = 1; layer <= 5; ++layer) for (kind = 1; kind <= 2; ++kind) for (c = 1; c <= 4; ++c) {
    work = weight[layer] * kind * 0.0005
    printf "%d,%s,%d,%.9g,%.9g\n", layer - 1, kind == 1 ? "forward" : "backward", clock[c], work * time[c], work * 50 * energy[c]
  }
}' >layers.csv
processors=(--set power.sysfs=sys --set power.clock_profile=layers.csv --set power.claims=claims)
limits() { # as numbers
  local file
  for file in sys/devices/system/cpu/cpufreq/policy{0,1}/scaling_{min,max}_freq; do printf '%s ' "$(<"$file")"; done
}
before=$(limits)
restore() { # waits a while: guardians work behind a rank's back
  for _ in {1..100}; do
    [[ $(limits) == "$before" ]] && break
    sleep 0.05
  done
  limits
}
is_locked() { [[ $(cat sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq 2>/dev/null) != 800000 ]]; }

train without 4
expect "without a device the job ends" 0 $?
digest=$(value digest without)

train clocked 4 "${processors[@]}" --set power.device=cpu &
job=$!
seen=no
while kill -0 $job 2>/dev/null; do
  is_locked && seen=yes
  sleep 0.01
done
wait $job
expect "with clocks of processors it ends" 0 $?
expect "with the same bits" "$digest" "$(value digest clocked)"
expect "meanwhile they were locked" yes $seen
expect "and their limits were put back" "$before" "$(restore)"
expect "it says by whose permission, for all ranks" 1 "$(grep -c '^clocks: direct on 4 ranks$' clocked.out)"
expect "joules are counted" yes "$(awk -v j="$(sed -n 's/^  "energy_J": \([0-9.]*\),*$/\1/p' clocked/report.json)" 'BEGIN { if (j > 1) print "yes" }')"

train auto 4 "${processors[@]}" --set power.device=auto --set power.nvml=no-such-library.so --inject kill:2@6:backward
expect "where there is no GPU the processors are found, and with a rank lost it ends" 0 $?
expect "with the same bits" "$digest" "$(value digest auto)"
expect "and the limits are put back" "$before" "$(restore)"
expect "it was their clocks" 1 "$(grep -c '^clocks: direct on 4 ranks$' auto.out)"

train killed 4 "${processors[@]}" --set power.device=cpu --set train.steps=100000 &
job=$!
reached killed 5
for _ in {1..400}; do
  is_locked && break
  sleep 0.01
done
expect "in the middle of a job clocks are locked" yes "$(is_locked && echo yes)"
kill_job killed
wait $job 2>/dev/null
expect "when all ranks are killed at once their guardians put the limits back" "$before" "$(restore)"

train none 4 --set power.device=auto --set power.nvml=no-such-library.so --set power.sysfs=nothing
expect "where there is neither that is the environment's fault" 5 $?
expect "and both are named" yes "$(grep -q 'no-such-library.so.*RAPL' none.out && echo yes)"
((failures == 0)) || tail -n 20 without.out clocked.out auto.out killed.out none.out
exit $((failures > 0))
