#!/usr/bin/env python3
"""without_owners_test.py SHIM PROGRAM...: in a shim in which pages have no owners, --reorder gives each program wrong results with some seed."""
import os
import subprocess
import sys

SEEDS = range(1, 9)


def is_wrong(shim, program, seed):
    environment = {**os.environ, "LD_PRELOAD": shim, "GRIDLOOM_REORDER": str(seed), "GRIDLOOM_LOG": "error"}
    done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    if "reorder: seed" not in done.stderr or done.returncode not in (0, 1):
        sys.exit(f"{program} did not run: {done.stdout}{done.stderr}")
    return done.returncode != 0 and "FAIL" in done.stdout


def main():
    shim, programs = sys.argv[1], sys.argv[2:]
    right = 0
    for program in programs:
        wrong = [seed for seed in SEEDS if is_wrong(shim, program, seed)]
        right += not wrong
        print(f"{os.path.basename(program)}: wrong with {len(wrong)} of {len(SEEDS)} seeds")
    return 1 if right else 0


sys.exit(main())
