#!/usr/bin/env python3
"""What the programs of tests/workloads/pipeline have in common. usage: pipeline_test.py GRIDLOOM PROGRAMS"""
import pathlib
import re
import subprocess
import sys
import unittest

GRIDLOOM, PROGRAMS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
# Each program's class, how many kernels a data set goes through, and sizes that leave CTAs and warps partly empty.
CLASSES = {
    "dct": ("heavy", 3, ("--width=24", "--height=8")),
    "mt": ("light", 2, ("--ctas=3", "--each=100", "--skip=25")),
    "pm": ("light", 3, ("--templates=7", "--bins=37")),
    "tdfir": ("heavy", 2, ("--filters=3", "--samples=131", "--taps=7")),
    "mum": ("heavy", 2, ("--reference=2001", "--queries=33", "--length=32", "--least=13")),
    "hg": ("heavy", 2, ("--ratio=1",)),
    "los": ("heavy", 4, ("--length=16389",)),
    "nn": ("light", 4, ("--images=3",)),
    "srad": ("heavy", 2, ("--width=37", "--height=9")),
}


def run(program, *arguments, under=(GRIDLOOM, "run", "--")):
    return subprocess.run([*under, PROGRAMS / program, *arguments], capture_output=True, text=True, timeout=60, check=False)


class Pipelines(unittest.TestCase):
    def summary(self, program, *arguments):
        """The one line that a program prints, without the times of kernels alone, as launches, class on Fermi, result."""
        done = run(program, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = [line for line in done.stdout.splitlines() if " alone " not in line]
        self.assertEqual(len(lines), 1, done.stdout)
        found = re.search(r": ([0-9]+) launches, .*, class ([a-z0-9A-Z ]+), here .*, result ([0-9a-f]{16}), PASS: [1-9][0-9]* checks$", lines[0])
        return int(found.group(1)), found.group(2), found.group(3)

    def refused(self, sentence, program, *arguments):
        done = run(program, *arguments, under=())
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(sentence, done.stderr)

    def test_classes_are_those_of_the_paper(self):
        for program, (kind, stages, _) in CLASSES.items():
            launches, found, _ = self.summary(program, "--sets=1")
            self.assertEqual((launches, found), (stages, kind), program)

    def test_streams_and_orders_change_nothing(self):
        for program, (_, stages, sizes) in CLASSES.items():
            results = {self.summary(program, "--sets=3", *sizes, *more) for more in ((), ("--serial",), ("--order=stages",), ("--alone",))}
            self.assertEqual(len(results), 1, program)
            self.assertEqual(results.pop()[0], 3 * stages, program)

    def test_each_kernel_is_timed_alone(self):
        for program, (_, stages, sizes) in CLASSES.items():
            done = run(program, "--sets=1", "--alone", *sizes)
            self.assertEqual(len(re.findall(rf"^{program}: [a-z0-9-]+ alone [0-9.]+ ms$", done.stdout, re.MULTILINE)), stages, done.stdout)

    def test_histograms_can_have_the_long_kernel_first(self):
        launches, kind, _ = self.summary("hg", "--sets=1", "--reversed")
        self.assertEqual((launches, kind), (2, "heavy"))

    def test_arguments_are_checked(self):
        for program in CLASSES:
            self.refused(f"{program}: there is no --colour=red; usage: {program} [--small | --paper]", program, "--colour=red")
            self.refused(f"{program}: there is no --order=up; usage", program, "--order=up")
            for value in ("0", "65", "-1", "8x", "", "99999999999999999999"):
                self.refused(f"{program}: --sets={value} is not a number from 1 to 64", program, f"--sets={value}")
        self.refused("dct: --width=9 is not a multiple of 8 from 8 to 4096", "dct", "--width=9")
        self.refused("mum: --least=30 is more than --length=20", "mum", "--least=30", "--length=20")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
