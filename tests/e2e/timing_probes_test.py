#!/usr/bin/env python3
"""Micro-benchmarks under --timing give what the device's file says. usage: timing_probes_test.py GRIDLOOM PROGRAM DEVICE"""
import json
import subprocess
import sys


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def main():
    gridloom, program, device = sys.argv[1:]
    facts = json.loads(run(gridloom, "devices", "--json", device))
    timing = facts["timing"]
    mhz = timing["clock"]["sm_mhz"]
    measured = {}
    for line in run(gridloom, "run", "--quiet", "--timing-device", device, "--", program, str(facts["sm"]["count"])).splitlines():
        name, value = line.split()
        measured[name] = float(value)
    cycles = {name: value * mhz / 1000 for name, value in measured.items()}
    failures = []

    def expect(name, value, least, most):
        print(f"{name:26} {value:12.3f}   expected {least:.3f} to {most:.3f}")
        if not least <= value <= most:
            failures.append(name)

    def near(name, value, expected, share):
        expect(name, value, expected * (1 - share), expected * (1 + share))

    dram, pcie, host, launch = timing["dram"], timing["pcie"], timing["host"], timing["launch"]
    near("L1 load, cycles", cycles["l1_load"], timing["l1" if timing["l1"]["global"] else "l2"]["latency"], 0.02)
    near("L2 load, cycles", cycles["l2_load"], timing["l2"]["latency"], 0.02)
    # Some of the loads find another row of their bank open.
    expect("DRAM load, cycles", cycles["dram_load"], dram["latency"] * 0.99, dram["latency"] * 1.15)
    peak = dram["channels"] * dram["bytes_per_cycle"] * timing["clock"]["dram_mhz"] / 1000
    expect("copy, share of DRAM's peak", measured["copy_bytes_per_ns"] / peak, 0.85, 0.95)
    for way in "to_device", "to_host":
        transfer = pcie["latency_ns"] + (8 << 20) / pcie[f"{way}_mb_s"] * 1000
        near(f"8 MiB {way}, ns", measured[f"{way}_ns"], transfer + host["call_ns"], 0.02)
    near("FMA after FMA, cycles", cycles["fma_latency"], timing["op"]["fp32"]["latency"], 0.02)
    lanes = 32 * timing["units"]["fp32"] / timing["op"]["fp32"]["interval"]
    expect("FMA lanes a cycle and SM", measured["fma_lanes_per_sm_and_ns"] * 1000 / mhz, lanes * 0.8, lanes * 1.01)
    for ways in 2, 4, 8, 16, 32:
        if timing["shared"]["bank_bytes"] == 4:
            near(f"{ways} lanes a bank, more cycles", cycles[f"banks_{ways}"] - cycles["banks_1"],
                 (ways - 1) * timing["shared"]["way_cycles"], 0.02)
        near(f"{ways} paths, times one", cycles[f"diverge_{ways}"] / cycles["diverge_1"], ways, 0.05)
    held = facts["sm"]["shared_bytes"] // (40 << 10)
    for waves in 2, 4:
        rounds = -(-waves // held)
        near(f"{waves} blocks an SM, times one", measured[f"hold_{waves}"] / measured["hold_1"], rounds, 0.05)
    # Either the device is slower, or the host that calls for the launch and for the event behind it.
    call = host["call_ns"] * mhz / 1000
    near("one launch, cycles", cycles["launch_alone"], max(call + launch["kernel_cycles"] + launch["cta_cycles"], 2 * call), 0.1)
    between = max(call, launch["dependent_cycles"] + launch["cta_cycles"])
    near("launch after launch, cycles", cycles["launch_more"], between, 0.1)
    if failures:
        sys.exit("not as expected: " + ", ".join(failures))


main()
