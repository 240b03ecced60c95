#!/usr/bin/env python3
"""range_test.py GRIDLOOM PROGRAM FORM[:N]...: under --check-ranges, in each form, every page that a CTA of a regular kernel touches was
reported for that use, everything set is released, and the program's output and exit code are what they are without. With N, the
first N launches of each kernel are checked, and the program has to have one that is launched more often.

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
        form, _, most = form.partition(":")
        limit = ["--check-range-launches", most] if most else []
        checked = run(gridloom, program, ["--check-ranges", form, *limit])
        log = checked.stderr.decode(errors="replace")
        if (checked.returncode, checked.stdout) != (plain.returncode, plain.stdout):
            wrong += 1
            print(f"{name}, {form}: exit code or output differs\n{log[-2000:]}")
        rows = [line for line in log.splitlines() if line.startswith("ranges: ")]
        bad = [line for line in rows if "MISSED" in line or "UNBALANCED" in line]
        wrong += len(bad)
        print("\n".join(bad or rows))
        if most:
            counts = [(int(n), int(u)) for n, u in re.findall(r"(\d+) launches, (\d+) unchecked", log)]
            as_asked = all(n - u == min(n, int(most)) for n, u in counts) and any(u for _, u in counts)
            wrong += not as_asked
            print("" if as_asked else f"{name}: launches and those unchecked are {counts}")
        touched, reported = (sum(int(n) for n in re.findall(rf"(\d+) {what}", "\n".join(rows))) for what in ("pages touched", "reported"))
        if touched:
            print(f"{name}, {form}: {reported / touched:.3f} pages reported per page touched")
    print(f"{'WRONG' if wrong else 'right'}: {name}")
    return 1 if wrong else 0


sys.exit(main())
