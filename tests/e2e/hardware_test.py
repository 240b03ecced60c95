#!/usr/bin/env python3
"""Proposed parts on the command line. usage: hardware_test.py GRIDLOOM PROGRAM

One trace with and without a part in one report; a program in simulated time with the part, alone and through a broker; a sweep; mistakes.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile
import time

PART = "lazy-ctas"
KEY = "hardware.lazy-ctas.watch"


def main():
    gridloom, program = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    part = json.loads(subprocess.run([gridloom, "hardware", "--json", PART], stdout=subprocess.PIPE, check=True).stdout)
    counters = [counter["name"] for counter in part["counters"]]
    assert counters and KEY in [key["key"] for key in part["keys"]], part
    with tempfile.TemporaryDirectory() as folder:

        def call(*arguments, code=0):
            done = subprocess.run([gridloom, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
            if done.returncode != code:
                sys.exit(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
            return done

        def read(*path):
            with open(os.path.join(folder, *path), encoding="utf-8", newline="") as file:
                return file.read()

        call("run", "--trace", "one.gltrace", "--", program)
        both_ways(call, read, counters)
        in_simulated_time(call, read, program, counters)
        through_a_broker(gridloom, folder, call, read, program, counters)
        swept(call, read, folder)
        mistakes(call, program)
        print(f"{PART}: {len(counters)} counters in tables, JSON, CSV, report and run --timing")


def both_ways(call, read, counters):
    call("replay", "-d", "gtx480", "--hardware", "none", "--hardware", PART, "--set", KEY + "=1,2", "--report", "report", "one.gltrace")
    labels = ["gtx480", f"gtx480 + {PART} {KEY}=1", f"gtx480 + {PART} {KEY}=2"]
    report = json.loads(read("report", "report.json"))
    assert [run["device"] for run in report["runs"]] == labels, report["runs"]
    rows = list(csv.DictReader(read("report", "runs.csv").splitlines()))
    assert [row["device"] for row in rows] == labels
    page = read("report", "report.html")
    for name in counters:
        assert name not in report["runs"][0]["counters"] and rows[0][name] == "", name
        assert str(report["runs"][1]["counters"][name]) == rows[1][name], name
        assert name in page, name
    assert report["runs"][1]["counters"]["lazy_decisions"] > 0
    # The device alone gives the same as a run that never heard of parts.
    alone = json.loads(call("replay", "-d", "gtx480", "--json", "one.gltrace").stdout)[0]
    assert alone["counters"] == report["runs"][0]["counters"] and alone["device_fields"] == report["runs"][0]["device_fields"]
    shown = call("replay", "-d", "gtx480", "--hardware", PART, "one.gltrace").stdout
    assert f"gtx480 + {PART}" in shown and all(name in shown for name in counters), shown


def in_simulated_time(call, read, program, counters):
    plain = call("run", "--timing-device", "gtx480", "--timing-json", "plain.json", "--", program)
    done = call("run", "--timing-device", "gtx480", "--hardware", PART, "--set", KEY + "=2", "--timing-json", "part.json", "--", program)
    assert f"simulated on gtx480 + {PART}, " in done.stderr and "lazy_decisions" in done.stderr, done.stderr
    assert "lazy" not in plain.stderr and done.stdout == plain.stdout
    without, table = json.loads(read("plain.json")), json.loads(read("part.json"))
    assert "hardware" not in without and table["hardware"]["proposed"] == PART and table["hardware"][KEY] == "2", table
    for name in counters:
        assert name in table["counters"] and name in table["kernels"][0]["counters"] and name not in without["counters"], name


def through_a_broker(gridloom, folder, call, read, program, counters):
    socket = os.path.join(folder, "broker.sock")
    command = [gridloom, "daemon", "--socket", socket, "--state", "off", "--quiet", "--timing", "-d", "h200", "--hardware", PART]
    with subprocess.Popen(command) as broker:
        try:
            deadline = time.monotonic() + 60
            while not os.path.exists(socket) and time.monotonic() < deadline:
                time.sleep(0.02)
            done = call("run", "--connect=" + socket, "--timing-json", "broker.json", "--", program)
            assert f"simulated on h200 + {PART}" in done.stderr, done.stderr
            table = json.loads(read("broker.json"))
            assert table["counters"]["lazy_decisions"] > 0 and all(name in table["counters"] for name in counters), table["counters"]
        finally:
            broker.terminate()
    call("daemon", "--socket", socket, "--state", "off", "--timing", "--hardware", "lazy-cats", code=125)


def swept(call, read, folder):
    with open(os.path.join(folder, "sweep.yaml"), "w", encoding="utf-8") as file:
        file.write(f"traces: [one.gltrace]\ndevices: [gtx480]\nhardware: [none, {PART}]\nparameters:\n  {KEY}: [1, 2]\nreport: swept\n")
    call("sweep", "--on", "local", "sweep.yaml")
    assert read("swept", "runs.csv") == read("report", "runs.csv")
    call("sweep", "--write", "--report", "tasks", "sweep.yaml")
    call("sweep", "tasks/sweep.json", "--task", "1")
    call("sweep", "--on", "local", "--hardware", "none", "--report", "bare", "sweep.yaml", code=125)  # nobody has the key's part


def mistakes(call, program):
    timed = ("run", "--timing-device", "gtx480")
    for arguments, words in (
            (("replay", "--hardware", "lazy-cats", "one.gltrace"), "did you mean 'lazy-ctas'?"),
            (("compare", "--hardware", "lazy-cats", "--", "false"), "did you mean 'lazy-ctas'?"),
            (("compare", "--hardware", PART, "--set", "hardware.lazy-ctas.wach=1", "--", "false"), "did you mean 'watch'?"),
            (("replay", "--set", KEY + "=1", "one.gltrace"), "--hardware lazy-ctas"),
            (("replay", "--set", "timing.l1.mshr=16", "one.gltrace"), "--set timing.l1.mshr=16: unknown key"),
            ((*timed, "--hardware", "lazy-cats", "--", program), "did you mean 'lazy-ctas'?"),
            ((*timed, "--hardware", PART, "--set", "hardware.lazy-ctas.lazy=maybe", "--", program), "expected off or on"),
            (("hardware", "lazy-cta"), "did you mean 'lazy-ctas'?")):
        done = call(*arguments, code=125)
        assert words in done.stderr and not done.stdout, (arguments, done.stdout, done.stderr)


main()
