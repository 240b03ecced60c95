#!/usr/bin/env python3
"""command_test.py GRIDLOOM: the example of a command in docs/extending.md. GRIDLOOM is the tool with that command in it."""
import json
import subprocess
import sys

GRIDLOOM = sys.argv[1]


def run(*words):
    return subprocess.run([GRIDLOOM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


listed = run("passes")
assert listed.returncode == 0 and "slice " in listed.stdout, listed
names = [entry["name"] for entry in json.loads(run("passes", "--json").stdout)]
assert "slice" in names and all(line.split()[0] in names for line in listed.stdout.splitlines()), names
assert "  passes " in run("--help").stdout
assert "gridloom passes --json" in run("passes", "--help").stdout
wrong = run("passes", "--jsn")
assert wrong.returncode == 125 and "--json" in wrong.stderr, wrong
print(f"gridloom passes lists {len(names)} passes")
