#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run and its simulation: five ranks in two pipelines lose three ranks, and `rheo simulate` gets the same losses.

    python3 bench/simulate/against_a_run.py RHEO MPIRUN FOLDER [--pace MS] [--steps N]

RHEO is the executable, MPIRUN the launcher of the same build with its options, in one argument. Computations are those of an emulated device that takes
the time of a clock profile, MS milliseconds for the forward of a block (40), so that five ranks on few cores do not wait for each other's cores.
Links and the phases of a recovery are measured first: by `rheo info --cluster`, and by a run at the pace of the machine that loses one rank. The first
step is left out: a new run computes it twice, for its scales. Prints a table.
"""
import argparse
import glob
import json
import os
import shlex
import subprocess
import sys

LAYERS = 7
KILLS = [(1, 0.2, "forward"), (3, 0.45, "backward"), (4, 0.75, "forward")]  # rank, at which part of the steps, in which phase

CONFIG = """schema = 1
[model]
vocabulary = 256
context = 32
width = 32
heads = 2
blocks = 5
[data]
paths = ["text"]
[train]
steps = {steps}
microbatches = 8
microbatch = {{ sequences = 2, tokens = 16 }}
eval_microbatches = 4
[plan]
pipelines = [2, 3]
min_ranks = 2
[checkpoint]
at_end = false
[power]
device = "emulated"
clock_profile = "clocks.csv"
pace = "profile"
[run]
sample_tokens = 0
"""


def write_inputs(pace, steps):
    with open("text", "w") as text:
        text.write("water flows around the stone and on to the sea\n" * 400)
    with open("job.toml", "w") as config:
        config.write(CONFIG.format(steps=steps))
    with open("clocks.csv", "w") as profile:
        profile.write("stage,instruction,frequency,time,energy\n")
        for layer in range(LAYERS):
            block = 1.0 if 0 < layer < LAYERS - 1 else 0.5
            for forwards, name in ((1, "forward"), (2, "backward")):
                work = pace * 1e-3 * forwards * block
                for clock, time, energy in ((1400, 1.0, 1.0), (1200, 1.12, 0.8), (1000, 1.3, 0.68)):
                    profile.write(f"{layer},{name},{clock},{work * time:.9g},{work * 300 * energy:.9g}\n")


def call(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def events(folder):
    for path in sorted(glob.glob(f"{folder}/trace/rank-*.jsonl")):
        with open(path) as file:
            yield from (e for e in map(json.loads, file) if e["name"] in ("F", "B", "merge", "update"))


def begins_of_run(folder, steps):
    """The first computation of each step, and the last update."""
    begins, end = [float("inf")] * steps, 0.0
    for e in events(folder):
        if e["step"] < steps and e["name"] != "merge":  # not of the evaluation behind them
            begins[e["step"]] = min(begins[e["step"]], e["start_s"])
            end = max(end, e["end_s"])
    return begins + [end]


def simulate(rheo, losses):
    with open("faults.csv", "w") as file:
        file.write("time_s,event,what,value\n" + "".join(f"{time:.9f},lose,rank:{rank},\n" for rank, time in losses))
    command = [rheo, "simulate", "job.toml", "--cluster", "cluster.toml", "--csv", "steps.csv", "--json"]
    out = json.loads(call(command + (["--faults", "faults.csv"] if losses else [])))
    with open("steps.csv") as file:
        rows = [line.strip().split(",") for line in list(file)[1:]]
    # The row of a broken step begins after the recovery, so a step begins where the one before it ends.
    return [float(rows[0][2])] + [float(row[2]) + float(row[3]) for row in rows], out["policies"][0]


def until_kill(folder, begins, rank, step, phase):
    """From the begin of a step to the first forward or backward of the rank, as in the step before."""
    name = "F" if phase == "forward" else "B"
    return min(e["start_s"] for e in events(folder) if e["rank"] == rank and e["step"] == step - 1 and e["name"] == name) - begins[step - 1]


def lengths(begins):
    return [b - a for a, b in zip(begins, begins[1:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rheo")
    parser.add_argument("mpirun")
    parser.add_argument("folder")
    parser.add_argument("--pace", type=float, default=40.0)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    rheo = os.path.abspath(options.rheo)
    launch = shlex.split(options.mpirun) + ["-n", "5", rheo]
    os.makedirs(options.folder, exist_ok=True)
    os.chdir(options.folder)
    write_inputs(options.pace, options.steps)
    kills = [(rank, int(part * options.steps), phase) for rank, part, phase in KILLS]

    call(launch + ["info", "--cluster", "cluster.toml"])
    call(launch + ["train", "job.toml", "--set", "run.folder=measured", "--set", "power.pace=machine", "--inject", "kill:1@20:forward"])
    with open("cluster.toml", "a") as cluster:
        cluster.write('\n[recovery]\nreport = "measured/report.json"\n')
    call(launch + ["train", "job.toml", "--set", "run.folder=run"] + [w for rank, step, phase in kills for w in ("--inject", f"kill:{rank}@{step}:{phase}")])

    run = begins_of_run("run", options.steps)
    losses = []
    run_recovery = 0.0
    for rank, step, phase in kills:  # as far into the step as in the run
        begins, _ = simulate(rheo, losses)
        into = until_kill("run", run, rank, step, phase)
        losses.append((rank, begins[step] + into))
        run_recovery += max(e["end_s"] for e in events("run") if e["name"] == "merge" and e["step"] == step) - (run[step] + into)
    simulated, account = simulate(rheo, losses)

    broken = {step for _, step, _ in kills}
    sim_recovery = account["recovery_ns"] * 1e-9

    def of(begins, recovery):
        each = lengths(begins)
        good = sum(t for step, t in enumerate(each) if step > 0 and step not in broken)
        cost = sum(each[step] - each[step - 1] for step in broken)
        return {"undisturbed steps": good, "lost in broken steps": cost - recovery, "recoveries": recovery, "all": begins[-1] - begins[1]}

    a, b = of(run, run_recovery), of(simulated, sim_recovery)
    print(f"{'':24}{'run, s':>10}{'simulated':>12}{'off by':>10}")
    for name in a:
        print(f"{name:24}{a[name]:10.3f}{b[name]:12.3f}{100 * (b[name] / a[name] - 1):9.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
