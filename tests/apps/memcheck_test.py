#!/usr/bin/env python3
"""Runs memcheck_defects case by case under memcheck and compares text, JSON and exit code with what has to be found.
usage: memcheck_test.py GRIDLOOM SOURCE PROGRAM"""
import re
import sys
import tempfile

from memcheck_cases import Test, main

# case: kind, what the text must contain (regular expressions), the program's own last line, accesses (None: not said)
DEFECTS = {
    "write-past": ("out-of-bounds", [r"write of 4 bytes to global memory in kernel `WritePast\(int\*, int\)`", r"thread \(232,0,0\)", r"CTA \(3,0,0\)",
                                     r"right at the end of the 4,000-byte allocation 0x[0-9a-f]+ made by cudaMalloc \(allocation 1\)"], "cudaSuccess", 1),
    "read-past": ("out-of-bounds", [r"read of 4 bytes|read of 16 bytes", r"past the end of the 4,000-byte"], "cudaSuccess", 1),
    "before": ("out-of-bounds", [r"write of 4 bytes", r"4 bytes before the 4,096-byte allocation 0x[0-9a-f]+ made by cudaMalloc \(allocation 2\)"], None, 2),
    "freed": ("use-after-free", [r"0 bytes into the 4,000-byte allocation .* which has been freed"], "cudaErrorIllegalAddress", 32),
    "freed-async": ("use-after-free", [r"made by cudaMallocAsync \(allocation 3\), which has been freed"], "cudaErrorIllegalAddress", 16),
    "null": ("out-of-bounds", [r"a null pointer plus 20 bytes"], "cudaErrorIllegalAddress", 1),
    "misaligned": ("misaligned", [r"4-byte accesses need a multiple of 4"], "cudaErrorMisalignedAddress", 1),
    "variable": ("out-of-bounds", [r"right at the end of variable `table` \(40 bytes\)"], "cudaSuccess", 2),
    "uninitialised": ("uninitialised", [r"uninitialised value from shared memory is stored to global memory", r"252 bytes into shared variable `.*tile.*`",
                                        r"thread \(63,0,0\)", r"read at memcheck_defects.cu:\d+|read at .*/memcheck_defects.cu:\d+"], "cudaSuccess", 1),
    "uninitialised-branch": ("uninitialised", [r"uninitialised value from shared memory decides a branch", r"thread \(63,0,0\)"], "cudaSuccess", 1),
    "uninitialised-sum": ("uninitialised", [r"uninitialised value from shared memory is stored to global memory"], "cudaSuccess", 1),
    "race-raw": ("race", [r"read of 4 bytes after a write by another thread", r"no barrier orders the two"], "cudaSuccess", None),
    # The warp that arrives last at the barrier goes on first, so others read what it has written.
    "race-war": ("race", [r"(write of 4 bytes after a read|read of 4 bytes after a write) by another thread"], "cudaSuccess", None),
    "race-waw": ("race", [r"write of 4 bytes after a write by another thread", r"the first byte of shared variable"], "cudaSuccess", None),
    "dynamic": ("out-of-bounds", [r"the CTA has 128 bytes of shared memory \(0 static, 128 dynamic\)"], "cudaErrorIllegalAddress", 32),
    "heap": ("out-of-bounds", [r"right at the end of the 16-byte block 0x[0-9a-f]+ made by malloc\(\) in a kernel"], "cudaSuccess", 1),
    # Beyond its page the allocation's place is no memory: the grid ends there, and not all are made.
    "unrolled": ("out-of-bounds", [r"write of 4 bytes to global memory in kernel `Unrolled", r"and \d+ more accesses of this kind at this place"], None, None),
    "double-free": ("invalid-free", [r"invalid free\(\) in kernel `DoubleFree\(\)`", r"which has been freed"], "cudaErrorIllegalAddress", 1),
}
CALLS = {
    "host-double-free": r"cuMemFree: double free of the 4,096-byte allocation .* \(allocation 2\)",
    "host-free": r"cuMemFree: free of 0x[0-9a-f]+, which is no pointer that an allocation gave: 4 bytes into the 4,000-byte allocation",
    "copy": r"out-of-bounds read of 4,096 bytes from global memory, address 0x[0-9a-f]+: its last 96 bytes lie past the end of the 4,000-byte allocation",
}
# Cases whose run meets another finding first, as a consequence of the order in which warps run.
MORE = {"race-raw": {"uninitialised", "race"}}


class DefectTest(Test):
    def filters(self):
        done, found = self.run("--memcheck-checks", "race,leak", case="uninitialised")
        self.check("checks", done.returncode == 0 and found and not found["findings"], "tells of a kind that is not asked for", done)
        done, found = self.run("--memcheck-checks", "leak,uninitialised", case="uninitialised")
        self.check("checks", done.returncode == 1 and found and len(found["findings"]) == 1, "does not tell of a kind that is asked for", done)
        self.check("library", found and found["findings"] and found["findings"][0]["library"] == "memcheck_defects", "does not name the library", done)
        line = found["findings"][0]["suppression"] if found and found["findings"] else ""
        for lines, told in ((line, 0), ("# none\n\nrace *\n", 1), ("* Uninit*\n", 0), ("uninitialised Uninitialised(int?)", 0), ("uninitialised Other*", 1),
                            ("* * in memcheck_defects", 0), ("* * in memcheck*", 0), ("* * in libother.so", 1), ("race * in memcheck_defects", 1)):
            with tempfile.NamedTemporaryFile("w") as file:
                file.write(lines)
                file.flush()
                done, found = self.run("--memcheck-suppressions", file.name, case="uninitialised")
            self.check("suppressions", found and len(found["findings"]) == told, f"'{lines}' leaves not {told}", done)
            self.check("suppressions", done.returncode == told, "the exit code is another", done)
        done, _ = self.run("--memcheck-checks", "races", case="none")
        self.check("checks", done.returncode == 125 and "'races' is no kind of finding" in done.stderr, "takes a kind that does not exist", done)

    def host_stacks(self):
        done, found = self.run(case="freed")
        self.check("stacks", found and "host" not in found["findings"][0], "has stacks that nobody asked for", done)
        done, found = self.run("--memcheck-host-stacks", case="freed")
        host = found["findings"][0].get("host", {}) if found and found["findings"] else {}
        for key in ("launched", "allocated", "freed"):
            frames = host.get(key, [])
            self.check("stacks", any(re.search(r"memcheck_defects\+0x[0-9a-f]+$", frame) for frame in frames), f"{key}: {frames}", done)
            self.check("stacks", not any("gridloom" in frame for frame in frames), f"{key} has our own frames: {frames}", done)
            self.check("stacks", re.search(rf"\n  {key} at\n    \S+", done.stderr), f"the text lacks {key}", done)
        self.check("stacks", host.get("allocated") != host.get("freed"), "two calls are one", done)
        done, found = self.run("--leak-check", "--memcheck-host-stacks", case="leak")
        leaks = found["leaks"] if found else []
        self.check("stacks", leaks and all(leak["host"]["allocated"] for leak in leaks), "leaks have none", done)

    def others(self):
        self.clean()
        done, found = self.run("--leak-check", case="leak")
        self.check("leak", done.returncode == 1 and "2 allocations leaked" in done.stderr, "leaks are not counted", done)
        self.check("leak", found and [leak["bytes"] for leak in found["leaks"]] == [4000, 4096], "leaks are not named", done)
        done, _ = self.run("--leak-check", case="none")
        self.check("none", done.returncode == 0 and "nothing leaked" in done.stderr, "leaks where nothing leaks", done)
        done, _ = self.run("--error-exitcode", "77", case="null")
        self.check("null", done.returncode == 77, "exit code is not 77", done)
        done, _ = self.run("--error-exitcode", "0", case="null")
        self.check("null", done.returncode == 0, "exit code is not the program's", done)
        done, found = self.run("--memcheck-limit", "0", case="variable")
        self.check("variable", found and not found["findings"] and found["not_kept"] == 2, "the limit is not kept", done)


def cases(test):
    for case, expected in DEFECTS.items():
        test.defect(case, *expected)
    for case, text in CALLS.items():
        test.call(case, text)
    test.filters()
    test.host_stacks()
    test.others()


if __name__ == "__main__":
    sys.exit(main(MORE, cases, DefectTest))
