"""host_blas_test.py GRIDLOOM PROGRAM: products of matrices by OpenBLAS are right, and who looks at grids gets Gridloom's kernels."""
import ctypes
import os
import subprocess
import sys
import tempfile

GRIDLOOM, PROGRAM = sys.argv[1:]
MADE = "products of matrices are made by"


def run(*options, **environment):
    done = subprocess.run([GRIDLOOM, "run", "--log", "info", *options, "--", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, **environment), check=False)
    text = done.stdout.decode(errors="replace")
    assert done.returncode == 0 and "PASS" in text, text[-3000:]
    return text


try:
    ctypes.CDLL("libopenblas.so.0")
except OSError as error:
    print(f"skipped: {error}")
    sys.exit(0)
assert f"{MADE} libopenblas.so.0" in run()
assert MADE not in run(GRIDLOOM_BLAS="off")
text = run(GRIDLOOM_BLAS="/nowhere/libblas.so")
assert MADE not in text and "GRIDLOOM_BLAS: /nowhere/libblas.so" in text, text[-2000:]
with tempfile.TemporaryDirectory() as folder:
    assert MADE not in run("--trace", os.path.join(folder, "trace"))
print("PASS")
