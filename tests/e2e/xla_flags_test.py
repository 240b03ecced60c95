"""xla_flags_test.py GRIDLOOM: which processes find what in XLA_FLAGS (interpose/hooks/xla.cpp)."""
import os
import subprocess
import sys

GRIDLOOM = sys.argv[1]
OPTION = "--xla_gpu_enable_triton_gemm=false"


def seen(program=None, device=(), **environment):
    """XLA_FLAGS as the program has it, `none` where it is not set."""
    base = {name: value for name, value in os.environ.items() if not name.startswith("GRIDLOOM") and name != "XLA_FLAGS"}
    program = program or [sys.executable, "-c", "import os; print(os.environ.get('XLA_FLAGS', 'none'))"]
    done = subprocess.run([GRIDLOOM, "run", "-q", *device, "--", *program], stdout=subprocess.PIPE, env={**base, **environment}, check=True)
    return done.stdout.decode().strip()


def check(got, want):
    assert got == want, f"{got!r}, want {want!r}"


check(seen(device=("--device", "h200")), OPTION)
if not os.path.exists("/dev/nvidiactl"):
    check(seen(), OPTION)
DEVICE = ("--device", "h200")
check(seen(device=DEVICE, XLA_FLAGS="--xla_a=1"), "--xla_a=1 " + OPTION)
check(seen(device=DEVICE, XLA_FLAGS="--xla_gpu_enable_triton_gemm=true"), "--xla_gpu_enable_triton_gemm=true")
check(seen(device=DEVICE, XLA_FLAGS="/etc/flags"), "/etc/flags")
check(seen(device=DEVICE, GRIDLOOM_XLA_FLAGS="off"), "none")
check(seen(device=DEVICE, GRIDLOOM_XLA_FLAGS="--xla_b=2", XLA_FLAGS="--xla_a=1"), "--xla_a=1 --xla_b=2")
TWO = "--xla_b=2 --xla_cd=3"
check(seen(device=DEVICE, GRIDLOOM_XLA_FLAGS=TWO), TWO)
check(seen(device=DEVICE, GRIDLOOM_XLA_FLAGS=TWO, XLA_FLAGS="--xla_b=7"), "--xla_b=7 --xla_cd=3")
check(seen(device=DEVICE, GRIDLOOM_XLA_FLAGS=TWO, XLA_FLAGS="--xla_cd=7 --xla_a"), "--xla_cd=7 --xla_a --xla_b=2")
check(seen(device=DEVICE, GRIDLOOM_XLA_FLAGS="--xla_c=3", XLA_FLAGS="--xla_cd=7"), "--xla_cd=7 --xla_c=3")
check(seen(["/bin/sh", "-c", "echo ${XLA_FLAGS-none}"]), "none")
check(seen(["/bin/sh", "-c", f"{sys.executable} -c 'import os; print(os.environ[\"XLA_FLAGS\"])'"], DEVICE), OPTION)
print("PASS")
