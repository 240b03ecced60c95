#!/usr/bin/env python3
"""scripts/correlate-public. usage: correlate_public_test.py GRIDLOOM SCRIPTS

Measured values are made up here: what the model says, times known factors.
"""
import json
import os
import subprocess
import sys
import tempfile

BYTES, TURNS = 12 * 1024, 7.0  # any amounts will do
SOURCES = {"made up": {"title": "Made up", "address": "nowhere"}}


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def model(gridloom, folder, name, kernel, device):
    """The model's row of the kernel."""
    table = os.path.join(folder, "table.json")
    program = os.path.join(os.path.dirname(gridloom), "apps", "reference_kernels")
    done = run(gridloom, "run", "--device", "h200", "--timing-device", device, "--timing-json", table, "--", program, name)
    assert done.returncode == 0, done
    with open(table, encoding="utf-8") as file:
        return next(row for row in json.load(file)["kernels"] if kernel in row["symbol"])


def figure(name, kernel, device, unit, amount, measured, **more):
    return {"device": device, "command": ["reference_kernels", name], "kernel": kernel, "unit": unit, "amount": amount, "measured": measured,
            "source": "made up", "published": "", **more}


def write(path, figures, sources=SOURCES):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"sources": sources, "figures": figures}, file)


def compared(correlate, *options):
    done = run(*correlate, *options, "--json", correlate[-1] + ".out")
    assert done.returncode == 0, done
    with open(correlate[-1] + ".out", encoding="utf-8") as file:
        return done.stdout, json.load(file)


def check_errors(correlate, gridloom, folder, path):
    """Rates and cycles, on two devices: a measured launch that took 1/factor of the model's time makes an error of factor - 1."""
    vector, loop = model(gridloom, folder, "vectoradd", "VectorAdd", "v100"), model(gridloom, folder, "fmaloop", "FmaLoop", "k20c")
    write(path, [figure("vectoradd", "VectorAdd", "v100", "GB/s", BYTES, BYTES / vector["seconds"] / 1e9 * 1.25),
                 figure("fmaloop", "FmaLoop", "k20c", "cycles", TURNS, loop["cycles"] / TURNS / 0.9, used=True),
                 figure("fmaloop", "Missing", "k20c", "cycles", TURNS, 1)])
    text, result = compared(correlate, "--jobs", "2")
    rate, cycles = result["figures"]
    assert abs(rate["error"] - 0.25) < 1e-6 and abs(rate["simulated"] - rate["measured"] / 1.25) < 1e-9, rate
    assert abs(cycles["error"] + 0.1) < 1e-6 and abs(cycles["simulated"] - loop["cycles"] / TURNS) < 1e-6, cycles
    groups = result["groups"]
    assert abs(groups["v100"]["mean_error"] - 0.25) < 1e-6 and abs(groups["all"]["mean_error"] - 0.175) < 1e-6, groups
    assert abs(groups["all but used"]["mean_error"] - 0.25) < 1e-6 and groups["all"]["figures"] == 2, groups
    assert "reference_kernels fmaloop launches 0 kernels named Missing" in text and "Aim met" in text, text
    assert "| v100 | reference_kernels vectoradd | GB/s |" in text and "made up, used" in text and "made up: Made up, nowhere" in text, text
    text, result = compared(correlate, "--device", "k20c", "--only", "fma")
    assert len(result["figures"]) == 1 and "v100" not in text, text


def check_clocks(correlate, gridloom, folder, path):
    """At half the clock a loop of multiply-adds takes twice the time, and the same cycles."""
    loop = model(gridloom, folder, "fmaloop", "FmaLoop", "v100")
    write(path, [figure("fmaloop", "FmaLoop", "v100", "Gop/s", BYTES, BYTES / loop["seconds"] / 1e9, clocks={"sm": 765})])
    _, result = compared(correlate)
    assert 0.9 < result["figures"][0]["error"] < 1.1, result
    assert result["groups"]["all"]["rank_correlation"] is None, result


def check_refused(correlate, path):
    """A figure that is not of the form is named by its number; no figure at all is not a success."""
    good = figure("vectoradd", "VectorAdd", "v100", "GB/s", BYTES, 1.0)
    for change, sentence in (({"unit": "miles"}, "figure 2: it has the unit miles"), ({"measured": 0}, "figure 2: it has an amount"),
                             ({"clocks": {"moon": 1}}, "figure 2: it has clocks of moon"), ({"source": "no"}, "figure 2: there is no source no")):
        write(path, [good, {**good, **change}])
        done = run(*correlate)
        assert done.returncode == 1 and sentence in done.stderr, (sentence, done)
    write(path, [{key: value for key, value in good.items() if key != "kernel"}])
    assert "figure 1: it has no kernel" in run(*correlate).stderr
    write(path, [])
    done = run(*correlate)
    assert done.returncode == 2 and "No figure to compare" in done.stdout, done


def check_file(scripts):
    """The file of figures is of the form, and each of them names what was measured."""
    path = os.path.join(scripts, "..", "tests", "data", "gpu", "public-figures.json")
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    assert len(data["figures"]) >= 40, len(data["figures"])
    assert {row["source"] for row in data["figures"]} == set(data["sources"]), "sources that no figure is of, or the other way round"
    assert all(row["published"] for row in data["figures"])
    done = run(sys.executable, os.path.join(scripts, "correlate-public"), "--only", "no such figure")
    assert done.returncode == 2 and done.stderr == "", done


def main():
    gridloom, scripts = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "figures.json")
        correlate = [sys.executable, os.path.join(scripts, "correlate-public"), "--build", os.path.dirname(gridloom), "--data", path]
        check_errors(correlate, gridloom, folder, path)
        check_clocks(correlate, gridloom, folder, path)
        check_refused(correlate, path)
    check_file(scripts)


main()
