#!/usr/bin/env python3
"""order_test.py GRIDLOOM PROGRAM [--programs N] [--seed S] [--jobs N] PART...: random programs keep CUDA's order, in every mode (docs/order.md).

Parts: alone, modes (slices, tracing, memcheck, narrow tasks and others), timing (simulated time under every policy), broker (two tenants at a time
under its policies, in real and in simulated time), gates (kernels that wait for the host in simulated time), sabotage (calls left out are noticed), all
(but gates: a program that asks until it likes the answer, while such a kernel waits, may take minutes); sanitized: without the launcher, the driver and PROGRAM
built with ThreadSanitizer. --programs: how many in all, spread over the parts' modes as their speed says; without it some hundred each.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time

# Kernels that wait for the host are left out where each turn of their loops is checked, and in simulated time but for the part of their own.
NO_GATES = ["--gates", "none"]
ONE_AT_A_TIME = ["--gates", "alone"]
SHORT = ["--spin", "500"]  # where each turn of a loop is simulated or checked
PATIENCE = 60
POLICIES = ["crcs-fifo", "crcs-ppcs", "crcs-ready", "dka", "dka-guarded", "fair", "gemtc", "leftover", "priority", "serial"]
# Those under which software on the device tells warps what to do: each turn is simulated.
FED_POLICIES = ["gemtc"]
# Those that profile kernels first.
SLOW_POLICIES = ["dka-predicted", "kernelet", "kernelet-probing"]
PARKED = ["--policy", "pagoda", "--set", "hardware.pagoda.schedulers=parked"]
SMALL_DEVICE = ["--timing-device", "c2050"]
BROKER_POLICIES = ["serial", "leftover", "fair", "priority"]


class Mode:
    """One way to run programs. `weight`: how many of them, against other modes of the part."""

    def __init__(self, name, run=(), program=(), weight=1.0, broker=None):
        self.name, self.run, self.program, self.weight, self.broker = name, list(run), list(program), weight, broker


PARTS = {
    "alone": (400, [
        Mode("alone", weight=20),
        Mode("one processor", ["--threads", "1"], weight=5),
        Mode("many threads", program=["--threads", "8", "--operations", "100"], weight=2),
        Mode("no time", program=["--spin", "0"], weight=5),
        Mode("long kernels", program=["--spin", "200000"], weight=2),
    ]),
    "modes": (200, [
        Mode("slices of 1", ["--slice", "1"], weight=4),
        Mode("slices of 2", ["--slice", "2"], weight=4),
        Mode("mixed thread blocks", ["--reorder", "7"], ONE_AT_A_TIME, weight=4),
        Mode("memcheck", ["--memcheck"], weight=1),
        Mode("trace", ["--trace", "{folder}/trace"], SHORT, weight=1),
        Mode("ranges", ["--check-ranges", "interval"], NO_GATES, weight=1),
        Mode("interpreted", [], weight=2),
        Mode("narrow tasks", ["--policy", "pagoda"], weight=2),
    ]),
    "timing": (90, [Mode("simulated, " + policy, ["--timing", "--policy", policy], NO_GATES + SHORT) for policy in POLICIES]
               + [Mode("simulated, " + policy, ["--timing", "--policy", policy, *SMALL_DEVICE], NO_GATES + SHORT, weight=0.1) for policy in SLOW_POLICIES]
               + [Mode("simulated, pagoda", ["--timing", *PARKED, *SMALL_DEVICE], NO_GATES + SHORT, weight=0.5)]),
    "gates": (18, [Mode("simulated, gates, " + policy, ["--timing", "--policy", policy], SHORT) for policy in POLICIES if policy not in FED_POLICIES]),
    "broker": (160, [Mode("broker, " + policy, [], ONE_AT_A_TIME if policy == "serial" else [], weight=4, broker=["--policy", policy]) for policy in BROKER_POLICIES]
               + [Mode("broker, slices, fair", ["--slice", "1"], weight=4, broker=["--policy", "fair"])]
               + [Mode("broker, simulated, " + policy, [], NO_GATES + SHORT, broker=["--policy", policy, "--timing"]) for policy in ("fair", "leftover")]),
}
# What the host tells a kernel that waits for it, and a kernel the host, goes by machine code that is not instrumented.
SANITIZED = Mode("sanitized", program=NO_GATES)
SABOTAGE = ["waits", "events", "streams", "device", "legacy", "free"]


class Broker:
    def __init__(self, gridloom, folder, options):
        self.socket = os.path.join(folder, "socket")
        command = [gridloom, "daemon", "--socket", self.socket, "--state", os.path.join(folder, "state"), *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE)
        line = self.process.stderr.readline()
        assert b"sharing" in line, line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def start(options, mode, seed, count, socket=None, extra=()):
    run = [word.replace("{folder}", options.folder) for word in mode.run]
    if socket is not None:
        run.append("--connect=" + socket)
    command = [options.gridloom, "run", "--quiet", *run, "--", options.program, *mode.program, *options.mix, "--seed", str(seed), "--programs", str(count),
               "--patience", str(PATIENCE), *extra]
    environment = dict(os.environ)
    if mode is SANITIZED:  # an instrumented library can be loaded by such a program, but not before it
        command = ["setarch", "-R", *command[command.index("--") + 1:]]
        environment["LD_LIBRARY_PATH"] = os.path.join(os.path.dirname(options.gridloom), "driver")
    if mode.name == "interpreted":
        environment["GRIDLOOM_TIERS"] = "interpret"
    return command, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def finish(name, command, process):
    """Answers whether it was right, and how many programs ran."""
    out, err = process.communicate()
    text = out.decode(errors="replace")
    if process.returncode == 0 and text.startswith("PASS"):
        print(f"{name}: {text.splitlines()[0]}", flush=True)
        ran = re.match(r"PASS: (\d+) programs", text)
        return True, int(ran.group(1)) if ran else 0
    print(f"{name}: exit code {process.returncode}\n{' '.join(command)}\n{text}{err.decode(errors='replace')[-3000:]}", flush=True)
    return False, 0


def play(options, mode, seed, count):
    if mode.broker is None:
        return finish(mode.name, *start(options, mode, seed, count))
    with tempfile.TemporaryDirectory(prefix="gridloom-order-") as folder, Broker(options.gridloom, folder, mode.broker) as broker:
        tenants = [start(options, mode, seed + tenant, (count + 1) // 2, broker.socket) for tenant in range(2)]
        results = [finish(f"{mode.name}, tenant {tenant}", *started) for tenant, started in enumerate(tenants)]
    return all(good for good, _ in results), sum(ran for _, ran in results)


def sabotage(options):
    good = True
    for what in SABOTAGE:
        mode = Mode("without " + what, program=NO_GATES)
        noticed, _ = finish(mode.name, *start(options, mode, options.seed, 2000, extra=["--sabotage", what]))
        good = good and noticed
    return good, 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gridloom")
    parser.add_argument("program")
    parser.add_argument("--programs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--mix", default="", help="options of the program for all modes, in one word")
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "sabotage", "sanitized", "all"])
    options = parser.parse_args()
    options.mix = options.mix.split()
    parts = [part for part in PARTS if part in options.parts or ("all" in options.parts and part != "gates")]
    started = time.monotonic()
    total = sum(PARTS[part][0] for part in parts)
    jobs = []
    for part in parts:
        count, modes = PARTS[part]
        if options.programs is not None:
            count = options.programs * count / total
        weights = sum(mode.weight for mode in modes)
        for number, mode in enumerate(modes):
            jobs.append((mode, options.seed * 1000 + number * 10, max(1, round(count * mode.weight / weights))))
    if "sanitized" in options.parts:
        jobs.append((SANITIZED, options.seed, options.programs or 100))
    good, ran = True, 0
    with tempfile.TemporaryDirectory(prefix="gridloom-order-") as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        options.folder = folder
        if "all" in options.parts or "sabotage" in options.parts:
            good, _ = sabotage(options)
        for right, count in pool.map(lambda job: play(options, *job), jobs):
            good, ran = good and right, ran + count
    print(f"{'PASS' if good else 'FAIL'}: {ran} programs in {time.monotonic() - started:.0f} s")
    return 0 if good else 1


sys.exit(main())
