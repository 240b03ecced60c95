#!/usr/bin/env python3
"""From a program to simulated time. usage: replay_test.py GRIDLOOM PROGRAM

Traces a program, replays the trace on devices of three generations, and checks what must hold for any model: without
lowering every warp instruction of the trace is issued once, the same replay gives the same numbers with one and two host threads, the newer device is faster.
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


def replay(gridloom, *arguments):
    results = json.loads(run(gridloom, "replay", "--json", *arguments))
    for result in results:
        del result["host_seconds"]
    return results


def main():
    gridloom, program = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "program.gltrace")
        run(gridloom, "run", "--threads", "1", "--trace", trace, "--", program)
        traced = json.loads(run(gridloom, "trace", "--check", "--json", trace))
        instructions = sum(kernel["warp_instructions"] for kernel in traced["kernels"])
        devices = "gtx480,k20c,v100"
        results = replay(gridloom, "--device", devices, "--policy", "serial,leftover", trace)
        assert len(results) == 6, results
        for result in replay(gridloom, "--device", devices, "--lowering", "none", trace):
            issued = result["counters"]["warp_instructions"]
            assert issued == instructions, f"{result['device']}: {issued} issued, {instructions} in the trace"
        for result in results:
            assert result["cycles"] > 0 and result["kernels"] and result["counters"]["warp_instructions"] > 0
        again = replay(gridloom, "--device", devices, "--policy", "serial,leftover", "--threads", "2", "--jobs", "1", trace)
        assert again == results, "two replays differ"
        seconds = {(result["device"], result["policy"]): result["seconds"] for result in results}
        assert seconds["v100", "leftover"] < seconds["gtx480", "leftover"], seconds
        apart = replay(gridloom, "--device", "v100", trace, trace)
        assert [result["workload"] for result in apart] == ["program", "program-2"], apart
        assert apart[0]["cycles"] == apart[1]["cycles"] == results[5]["cycles"], "the same trace takes different times"
        together = replay(gridloom, "--device", "v100", "--policy", "serial,leftover", "--mix", trace, trace)
        assert together[0]["counters"]["warp_instructions"] == 2 * results[5]["counters"]["warp_instructions"]
        assert together[1]["cycles"] <= together[0]["cycles"], "sharing the device takes longer than taking turns"
        for result in together:  # the two are the same program, alone and together
            shared = [one["program_seconds"] for one in result["programs"]]
            alone = [one["alone_seconds"] for one in result["programs"]]
            assert alone == [results[5]["seconds"]] * 2 and max(shared) == result["seconds"], result["programs"]
            assert abs(result["stp"] - sum(alone[i] / shared[i] for i in (0, 1))) < 1e-9, result["stp"]
            assert abs(result["fairness"] - min(shared) / max(shared)) < 1e-9, result["fairness"]
        assert results[5]["stp"] is None, "a program that is alone shares nothing"
        assert results[5]["counters"]["tlb_hits"] + results[5]["counters"]["tlb_misses"] == 0, "a TLB that no device file has"
        tlb, slow_tlb = (replay(gridloom, "--device", "v100", "--set", "timing.tlb.entries=16",
                                "--set", f"timing.tlb.miss_cycles={cycles}", trace)[0] for cycles in (1, 5000))
        counted = tlb["counters"]
        sent = sum(counted[f"{kind}_requests"] for kind in ("read", "write", "write_back", "atomic"))
        assert counted["tlb_misses"] > 0 and counted["tlb_hits"] + counted["tlb_misses"] == sent, counted
        assert slow_tlb["cycles"] > tlb["cycles"], "walks of 5000 cycles cost nothing"
        for bad in ["--device", "v1000"], ["--set", "timing.tlb.entry=8"], ["--policy", "leftovers"]:
            done = subprocess.run([gridloom, "replay", *bad, trace], stderr=subprocess.PIPE, text=True)
            assert done.returncode == 125 and bad[1] in done.stderr, done.stderr
        print(f"{instructions} warp instructions on {devices}")


main()
