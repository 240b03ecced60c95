#!/usr/bin/env python3
"""rewrite_library_test.py GRIDLOOM NVCC: a static library, and an object that holds two fat binaries, are rewritten; a program linked with the
copy gives the same as one linked with the original, whole and in slices."""
import os
import subprocess
import sys
import tempfile

KERNEL = """
#include <cstdio>
__global__ void {name}(int* a, int n) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] {operator} gridDim.x + blockIdx.x;
}}
void run_{name}(int n) {{
  int* a;
  cudaMallocManaged(&a, n * sizeof(int));
  for (int i = 0; i < n; ++i) a[i] = i;
  {name}<<<(n + 63) / 64, 64>>>(a, n);
  const cudaError_t status = cudaDeviceSynchronize();
  long sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i];
  printf("{name} %d %ld\\n", status, sum);
}}
"""
MAIN = "void run_add(int), run_multiply(int);\nint main() { run_add(1000); run_multiply(777); }\n"


def call(folder, *command):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}:\n{done.stdout.decode()}")
    return done.stdout


def main():
    gridloom, nvcc = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for name, operator in ("add", "+="), ("multiply", "*="):
            with open(os.path.join(folder, name + ".cu"), "w", encoding="utf-8") as file:
                file.write(KERNEL.format(name=name, operator=operator))
        with open(os.path.join(folder, "main.cpp"), "w", encoding="utf-8") as file:
            file.write(MAIN)
        call(folder, nvcc, "-arch=compute_75", "-c", "add.cu", "multiply.cu", "main.cpp")
        call(folder, "ar", "rcs", "both.a", "add.o", "multiply.o")
        call(folder, "ld", "-r", "-o", "both.o", "add.o", "multiply.o")
        call(folder, nvcc, "main.o", "both.a", "-o", "original")
        want = call(folder, gridloom, "run", "--", "./original")
        wrong = 0
        for file in "both.a", "both.o":
            for passes in "release,profile-strided", "slice":
                call(folder, gridloom, "rewrite", file, "--pass", passes, "-o", "copy-" + file)
                call(folder, nvcc, "main.o", "copy-" + file, "-o", "copy")
                for options in [], ["--slice", "3"]:
                    got = call(folder, gridloom, "run", *options, "--", "./copy")
                    wrong += got != want
                    print("same" if got == want else f"DIFFERENT: {got.decode()}", file, passes, *options)
        return 1 if wrong or not want.startswith(b"add 0 ") else 0


sys.exit(main())
