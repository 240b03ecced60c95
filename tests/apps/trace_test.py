#!/usr/bin/env python3
"""Runs a program under --trace and checks the trace. usage: trace_test.py GRIDLOOM PROGRAM

The program must pass, and every launch in the trace must be complete, with as many accesses as its path has memory instructions.
"""
import json
import os
import subprocess
import sys
import tempfile


def main():
    gridloom, program = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "program.gltrace")
        run = subprocess.run([gridloom, "run", "--trace", trace, "--", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace")
        if run.returncode != 0:
            sys.exit(f"under --trace the program ended with {run.returncode}:\n{run.stdout[-2000:]}")
        if not os.path.exists(trace):
            print("no trace: the program makes no use of the driver in this process")
            return
        shown = subprocess.run([gridloom, "trace", "--check", "--json", trace], stdout=subprocess.PIPE, text=True)
        if shown.returncode != 0:
            sys.exit(f"the trace is not whole:\n{shown.stdout[-4000:]}")
        kernels = json.loads(shown.stdout)["kernels"]
        print(f"{len(kernels)} kernels, {sum(kernel['warp_instructions'] for kernel in kernels)} warp instructions")


main()
