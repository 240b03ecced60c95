#!/usr/bin/env python3
"""Runs memcheck_leaks under --leak-check: each sort of memory and object that it leaves behind has to be told, and nothing else.
usage: memcheck_leaks_test.py GRIDLOOM SOURCE PROGRAM"""
import re
import sys

from memcheck_cases import main, run_checked

# what is left: text, bytes
MEMORY = {
    "array": (r"the array 0x[0-9a-f]+ of 64 x 16 texels and 4,096 bytes made by cudaMallocArray", 4096),
    "mipmap": (r"the mipmapped array 0x[0-9a-f]+ of 32 x 32 texels, 3 levels and [0-9,]+ bytes made by cudaMallocMipmappedArray", None),
    "physical": (r"memory number 1 of 2,097,152 bytes made by cuMemCreate", 2 << 20),
    "heap": (r"memory of malloc\(\) in kernels \(1 block, 100 bytes\)", 100),
}
OBJECTS = {"stream": 2, "event": 1, "graph": 1, "exec": 1, "texture": 1, "surface": 1}
SORTS = {"exec": "executable graph", "texture": "texture object", "surface": "surface object"}


def cases(test):
    check = test.check

    def run(*args, options=()):
        return run_checked(test.tool, [test.program, *args], ["--leak-check", *options])

    done, found = run()
    check("nothing", done.returncode == 0 and "nothing leaked" in done.stderr, "is not clean", done)
    check("nothing", found.get("leaks") == [] and found.get("object_leaks") == [], "JSON is not empty", done)
    for case, (text, size) in MEMORY.items():
        done, found = run(case)
        leaks = found.get("leaks", [])
        check(case, len(leaks) == 1 and re.search(text, leaks[0]["what"]), f"tells {leaks}", done)
        check(case, size is None or (leaks and leaks[0]["bytes"] == size), f"tells {leaks}", done)
        check(case, found.get("object_leaks") == [], "tells of objects", done)
        check(case, done.returncode == 1 and "1 allocation leaked" in done.stderr and re.search("error: leak: " + text, done.stderr), "text or exit code", done)
    for case, count in OBJECTS.items():
        sort = SORTS.get(case, case)
        done, found = run(case)
        check(case, found.get("object_leaks") == [{"sort": sort, "count": count}], f"tells {found.get('object_leaks')}", done)
        check(case, found.get("leaks") == [], "tells of memory", done)
        plural = f"1 {sort} was" if count == 1 else f"{count} {sort}s were"
        check(case, done.returncode == 1 and f"object-leak: {plural} never destroyed" in done.stderr, "text or exit code", done)
    for case in ("array", "stream", "event"):  # the context goes before the program's end
        done, found = run(case, "reset")
        check(case, done.returncode == 1 and len(found.get("leaks", [])) + len(found.get("object_leaks", [])) == 1, "not told at a reset", done)
    done, found = run("stream", options=("--memcheck-checks", "leak"))
    check("checks", done.returncode == 0 and found.get("object_leaks") == [], "tells of a kind that is not asked for", done)


if __name__ == "__main__":
    sys.exit(main({}, cases))
