#!/usr/bin/env python3
"""The study of launches by kernels with small inputs through every layer: programs, traces, replays, exhibits, files.

usage: dtbl_study_test.py GRIDLOOM PROGRAMS BASE (configs/experiments/_dtbl.yaml)"""

import json
import os
import subprocess
import sys
import tempfile

gridloom, programs, base_file = sys.argv[1:]

SMALL = """
inherits: %(base)s
show: fig6, fig7, fig8, fig9, fig10, fig11, fig12, matches, readings, devices
pairs:
  amr: amr --input=combustion
  bht: bht --input=points
  bfs_road: bfs --input=road
  sssp_cage15: sssp --input=cage15
  clr_cage15: clr --input=cage15
fig12: {entries: 1 64 1024, usual: 64}
readings:
  a kernel distributor of 128 entries: grid.max_resident=128
  read when their turn comes: hardware.dtbl.loads=turn
devices: {names: k20c h200, percent: 100 0}
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
        base = os.path.splitext(os.path.abspath(base_file))[0]
        text = open(base_file).read()
        # Keys of a mapping in a file that is inherited are added to, not replaced: without the other pairs.
        lines, skip = [], False
        for line in text.splitlines():
            if not line.startswith(" "):
                skip = line.startswith(("pairs:", "readings:", "fig12:", "devices:"))
            if not skip:
                lines.append(line)
        with open(os.path.join(folder, "base.yaml"), "w") as other:
            other.write("\n".join(lines) + "\n")
        file.write(SMALL % {"base": os.path.join(folder, "base")})
    first, result = run(folder)
    assert "measured" in first.stderr, first.stderr
    rows = {exhibit["name"]: {row[1]: row for row in exhibit["rows"]} for exhibit in result["exhibits"]}
    pairs = ["amr", "bht", "bfs_road", "sssp_cage15", "clr_cage15"]
    for name in ("fig6", "fig7", "fig8", "fig9", "fig10", "fig11", "fig12"):
        assert list(rows[name]) == pairs + ["mean"], (name, list(rows[name]))

    # Children fill warps; whoever launches them, warps do the same.
    assert rows["fig6"]["amr"][3] > 2 * rows["fig6"]["amr"][2], rows["fig6"]
    for pair in pairs:
        assert abs(rows["fig6"][pair][3] - rows["fig6"][pair][4]) < 1e-9, rows["fig6"][pair]
    # No vertex of the roads has a child: all forms but for the flat one's own loop are the same.
    road = rows["fig11"]["bfs_road"]
    assert road[2] == road[3] == road[4] == road[5] and road[6] == 1, road
    # Without their latency, launches are as good at least; and thread blocks wait less than kernels.
    for pair in ("amr", "bht", "sssp_cage15", "clr_cage15"):
        speed = rows["fig11"][pair]
        assert speed[2] > speed[4] and speed[3] > speed[5], speed
        assert rows["fig9"][pair][5] < rows["fig9"][pair][4], rows["fig9"][pair]
        assert rows["fig10"][pair][2] > 0, rows["fig10"][pair]
        matched = rows["matches"][pair]
        assert matched[2] == matched[3] + matched[4] + matched[5] > 0, matched
    # Of 64 entries most are taken when a group comes.
    assert rows["fig12"]["bht"][6] > 10 and rows["fig12"]["bht"][5] > 64, rows["fig12"]["bht"]
    readings = rows["readings"]
    assert list(readings) == ["default", "a kernel distributor of 128 entries", "read when their turn comes"], readings
    # More kernels at once help kernels; who waits for what is to be known of a group loses, and only groups do.
    assert readings["a kernel distributor of 128 entries"][4] > readings["default"][4], readings
    assert readings["read when their turn comes"][5] < 0.9 * readings["default"][5], readings
    assert readings["read when their turn comes"][4] == readings["default"][4], readings
    devices = [exhibit for exhibit in result["exhibits"] if exhibit["name"] == "devices"][0]["rows"]
    assert [row[:2] for row in devices] == [["k20c", 100], ["k20c", 0], ["h200", 100], ["h200", 0]], devices
    for with_time, without in (devices[0:2], devices[2:4]):
        assert without[2] > with_time[2], devices

    # Everything is kept: a second run measures nothing, and says the same.
    second, again = run(folder)
    assert "measured" not in second.stderr, second.stderr
    assert again == result
print("ok")
