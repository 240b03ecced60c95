#!/usr/bin/env python3
"""Reports of replays that are interrupted and resumed. usage: report_test.py GRIDLOOM PROGRAM

Replays a program's trace on several devices under several policies into a report: once at a stretch, one replay at a time; once killed
in the middle and resumed; once in parallel. The three folders must hold the same bytes.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

REPLAYS = ["--device", "gtx480,k20c,v100", "--policy", "serial,leftover", "--report", "report", "../program.gltrace"]
COUNT = 6


def run(command, folder):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def cells(folder):
    path = os.path.join(folder, "report", "cells")
    return sorted(name for name in os.listdir(path) if name.endswith(".json")) if os.path.isdir(path) else []


def contents(folder):
    """Everything that reports promise to be the same; in cells all but how long the simulation took."""
    files = {}
    for path, _, names in os.walk(os.path.join(folder, "report")):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                text = file.read()
            if path.endswith("cells"):
                text = json.loads(text)
                del text["host_seconds"]
            files[os.path.relpath(os.path.join(path, name), folder)] = text
    return files


def interrupted(gridloom, folder):
    """Kills a run when some results are there; returns them."""
    process = subprocess.Popen([gridloom, "replay", "--jobs", "1", *REPLAYS], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(cells(folder)) < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return {name: os.stat(os.path.join(folder, "report", "cells", name)).st_mtime_ns for name in cells(folder)}


def cut(gridloom, folder):
    """What a damaged trace still holds is replayed, and the exit code says that it is not all, also when it was kept."""
    with open(os.path.join(folder, "program.gltrace"), "rb") as file:
        text = file.read()
    with open(os.path.join(folder, "cut.gltrace"), "wb") as file:
        file.write(text[:-9])
    for _ in range(2):
        command = [gridloom, "replay", "--json", "--report", "cut-report", "cut.gltrace"]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        assert done.returncode == 125, (done.returncode, done.stderr)
        assert "replayed without what is damaged" in done.stderr, done.stderr
        (cell,) = json.loads(done.stdout)
        assert cell["cycles"] > 0 and "cut.gltrace" in cell["damaged_traces"][0], cell["damaged_traces"]


def main():
    gridloom, program = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        run([gridloom, "run", "--trace", "program.gltrace", "--", program], folder)
        folders = [os.path.join(folder, name) for name in ("whole", "killed", "parallel")]
        for one in folders:
            os.mkdir(one)
        whole, killed, parallel = folders
        run([gridloom, "replay", "--jobs", "1", *REPLAYS], whole)
        kept = interrupted(gridloom, killed)
        assert 0 < len(kept) < COUNT, f"{len(kept)} results when it was killed"
        assert not os.path.exists(os.path.join(killed, "report", "report.html"))
        resumed = run([gridloom, "replay", "--jobs", "1", *REPLAYS], killed)
        assert f"{len(kept)} of {COUNT} replays are finished" in resumed.stderr, resumed.stderr
        for name, written in kept.items():
            assert os.stat(os.path.join(killed, "report", "cells", name)).st_mtime_ns == written, f"{name} was done again"
        for leftover in [name for name in os.listdir(os.path.join(killed, "report", "cells")) if not name.endswith(".json")]:
            os.remove(os.path.join(killed, "report", "cells", leftover))  # of the result that was being written
        run([gridloom, "replay", "--jobs", "4", *REPLAYS], parallel)

        cut(gridloom, folder)
        expected = contents(whole)
        assert len([name for name in expected if "/cells/" in name]) == COUNT, sorted(expected)
        for other in killed, parallel:
            found = contents(other)
            assert sorted(found) == sorted(expected), (sorted(found), sorted(expected))
            for name, text in expected.items():
                if name in ("report/report.html", "report/report.json"):  # have the command, where --jobs differs
                    found[name] = found[name].replace(b"--jobs 4", b"--jobs 1")
                assert found[name] == text, f"{name} differs in {os.path.basename(other)}"
        print(f"{COUNT} replays, killed after {len(kept)}, {len(expected)} files the same")


main()
