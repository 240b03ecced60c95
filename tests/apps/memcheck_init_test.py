#!/usr/bin/env python3
"""Runs memcheck_init case by case with --initcheck: global memory that nobody has written is told where it is copied to the host, or an atomic
operation works on it, and nothing in what is right. usage: memcheck_init_test.py GRIDLOOM SOURCE PROGRAM"""
import re
import sys

from memcheck_cases import Test, main

# case: what the call says
COPIES = {
    "copy-out": r"copy of 1,024 bytes to the host, not all of which somebody has written: 0x[0-9a-f]+, 512 bytes into the 1,024-byte allocation",
    "copy-copied": r"copy of 1,024 bytes to the host, not all of which somebody has written: 0x[0-9a-f]+, 512 bytes into the 1,024-byte allocation",
    "copy-async": r"copy of 1,024 bytes to the host, .*: 0x[0-9a-f]+, 0 bytes into the 1,024-byte allocation 0x[0-9a-f]+ made by cudaMallocAsync",
    "copy-anew": r"copy of 1,024 bytes to the host, .*: 0x[0-9a-f]+, 0 bytes into the 1,024-byte allocation",
    "copy-out-2d": r"copy of 512 bytes to the host, not all of which somebody has written: 0x[0-9a-f]+, 512 bytes into the 1,024-byte allocation",
}


class InitTest(Test):
    def atomic(self):
        done, found = self.run("--initcheck", case="atomic")
        findings = found["findings"] if found else []
        self.check("atomic", done.returncode == 1 and len(findings) == 1 and not found["calls"], f"found {found}", done)
        for finding in findings:
            self.check("atomic", (finding["kind"], finding["space"], finding["times"]) == ("uninitialised", "global", 256), f"{finding}", done)
            self.check("atomic", re.search(r"0 bytes into the 1,024-byte allocation 0x[0-9a-f]+ made by", finding["place"]), f"says {finding['place']}", done)
            self.check("atomic", self.lines[finding["line"] - 1].endswith("// atomic"), f"names line {finding['line']}", done)
        self.clean("atomic")  # without --initcheck

    def copy(self, case, text):
        done, found = self.run("--initcheck", case=case)
        calls = found["calls"] if found else []
        self.check(case, done.returncode == 1 and len(calls) == 1 and re.search(text, calls[0]["what"]), f"tells {calls}", done)
        self.clean(case)  # without --initcheck

    def right(self):
        for case in ("none", "copy-part"):
            done, found = self.run("--initcheck", case=case)
            self.check(case, done.returncode == 0 and "memcheck: no errors" in done.stderr and not any(found.values()), "is not clean", done)


def cases(test):
    test.atomic()
    for case, text in COPIES.items():
        test.copy(case, text)
    test.right()


if __name__ == "__main__":
    sys.exit(main({}, cases, InitTest))
