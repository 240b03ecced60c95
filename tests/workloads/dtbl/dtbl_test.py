#!/usr/bin/env python3
"""What the programs of tests/workloads/dtbl have in common. usage: dtbl_test.py GRIDLOOM PROGRAMS"""
import pathlib
import re
import subprocess
import sys
import unittest

GRIDLOOM, PROGRAMS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
# Of each program: its inputs, and sizes that are small and leave CTAs and warps partly empty.
INPUTS = {
    "amr": (("combustion",), ("--side=7", "--depth=3")),
    "bht": (("points",), ("--bodies=131", "--leaf=19")),
    "bfs": (("citation", "road", "cage15"), ("--vertices=301",)),
    "clr": (("citation", "graph500", "cage15", "balanced"), ("--vertices=150", "--draws=9", "--threshold=12")),
    "regx": (("darpa", "strings"), ("--packets=19", "--expressions=37", "--longest=80", "--threshold=4")),
    "pre": (("movielens",), ("--users=29", "--items=75")),
    "join": (("uniform", "gaussian"), ("--left=997", "--right=133", "--keys=61", "--threshold=12")),
    "sssp": (("citation", "flight", "cage15"), ("--vertices=301",)),
}
# Road networks have no vertex with as many neighbours as the threshold has.
NO_CHILDREN = {("bfs", "road")}


def run(program, *arguments, under=(GRIDLOOM, "run", "--")):
    return subprocess.run([*under, PROGRAMS / program, *arguments], capture_output=True, text=True, timeout=60, check=False)


class Dtbl(unittest.TestCase):
    def summary(self, program, *arguments):
        """The result and the launches that a run tells: from the host, from the device, children that there are in the CDP form. The program
        only counts what must be launched; what was launched, Gridloom knows."""
        done = run(program, *arguments, under=(GRIDLOOM, "run", "--summary", "--"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        counts = re.search(r": (\d+) host launches, (\d+) device launches; (\d+) children of ", done.stdout)
        result = re.search(r"^result ([0-9a-f]{16}), PASS: [1-9]\d* checks$", done.stdout, re.MULTILINE)
        host, device, children = (int(count) for count in counts.groups())
        launched = sum(int(line.group(1)) for line in re.finditer(r"^\S.* (\d+) +\d+ +[\d.]+ +[\d.]+$", done.stderr, re.MULTILINE))
        self.assertEqual(launched, host + device, done.stdout + done.stderr)
        return result.group(1), host, device, children

    def refused(self, sentence, program, *arguments):
        done = run(program, *arguments, under=())
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(sentence, done.stderr)

    def test_forms_and_streams_have_the_same_result(self):
        for program, (inputs, sizes) in INPUTS.items():
            for name in inputs:
                of_input = (f"--input={name}", *sizes)
                result, host, device, children = self.summary(program, *of_input)
                self.assertEqual(device, 0)
                self.assertEqual(children == 0, (program, name) in NO_CHILDREN, (program, name))
                for streams in ("own", "none", "forget"):
                    cdp = self.summary(program, "--form=cdp", f"--streams={streams}", *of_input)
                    self.assertEqual((cdp[0], cdp[2], cdp[3]), (result, children, children), (program, name, streams))
                    if program not in ("amr", "bht"):  # those go down from one launch
                        self.assertEqual(cdp[1], host, (program, name))

    def test_a_higher_threshold_means_fewer_children(self):
        for program, (_, sizes) in INPUTS.items():
            sizes = [size for size in sizes if "threshold" not in size]
            few, many = (self.summary(program, "--form=cdp", *sizes, f"--threshold={threshold}") for threshold in (20, 5))
            self.assertEqual(few[0], many[0], program)
            if program == "amr":
                self.assertEqual(few[2], many[2])
            else:
                self.assertLess(few[2], many[2], program)

    def test_seeds_make_other_inputs(self):
        for program, (_, sizes) in INPUTS.items():
            self.assertNotEqual(self.summary(program, *sizes)[0], self.summary(program, *sizes, "--seed", "2")[0], program)

    def test_help_needs_no_device(self):
        for program, (inputs, _) in INPUTS.items():
            done = run(program, "--help", under=())
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for text in (*(f"--input={name} " for name in inputs), "--threshold=N", "examples:", f"./{program} --form cdp"):
                self.assertIn(text, done.stdout)

    def test_arguments_are_checked(self):
        for program in INPUTS:
            self.refused(f"{program}: there is no --colour; see {program} --help", program, "--colour=red")
            self.refused(f"{program}: there is no fast; see", program, "fast")
            self.refused(f"{program}: --form=both is not flat or cdp", program, "--form", "both")
            self.refused(f"{program}: --input=sand is not ", program, "--input=sand")
            self.refused(f"{program}: --streams needs a value", program, "--streams")
            for value in ("0", "-1", "8x", "", "99999999999999999999"):
                self.refused(f"{program}: --threshold={value} is not a number from 1 to 2147483647", program, f"--threshold={value}")
        self.refused("amr: --threshold is more than the 32 cells of a cell", "amr", "--threshold=33")
        self.refused("bht: --threshold is more than --leaf and 1", "bht", "--leaf=10", "--threshold=12")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
