#!/usr/bin/env python3
"""Programs that launch kernels from the device, in simulated time: as kernels and as thread blocks that join others.

usage: device_launches_test.py GRIDLOOM PROGRAM (dtbl/bfs)"""
import json
import os
import re
import subprocess
import sys
import tempfile

gridloom, program = sys.argv[1:]
ARGUMENTS = ["--form=cdp", "--input=cage15"]


def run(*command, fails=False):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    assert (done.returncode != 0) == fails, (command, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def timed(folder, form, *arguments):
    table = os.path.join(folder, "table.json")
    done = run(gridloom, "run", "--timing-device", "k20c", "--device-launches", form, "--timing-json", table, "--", program, *ARGUMENTS, *arguments)
    with open(table) as file:
        return done.stdout, json.load(file)


with tempfile.TemporaryDirectory() as folder:
    plain = run(gridloom, "run", "--", program, *ARGUMENTS).stdout
    launches = int(re.search(r"(\d+) device launches", plain).group(1))
    assert launches > 1000, plain
    tables = {}
    for form in ("cdp", "cdp-ideal", "dtbl", "dtbl-ideal"):
        said, tables[form] = timed(folder, form)
        assert said == plain, said
        counters = tables[form]["counters"]
        assert counters["device_launches"] == launches, (form, counters)
        assert counters["device_launch_most_bytes"] > 0
        if form.startswith("dtbl"):
            assert counters["dtbl_joined"] + counters["dtbl_unmatched"] == launches, counters
            assert counters["dtbl_joined"] > launches / 2, counters
        else:
            assert "dtbl_joined" not in counters
    cycles = {form: table["cycles"] for form, table in tables.items()}
    assert cycles["cdp"] > cycles["dtbl"] > cycles["dtbl-ideal"], cycles
    assert cycles["cdp"] > cycles["cdp-ideal"], cycles

    # In order, nothing joins.
    _, ordered = timed(folder, "dtbl", "--streams=none")
    assert ordered["counters"]["dtbl_joined"] == 0 and ordered["counters"]["dtbl_ordered"] == launches, ordered["counters"]

    # A trace of the program takes as long, in both ways.
    trace = os.path.join(folder, "bfs.gltrace")
    run(gridloom, "run", "--trace", trace, "--", program, *ARGUMENTS)
    checked = json.loads(run(gridloom, "trace", "--check", "--json", trace).stdout)
    assert checked["device_launches"] == launches, checked
    replayed = json.loads(run(gridloom, "replay", "--json", "-d", "k20c", "--hardware", "none", "--hardware", "dtbl", "--set",
                              "timing.device_launch.percent=0,100", trace).stdout)
    assert len(replayed) == 4, len(replayed)
    # Threads take places in lists with atomics, so that two runs of the program are not alike to the cycle.
    for form, percent, parts in (("cdp", "100", False), ("cdp-ideal", "0", False), ("dtbl", "100", True)):
        same = [replay for replay in replayed if ("dtbl_joined" in replay["counters"]) == parts and
                replay["device_fields"]["timing.device_launch.percent"] == percent]
        assert len(same) == 1, (form, [replay["device_fields"] for replay in replayed])
        assert abs(same[0]["cycles"] / cycles[form] - 1) < 0.02, (form, same[0]["cycles"], cycles)

    bad = run(gridloom, "run", "--device-launches", "cpd", "--", program, "--help", fails=True)
    assert "there are cdp, cdp-ideal, dtbl, dtbl-ideal" in bad.stderr, bad.stderr
print("ok")
