#!/usr/bin/env python3
"""range_test.py GRIDLOOM PROGRAM FORM...: under --check-ranges, in each form, every page that a CTA of a regular kernel touches was
reported for that use, everything set is released, and the program's output and exit code are what they are without.

Prints how many pages were reported per page touched, and why kernels are irregular.
"""
import os
import re
import subprocess
import sys


def run(gridloom, program, options):
    command = [gridloom, "run", "--log", "error", *options, "--", program]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def main():
    gridloom, program, forms = sys.argv[1], sys.argv[2], sys.argv[3:]
    name = os.path.basename(program)
    plain = run(gridloom, program, [])
    wrong = 0
    for form in forms:
        checked = run(gridloom, program, ["--check-ranges", form])
        log = checked.stderr.decode(errors="replace")
        if (checked.returncode, checked.stdout) != (plain.returncode, plain.stdout):
            wrong += 1
            print(f"{name}, {form}: exit code or output differs\n{log[-2000:]}")
        rows = [line for line in log.splitlines() if line.startswith("ranges: ")]
        bad = [line for line in rows if "MISSED" in line or "UNBALANCED" in line]
        wrong += len(bad)
        print("\n".join(bad or rows))
        touched, reported = (sum(int(n) for n in re.findall(rf"(\d+) {what}", "\n".join(rows))) for what in ("pages touched", "reported"))
        if touched:
            print(f"{name}, {form}: {reported / touched:.3f} pages reported per page touched")
    print(f"{'WRONG' if wrong else 'right'}: {name}")
    return 1 if wrong else 0


sys.exit(main())
