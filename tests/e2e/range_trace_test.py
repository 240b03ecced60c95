#!/usr/bin/env python3
"""Traces with ranges change nothing. usage: range_trace_test.py GRIDLOOM RANGE_TRACE [--replay] PROGRAM [ARGUMENT...]

Under --trace with --ranges, a program's output and exit code are what they are without. What must hold of such a trace is checked by RANGE_TRACE
(range_trace.cpp). --replay: it replays to the very same result as the trace of the same launches without ranges.
"""
import json
import os
import subprocess
import sys
import tempfile


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def replay(gridloom, *arguments):
    done = run(gridloom, "replay", "--json", "--device", "gtx480", *arguments)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    results = json.loads(done.stdout)
    for result in results:
        for name in "host_seconds", "workload", "key", "traces":  # what says which file it was
            del result[name]
        for program in result["programs"]:
            del program["program"]
    return results


def main():
    gridloom, range_trace, *program = sys.argv[1:]
    replays = program[0] == "--replay"
    program = program[replays:]
    plain = run(gridloom, "run", "--log", "error", "--", *program)
    with tempfile.TemporaryDirectory() as folder:
        trace, without = os.path.join(folder, "ranges.gltrace"), os.path.join(folder, "without.gltrace")
        traced = run(gridloom, "run", "--log", "error", "--trace", trace, "--ranges", "interval,strided", "--", *program)
        assert (traced.returncode, traced.stdout) == (plain.returncode, plain.stdout), (
            f"{traced.returncode} and not {plain.returncode}:\n" + (traced.stdout + traced.stderr).decode(errors="replace")[-2000:])
        checked = run(range_trace, trace, without)
        print((checked.stdout + checked.stderr).decode(errors="replace"), end="")
        if checked.returncode != 0:
            sys.exit(1)
        listed = run(gridloom, "trace", "--json", trace)
        assert listed.returncode == 0, listed.stderr
        listed = json.loads(listed.stdout)
        forms = {form["form"]: form for form in listed["ranges"]}
        launches = sum(kernel["launches"] for kernel in listed["kernels"])
        refused = sum(reason["launches"] for reason in listed["no_ranges"])
        with_ranges = max((form["launches"] for form in forms.values()), default=0)
        assert plain.returncode != 0 or with_ranges + refused >= launches, listed
        assert all(form["set"] == form["released"] for form in forms.values()), forms
        if replays:
            for options in [], ["--kernels-only"]:
                with_them, without_them = (replay(gridloom, *options, file) for file in (trace, without))
                assert with_them == without_them, "ranges change a replay"


main()
