#!/usr/bin/env python3
"""Policies that have to be given something. usage: policy_needs_test.py GRIDLOOM TWO_STREAMS

A program with two kernels in two streams, simulated on a C2050 under `kernelet`, which needs profiles: they are measured while the program
runs, come from a file, or what is missing is said. A pair that pays goes side by side, one that does not as under `leftover`; times are the
same in every run and for any number of host threads, and those of a replay. The same at a broker.
"""
import json
import os
import subprocess
import sys
import tempfile

GRIDLOOM, PROGRAM = sys.argv[1:]
FOLDER = tempfile.TemporaryDirectory(prefix="gridloom-needs-")
SOCKET = os.path.join(FOLDER.name, "socket")


def path(name):
    return os.path.join(FOLDER.name, name)


def call(*words, fails=False):
    done = subprocess.run([GRIDLOOM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=300)
    assert (done.returncode != 0) == fails, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def simulate(kind, policy, *options):
    """What the timing model says of the program, and what was said on standard error."""
    done = call("run", "--timing-device", "c2050", "--policy", policy, "--timing-json", path("table.json"), *options, "--", PROGRAM, kind)
    assert "PASS" in done.stdout, done.stdout
    with open(path("table.json"), encoding="utf-8") as file:
        table = json.load(file)
    assert table["problem"] is None and table["policy"] == policy, table
    return table, done.stderr


def check_run():
    leftover, _ = simulate("pair", "leftover")
    kernelet, said = simulate("pair", "kernelet", "--threads", "1", "--trace", path("pair.gltrace"))
    assert leftover["profiled"] == {"kernels": 0, "warp_instructions": 0}, leftover["profiled"]
    assert kernelet["profiled"]["kernels"] == 2 and kernelet["profiled"]["warp_instructions"] > 0, kernelet["profiled"]
    assert "profiled for the policy: 2 kernels" in said, said
    assert kernelet["counters"]["warp_instructions"] == leftover["counters"]["warp_instructions"]
    saved = 1 - kernelet["cycles"] / leftover["cycles"]
    assert saved > 0.05, f"kernelet saves {saved:.1%} of {leftover['cycles']} cycles"
    for options in (["--threads", "1"], ["--threads", "2", "--timing-threads", "2"]):
        again, _ = simulate("pair", "kernelet", *options)
        assert again == kernelet, f"two runs differ with {options}"
    probing, _ = simulate("pair", "kernelet-probing")
    assert probing["profiled"] == kernelet["profiled"] and probing["cycles"] < leftover["cycles"], probing["cycles"]

    replayed = json.loads(call("replay", "--json", "-d", "c2050", "-p", "kernelet", path("pair.gltrace")).stdout)[0]
    assert replayed["cycles"] == kernelet["cycles"], (replayed["cycles"], kernelet["cycles"])

    leftover, _ = simulate("alike", "leftover")
    nothing, _ = simulate("alike", "kernelet")
    assert nothing["profiled"]["kernels"] == 2 and nothing["cycles"] == leftover["cycles"], (nothing["cycles"], leftover["cycles"])
    print(f"run: kernelet saves {saved:.1%}")
    return kernelet


def check_file(kernelet):
    profiles = path("profiles.json")
    call("replay", "-d", "c2050", "--write-profiles", profiles, path("pair.gltrace"))
    given, _ = simulate("pair", "kernelet", "--profiles", profiles)
    assert given["profiled"]["kernels"] == 0 and given["cycles"] == kernelet["cycles"], (given["cycles"], kernelet["cycles"])
    with open(profiles, encoding="utf-8") as file:
        known = json.load(file)
    known["kernels"] = [kernel for kernel in known["kernels"] if kernel["kernel"] == "Chase"]
    lacking = path("lacking.json")
    with open(lacking, "w", encoding="utf-8") as file:
        json.dump(known, file)
    table, said = simulate("pair", "kernelet", "--profiles", lacking)
    leftover, _ = simulate("pair", "leftover")
    assert said.count("kernel Mix has no profile") == 1 and "Chase has no" not in said, said
    assert table["cycles"] == leftover["cycles"], (table["cycles"], leftover["cycles"])
    return profiles


def check_errors(profiles):
    rows = [
        (["run", "--policy", "kernlet", "--", PROGRAM], ["no policy 'kernlet'", "did you mean 'kernelet'?"]),
        (["run", "--policy", "kernelet", "--profiles", path("none.json"), "--", PROGRAM], ["none.json"]),
        (["daemon", "--socket", SOCKET, "--state", "off", "--policy", "kernlet"], ["did you mean 'kernelet'?"]),
        (["daemon", "--socket", SOCKET, "--state", "off", "--policy", "kernelet"],
         ["policy kernelet needs profiles of kernels", "--profiles", "replay --write-profiles", "--timing"]),
        (["daemon", "--socket", SOCKET, "--state", "off", "--policy", "kernelet-probing", "--profiles", profiles],
         ["policy kernelet-probing needs simulated time", "--timing"]),
    ]
    for words, parts in rows:
        said = call(*words, fails=True).stderr
        for part in parts:
            assert part in said, (words, part, said)
    done = call("run", "--policy", "leftover", "--profiles", profiles, "--", PROGRAM, fails=True)
    assert "policy leftover needs no profiles" in done.stderr, done.stderr


class Broker:
    def __init__(self, *options):
        words = [GRIDLOOM, "daemon", "--socket", SOCKET, "--state", "off", *options]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        self.said = ""
        while "sharing" not in self.said:
            line = self.process.stderr.readline()
            assert line, self.said
            self.said += line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.said += self.process.communicate(timeout=60)[1]
        assert self.process.returncode == 0, self.said


def state():
    return json.loads(call("ps", "--socket", SOCKET, "--json").stdout)


def run_at_broker():
    # A C2050 does not run its PTX; the program sees another device.
    call("run", "--connect=" + SOCKET, "--device", "h200", "--timing", "--timing-json", path("table.json"), "--", PROGRAM, "pair")
    with open(path("table.json"), encoding="utf-8") as file:
        return json.load(file)


def check_brokers(kernelet, profiles):
    with Broker("--device", "c2050"):
        said = call("limits", "--socket", SOCKET, "--policy", "kernelet", fails=True).stderr
        assert "policy kernelet needs profiles of kernels" in said and state()["policy"] == "fair", said
    with Broker("--device", "c2050", "--policy", "kernelet", "--profiles", profiles) as broker:
        call("run", "--connect=" + SOCKET, "--device", "h200", "--", PROGRAM, "alike")
        assert state()["policy"] == "kernelet"
    assert broker.said.count("kernel Turn has no profile") == 1 and "kernel Mix has" not in broker.said, broker.said

    with Broker("--timing", "--device", "c2050", "--policy", "kernelet") as broker:
        assert "policy kernelet acts in simulated time" in broker.said, broker.said
        table = run_at_broker()
        seen = state()
    assert seen["policy"] == "kernelet" and seen["simulated"]["profiled"] == kernelet["profiled"], seen
    for key in ("cycles", "kernels", "policy"):
        assert table[key] == kernelet[key], (key, table[key], kernelet[key])

    with Broker("--timing", "--device", "c2050", "--policy", "leftover"):
        assert call("limits", "--socket", SOCKET, "--policy", "kernelet").stdout
        table = run_at_broker()
        assert table["cycles"] == kernelet["cycles"] and state()["policy"] == "kernelet", table["cycles"]
    print("brokers: profiles are measured in simulated time, and asked for in real time")


def main():
    kernelet = check_run()
    profiles = check_file(kernelet)
    check_errors(profiles)
    check_brokers(kernelet, profiles)


main()
