#!/usr/bin/env python3
"""scripts/correlate and scripts/collect-gpu-times. usage: correlate_test.py GRIDLOOM SCRIPTS

Measured times are made up here: what the model says, times known factors. nsys and nvidia-smi are programs that print such times.
"""
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

DEVICE = "h200"
FACTORS = {"vectoradd": 1.25, "reduce": 0.8, "histogram": 1.0}  # errors of -20 %, 25 % and 0
HALVES = "# a comment\nfirst reference_kernels vectoradd\n\nsecond reference_kernels reduce\n"
INSTRUCTIONS, SECTORS, HIT_RATE = "smsp__inst_executed.sum", "lts__t_sectors.sum", "l1tex__t_sector_hit_rate.pct"

NSYS = """#!/bin/bash
if [ $1 = profile ]; then while [ $1 != -o ]; do shift; done; shift 2; exec "$@"; fi
printf 'Processing the export\\n\\nStart (ns),Duration (ns),CorrId,GrdX,Name\\n1,900,1,,[CUDA memcpy Host-to-Device]\\n'
printf '5,%d,2,64,_Z1kPf\\n90,200,3,64,_Z1kPf\\n99,300,4,1,_Z1jPf\\n' $((100 + $(stat -c %s runs 2>/dev/null || echo 0)))
printf . >> runs
"""


def load(path):
    loader = importlib.machinery.SourceFileLoader("script", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("script", loader))
    loader.exec_module(module)
    return module


def check_ranks(correlate):
    assert correlate.ranks([10, 30, 20, 30]) == [1, 3.5, 2, 3.5]
    assert abs(correlate.rank_correlation([1, 2, 3, 4], [10, 20, 40, 80]) - 1) < 1e-12
    assert abs(correlate.rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) + 1) < 1e-12
    assert abs(correlate.rank_correlation([1, 2, 3, 4], [1, 3, 2, 4]) - 0.8) < 1e-12
    assert correlate.rank_correlation([1, 1], [1, 2]) is None


def made_up_program(name, factor, kernels):
    """Times and counters of a program: the model's, times the factor. Hit rates are five points more, sectors are not counted."""
    times, counters = {}, {}
    for kernel in kernels:
        launches = kernel["launches"]
        profiled = kernel["profiled_cycles"] / kernel["cycles"]
        assert kernel["profiled_cycles"] - kernel["cycles"] == launches * 2319, kernel  # of configs/devices/h200.yaml
        times[kernel["symbol"]] = [kernel["seconds"] * 1e9 / launches * factor * profiled] * launches
        counters[kernel["symbol"]] = [{
            "sm__cycles_elapsed.max": kernel["profiled_cycles"] / launches * factor,
            INSTRUCTIONS: kernel["warp_instructions"] / launches * factor,
            HIT_RATE: 100 * kernel["l1_hit_share"] + 5,
            SECTORS: None,
        }] * launches
    return {"command": ["reference_kernels", name], "kernels": times, "counters": counters}


def made_up(gridloom, folder):
    """A file of measured times, and the mean absolute error that it must give."""
    programs = []
    for name, factor in FACTORS.items():
        table = os.path.join(folder, "table.json")
        program = os.path.join(os.path.dirname(gridloom), "apps", "reference_kernels")
        subprocess.run([gridloom, "run", "--device", DEVICE, "--timing-json", table, "--", program, name], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(table, encoding="utf-8") as file:
            programs.append(made_up_program(name, factor, json.load(file)["kernels"]))
    programs[0]["kernels"]["_Z7missingv"] = [5.0]
    data = {"date": "2000-01-01", "device": DEVICE, "gpu": "made up", "command": "", "programs": programs}
    with open(os.path.join(folder, "times-made-up.json"), "w", encoding="utf-8") as file:
        json.dump(data, file)
    with open(os.path.join(folder, "halves.txt"), "w", encoding="utf-8") as file:
        file.write(HALVES)
    return sum(abs(1 / factor - 1) for factor in FACTORS.values()) / len(FACTORS)


def check_all(correlate, figures, expected):
    done = subprocess.run([*correlate, "--json", figures], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, done
    with open(figures, encoding="utf-8") as file:
        result = json.load(file)[0]
    assert "_Z7missingv has 1 launches on the GPU and 0 in the model" in done.stdout, done.stdout
    quantities = result["quantities"]
    for name in ("time", "cycles", "warp instructions"):
        assert quantities[name]["kernels"] == len(result["kernels"]) >= 3, (name, result)
        assert abs(quantities[name]["mean_error"] - expected) < 1e-6, (name, result, expected)
        assert -1 <= quantities[name]["rank_correlation"] <= 1, (name, result)
    assert abs(quantities["L1 hit rate"]["mean_error"] - 5) < 1e-6 and "5.0 points" in done.stdout, result
    assert "L2 sectors" not in quantities and "Aims missed" in done.stdout, done.stdout


def check_choices(correlate, folder):
    """--half, --only and --limit choose programs; a line of halves.txt that means nothing is refused by its number."""
    first = subprocess.run([*correlate, "--half", "first", "--jobs", "2"], stdout=subprocess.PIPE, text=True)
    assert "| reference_kernels vectoradd |" in first.stdout and "kernels reduce" not in first.stdout, first
    assert "histogram" not in first.stdout and "| time | 1 | 20.0% |" in first.stdout, first
    second = subprocess.run([*correlate, "--half", "second", "--only", "vectoradd"], stdout=subprocess.PIPE, text=True)
    assert second.returncode == 0 and "No kernel to compare" in second.stdout, second
    hurried = subprocess.run([*correlate, "--only", "reduce", "--limit", "0.001"], stdout=subprocess.PIPE, text=True)
    assert "Left out: reference_kernels reduce takes the model longer than 0.001 s" in hurried.stdout, hurried
    bad = subprocess.run([*correlate, "--run-options=--no-such-option"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert bad.returncode == 1 and "--no-such-option" in bad.stderr, bad
    with open(os.path.join(folder, "halves.txt"), "a", encoding="utf-8") as file:
        file.write("third reference_kernels histogram\n")
    wrong = subprocess.run(correlate, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert wrong.returncode == 1 and "halves.txt, line 5: expected" in wrong.stderr, wrong


def check_collect(script, folder):
    tools = os.path.join(folder, "tools")
    os.mkdir(tools)
    for name, text in (("nsys", NSYS), ("nvidia-smi", "#!/bin/bash\necho 'Made up, 1.0, 1410 MHz, 1593 MHz'\n")):
        with open(os.path.join(tools, name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(os.path.join(tools, name), 0o755)
    out = os.path.join(folder, "out", "times-x.json")
    command = [sys.executable, script, "x", "--runs", "3", "--out", out, "--", "true", "---", "true", "again"]
    without = subprocess.run(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PATH": "/nowhere"})
    assert without.returncode == 1 and "nsys or ncu" in without.stderr, without
    subprocess.run(command, check=True, cwd=folder, env={**os.environ, "PATH": tools + ":" + os.environ["PATH"]})
    with open(out, encoding="utf-8") as file:
        data = json.load(file)
    assert data["device"] == "x" and data["gpu"].startswith("Made up"), data
    # The first launch takes 100, 101 and 102 ns, then 103 to 105.
    assert [program["command"] for program in data["programs"]] == [["true"], ["true", "again"]], data
    assert data["programs"][0]["kernels"] == {"_Z1kPf": [101, 200], "_Z1jPf": [300]}, data
    assert data["programs"][1]["kernels"]["_Z1kPf"] == [104, 200], data


def main():
    gridloom, scripts = sys.argv[1:]
    script = os.path.join(scripts, "correlate")
    check_ranks(load(script))
    with tempfile.TemporaryDirectory() as folder:
        build = ["--build", os.path.dirname(gridloom)]
        none = subprocess.run([script, "--data", folder, *build], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert none.returncode == 2 and "No measured times" in none.stderr and none.stdout == "", none
        expected = made_up(gridloom, folder)
        correlate = [script, "--data", folder, *build]
        check_all(correlate, os.path.join(folder, "figures.json"), expected)
        check_choices(correlate, folder)
        check_collect(os.path.join(scripts, "collect-gpu-times"), folder)


main()
