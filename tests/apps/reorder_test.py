#!/usr/bin/env python3
"""reorder_test.py GRIDLOOM [--mixes] PROGRAM SETTING...: a program's output and exit code are the same when the thread blocks of its launches
run mixed, as --reorder SETTING says. With --mixes, there has to be a setting under which thread blocks run before an older launch has ended.

A program that fails by design has to fail in the same way: of faults named on standard error, the kernels are compared.
"""
import os
import re
import subprocess
import sys


def run(gridloom, program, options):
    """Exit code, standard output, kernels of faults, and what Gridloom says of the order."""
    command = [gridloom, "run", "--log", "error", *options, "--", program]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    faults = re.findall(rb"kernel [^\s,:]+", done.stderr)
    said = [line for line in done.stderr.decode(errors="replace").splitlines() if line.startswith("reorder: ")]
    return (done.returncode, done.stdout, sorted(set(faults))), said


def main():
    gridloom, arguments = sys.argv[1], sys.argv[2:]
    mixes = arguments[0] == "--mixes"
    program, settings = arguments[mixes], arguments[mixes + 1:]
    name = os.path.basename(program)
    # Kernels whose own blocks come in an order that their results show run them one after the other under --reorder.
    plain, _ = run(gridloom, program, ["--threads", "1"])
    different = ahead = 0
    for setting in settings:
        mixed, said = run(gridloom, program, ["--reorder", setting])
        print("\n".join(said))
        ahead += sum(int(n) for n in re.findall(r"; (\d+) of \d+ thread blocks ran before", "\n".join(said)))
        for what, a, b in zip(("exit code", "output", "faults"), plain, mixed):
            if a == b:
                continue
            different += 1
            print(f"{name}, {setting}: {what} differs\n  plain: {a!r:.2000}\n  mixed: {b!r:.2000}")
    if mixes and ahead == 0:
        different += 1
        print(f"{name}: no thread block ran before an older launch had ended")
    print(f"{'DIFFERENT' if different else 'same'}: {name} under --reorder {', '.join(settings)}")
    return 1 if different else 0


sys.exit(main())
