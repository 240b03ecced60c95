#!/usr/bin/env python3
"""The study of narrow tasks with small inputs through every layer: programs, traces, replays, exhibits, files.

usage: pagoda_study_test.py GRIDLOOM PROGRAMS BASE (configs/experiments/_pagoda.yaml)"""

import json
import os
import subprocess
import sys
import tempfile

gridloom, programs, base_file = sys.argv[1:]

SMALL = """
inherits: %(base)s
show: table3, fig5, fig6, fig7, fig8, fig9, fig10, fig11, table5, readings, devices
keys: timing.pcie.engine_ns=1500 sm.count=2
programs:
  mb: mb --tasks=96
  mm: mm --tasks=96
  slud: slud --side=5
fig6: {tasks: 8 96, programs: mm}
fig7: {threads: 64 512, programs: mm}
fig8: {sizes: 32, blocks: 1 3, programs: mb}
fig9: {arguments: --irregular=7, fused: --batch=96}
fig10: {tasks: 16 96, programs: mm}
table5:
  mm: --threads=256
readings:
  the host looks at the table every 100 us: hardware.pagoda.timeout_ns=100000
devices: {names: titanx-maxwell, keys: sm.count=2}
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
        # Keys of a mapping in a file that is inherited are added to, not replaced: without the values that are given here.
        lines, skip = [], False
        for line in open(base_file).read().splitlines():
            if not line.startswith(" "):
                skip = line.startswith(("programs:", "fig", "table5:", "readings:", "devices:"))
            if not skip:
                lines.append(line)
        with open(os.path.join(folder, "base.yaml"), "w") as other:
            other.write("\n".join(lines) + "\n")
        file.write(SMALL % {"base": os.path.join(folder, "base")})
    first, result = run(folder)
    assert "measured" in first.stderr, first.stderr
    rows = {exhibit["name"]: exhibit["rows"] for exhibit in result["exhibits"]}
    by_program = {name: {row[1]: row for row in rows[name]} for name in ("table3", "fig5", "fig9", "fig11")}

    # As many launches as tasks; a matrix is copied, an image of the Mandelbrot set only comes back.
    assert by_program["table3"]["mb"][2] == by_program["table3"]["mm"][2] == 96, rows["table3"]
    assert by_program["table3"]["slud"][2] > 20, rows["table3"]
    for row in rows["table3"]:
        assert 0 < row[3] < 100, row
    # Nobody knows how many tasks the sparse matrix has before they run.
    fig5 = by_program["fig5"]
    assert fig5["slud"][3] is None and fig5["slud"][4] is None and fig5["slud"][5] is None and fig5["slud"][6] > 0, fig5
    assert all(value > 0 for program in ("mb", "mm") for value in fig5[program][2:9]), fig5
    # All tasks in one kernel end with the last.
    latency = {(row[1], row[2]): row for row in rows["fig10"]}
    assert latency["mm", 96][3] > 1.5 * latency["mm", 16][3], latency
    # Who waits for a whole batch is not faster.
    for program in ("mb", "mm"):
        assert by_program["fig11"][program][4] <= 1.05 * by_program["fig11"][program][3], rows["fig11"]
    assert [row[2] for row in rows["table5"]] == ["yes", "no"], rows["table5"]
    assert all(0 < row[5] <= 100 for row in rows["table5"]), rows["table5"]
    # Tasks wait longer for a host that looks seldom.
    readings = {row[1]: row for row in rows["readings"]}
    assert readings["default"][2] > 1.05 * readings["the host looks at the table every 100 us"][2], readings
    assert [row[3] for row in rows["fig8"]] == [256, 768], rows["fig8"]

    # Everything is kept: a second run measures nothing, and says the same but for the host's own time.
    second, again = run(folder)
    assert "measured" not in second.stderr, second.stderr
    for exhibit in ("table3", "fig6", "fig7", "fig8", "fig9", "fig10", "fig11", "table5", "readings", "devices"):
        assert [e for e in again["exhibits"] if e["name"] == exhibit] == [e for e in result["exhibits"] if e["name"] == exhibit], exhibit

    # The same while a program runs: what it computes is what it computes, and its kernels are tasks of one.
    table = os.path.join(folder, "table.json")
    done = subprocess.run([gridloom, "run", "-q", "--timing", "--timing-device", "titanx-maxwell", "--policy", "pagoda", "--timing-json", table, "--",
                           os.path.join(programs, "pagoda", "mm"), "--tasks=40", "--streams=64"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 and "PASS" in done.stdout, done
    with open(table) as file:
        text = file.read()
    assert "gl_master" in text and '"pagoda_tasks": 40' in text.replace('"pagoda_tasks":40', '"pagoda_tasks": 40'), text[:4000]
print("ok")
