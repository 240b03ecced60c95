#!/usr/bin/env python3
"""The study of CRCS and PPCS with small inputs through every layer: programs, traces with ranges, replays, exhibits, files.

usage: crcs_study_test.py GRIDLOOM PROGRAMS BASE (configs/experiments/_crcs.yaml)"""

import json
import os
import subprocess
import sys
import tempfile

gridloom, programs, base_file = sys.argv[1:]

SMALL = """
inherits: %(base)s
show: fig2, fig9, fig10, fig11, fig12, random, profilers, storage, beyond, readings, pays
workloads: {3mm: --size=64, stn: --small, hsp: --size=96, bfs: --nodes=1024, lpc: --size=64, conv: --width=128 --height=64, path: --columns=3000}
fig12: {workload: hsp, launches: 2 5}
fig2: {sizes: {gaussian: 16, hsp: 32 64}}
pays: {workloads: hsp, devices: crcs, storage_mb_s: 500, pcie_mb_s: 15750, page_kib: 4 64, fast_mb_s: 7000}
"""


def run(folder, *options):
    report = os.path.join(folder, "report")
    done = subprocess.run([gridloom, "experiment", os.path.join(folder, "experiment.yaml"), "--work", os.path.join(folder, "work"),
                           "--programs", programs, "--report", report, *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    with open(os.path.join(report, "experiment.json")) as file:
        return done, json.load(file)


def near(a, b, tolerance):
    return abs(a - b) <= tolerance


with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "experiment.yaml"), "w") as file:
        file.write(SMALL % {"base": os.path.splitext(os.path.abspath(base_file))[0]})
    first, result = run(folder)
    assert "measured" in first.stderr, first.stderr
    exhibits = {exhibit["name"]: exhibit for exhibit in result["exhibits"]}
    rows = {name: exhibit["rows"] for name, exhibit in exhibits.items()}
    workloads = ["3mm", "stn", "hsp", "bfs", "lpc", "conv", "path"]

    # Stages follow each other: what is left of the time is what the host's calls take, less the copies that go on while the next array is
    # read.
    for name, shares in (("fig2", 5), ("fig11", 4)):
        for row in rows[name]:
            assert near(sum(row[shares:]), 100, 1e-6) and min(row[shares:-1]) >= 0 and row[-1] > -10, row
    assert [row[1] for row in rows["fig11"]] == workloads, rows["fig11"]
    base = {row[1]: row[3] for row in rows["fig11"]}

    # The same baseline everywhere; overlapping with storage pays, and never costs more than the profilers do.
    assert [row[1] for row in rows["fig9"]] == workloads + ["mean"], rows["fig9"]
    for row in rows["fig9"][:-1]:
        assert row[2] == base[row[1]], row
        assert 0 <= row[3] <= row[4], row  # the bounds
        assert row[5] > -5 and row[7] > -5, row
    mean = rows["fig9"][-1]
    assert near(mean[7], sum(row[7] for row in rows["fig9"][:-1]) / 7, 1e-6) and mean[7] > 5, mean

    # Curves rise, and every kernel comes behind the one before it.
    for policy in ("crcs-fifo", "crcs-ppcs", "crcs-ready"):
        curves = {}
        for row in rows["fig10"]:
            if row[0] == policy:
                curves.setdefault(row[1], []).append(row[2])
        assert len(curves) == 10, curves.keys()
        ends = [curve[-1] for curve in curves.values()]
        assert all(curve == sorted(curve) for curve in curves.values()) and ends == sorted(ends), ends

    assert [row[1] for row in rows["fig12"]] == [2, 5] and rows["fig12"][0][3] < rows["fig12"][1][3], rows["fig12"]
    assert all(near(row[2], fig9[7], 1e-9) for row, fig9 in zip(rows["random"], rows["fig9"])), rows["random"]

    # Of BFS, the second of its two kernels can be profiled, of the others all; release code is more instructions.
    for row in rows["profilers"]:
        assert 0 < row[3] < row[2] and 0 < row[5] < row[6], row

    # Section 5.4, from the device and the bits.
    storage = {row[1]: row[2] for row in rows["storage"]}
    assert storage["of all SMs"] == 64 and storage["PPCS, for 1024 kernels"] == 3.25, storage
    assert exhibits["storage"]["findings"][0]["ours"] == "0.77 %", exhibits["storage"]

    assert len(rows["beyond"]) == 2 * 8 and len(rows["readings"]) == 6 and len(rows["pays"]) == 1 + 1 + 4, rows["beyond"]

    again, second = run(folder)  # nothing is measured again, and the numbers are the same
    assert "measured" not in again.stderr and second == result, again.stderr

    done = subprocess.run([gridloom, "experiment", os.path.join(folder, "experiment.yaml"), "--work", os.path.join(folder, "work"), "--programs",
                           programs, "--set", "storage_mb_s=0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 125 and "storage_mb_s must be at least 1" in done.stderr, done.stderr
print("ok")
