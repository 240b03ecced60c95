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


def made_up(gridloom, folder):
    """A file of measured times, and the mean absolute error that it must give."""
    programs = []
    for name, factor in FACTORS.items():
        table = os.path.join(folder, "table.json")
        program = os.path.join(os.path.dirname(gridloom), "apps", "reference_kernels")
        subprocess.run([gridloom, "run", "--device", DEVICE, "--timing-json", table, "--", program, name], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(table, encoding="utf-8") as file:
            kernels = json.load(file)["kernels"]
        times = {kernel["symbol"]: [kernel["seconds"] * 1e9 / kernel["launches"] * factor] * kernel["launches"] for kernel in kernels}
        programs.append({"command": ["reference_kernels", name], "kernels": times})
    programs[0]["kernels"]["_Z7missingv"] = [5.0]
    data = {"date": "2000-01-01", "device": DEVICE, "gpu": "made up", "command": "", "programs": programs}
    with open(os.path.join(folder, "times-made-up.json"), "w", encoding="utf-8") as file:
        json.dump(data, file)
    return sum(abs(1 / factor - 1) for factor in FACTORS.values()) / len(FACTORS)


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
        figures = os.path.join(folder, "figures.json")
        done = subprocess.run([script, "--data", folder, "--json", figures, *build], stdout=subprocess.PIPE, text=True)
        assert done.returncode == 0, done
        with open(figures, encoding="utf-8") as file:
            result = json.load(file)[0]
        assert result["kernels"] >= 3 and "_Z7missingv has 1 launches on the GPU and 0 in the model" in done.stdout, done.stdout
        assert abs(result["mean_absolute_error"] - expected) < 1e-6, (result, expected)
        assert -1 <= result["rank_correlation"] <= 1, result
        check_collect(os.path.join(scripts, "collect-gpu-times"), folder)


main()
