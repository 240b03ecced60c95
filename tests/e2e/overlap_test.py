#!/usr/bin/env python3
"""Programs whose parts overlap while they run. usage: overlap_test.py GRIDLOOM WORKLOADS APPS CASE

run --policy crcs-... simulates a program with its profilers, its release code, its copies page by page and its storage as replay does with
a trace of it: the same cycles and counters. CASE: a program of WORKLOADS or APPS, `faster`, `alone`, `host_reuse`, `too_large` or `refused`.
"""
import json
import os
import subprocess
import sys
import tempfile

GRIDLOOM, WORKLOADS, APPS, CASE = sys.argv[1:]
FOLDER = tempfile.TemporaryDirectory(prefix="gridloom-overlap-")
DEVICE = ["--timing-device", "crcs"]


def path(name):
    return os.path.join(FOLDER.name, name)


def call(*words, fails=False):
    done = subprocess.run([GRIDLOOM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=280)
    assert (done.returncode != 0) == fails, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def timed(program, *options):
    """What the program printed, and the table of its times."""
    done = call("run", *DEVICE, "--timing-json", path("table.json"), *options, "--", *program)
    with open(path("table.json"), encoding="utf-8") as file:
        table = json.load(file)
    assert table["problem"] is None, table["problem"]
    return done, table


def replayed(trace, *options):
    return json.loads(call("replay", "--json", "-d", "crcs", *options, trace).stdout)[0]


def same(live, replay, what):
    times = [table["cycles"] for table in (live, replay)]
    assert times[0] == times[1], (what, times)
    assert live["counters"] == replay["counters"], what


def check(program):
    """A run, the replay of its trace, a run without one, and the replay of a trace that was made without simulating anything."""
    plain = call("run", "--", *program).stdout
    trace, again = path("live.gltrace"), path("plain.gltrace")
    call("run", "--trace", again, "--ranges", "interval,strided", "--", *program)
    storage = ["--storage", "500MB/s"]
    rows = [("crcs-ppcs", storage), ("leftover", storage), ("crcs-ready", ["--hardware", "crcs", "--set", "hardware.crcs.ranges=strided"]),
            ("leftover", ["--hardware", "crcs"])]
    for number, (policy, options) in enumerate(rows):
        options = ["--policy", policy, *options]
        form = [] if options == ["--policy", "leftover", *storage] else ["--ranges", "strided" if "strided" in options[-1] else "interval"]
        done, live = timed(program, *options, "--trace", trace, *form)
        assert done.stdout == plain, (options, done.stdout, plain)
        same(live, replayed(trace, *options), options)
        same(live, replayed(again, *options), options)
        os.remove(trace)
        if number == 0:
            _, bare = timed(program, *options, "--threads", "2", "--timing-threads", "2")
            assert bare == live, (options, "two runs differ", bare["cycles"], live["cycles"])
        print(policy, live["cycles"], {name: live["counters"].get(name) for name in ("tracked_kernels", "untracked_kernels")})


def check_faster():
    """Kernels overlap, with each other and with copies: what the part is for. --ranges chooses the ranges."""
    program = [os.path.join(WORKLOADS, "hsp"), "--small"]
    storage = ["--storage", "500MB/s"]
    _, one_by_one = timed(program, *storage)
    _, overlapped = timed(program, "--policy", "crcs-ppcs", *storage)
    assert overlapped["counters"]["tracked_kernels"] == 10 and overlapped["counters"]["untracked_kernels"] == 0, overlapped["counters"]
    assert overlapped["counters"]["set_operations"] > 0, overlapped["counters"]
    assert overlapped["counters"]["most_kernels"] > 1, overlapped["counters"]
    assert overlapped["cycles"] < 0.9 * one_by_one["cycles"], (overlapped["cycles"], one_by_one["cycles"])
    _, without = timed(program)
    assert one_by_one["cycles"] > without["cycles"], "storage takes no time"
    program = [os.path.join(WORKLOADS, "stn"), "--small"]
    _, interval = timed(program, "--policy", "crcs-fifo")
    _, strided = timed(program, "--policy", "crcs-fifo", "--ranges", "strided")
    _, keyed = timed(program, "--policy", "crcs-fifo", "--set", "hardware.crcs.ranges=strided")
    assert strided == keyed and strided["hardware"]["hardware.crcs.ranges"] == "strided", strided["hardware"]
    assert interval["counters"]["set_operations"] != strided["counters"]["set_operations"], "ranges of both forms are the same"


def check_alone():
    """A program no kernel of which can overlap says why, once, and runs; so do replays of its trace, however many there are."""
    def said(done):
        return [line.split(" overlaps with others: ")[1] for line in done.stderr.splitlines() if " overlaps with others: " in line]

    program = [os.path.join(APPS, "managed_memory")]
    plain = call("run", "--", *program).stdout
    done, table = timed(program, "--policy", "crcs-ppcs")
    why = said(done)
    assert done.stdout == plain and len(why) == 1, (done.stdout, done.stderr)
    assert table["counters"]["tracked_kernels"] == 0 and table["counters"]["untracked_kernels"] > 0, table["counters"]
    trace, policies = path("alone.gltrace"), ["-d", "crcs", "-p", "leftover,crcs-fifo,crcs-ppcs"]
    assert said(call("compare", "--trace", trace, *policies, "--", *program)) == why
    assert said(call("replay", *policies, trace)) == why
    assert not said(call("replay", "-d", "crcs", "-p", "leftover", trace))
    recorded = ["-d", "crcs", "-p", "crcs-fifo,crcs-ppcs", "--set", "hardware.crcs.order=recorded"]
    assert call("replay", *recorded, trace).stderr.count("says of no copy in which order") == 1
    assert "says of no copy" not in call("replay", *policies, trace).stderr
    overlaps = [os.path.join(APPS, "vectoradd")]
    assert not said(timed(overlaps, "--policy", "crcs-ppcs")[0])
    assert not said(call("compare", *policies, "--", *overlaps))


def check_host_reuse():
    """Memory of the host's that a program fills anew is read when the copy before has been sent: copies from one buffer wait for a kernel that
    the first of them waits for, copies from buffers of their own do not."""
    program = os.path.join(APPS, "host_reuse")
    cycles = {}
    check([program, "one"])
    for buffers in ("one", "two"):
        for policy in ("crcs-fifo", "leftover"):
            options = ["--policy", policy, "--storage", "5GB/s"]
            cycles[buffers, policy] = timed([program, buffers], *options)[1]["cycles"]
    assert cycles["one", "crcs-fifo"] > 1.1 * cycles["two", "crcs-fifo"], cycles
    assert cycles["one", "leftover"] == cycles["two", "leftover"], cycles
    assert cycles["one", "crcs-fifo"] < cycles["one", "leftover"], cycles


def check_too_large():
    """A kernel that has no registers left for its release code says so, by name and once, and runs as one of which nothing is known."""
    program, policy = [os.path.join(WORKLOADS, "hsp"), "--small"], ["--policy", "crcs-ppcs"]
    trace = path("large.gltrace")
    call("run", "--trace", trace, "--ranges", "interval", "--", *program)
    for registers in range(40, 4, -1):
        few = ["--set", f"block.registers={256 * registers},sm.registers={256 * registers}"]
        done, table = timed(program, *policy, *few)
        said = [line.split("gridloom: ")[-1] for line in done.stderr.splitlines() if "does not overlap with others" in line]
        if said:
            break
        assert table["counters"]["tracked_kernels"] == 10, (registers, table["counters"])
    assert len(said) == 1 and "with release code, a CTA takes" in said[0], (registers, said)
    assert table["counters"]["tracked_kernels"] == 0 and table["counters"]["untracked_kernels"] == 10, table["counters"]
    few = [word for setting in few[1].split(",") for word in ("--set", setting)]
    again = call("replay", "-d", "crcs", *policy, *few, trace)
    assert said[0].split("kernel ")[1] in again.stderr, (said, again.stderr)


def check_refused():
    program = ["--", os.path.join(APPS, "vectoradd")]
    trace = path("trace")
    call("run", "--trace", trace, "--ranges", "interval", *program)
    socket = path("socket")
    rows = [
        (["run", *DEVICE, "--policy", "crcs-ppcs", "--connect=" + socket, "--on-broker-loss", "embedded", *program],
         ["policies crcs-...", "--connect"]),
        (["run", *DEVICE, "--hardware", "crcs", "--slice", "4", *program], ["the part crcs", "--slice"]),
        (["run", *DEVICE, "--policy", "crcs-fifo", "--ranges", "interval", "--memcheck", *program], ["--ranges and --memcheck"]),
        (["run", "--timing", "--ranges", "interval", *program], ["--ranges is for a trace", "--policy crcs-ppcs"]),
        (["run", *DEVICE, "--policy", "crcs-fifo", "--storage", "fast", *program], ["--storage is 'fast'", "500MB/s"]),
        (["run", *DEVICE, "--policy", "crcs-fifo", "--set", "hardware.crcs.ranges=wide", *program], ["expected interval or strided"]),
        (["daemon", "--socket", socket, "--state", "off", "--timing", "--policy", "crcs-fifo"],
         ["policy crcs-fifo needs the ranges of CTAs", "gridloom run --timing --policy crcs-fifo"]),
        (["daemon", "--socket", socket, "--state", "off", "--policy", "crcs-fifo"], ["policy crcs-fifo needs"]),
        (["replay", "-d", "crcs", "-p", "crcs-fifo", "--kernels-only", trace], ["needs whole programs", "--kernels-only"]),
    ]
    for words, parts in rows:
        said = call(*words, fails=True).stderr
        for part in parts:
            assert part in said, (words, part, said)
        assert said.count("\n") <= 2, (words, said)


CASES = {"faster": check_faster, "alone": check_alone, "host_reuse": check_host_reuse, "too_large": check_too_large, "refused": check_refused}
if CASE in CASES:
    CASES[CASE]()
else:
    workload = os.path.join(WORKLOADS, CASE)
    check([workload, "--small"] if os.path.exists(workload) else [os.path.join(APPS, CASE)])
