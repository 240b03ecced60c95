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
        named = json.loads(call("compare", "-d", "v100", "--json", "--", program).stdout)[0]["workload"]
        assert named == os.path.basename(program), named
        odd = os.path.join(folder, "vector add+1 (100%)")
        os.symlink(program, odd)
        named = json.loads(call("compare", "-d", "v100", "--json", "--", odd).stdout)[0]["workload"]
        assert named == "vector add+1 (100_)", named
        for arguments, words in ((["-d", "v1000", "--", program], "v1000"), (["-p", "leftovers", "--", program], "leftovers"),
                                 (["-d", "v100"], "no program"), (["--", "false"], "exit code 1"), (["--", "true"], "did not use the GPU")):
            done = call("compare", *arguments)
            assert done.returncode == 125 and words in done.stderr, (arguments, done.stderr)
        # Three processes, two of them at once, and the shell that runs them.
        several = ("--", "sh", "-c", f'"{program}" && {{ "{program}" & "{program}" && wait; }}')
        kept = os.path.join(folder, "several.gltrace")
        done = call("compare", "-d", "v100,gtx480", "--json", "--trace", kept, *several)
        assert done.returncode == 0 and "3 processes" in done.stderr and "alone" in done.stderr, done.stderr
        each = json.loads(done.stdout)
        cycles = {result["device"]: result["cycles"] for result in compared if result["policy"] == "leftover"}
        assert len(each) == 6 and all(result["cycles"] == cycles[result["device"]] for result in each), (each, cycles)
        assert sorted(name for name in os.listdir(folder) if "several" in name) == [f"several-{i}.gltrace" for i in (1, 2, 3)]
        mixed = call("compare", "-d", "v100", "--mix", "--json", *several)
        assert "together" in mixed.stderr and len(json.loads(mixed.stdout)) == 1, mixed.stderr
        print(", ".join(f"{result['device']} {result['policy']}: {result['cycles']} cycles" for result in compared))


main()
