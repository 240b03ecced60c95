"""host_fft_test.py GRIDLOOM PROGRAM: Fourier transforms by FFTW are right, and who looks at grids gets Gridloom's kernels."""
import ctypes
import os
import subprocess
import sys
import tempfile

GRIDLOOM, PROGRAM = sys.argv[1:]
MADE = "transforms of f32 are made by"


def run(*options, **environment):
    done = subprocess.run([GRIDLOOM, "run", "--log", "info", "--summary", *options, "--", PROGRAM], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=dict(os.environ, **environment), check=False)
    text = done.stdout.decode(errors="replace")
    assert done.returncode == 0 and "PASS" in text, text[-3000:]
    return text


def doctor(**environment):
    done = subprocess.run([GRIDLOOM, "doctor"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(os.environ, **environment), check=False)
    return done.stdout.decode(errors="replace")


try:
    for library in ("libfftw3f_threads.so.3", "libfftw3_threads.so.3"):
        ctypes.CDLL(library)
except OSError as error:
    print(f"skipped: {error}")
    sys.exit(0)
text = run()
assert f"{MADE} libfftw3f_threads.so.3" in text and "gridloom_fft_by_host" in text, text[-2000:]
assert "gridloom_fft_f32_plain" not in text, text[-2000:]
for text in (run(GRIDLOOM_FFT="off"), run(GRIDLOOM_FFT="/nowhere")):
    assert MADE not in text and "gridloom_fft_by_host" not in text and "gridloom_fft_f32" in text, text[-2000:]
assert "GRIDLOOM_FFT: /nowhere/libfftw3f_threads.so.3" in text, text[-2000:]
with tempfile.TemporaryDirectory() as folder:
    assert MADE not in run("--trace", os.path.join(folder, "trace"))
assert "Fourier transforms by libfftw3f_threads.so.3" in doctor()
assert "Fourier transforms by Gridloom's own kernels" in doctor(GRIDLOOM_FFT="off")
print("PASS")
