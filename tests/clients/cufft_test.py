#!/usr/bin/env python3
"""CuPy's Fourier transforms against NumPy's, with NVIDIA's cuFFT from the package index. usage: cufft_test.py GRIDLOOM FOLDER

Sizes with small and large factors, real and complex, along one axis and several, forth and back, of float and double.
"""
import os
import subprocess
import sys

import packages

GRIDLOOM, FOLDER = (os.path.abspath(argument) for argument in sys.argv[1:3])
REQUIREMENTS = ["cupy-cuda13x==14.2.0", "numpy==2.3.5", "nvidia-cufft==12.5.0.14", "nvidia-cuda-runtime==13.5.37", "nvidia-cuda-nvrtc==13.5.37",
                "nvidia-nvjitlink==13.5.37"]

PROGRAM = r'''
import cupy as cp
import numpy as np

random = np.random.default_rng(3)
checks = 0

def same(name, got, want, dtype):
    global checks
    error = np.linalg.norm(cp.asnumpy(got) - want) / np.linalg.norm(want)
    assert error < (1e-6 if dtype == np.float32 else 1e-14), (name, dtype, error)
    checks += 1

def compare(function, shape, dtype, complex_input, **where):
    values = random.standard_normal(shape).astype(dtype)
    if complex_input:
        values = values + 1j * random.standard_normal(shape).astype(dtype)
    exact = values.astype(np.complex128 if complex_input else np.float64)
    got = getattr(cp.fft, function)(cp.asarray(values), **where)
    want = getattr(np.fft, function)(exact, **where)
    same(f"{function} {shape} {where}", got, want, dtype)

for dtype in (np.float32, np.float64):
    for size in (1, 2, 17, 1000, 1009, 4096, 10007, 20000, 65536):
        compare("fft", (2, size), dtype, True)
        compare("ifft", (2, size), dtype, True)
        compare("rfft", (2, size), dtype, False)
        signal = random.standard_normal((3, size)).astype(dtype)
        spectrum = np.fft.rfft(signal.astype(np.float64))
        back = cp.fft.irfft(cp.asarray(spectrum.astype(np.complex64 if dtype == np.float32 else np.complex128)), size)
        same(f"irfft {size}", back, signal, dtype)
    for function, complex_input in (("fft2", True), ("ifft2", True), ("rfft2", False)):
        compare(function, (1000, 1000), dtype, complex_input)
        compare(function, (5, 60, 67), dtype, complex_input)
    compare("fftn", (12, 30, 25), dtype, True)
    compare("rfftn", (12, 30, 25), dtype, False)
    compare("fftn", (6, 11, 8, 9), dtype, True, axes=(1, 3))
    compare("fft", (40, 50, 30), dtype, True, axis=0)
    compare("fft", (40, 50, 30), dtype, True, axis=1)
    compare("rfft", (40, 50, 30), dtype, False, axis=1)
    compare("fft", (100, 300), dtype, True, n=512)
    compare("ifft", (100, 300), dtype, True, norm="ortho")
print(checks, "transforms agree")
'''


def libraries(python):
    """The folder into which the packages put NVIDIA's libraries."""
    code = "import nvidia, os; print(next(f for f in (os.path.join(p, 'cu13') for p in nvidia.__path__) if os.path.isdir(f)))"
    return subprocess.run([python, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def run(python, environment):
    done = subprocess.run([GRIDLOOM, "run", "--summary", "--", python, "-W", "ignore", "-c", PROGRAM], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
    print(done.stdout)
    assert done.returncode == 0 and "error:" not in done.stdout
    return done.stdout


def main():
    python = packages.environment(os.path.join(FOLDER, "cufft"), *REQUIREMENTS)
    toolkit = libraries(python)
    environment = dict(os.environ, CUDA_PATH=toolkit, LD_LIBRARY_PATH=os.path.join(toolkit, "lib"), CUPY_CACHE_DIR=os.path.join(FOLDER, "cupy_cache"))
    environment.pop("CUDA_HOME", None)
    text = run(python, environment)
    assert "gridloom_fft_" in text, "the transforms are made by the host's FFTW or by Gridloom's kernels"
    text = run(python, dict(environment, GRIDLOOM_FFT="off"))
    assert "gridloom_fft_f32" in text and "gridloom_fft_f64" in text, "the transforms are made by Gridloom's kernels"


if __name__ == "__main__":
    main()
