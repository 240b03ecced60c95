#!/usr/bin/env python3
"""gridloom compare: one run, several devices and policies. usage: compare_test.py GRIDLOOM PROGRAM"""
import json
import os
import subprocess
import sys
import tempfile


def main():
    gridloom, program = sys.argv[1:]

    def call(*arguments):
        return subprocess.run([gridloom, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")

    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "kept.gltrace")
        done = call("compare", "-d", "gtx480,v100", "-p", "serial,leftover", "--json", "--trace", trace, "--", program)
        assert done.returncode == 0, done.stderr
        compared = json.loads(done.stdout)
        assert [(result["device"], result["policy"]) for result in compared] == [
            (device, policy) for device in ("gtx480", "v100") for policy in ("serial", "leftover")], compared
        replayed = json.loads(call("replay", "-d", "gtx480,v100", "-p", "serial,leftover", "--json", trace).stdout)
        assert [result["cycles"] for result in compared] == [result["cycles"] for result in replayed]
        shown = call("compare", "-d", "v100", "--", program)
        assert shown.returncode == 0 and "v100" in shown.stdout and "cycles" in shown.stdout, shown.stdout + shown.stderr
        for arguments, words in ((["-d", "v1000", "--", program], "v1000"), (["-p", "leftovers", "--", program], "leftovers"),
                                 (["-d", "v100"], "no program"), (["--", "false"], "exit code 1"), (["--", "true"], "did not use the GPU")):
            done = call("compare", *arguments)
            assert done.returncode == 125 and words in done.stderr, (arguments, done.stderr)
        print(", ".join(f"{result['device']} {result['policy']}: {result['cycles']} cycles" for result in compared))


main()
