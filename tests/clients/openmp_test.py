#!/usr/bin/env python3
"""GCC's OpenMP and OpenACC for NVIDIA GPUs: sums and a loop, optimised and not. Skipped aloud without GCC's compiler for them.
usage: openmp_test.py GRIDLOOM FOLDER"""
import os
import resource
import subprocess
import sys

GRIDLOOM, FOLDER = (os.path.abspath(argument) for argument in sys.argv[1:3])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "openmp_client.c")
SKIPPED = 77
COMPILERS = ["gcc-14", "gcc-13", "gcc-12"]
# A stack for each warp of all teams is allocated, 128 KiB each. Of each a page or two are used; all of them are more than 500 MiB.
MOST_KIB = 250 << 10


def build(program, options):
    """By the first compiler that can. Of programs it finds those in /usr: its assembler would call a ptxas that its libraries are too old for."""
    environment = dict(os.environ, PATH="/usr/bin:/bin")
    for compiler in COMPILERS:
        command = [compiler, *options, "-foffload=nvptx-none", SOURCE, "-o", program, "-lm"]
        try:
            made = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        except FileNotFoundError:
            continue
        # Without the other compiler the program is made all the same, for the host alone.
        if made.returncode == 0 and b".target sm_" in open(program, "rb").read():
            return True
        print(compiler, made.stderr[-300:])
    return False


def main():
    os.makedirs(FOLDER, exist_ok=True)
    failures = 0
    for options in (["-O2", "-fopenmp"], ["-O0", "-fopenmp"], ["-O2", "-fopenacc"], ["-O0", "-fopenacc"]):
        program = os.path.join(FOLDER, "client" + "".join(options))
        if not build(program, options):
            print("skipped: no GCC that compiles for nvptx-none (Debian: gcc-12-offload-nvptx)")
            return SKIPPED
        done = subprocess.run([GRIDLOOM, "run", "--", program], capture_output=True, text=True, timeout=120, check=False)
        print(*options, done.returncode, done.stdout, done.stderr[-1000:])
        failures += done.returncode != 0
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"at most {most >> 10} MiB")
    return int(failures != 0 or most > MOST_KIB)


if __name__ == "__main__":
    sys.exit(main())
