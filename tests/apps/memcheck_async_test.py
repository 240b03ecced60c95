#!/usr/bin/env python3
"""Runs programs of memcheck_async case by case under memcheck: each access to what an asynchronous copy writes before its end has to be
found, and nothing in the right ones. usage: memcheck_async_test.py GRIDLOOM SOURCE PROGRAM…"""
import sys

from memcheck_cases import main

COPY = r"the copy: thread \(\d+,0,0\) at .*:\d+.*, which has not been waited for"
# case: kind, what the text must contain (regular expressions), the program's own last line, times (None: not said)
DEFECTS = {
    "no-wait": ("unfinished-copy", [r"read of 4 bytes from shared memory before the end of an asynchronous copy to it in kernel `NoWait", COPY], "cudaSuccess", 64),
    "wrong-group": ("unfinished-copy", [COPY], "cudaSuccess", 64),
    "barrier-before-wait": ("unfinished-copy", [COPY], "cudaSuccess", None),
    "no-barrier": ("race", [r"read of 4 bytes after a write by another thread"], "cudaSuccess", None),
    "written-too-early": ("unfinished-copy", [r"write of 4 bytes to shared memory before the end of an asynchronous copy", COPY], "cudaSuccess", 64),
    "no-wait-of-group": ("unfinished-copy", [COPY], "cudaSuccess", None),
    "no-wait-at-mbarrier": ("unfinished-copy", [COPY], "cudaSuccess", None),
    "ended-writer": ("race", [r"read of 4 bytes after a write by another thread"], "cudaSuccess", None),
}
# Other threads that read, too, find what no barrier orders, or nothing yet.
MORE = {case: {"unfinished-copy", "race", "uninitialised"} for case in ("no-wait-of-group", "no-wait-at-mbarrier", "barrier-before-wait", "no-barrier")}


def cases(test):
    for case, expected in DEFECTS.items():
        test.defect(case, *expected)
    test.clean()


if __name__ == "__main__":
    sys.exit(main(MORE, cases))
