#!/usr/bin/env python3
"""The programs of tests/workloads/dtbl under --consolidate: the same results with fewer launches by kernels; launches that are in order stay
what they are. usage: consolidate_test.py GRIDLOOM PROGRAMS FORM"""
import re
import subprocess
import sys
import unittest

from dtbl_test import GRIDLOOM, INPUTS, PROGRAMS

FORM = sys.argv[3]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def result(done):
    return re.search(r"^result ([0-9a-f]{16}), PASS: ", done.stdout, re.MULTILINE).group(1)


def launches(done):
    """Launches of all kernels that ran, and of those that stand for many."""
    rows = re.findall(r"^(\S.*?) +(\d+) +\d+ +[\d.]+ +[\d.]+$", done.stderr, re.MULTILINE)
    return sum(int(count) for _, count in rows), sum(int(count) for name, count in rows if name.endswith(" (merged)"))


class Consolidate(unittest.TestCase):
    def ran(self, options, program, *arguments):
        done = run(GRIDLOOM, "run", *options, "--summary", "--", PROGRAMS / program, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def test_results_are_the_same_with_fewer_launches(self):
        before = after = 0
        for program, (inputs, sizes) in INPUTS.items():
            # All forms with one input of each program; it takes long to compile them.
            for name in inputs if FORM == "warp" else inputs[:1]:
                arguments = ("--form=cdp", f"--input={name}", *sizes)
                plain = self.ran((), program, *arguments)
                before += launches(plain)[0]
                with self.subTest(program=program, input=name):
                    done = self.ran(("--consolidate", FORM), program, *arguments)
                    self.assertEqual(result(done), result(plain))
                    self.assertIn(": consolidated, unless the launch goes into the NULL stream", done.stderr)
                    # Equal where there are no children, or each is the only one of its warp and of its block.
                    self.assertLessEqual(launches(done)[0], launches(plain)[0])
                    after += launches(done)[0]
        self.assertLess(after * 2, before)

    def test_launches_in_order_stay(self):
        for program in ("bfs", "amr"):
            inputs, sizes = INPUTS[program]
            arguments = ("--form=cdp", f"--input={inputs[0]}", "--streams=none", *sizes)
            plain = self.ran((), program, *arguments)
            with self.subTest(program=program):
                done = self.ran(("--consolidate", FORM), program, *arguments)
                self.assertEqual((result(done), launches(done)), (result(plain), (launches(plain)[0], 0)))

    @unittest.skipIf(":" in FORM, "a warp may have too many")
    def test_forgotten_launches_of_a_warp_are_one(self):
        inputs, sizes = INPUTS["join"]
        arguments = ("--form=cdp", f"--input={inputs[0]}", "--streams=forget", *sizes)
        done = self.ran(("--consolidate", FORM), "join", *arguments)
        self.assertGreater(launches(done)[1], 0)

    def test_memcheck_finds_nothing(self):
        for program in ("bfs", "amr"):
            inputs, sizes = INPUTS[program]
            with self.subTest(program=program):
                done = self.ran(("--memcheck", "--consolidate", FORM), program, "--form=cdp", f"--input={inputs[0]}", *sizes)
                self.assertRegex(done.stderr, r"memcheck: no errors", done.stderr)

    def test_inspect_says_of_each_launch_whether_it_is_consolidated(self):
        details = run(GRIDLOOM, "inspect", "--details", PROGRAMS / "bfs").stdout
        for form in ("consolidate", "consolidate-block", "consolidate-grid"):
            self.assertRegex(details, rf"{form} +yes")

    def test_what_is_no_form_is_refused(self):
        for form in ("lane", "warp:", "block:70000"):
            done = run(GRIDLOOM, "run", "--consolidate", form, "--", PROGRAMS / "bfs")
            self.assertEqual(done.returncode, 125)
            self.assertIn(f"--consolidate is '{form}'; expected warp, block or grid", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
