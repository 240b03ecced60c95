#!/usr/bin/env python3
"""The study of task pipelines with small inputs through every layer: programs, traces, replays, exhibits, files.

usage: pipeline_study_test.py GRIDLOOM PROGRAMS BASE (configs/experiments/_pipeline.yaml)"""

import json
import os
import subprocess
import sys
import tempfile

gridloom, programs, base_file = sys.argv[1:]

SMALL = """
inherits: %(base)s
devices: fermi-8 fermi-24
scaling_sms: 8 24
show: classes, fig2, fig3, fig4, fig6, table4, fig9, fig10, fig11, fig12, best, starts, together, guarded, victims, readings, sizes
workloads: {dct: --sets=6, mt: --sets=6, pm: --sets=6, tdfir: --sets=6, mum: --sets=6, hg: --sets=6, los: --sets=6, nn: --sets=6, srad: --sets=6}
large: {dct: --sets=8, mt: --sets=6, pm: --sets=6, tdfir: --sets=6, mum: --sets=6, hg: --sets=6, los: --sets=6, nn: --sets=6, srad: --sets=6}
quick: {dct: --sets=6, los: --sets=6}
best_of: los
readings_of: los
fig3: {sms: 4 8}
fig12: {step: 6}
guarded: {sets: 8 12}
sizes: {devices: fermi-8 v100, workloads: los, l2_kib: 256 4096}
"""


def run(folder, *options):
    report = os.path.join(folder, "report")
    done = subprocess.run([gridloom, "experiment", os.path.join(folder, "experiment.yaml"), "--work", os.path.join(folder, "work"),
                           "--programs", programs, "--report", report, *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    with open(os.path.join(report, "experiment.json")) as file:
        return done, json.load(file)


with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "experiment.yaml"), "w") as file:
        file.write(SMALL % {"base": os.path.splitext(os.path.abspath(base_file))[0]})
    first, result = run(folder)
    assert "measured" in first.stderr, first.stderr
    rows = {exhibit["name"]: exhibit["rows"] for exhibit in result["exhibits"]}
    workloads = ["dct", "mt", "pm", "tdfir", "mum", "hg", "los", "nn", "srad"]
    light = {"mt", "pm", "nn"}

    # Eq. 1: light programs need no more SMs than the smallest device has, of heavy ones a kernel needs more than the largest has.
    required = {}
    for row in rows["classes"]:
        required.setdefault(row[1], []).append(row[6])
    assert list(required) == workloads, required
    for name, sms in required.items():
        assert max(sms) <= 8 if name in light else max(sms) > 24, (name, sms)

    # The first column of each half of Figure 2 is what the others are beside; nobody becomes slower with more SMs and channels.
    for row in rows["fig2"]:
        assert row[2] == 1 and row[4] == 1, row
        assert row[5] > 0.95, row
    assert [row[1] for row in rows["fig3"]] == [4, 8]
    for stage in range(2, 5):
        assert rows["fig3"][1][stage] > rows["fig3"][0][stage], rows["fig3"]

    # Splits at both ends are bad, as one kernel has next to nothing; some in the middle are better.
    splits = {row[1]: row[2] for row in rows["fig4"]}
    assert sorted(splits) == list(range(1, 24)), splits
    assert max(splits.values()) > 2 * max(splits[1], splits[23]), splits

    # Fewer steps than data sets; the split that is found is near the best of all.
    assert [(row[0], row[1]) for row in rows["table4"]] == [(f"fermi-{n}", name) for n in (8, 24) for name in workloads]
    for row in rows["table4"]:
        assert 1 <= row[3] <= 5, row
    assert [row[2] for row in rows["best"]] == ["K1-K2", "K2-K3", "K4-K1", "K3-K4"], rows["best"]
    for row in rows["best"]:
        assert row[7] < 60, row
    assert rows["readings"][0][1] == "default" and len(rows["readings"]) > 5, rows["readings"]
    assert [row[1] for row in rows["fig6"]] == list(range(1, len(rows["fig6"]) + 1))

    # What the allocator brings and what labels add make what both bring.
    both = {row[1]: row[6] for row in rows["fig9"] if row[0] == "fermi-24"}
    for row in rows["fig10"][:-2]:
        assert abs(row[4] - both[row[1]]) < 1e-9, row
        product = (1 + row[3] / 100) * (1 + row[5] / 100)
        assert abs(product - 1 - row[4] / 100) < 1e-9, row
    assert [row[1] for row in rows["fig11"]] == workloads + ["mean"]
    assert len(rows["fig12"]) == 3
    # With the plain order of eviction, and lines that stay, labels change nothing; they do with others.
    assert [row[1] for row in rows["victims"]] == workloads + ["mean"]
    assert len(rows["sizes"]) == 4
    assert [row[1] for row in rows["guarded"]] == workloads + ["mean"]
    assert [row[1] for row in rows["starts"]] == workloads + ["mean"]
    assert rows["starts"][-1][2] > 0 and rows["starts"][-1][3] > 0, rows["starts"]
    assert any(row[4] != row[5] for row in rows["starts"]), rows["starts"]  # the model expects something else
    for row in rows["together"]:
        # Where there are so many stages there is a number.
        assert [value is not None for value in row[3:]] == [True] + [row[2] >= n for n in (3, 4)], row

    # Everything is kept: a second run measures nothing, and says the same.
    second, again = run(folder)
    assert "measured" not in second.stderr, second.stderr
    assert again == result

    bad = subprocess.run([gridloom, "experiment", os.path.join(folder, "experiment.yaml"), "--set", "keys=timing.launch.queues"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert bad.returncode != 0 and "expected KEY=VALUE" in bad.stderr, bad.stderr
print("ok")
