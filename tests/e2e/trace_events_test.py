#!/usr/bin/env python3
"""Events in traces of programs. usage: trace_events_test.py GRIDLOOM LAUNCHING REGULAR

LAUNCHING has kernels that launch kernels: each such launch is an event. REGULAR runs with release code (--check-ranges): each of its
CTAs releases a range for each of the kernel's pointers, and a replay of that trace is one of the rewritten kernels.
"""
import json
import os
import subprocess
import sys
import tempfile


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def trace_of(gridloom, folder, program, *options):
    path = os.path.join(folder, "program.gltrace")
    done = run(gridloom, "run", *options, "--trace", path, "--", program)
    return path, json.loads(run(gridloom, "trace", "--check", "--json", path).stdout), done.stderr


def count(trace, kind):
    return sum(kernel["events"][kind] for kernel in trace["kernels"])


def main():
    gridloom, launching, regular = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        _, trace, _ = trace_of(gridloom, folder, launching)
        assert trace["device_launches"] > 10, trace
        assert count(trace, "device_launch") == trace["device_launches"], trace
        assert count(trace, "set_range") == count(trace, "release_range") == 0

        _, plain, _ = trace_of(gridloom, folder, regular)
        assert count(plain, "release_range") == 0
        path, trace, said = trace_of(gridloom, folder, regular, "--check-ranges", "interval", "--check-range-launches", "1")
        assert "MISSED" not in said and "UNBALANCED" not in said, said
        ctas = sum(kernel["ctas"] for kernel in trace["kernels"])
        assert ctas == sum(kernel["ctas"] for kernel in plain["kernels"])
        assert count(trace, "release_range") >= ctas, trace
        assert count(trace, "set_range") == 0, "the profiler is no part of the program"
        replayed = json.loads(run(gridloom, "replay", "--json", "--device", "v100", "--lowering", "none", path).stdout)[0]
        assert replayed["counters"]["warp_instructions"] == sum(kernel["warp_instructions"] for kernel in trace["kernels"])


main()
