#!/usr/bin/env python3
"""What memcheck has found comes out however processes end, and whatever ended their kernels. usage: memcheck_ends_test.py GRIDLOOM SOURCE PROGRAM"""
import signal
import sys
import unittest

from memcheck_cases import run_checked

GRIDLOOM, _, PROGRAM = sys.argv[1:4]
ENDS = {"return": 0, "_exit": 0, "quick_exit": 0, "_Exit": 0, "abort": -signal.SIGABRT, "throw": -signal.SIGABRT, "signal": -signal.SIGSEGV}
FAULTS = {"assert": "assert", "trap": "trap", "deadlock": "deadlock", "surface": "trap"}


class Ends(unittest.TestCase):
    def run_tool(self, *words, options=()):
        return run_checked(GRIDLOOM, words, options)

    def test_errors_come_out_whatever_the_end(self):
        for end in ENDS:
            with self.subTest(end=end):
                done, found = self.run_tool(PROGRAM, "write", end)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual([entry["kind"] for entry in found["findings"]], ["out-of-bounds"])
                self.assertIn("memcheck", done.stderr.splitlines()[-1])
                self.assertIn("1 error", done.stderr.splitlines()[-1])

    def test_without_errors_the_end_is_the_programs_own(self):
        for end, code in ENDS.items():
            with self.subTest(end=end):
                done, found = self.run_tool(PROGRAM, "none", end)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(found["findings"], [])

    def test_kernels_that_run_at_the_end_are_told_of_before_the_counts(self):
        for error in ("late", "endless"):
            with self.subTest(error=error):
                done, found = self.run_tool(PROGRAM, error, "return")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual([entry["kind"] for entry in found["findings"]], ["out-of-bounds"])
                lines = done.stderr.splitlines()
                self.assertIn("error: out-of-bounds write of 4 bytes", lines[0])
                self.assertEqual(lines[-1], "gridloom: memcheck: 1 error")
                self.assertNotIn("no errors", done.stderr)

    def test_an_exit_code_of_ones_own(self):
        self.assertEqual(self.run_tool(PROGRAM, "write", "_exit", options=["--error-exitcode", "99"])[0].returncode, 99)
        self.assertEqual(self.run_tool(PROGRAM, "write", "_exit", options=["--error-exitcode", "0"])[0].returncode, 0)

    def test_children_count(self):
        done, found = self.run_tool("sh", "-c", f"{PROGRAM} write return; {PROGRAM} none return; {PROGRAM} write _exit; exit 0")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(found["findings"]), 2)
        self.assertEqual(len({entry["pid"] for entry in found["findings"]}), 2)
        self.assertIn("2 errors in 3 processes", done.stderr)

    def test_a_line_is_one_error_without_line_information(self):
        done, found = self.run_tool(PROGRAM, "unrolled", "return")
        self.assertEqual([entry["times"] for entry in found["findings"]], [32, 2], done.stderr)
        self.assertIn("2 errors (34 accesses)", done.stderr)

    def test_what_ends_a_kernel_counts(self):
        for error, kind in FAULTS.items():
            with self.subTest(error=error):
                done, found = self.run_tool(PROGRAM, error, "return")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual([entry["kind"] for entry in found["faults"]], [kind])
                self.assertEqual(found["findings"], [])
                self.assertIn("1 error", done.stderr)

    def test_calls_count_where_that_is_asked_for(self):
        done, found = self.run_tool(PROGRAM, "call", "return")
        self.assertEqual((done.returncode, found["calls"]), (0, []), done.stderr)
        done, found = self.run_tool(PROGRAM, "call", "return", options=["--report-api-errors"])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(found["calls"]), 1, found["calls"])
        self.assertIn("CUDA_ERROR_INVALID_VALUE", found["calls"][0]["what"])
        done, found = self.run_tool(PROGRAM, "none", "return", options=["--report-api-errors"])
        self.assertEqual((done.returncode, found["calls"]), (0, []), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
