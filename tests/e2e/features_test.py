#!/usr/bin/env python3
"""What goes together, as programs find it. usage: features_test.py GRIDLOOM SHIM PROGRAM

Every row of interpose/settings/features.def that options or variables can bring about: `gridloom run` says the row's sentence and starts
nothing, and a program that gets the same by variables alone finds no device, with the same sentence in the log.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "docs"))
import features  # noqa: E402

GRIDLOOM, SHIM, PROGRAM = sys.argv[1:]
FOLDER = tempfile.TemporaryDirectory(prefix="gridloom-features-")
SOCKET = os.path.join(FOLDER.name, "socket")  # nobody listens

# Of each feature: options, and the variables that do the same.
EXAMPLES = {
    "kRealDevice": (["--device", "real"], {"GRIDLOOM_DEVICE": "real"}),
    "kTasks": (["--policy", "pagoda"], {"GRIDLOOM_POLICY": "pagoda"}),
    "kMemcheck": (["--memcheck"], {"GRIDLOOM_MEMCHECK": "1"}),
    "kTrace": (["--trace", FOLDER.name + "/trace"], {"GRIDLOOM_TRACE": FOLDER.name + "/trace"}),
    "kRanges": (["--ranges", "interval"], {"GRIDLOOM_RANGES": "interval"}),
    "kTimedRanges": (["--policy", "crcs-ppcs"], {"GRIDLOOM_TIMING": "1", "GRIDLOOM_POLICY": "crcs-ppcs"}),
    "kCheckRanges": (["--check-ranges", "interval"], {"GRIDLOOM_CHECK_RANGES": "interval"}),
    "kSlice": (["--slice", "4"], {"GRIDLOOM_SLICE": "4"}),
    "kSliceCode": (["--slice-machine-code"], {"GRIDLOOM_SLICE_MACHINE_CODE": "1"}),
    "kReorder": (["--reorder", "1"], {"GRIDLOOM_REORDER": "1"}),
    "kRecordOrder": (["--record-order"], {"GRIDLOOM_RECORD_ORDER": "1"}),
    "kTiming": (["--timing"], {"GRIDLOOM_TIMING": "1"}),
    "kConnect": (["--connect=" + SOCKET, "--on-broker-loss", "embedded"], {"GRIDLOOM_CONNECT": SOCKET, "GRIDLOOM_ON_BROKER_LOSS": "embedded"}),
}
# What only a broker brings about, or what is not refused but said in another way.
WITHOUT_EXAMPLE = {"kBroker", "kBrokerTime", "kBrokerWithoutTime"}
ONLY_LAUNCHER = {frozenset({"kTasks", "kRealDevice"}),       # a program on a real GPU is told that the policy has no effect
                 frozenset({"kTimedRanges", "kConnect"})}    # a program in a broker simulates nothing itself


def run(words, environment):
    unset = {name: value for name, value in os.environ.items() if not name.startswith("GRIDLOOM_")}
    return subprocess.run(words, env={**unset, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=120)


def check(names, sentence):
    options = [word for name in names for word in EXAMPLES[name][0]]
    done = run([GRIDLOOM, "run", *options, "--", PROGRAM], {})
    assert done.returncode == 125 and done.stdout == f"gridloom: {sentence}\n", (options, done.returncode, done.stdout)
    if frozenset(names) in ONLY_LAUNCHER:
        return
    environment = {variable: value for name in names for variable, value in EXAMPLES[name][1].items()}
    done = run([PROGRAM], {**environment, "LD_PRELOAD": SHIM})
    assert sentence in done.stdout and done.returncode != 0, (environment, done.returncode, done.stdout)


def main():
    table = features.read()
    rows = [row for row in table.exclusions if not WITHOUT_EXAMPLE & {row.one, row.other}]
    assert len(rows) > 20, rows
    for row in rows:
        check([row.one, row.other], row.sentence)
    for row in table.needs:
        check([row.one], row.sentence)
    print(f"{len(rows)} pairs exclude each other, and {len(table.needs)} features lack what they are for, with their sentences")


if __name__ == "__main__":
    main()
