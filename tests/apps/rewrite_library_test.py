#!/usr/bin/env python3
"""rewrite_library_test.py GRIDLOOM NVCC: a static library, and an object that holds two fat binaries, are rewritten; a program linked with the
copy gives the same as one linked with the original, whole and in slices. So do the parts of a separately compiled program, as objects
and in a static library, which are linked for the device after they were rewritten."""
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
# Parts: a kernel that calls the function of its own part, and one that calls across parts, there and back.
PARTS = {
    "near.cu": """
#include <cstdio>
extern __device__ int far_place(int);
__device__ int place() { return blockIdx.x * 10 + blockIdx.y; }
__global__ void near_kernel(int* out) { out[(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] = place() * 1000 + threadIdx.x; }
__global__ void across(int* out) { out[blockIdx.x * blockDim.x + threadIdx.x] += far_place(blockIdx.x); }
int main() {
  int* d;
  cudaMallocManaged(&d, 4096 * sizeof(int));
  near_kernel<<<dim3(5, 3), 32>>>(d);
  across<<<7, 32>>>(d);
  const cudaError_t status = cudaDeviceSynchronize();
  long sum = 0;
  for (int i = 0; i < 480; ++i) sum = sum * 31 + d[i];
  printf("parts %d %ld\\n", status, sum);
}
""",
    "far.cu": "__device__ int place();\n__device__ int far_place(int x) { return 2 * x + place(); }\n",
}
MAIN = "void run_add(int), run_multiply(int);\nint main() { run_add(1000); run_multiply(777); }\n"


def call(folder, *command):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}:\n{done.stdout.decode()}")
    return done.stdout


def check(gridloom, folder, want, what):
    """How many runs of ./copy give something else."""
    wrong = 0
    for options in [], ["--slice", "3"]:
        got = call(folder, gridloom, "run", *options, "--", "./copy")
        wrong += got != want
        print("same" if got == want else f"DIFFERENT: {got.decode()}", *what, *options)
    return wrong


def check_parts(gridloom, nvcc, folder):
    for name, text in PARTS.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    call(folder, nvcc, "-arch=compute_75", "-rdc=true", "-c", "near.cu", "far.cu")
    call(folder, "ar", "rcs", "parts.a", "near.o", "far.o")
    call(folder, nvcc, "-arch=compute_75", "near.o", "far.o", "-o", "original")
    want = call(folder, gridloom, "run", "--", "./original")
    wrong = not want.startswith(b"parts 0 ")
    for passes in "slice", "slice,profile-strided,release-strided":
        for file in "near.o", "far.o", "parts.a":
            told = call(folder, gridloom, "rewrite", file, "--pass", passes, "-o", "copy-" + file)
            wrong += file != "far.o" and told.count(b"\n  changed ") != 1
        for files in ["copy-near.o", "far.o"], ["copy-near.o", "copy-far.o"], ["copy-parts.a"]:
            call(folder, nvcc, "-arch=compute_75", *files, "-o", "copy")
            wrong += check(gridloom, folder, want, [*files, passes])
    return wrong


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
                wrong += check(gridloom, folder, want, [file, passes])
        wrong += check_parts(gridloom, nvcc, folder)
        return 1 if wrong or not want.startswith(b"add 0 ") else 0


sys.exit(main())
