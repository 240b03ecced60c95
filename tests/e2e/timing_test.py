#!/usr/bin/env python3
"""run --timing. usage: timing_test.py GRIDLOOM DEVICE PROGRAM [--any-order]

The program's output and exit code are those of a plain run; simulated times are the same with other numbers of host threads; a trace
of the same run, replayed, gives the same cycles and counters. With --any-order only the launches and the
instructions alike are asked of two runs: where addresses depend on which thread comes first (parameters of launches from the device).
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


def main():
    gridloom, device, program, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        trace, table = os.path.join(folder, "program.gltrace"), os.path.join(folder, "table.json")

        def timed(*options):
            done = run(gridloom, "run", "--device", device, "--timing-json", table, *options, "--", program)
            with open(table, encoding="utf-8") as file:
                return done, json.load(file)

        plain = run(gridloom, "run", "--device", device, "--", program)
        done, first = timed("--threads", "1", "--trace", trace)
        assert done.stdout == plain.stdout, f"the output is another:\n{plain.stdout[-1000:]}\n{done.stdout[-1000:]}"
        assert "simulated on " + device in done.stderr, done.stderr
        assert first["problem"] is None and first["kernels"] and first["cycles"] > 0, first
        for kernel in first["kernels"]:
            assert 0 < kernel["occupancy"] <= 1 and kernel["ipc"] > 0 and kernel["bound_by"], kernel
        _, second = timed("--threads", "2", "--timing-threads", "2")
        if options == ["--any-order"]:
            def launches(table):
                return {kernel["symbol"]: kernel["launches"] for kernel in table["kernels"]}
            same = launches(second) == launches(first) and second["counters"]["warp_instructions"] == first["counters"]["warp_instructions"]
            assert same, "two runs differ in what was simulated"
        else:
            assert second == first, "two runs differ in simulated time"
        replayed = json.loads(run(gridloom, "replay", "--json", "--device", device, trace).stdout)[0]
        assert replayed["counters"] == first["counters"], "run and replay differ in what the device counted"
        cycles = {kernel["symbol"]: kernel["cycles"] for kernel in first["kernels"]}
        again = {kernel["symbol"]: kernel.get("kernel_cycles", kernel.get("cycles")) for kernel in replayed["kernels"]}
        assert cycles == again, f"run and replay differ: {cycles} {again}"
        print(f"{len(cycles)} kernels, {first['cycles']} cycles on {device}, in a run as in a replay")


main()
