#!/usr/bin/env python3
"""device_launch_memory_test.py GRIDLOOM PROGRAM: what kernels launch takes memory of the host's while it waits or runs, and not until the
launching grid has ended: with fifty times as many launches the process takes little more."""
import re
import subprocess
import sys


def peak_kb(gridloom, program, blocks):
    """What the process has taken at most."""
    command = [gridloom, "run", "--log", "error", "--", program, str(blocks), "memory"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
    found = re.search(r"at most (\d+) KB", done.stdout)
    if done.returncode != 0 or not found:
        sys.exit(f"{blocks} blocks: exit code {done.returncode}\n{done.stdout:.4000}")
    return int(found.group(1))


def main():
    gridloom, program = sys.argv[1:]
    few, many = (peak_kb(gridloom, program, blocks) for blocks in (20, 1000))
    grown = many - few
    print(f"{few} KB with 5,760 launches, {many} KB with 288,000")
    # A kilobyte for each of the 256,000 streams would be 250 MB.
    return 1 if grown > 80_000 else 0


sys.exit(main())
