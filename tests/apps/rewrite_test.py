#!/usr/bin/env python3
"""rewrite_test.py GRIDLOOM PASS PROGRAM...: copies of whole programs that `gridloom rewrite` wrote, with other PTX inside, run and give the
same as the programs themselves; whole and in slices of 7."""
import os
import re
import subprocess
import sys
import tempfile


def call(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def main():
    gridloom, passes, programs = sys.argv[1], sys.argv[2], sys.argv[3:]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for program in programs:
            name = os.path.basename(program)
            copy = os.path.join(folder, name)
            written = call([gridloom, "rewrite", program, "--pass", passes, "-o", copy])
            changed = len(re.findall(r"^  *changed ", written.stdout.decode(), re.M))
            if written.returncode or not changed:
                wrong += 1
                print(f"{name}: nothing was rewritten\n{written.stdout.decode()}{written.stderr.decode()}")
                continue
            before = call([gridloom, "run", "--", program])
            for options in [], ["--slice", "7"]:
                after = call([gridloom, "run", *options, "--", copy])
                if (before.returncode, before.stdout) != (after.returncode, after.stdout):
                    wrong += 1
                    print(f"{name}: the copy gives something else {options}\n{after.stdout.decode()}{after.stderr.decode()}")
            print(f"{name}: {changed} kernels rewritten")
    return 1 if wrong else 0


sys.exit(main())
