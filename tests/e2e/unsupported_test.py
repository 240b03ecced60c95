#!/usr/bin/env python3
"""usage: unsupported_test.py GRIDLOOM: `run --report-unsupported` names the calls, kernels and modules that a program cannot have."""

import json
import os
import subprocess
import sys
import tempfile

gridloom = os.path.abspath(sys.argv[1])
PTX = """.version 9.0
.target sm_90
.address_size 64
.visible .entry plain(.param .u64 p) { ret; }
.visible .entry strange(.param .u64 p)
{
  .reg .u32 %r<3>;
  .reg .u64 %rd<2>;
  ld.param.u64 %rd1, [p];
  multimem.ld_reduce.weak.global.add.u32 %r1, [%rd1];
  st.global.u32 [%rd1], %r1;
  ret;
}
"""
PROGRAM = """
import ctypes, os, sys
driver = ctypes.CDLL("libcuda.so.1")
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuInit(0) == 0 and driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
text = open(sys.argv[1], "rb").read() + b"\\0"
assert driver.cuModuleLoadData(ctypes.byref(module), text) == 0
value = ctypes.c_uint64(0)
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(value))
for name in sys.argv[2:]:
    if name == "broken":
        print(name, driver.cuModuleLoadData(ctypes.byref(ctypes.c_void_p()), b"no PTX\\0"))
    elif name == "call":
        print(name, [driver.cuMulticastCreate(ctypes.byref(ctypes.c_uint64()), None) for _ in range(3)])
    elif name == "die":
        os._exit(3)
    elif driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()) == 0:
        print(name, driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, parameters, None), driver.cuCtxSynchronize())
    else:
        print(name, "is not there")
"""
failures = 0


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print(f"FAILED: {what}")


def run(folder, report, *names):
    done = subprocess.run([gridloom, "run", "--report-unsupported", report, "--", sys.executable, "program.py", "kernels.ptx", *names],
                          cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    path = os.path.join(folder, report)
    lines = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    return done, lines


with tempfile.TemporaryDirectory() as folder:
    for name, text in (("program.py", PROGRAM), ("kernels.ptx", PTX)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    done, lines = run(folder, "all.jsonl", "plain", "strange", "broken", "call")
    seen = {(line["kind"], line["name"]): line for line in lines}
    check(done.returncode == 0, f"the program ends with {done.returncode}: {done.stderr}")
    check(set(seen) >= {("kernel", "strange"), ("call", "cuMulticastCreate")}, f"what is refused: {lines}")
    check("multimem" in seen.get(("kernel", "strange"), {}).get("why", ""), f"the instruction is not named: {lines}")
    check(any(line["kind"] == "module" for line in lines), f"the module is not named: {lines}")
    check(len(lines) == 3 and all(line["process"] > 0 and line["program"] for line in lines), f"three lines: {lines}")
    check("3 things of this program cannot run" in done.stderr and "cuMulticastCreate" in done.stderr, f"the table: {done.stderr}")
    row = next((line for line in done.stderr.splitlines() if line.startswith("call")), "")
    check(row.split()[1:3] == ["cuMulticastCreate", "3"], f"how often: {row}")

    done, lines = run(folder, "none.jsonl", "plain")
    check(not lines and "everything that the program asked for is supported" in done.stderr, f"nothing is refused: {lines} {done.stderr}")

    # What a process met that ends without its end is told all the same, and what an earlier run left is gone.
    done, lines = run(folder, "all.jsonl", "call", "die")
    check(done.returncode == 3 and [line["name"] for line in lines] == ["cuMulticastCreate"], f"_exit: {done.returncode} {lines}")

    done, lines = run(folder, "-", "call")
    check('"name":"cuMulticastCreate"' in done.stderr, f"on standard error: {done.stderr}")
    done, lines = run(folder, "no/such/folder/report.jsonl", "call")
    check(done.returncode == 125 and "no/such/folder" in done.stderr, f"a folder that is not there: {done.returncode} {done.stderr}")
print("all is named" if failures == 0 else f"{failures} failures")
sys.exit(1 if failures else 0)
