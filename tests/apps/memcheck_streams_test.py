#!/usr/bin/env python3
"""Runs memcheck_streams case by case under memcheck: stream-ordered memory used in no order with its allocation or its free, copies beyond
a symbol, an allocation or a pinned block, and nothing in what is right. usage: memcheck_streams_test.py GRIDLOOM SOURCE PROGRAM"""
import re
import sys

from memcheck_cases import Test, main

MEMORY = r"the 1,024-byte allocation 0x[0-9a-f]+ made by cudaMallocAsync \(allocation \d+\)"
# Uses by kernels: what the finding's place says.
KERNELS = {
    "use-unordered": rf"{MEMORY}, whose allocation in stream \d+ nothing orders before this in stream \d+$",
    "use-unordered-late": rf"{MEMORY}, whose allocation in stream \d+ nothing orders before this in stream \d+$",
    "use-before-flag": rf"{MEMORY}, whose allocation in stream \d+ nothing orders before this in stream \d+$",
    "use-behind-plain-read": rf"{MEMORY}, whose allocation in stream \d+ nothing orders before this in stream \d+$",
    "legacy-unordered": rf"{MEMORY}, whose allocation in stream \d+ nothing orders before this in the default stream$",
    "child-unordered": rf"{MEMORY}, whose allocation in stream \d+ nothing orders before this in stream \d+$",
    "graph-after-free": rf"{MEMORY}, which the graph frees before this node$",
    "graph-beside-free": rf"{MEMORY}, which the graph frees, in no order with this node$",
    "graph-beside-allocation": rf"{MEMORY}, which no dependency of the graph orders before this node$",
    "graph-freed-outside": rf"{MEMORY}, which has been freed in stream \d+$",
    "graph-outside-unordered": rf"{MEMORY}, whose allocation in stream \d+ nothing orders before this in stream \d+$",
}
# Calls: the call, what it says, and what the program saw.
PAST_40 = r"its last 8 bytes lie past the end of variable `table` \(40 bytes\)"
PAST_PINNED = r"past the end of the 4,000-byte allocation 0x[0-9a-f]+ made by cudaMallocHost \(allocation \d+\)$"
PAST_DEVICE = r"past the end of the 4,000-byte allocation 0x[0-9a-f]+ made by cudaMalloc \(allocation \d+\)$"
CALLS = {
    "copy-unordered": ("copy or fill", rf"^write to {MEMORY}, whose allocation in stream \d+ nothing orders before this in stream \d+$", "cudaSuccess"),
    "graph-fill-after-free": ("copy or fill", rf"^write to {MEMORY}, which the graph frees before this node$", "cudaSuccess"),
    "free-unordered": ("cuMemFreeAsync", rf"^{MEMORY} is freed in stream \d+, which nothing orders behind kernel `.*Use\(int\*\)` in stream \d+$", "cudaSuccess"),
    "free-before-allocation": ("cuMemFreeAsync", rf"^{MEMORY} is freed in stream \d+, which nothing orders behind its allocation in stream \d+$", "cudaSuccess"),
    "double-free": ("cuMemFreeAsync", rf"^double free of {MEMORY}$", "cudaErrorInvalidValue"),
    "double-free-late": ("cuMemFreeAsync", rf"^double free of {MEMORY}$", "cudaErrorInvalidValue"),
    "copy-symbol": ("copy or fill", rf"^out-of-bounds write of 48 bytes to global memory, address 0x[0-9a-f]+: {PAST_40}$", "cudaSuccess"),
    "copy-constant": ("copy or fill", r"^out-of-bounds read of 44 bytes from global memory, .*: its last 4 bytes lie past the end of variable `factors` \(40 bytes\)$", "cudaSuccess"),
    "fill-symbol": ("copy or fill", r"^out-of-bounds write of 8 bytes to global memory, .*: its last 4 bytes lie past the end of variable `table`", "cudaSuccess"),
    "copy-pinned": ("copy or fill", rf"^out-of-bounds read of 4,000 bytes from global memory, .*: its last 40 bytes lie {PAST_PINNED}", "cudaSuccess"),
    "copy-to-pinned": ("copy or fill", rf"^out-of-bounds write of 4,000 bytes to global memory, .*: its last 4 bytes lie {PAST_PINNED}", "cudaSuccess"),
    "copy-2d": ("copy or fill", rf"^out-of-bounds write of 4,596 bytes to global memory, .*: its last 596 bytes lie {PAST_DEVICE}", "cudaErrorInvalidValue"),
    "copy-2d-pinned": ("copy or fill", rf"^out-of-bounds read of 4,040 bytes from global memory, .*: its last 40 bytes lie {PAST_PINNED}", "cudaSuccess"),
    "fill-2d": ("copy or fill", rf"^out-of-bounds write of 4,596 bytes to global memory, .*: its last 596 bytes lie {PAST_DEVICE}", "cudaErrorInvalidValue"),
    "copy-3d": ("copy or fill", rf"^out-of-bounds write of 5,000 bytes to global memory, .*: its last 1,000 bytes lie {PAST_DEVICE}", "cudaErrorInvalidValue"),
}


class StreamTest(Test):
    def kernel(self, case, place):
        done, found = self.run(case=case)
        self.check(case, done.returncode == 1 and found, "exit code is not 1", done)
        findings = found["findings"] if found else []
        # Work of streams in no order: the memory may be gone already.
        kinds = {"stream-order", "use-after-free"} if case == "graph-freed-outside" else {"stream-order"}
        self.check(case, len(findings) == 1 and findings[0]["kind"] in kinds and not found["calls"], f"found {found}", done)
        for finding in findings:
            self.check(case, re.search(place, finding["place"]), f"says {finding['place']}", done)
            self.check(case, self.lines[finding["line"] - 1].endswith("// kernels"), f"names line {finding['line']}", done)
            text = r"write of 4 bytes to global memory in no order with its allocation or free in kernel `.*Use.*\(.*int\*\)` at .*memcheck_streams.cu:"
            self.check(case, re.search(text, done.stderr), f"the text lacks {text}", done)

    def called(self, case, call, what, status):
        done, found = self.run(case=case)
        self.check(case, done.returncode == 1 and found and not found["findings"], "exit code or findings", done)
        calls = found["calls"] if found else []
        self.check(case, len(calls) == 1 and calls[0]["call"] == call and re.search(what, calls[0]["what"]), f"tells of {calls}", done)
        self.check(case, not any("host" in one for one in calls), "has stacks that nobody asked for", done)
        self.check(case, re.search(rf"(second|status|{case}): {status}\n", done.stdout), f"the program did not see {status}", done)

    def stacks(self):
        """Of kernels in streams, in graphs and of kernels, and of calls."""
        for case, function in (("use-unordered", "Unordered"), ("graph-after-free", "InGraph"), ("child-unordered", "Unordered")):
            done, found = self.run("--memcheck-host-stacks", case=case)
            host = found["findings"][0].get("host", {}) if found and found["findings"] else {}
            frames = host.get("launched", [])
            self.check("stacks", any(function in frame or "memcheck_streams+0x" in frame for frame in frames), f"{case}: {host}", done)
        for case in ("copy-symbol", "double-free", "copy-unordered", "graph-fill-after-free"):
            done, found = self.run("--memcheck-host-stacks", case=case)
            frames = found["calls"][0].get("host", {}).get("called", []) if found and found["calls"] else []
            self.check("stacks", any("memcheck_streams+0x" in frame for frame in frames), f"{case}: {found}", done)
            self.check("stacks", "\n  called at\n    " in done.stderr, f"{case}: no stack in the text", done)
        done, found = self.run("--memcheck-host-stacks", "--leak-check", case="use-unordered")
        host = found["findings"][0].get("host", {}) if found and found["findings"] else {}
        self.check("stacks", host.get("allocated") and host["allocated"] != host.get("launched"), f"no stack of cudaMallocAsync: {host}", done)


def cases(test):
    for case, place in KERNELS.items():
        test.kernel(case, place)
    for case, expected in CALLS.items():
        test.called(case, *expected)
    test.stacks()
    test.clean()


if __name__ == "__main__":
    sys.exit(main({}, cases, StreamTest))
