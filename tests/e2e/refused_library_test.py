"""refused_library_test.py GRIDLOOM NVCC: a library without PTX loads; launched, it is refused by its name and its kernels' names."""
import os
import subprocess
import sys
import tempfile

GRIDLOOM, NVCC = os.path.abspath(sys.argv[1]), sys.argv[2]
LIBRARY = """
template <class T> __global__ void Scale(T* p, T f) { p[threadIdx.x] *= f; }
__global__ void First(int* p) { *p = 1; }
__global__ void Second(int* p) { *p = 2; }
__global__ void Third(int* p) { *p = 3; }
extern "C" int Go() { float* p; cudaMalloc(&p, 128); Scale<float><<<1, 32>>>(p, 2.0f); First<<<1, 1>>>((int*)p);
  Second<<<1, 1>>>((int*)p); Third<<<1, 1>>>((int*)p); return (int)cudaGetLastError(); }
extern "C" int Look() { cudaKernel_t kernel; return (int)cudaGetKernel(&kernel, Third); }
"""
PROGRAM = ('#include <cstdio>\nextern "C" int Go();\nextern "C" int Look();\n'
           'int main(int count, char**) { std::printf("%d\\n", count > 1 ? Look() : Go()); }\n')


def run(folder, *program, options=()):
    done = subprocess.run([GRIDLOOM, "run", *options, "--", *program], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.stdout.decode(), done.stderr.decode()


with tempfile.TemporaryDirectory() as folder:
    def build(*words):
        subprocess.run(words, cwd=folder, check=True)

    for name, text in (("library.cu", LIBRARY), ("program.cpp", PROGRAM)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    options = [NVCC, "-gencode", "arch=compute_90,code=sm_90", "-cudart", "static"]
    build(*options, "-Xcompiler", "-fPIC", "-shared", "-o", "libscale.so.3", "library.cu")
    build("c++", "program.cpp", "-o", "program", "./libscale.so.3")
    out, err = run(folder, "./program", "look")
    assert out.strip() == "0" and err == "", (out, err)  # code that is loaded and not launched is no error
    out, err = run(folder, "./program")
    assert out.strip() == "209", (out, err)  # no kernel image is available
    assert "kernel void Scale<float>(float*, float) cannot run: the image holds machine code" in err, err
    assert "It is in libscale.so.3 and has the kernels " in err and " and 1 more." in err and "(int*)" in err, err
    assert err.count("It is in libscale.so.3") == 1, err  # once, not at each launch
    assert "can only be rebuilt by its makers: take a device that it has PTX for (`gridloom inspect libscale.so.3` says which)" in err, err
    out, err = run(folder, "./program", options=("--summary",))
    assert err.endswith("\ngridloom: no kernel ran\n"), err
    build(*options, "-o", "whole", "library.cu", "program.cpp")
    out, err = run(folder, "./whole")
    assert out.strip() == "209" and "It is in whole and has the kernels " in err and "makers" not in err and "-gencode" in err, (out, err)
print("PASS")
