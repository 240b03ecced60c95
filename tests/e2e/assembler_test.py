#!/usr/bin/env python3
"""A program that compiles PTX with ptxas itself and loads the cubin, as Triton and XLA do; and one that asks NVML for its GPU first.

usage: assembler_test.py GRIDLOOM PTXAS_STAND_IN
"""
import os
import shutil
import subprocess
import sys
import tempfile

PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 out, .param .u32 value)
{
  .reg .b32 %r<3>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  mov.u32 %r2, %tid.x;
  add.u32 %r1, %r1, %r2;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
}
"""
LIVE = 80  # values that a kernel of it keeps over a barrier
PTX += (".visible .entry many(.param .u64 p)\n{\n.reg .b64 %p; .reg .b32 %r<" + str(LIVE) + ">;\nld.param.u64 %p, [p];\n" +
        "".join(f"ld.global.u32 %r{i}, [%p+{4 * i}];\n" for i in range(LIVE)) + "bar.sync 0;\n" +
        "".join(f"st.global.u32 [%p+{4 * (LIVE - 1 - i)}], %r{i};\n" for i in range(LIVE)) + "ret;\n}\n")

PTX += """.visible .entry fused(.param .u64 p)
{
  .reg .b64 %p; .reg .f32 %f<4>;
  ld.param.u64 %p, [p];
  ld.global.f32 %f1, [%p];
  mul.f32 %f2, %f1, %f1;
  sub.f32 %f3, %f2, 0f3F800000;
  st.global.f32 [%p], %f3;
  ret;
}
"""

PROGRAM = r'''
import ctypes, os, subprocess, sys
ptxas, folder = sys.argv[1:]
source, cubin = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.cubin")
cuda, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")

def check(status):
    assert status == 0, status

def assemble(*options):
    return subprocess.run([ptxas, source, "-o", cubin, *options]).returncode

def load():
    with open(cubin, "rb") as file:
        image = file.read()
    module = ctypes.c_void_p()
    return cuda.cuModuleLoadData(ctypes.byref(module), image), module

count = ctypes.c_uint()
check(nvml.nvmlInit_v2())
check(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)))
assert count.value == 1 and os.path.exists("/dev/nvidia0")
if os.fork() == 0:  # NVML alone does not keep a child from CUDA
    os._exit(0 if cuda.cuInit(0) == 0 else 1)
assert os.wait()[1] == 0

check(cuda.cuInit(0))
context, function, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
if "stand_in" in ptxas:
    assert assemble("--fail") == 1
    status, module = load()
    check(status)
    got = cuda.cuModuleGetFunction(ctypes.byref(function), module, b"fill")
    assert got == 209, "CUDA_ERROR_NO_BINARY_FOR_GPU: what ptxas left behind when it failed is not touched"
check(assemble("-arch=sm_90"))
status, module = load()
check(status)
check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"fill"))
check(cuda.cuMemAlloc_v2(ctypes.byref(memory), 128))
value = ctypes.c_uint(7)
parameters = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(value))
check(cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, parameters, None))
result = (ctypes.c_uint * 32)()
check(cuda.cuMemcpyDtoH_v2(result, memory, 128))
assert list(result) == list(range(7, 39)), list(result)

def registers():
    status, module = load()
    check(status)
    kernel, number = ctypes.c_void_p(), ctypes.c_int()
    check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"many"))
    check(cuda.cuFuncGetAttribute(ctypes.byref(number), 4, kernel))  # CU_FUNC_ATTRIBUTE_NUM_REGS
    return number.value

assert registers() > 80, registers()
for limit in (["--maxrregcount=40"], ["-maxrregcount", "40"]):
    check(assemble("-arch=sm_90", *limit))
    assert registers() <= 40, registers()

def square_less_one(*options):
    check(assemble("-arch=sm_90", *options))
    status, module = load()
    check(status)
    kernel, value = ctypes.c_void_p(), ctypes.c_float(1 + 2.0**-13)
    check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"fused"))
    check(cuda.cuMemcpyHtoD_v2(memory, ctypes.byref(value), 4))
    check(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, (ctypes.c_void_p * 1)(ctypes.addressof(memory)), None))
    check(cuda.cuMemcpyDtoH_v2(ctypes.byref(value), memory, 4))
    return value.value

for options, want in (([], 2.0**-12 + 2.0**-26), (["-fmad=false"], 2.0**-12), (["--fmad", "false"], 2.0**-12),
                      (["-fmad=false", "--fmad=true"], 2.0**-12 + 2.0**-26)):
    got = square_less_one(*options)
    assert got == want, (options, got, want)
print("PASS")
'''


def main():
    gridloom, stand_in = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program.py")
        for name, text in (("k.ptx", PTX), ("program.py", PROGRAM)):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        tools = [stand_in]
        real = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
        if real:
            tools.append(real)
        else:
            print("skipped: the toolkit's ptxas (not found); its stand-in was tried")
        for tool in tools:
            done = subprocess.run([gridloom, "run", "--", sys.executable, program, tool, folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True)
            assert done.returncode == 0 and done.stdout == "PASS\n", (tool, done.stdout, done.stderr)
            print(f"{os.path.basename(tool)}: the cubin's PTX was found and ran")


if __name__ == "__main__":
    main()
