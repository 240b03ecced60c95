#!/usr/bin/env python3
"""The policy kernelet from programs to simulated time. usage: kernelet_test.py GRIDLOOM POINTER_CHASE TEA

Two programs, one that waits for memory and one that computes, share a simulated C2050. Kernelet profiles both, plans their slices side by
side and must beat taking what is left over; it issues the same instructions, and gives the same with profiles from a file.
"""
import json
import os
import subprocess
import sys
import tempfile


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def main():
    gridloom, chase, tea = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        traces = [os.path.join(folder, name) for name in ("chase", "tea")]
        run(gridloom, "run", "--trace", traces[0], "--", chase, "--ctas=168", "--hops=3", "--entries=262144")
        run(gridloom, "run", "--trace", traces[1], "--", tea, "--ctas=224", "--blocks=57344")
        results = json.loads(run(gridloom, "replay", "--kernels-only", "--json", "-d", "c2050", "-p", "leftover,kernelet,kernelet-probing", "--mix",
                                 *traces))
        leftover, kernelet, probing = results
        assert kernelet["counters"]["warp_instructions"] == leftover["counters"]["warp_instructions"]
        saved = 1 - kernelet["cycles"] / leftover["cycles"]
        assert saved > 0.05, f"kernelet saves {saved:.1%}"
        assert probing["cycles"] <= 1.02 * kernelet["cycles"], (probing["cycles"], kernelet["cycles"])  # the pair is as good as promised

        profiles = os.path.join(folder, "profiles.json")
        run(gridloom, "replay", "-d", "c2050", "--write-profiles", profiles, *traces)
        with open(profiles, encoding="utf-8") as file:
            kernels = json.load(file)["kernels"]
        assert len(kernels) == 2 and {kernel["warps"] for kernel in kernels} == {8, 4}, kernels
        again = json.loads(
            run(gridloom, "replay", "--kernels-only", "--json", "-d", "c2050", "-p", "kernelet", "--profiles", profiles, "--mix", *traces))
        assert again[0]["cycles"] == kernelet["cycles"], (again[0]["cycles"], kernelet["cycles"])

        with open(profiles, "w", encoding="utf-8") as file:
            file.write("{")
        for options, words in ((["--profiles", profiles], "not JSON"), (["-d", "c2050,gtx680", "--profiles", profiles], "one device")):
            done = subprocess.run([gridloom, "replay", *options, "-p", "kernelet", *traces], stderr=subprocess.PIPE, text=True)
            assert done.returncode == 125 and words in done.stderr, done.stderr
        print(f"kernelet saves {saved:.1%} of {leftover['cycles']} cycles")


main()
