#!/usr/bin/env python3
"""cached_code_test.py GRIDLOOM: a client whose kernels' texts are others in each run, but for their code, compiles them in the first run only."""
import os
import re
import subprocess
import sys
import tempfile

CLIENT = r'''
import ctypes, os, sys
constant, run = sys.argv[1:]
ptx = f"""// compiled by process {os.getpid()} from {run}/kernel.cu
.version 8.0
.target sm_75
.address_size 64
.global .u32 _INTERNAL_{os.getpid()}_table[2] = {{0, 1}};
.visible .entry adds(.param .u64 p)
{{
  .reg .u32 %r<4>;
  .reg .u64 %rd<4>;
  .loc 1 {len(run)} 3 // {run}
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [_INTERNAL_{os.getpid()}_table];
  add.u32 %r2, %r1, {constant};
  add.u32 %r2, %r2, %r3;
  st.global.u32 [%rd3], %r2;
  ret;
}}
.file 1 "{run}/kernel.cu", {os.getpid()}, 77
.section .debug_str {{ .b8 {", ".join(str(c) for c in run.encode())}, 0 }}
"""
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert status == 0, (name, status)
context, module, function, memory = (ctypes.c_void_p() for _ in range(4))
call("cuInit", 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
call("cuModuleLoadData", ctypes.byref(module), ptx.encode())
call("cuModuleGetFunction", ctypes.byref(function), module, b"adds")
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4 * 64))
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
call("cuLaunchKernel", function, 1, 1, 1, 64, 1, 1, 0, None, parameters, None)
words = (ctypes.c_uint * 64)()
call("cuMemcpyDtoH_v2", words, memory, ctypes.c_size_t(4 * 64))
assert list(words) == [i + int(constant) for i in range(64)], list(words)
'''


def run(gridloom, folder, constant, name):
    """Whether the kernel's code came from the cache."""
    done = subprocess.run([gridloom, "run", "--cache", os.path.join(folder, "cache"), "--log", "debug", "--", sys.executable, "-c", CLIENT,
                           str(constant), os.path.join(folder, name)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=200)
    launches = re.findall(r"kernel adds: .*", done.stdout.decode())
    assert done.returncode == 0 and len(launches) == 1, (done.returncode, done.stdout.decode()[-3000:])
    return "(from cache)" in launches[0]


def main():
    with tempfile.TemporaryDirectory(prefix="gridloom-cached-") as folder:
        seen = [run(sys.argv[1], folder, constant, name) for constant, name in ((5, "tmp1"), (5, "tmp_second"), (6, "tmp1"), (6, "tmp3"))]
    assert seen == [False, True, False, True], seen
    print("PASS")


main()
