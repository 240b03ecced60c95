#!/usr/bin/env python3
"""broker_timing_test.py GRIDLOOM WORKLOADS [--device NAME] [--full] [--policies A,B] [--json FILE]

Eight different programs (Kernelet's workloads) under one broker that simulates time, once for each policy: their results are, bit by
bit, those of running alone; the simulated time until the last one has ended is printed. --full takes the programs' default inputs,
else they are small. Also: a program alone at such a broker has the times of `run --timing`, and times do not depend on the order in
which programs join; and what programs take alone, as `daemon --timing-alone` and `replay --mix` say it, is the same.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

SMALL = {
    "pc": ["--ctas=56", "--entries=200000"],
    "sad": ["--width=128", "--height=64"],
    "spmv": ["--rows=1024", "--columns=4096"],
    "st": ["--nx=64", "--ny=32", "--nz=16", "--planes=8"],
    "mm": ["--m=128", "--n=128", "--k=64"],
    "mriq": ["--voxels=8192", "--samples=16"],
    "bs": ["--ctas=64", "--options=65536"],
    "tea": ["--ctas=64", "--blocks=32768"],
}
PATIENCE = 3000
FOLDER = tempfile.TemporaryDirectory(prefix="gridloom-e2e-")
SOCKET = os.path.join(FOLDER.name, "socket")

parser = argparse.ArgumentParser()
parser.add_argument("gridloom")
parser.add_argument("workloads")
parser.add_argument("--device", default="c2050")
parser.add_argument("--policies", default="serial,leftover,kernelet")
parser.add_argument("--full", action="store_true")
parser.add_argument("--json")
ARGS = parser.parse_args()


def command(name, *options):
    program = [os.path.join(ARGS.workloads, name)] + ([] if ARGS.full else SMALL[name])
    return [ARGS.gridloom, "run", "--log", "warn", *options, "--", *program]


def finish(process):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, (process.returncode, out, err)
    return out, err


def start(*words):
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def start_broker(*options, device=ARGS.device):
    broker = subprocess.Popen([ARGS.gridloom, "daemon", "--socket", SOCKET, "--state", "off", "--device", device, "--timing", *options],
                              stderr=subprocess.PIPE)
    line = broker.stderr.readline()
    assert b"sharing" in line, line
    return broker


def stop(broker):
    broker.terminate()
    broker.wait()
    assert broker.returncode == 0, broker.stderr.read()


def state():
    return json.loads(subprocess.run([ARGS.gridloom, "ps", "--socket", SOCKET, "--json"], check=True, stdout=subprocess.PIPE).stdout)


def check_alone():
    """What a program's own timing model says, and the broker's."""
    for policy in ("leftover", "serial"):
        tables = []
        for place in ("own", "broker"):
            path = os.path.join(FOLDER.name, place + ".json")
            if place == "own":
                finish(start(*command("pc", "--timing", "--timing-device", ARGS.device, "--policy", policy, "--timing-json", path)))
            else:
                broker = start_broker("--policy", policy)
                finish(start(*command("pc", "--connect=" + SOCKET, "--timing", "--timing-json", path)))
                stop(broker)
            with open(path, encoding="utf-8") as file:
                tables.append(json.load(file))
        for key in ("device", "cycles", "kernels", "copies", "problem"):
            assert tables[0][key] == tables[1][key], (policy, key, tables[0][key], tables[1][key])
    print("alone: the broker's times are those of run --timing")


def check_device_file():
    """The broker's device may be a file, which its programs find, wherever they were started."""
    path = os.path.join(FOLDER.name, "own device.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("inherits: c2050\nname: of a file\n")
    broker = start_broker(device=path)
    program = [os.path.join(ARGS.workloads, "pc"), *SMALL["pc"]]
    out, err = finish(subprocess.Popen([os.path.abspath(ARGS.gridloom), "run", "--log", "warn", "--connect=" + SOCKET, "--timing", "--",
                                        *map(os.path.abspath, program[:1]), *program[1:]],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/"))
    assert b"PASS" in out and b"simulated on own device" in err, (out, err)
    stop(broker)


def together(policy, alone, names, options):
    """Runs all programs, started in this order; the simulated milliseconds until the last one had ended."""
    broker = start_broker("--policy", policy, "--timing-wait-for", str(len(names)), *options)
    processes = {name: start(*command(name, "--connect=" + SOCKET, "--tenant", name)) for name in names}
    for name, process in processes.items():
        out, err = finish(process)
        assert out == alone[name], f"{name} under {policy}: {out!r}\nalone: {alone[name]!r}"
        assert b"simulation" not in err, err
    seen = state()
    stop(broker)
    assert seen["simulated"]["problem"] is None and seen["dropped_total"] == 0, seen
    for tenant in seen["tenants"]:
        assert tenant["simulated_seconds"] > 0 and tenant["faults"] == 0, tenant
    return seen["simulated"]["end_seconds"] * 1e3


def write_profiles():
    traces = []
    for name in SMALL:
        traces.append(os.path.join(FOLDER.name, name + ".gltrace"))
        finish(start(*command(name, "--trace", traces[-1])))
    profiles = os.path.join(FOLDER.name, "profiles.json")
    finish(start(ARGS.gridloom, "replay", "--device", ARGS.device, "--write-profiles", profiles, *traces))
    return profiles


def expected_sharing(policy, names):
    """By program: turnaround time and time alone, as a replay of their traces says it."""
    traces = []
    for name in names:
        traces.append(os.path.join(FOLDER.name, name + ".shared.gltrace"))
        finish(start(*command(name, "--trace", traces[-1])))
    out, _ = finish(start(ARGS.gridloom, "replay", "--json", "--device", ARGS.device, "--policy", policy, "--mix", *traces))
    return [(one["program_seconds"], one["alone_seconds"]) for one in json.loads(out)[0]["programs"]]


def check_slowdown(policy, names, order):
    """What the broker says of programs that share the device, and `replay --mix` of their traces."""
    answer = 5e-6  # host.sync_ns of the device: a program ends when it has heard of its last work's end, which a broker does not count
    expected = expected_sharing(policy, names)
    broker = start_broker("--policy", policy, "--timing-alone", str(len(names)), "--timing-wait-for", str(len(names)))
    assert "stp" not in state()["simulated"], state()
    for process in [start(*command(name, "--connect=" + SOCKET, "--tenant", name)) for name in order]:
        finish(process)
    for _ in range(600):  # where they are alone they go on when they have ended
        tenants = {tenant["name"]: tenant for tenant in state()["tenants"]}
        seen = [(tenants[name].get("turnaround_seconds", 0) + answer, tenants[name].get("alone_seconds", 0) + answer) for name in names]
        if all(abs(a - b) < 1e-12 for pair in zip(seen, expected) for a, b in zip(*pair)):
            break
        time.sleep(0.1)
    else:
        raise AssertionError(f"{policy}: {seen} at the broker, {expected} replayed")
    progress = [tenants[name]["alone_seconds"] / tenants[name]["turnaround_seconds"] for name in names]
    simulated = state()["simulated"]
    assert abs(simulated["stp"] - sum(progress)) < 1e-9 and abs(simulated["fairness"] - min(progress) / max(progress)) < 1e-9, simulated
    assert abs(simulated["antt"] - sum(1 / one for one in progress) / len(progress)) < 1e-9, simulated
    listing = finish(start(ARGS.gridloom, "ps", "--socket", SOCKET))[0].decode()
    assert f"STP {simulated['stp']:.3f}" in listing and f"{tenants[names[0]]['slowdown']:.2f}" in listing, listing
    stop(broker)
    print(f"{policy}: STP {simulated['stp']:.3f}, ANTT {simulated['antt']:.3f}, fairness {simulated['fairness']:.3f}")


def main():
    names = list(SMALL)
    alone = {name: finish(start(*command(name)))[0] for name in names}
    for name, out in alone.items():
        assert b"PASS" in out and out.count(b": ") >= 2, (name, out)
    check_alone()
    check_device_file()
    if ARGS.device == "c2050" and not ARGS.full:
        for policy in ("leftover", "serial"):
            check_slowdown(policy, ["pc", "tea"], ["tea", "pc"])
    profiles = write_profiles()
    times = {}
    for policy in ARGS.policies.split(","):
        options = ["--profiles", profiles] if policy == "kernelet" else []
        times[policy] = together(policy, alone, names, options)
        print(f"{policy}: {times[policy]:.4f} ms simulated on {ARGS.device}", flush=True)
    if not ARGS.full:
        policy = ARGS.policies.split(",")[-1]
        again = together(policy, alone, names[::-1], ["--profiles", profiles])
        assert again == times[policy], f"{policy}: {times[policy]} ms, and {again} ms when the programs start the other way round"
        assert times["serial"] >= max(times.values()) * 0.999, times
    if ARGS.json:
        with open(ARGS.json, "w", encoding="utf-8") as file:
            json.dump({"device": ARGS.device, "milliseconds": times}, file, indent=2)


main()
