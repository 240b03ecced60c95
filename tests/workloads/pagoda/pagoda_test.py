#!/usr/bin/env python3
"""What is said of the programs of tests/workloads/pagoda. usage: pagoda_test.py GRIDLOOM PROGRAMS PROGRAM"""
import pathlib
import re
import subprocess
import sys
import unittest

GRIDLOOM, PROGRAMS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
NAME = sys.argv[3]
# Sizes that leave blocks, warps and tiles partly empty, and are not the same for all that has a size.
SIZES = {
    "mb": ("--size=13", "--cap=50"),
    "fb": ("--size=99", "--taps=7", "--channels=3"),
    "bf": ("--size=75", "--taps=21"),
    "conv": ("--size=21", "--radius=2"),
    "dct": ("--size=40",),
    "mm": ("--size=37",),
    "slud": ("--side=7", "--size=5"),
    "3des": ("--size=1000", "--least=8"),
    "mpe": ("--mb=13", "--cap=50", "--fb=99", "--taps=7", "--mm=21", "--des=1000", "--least=8"),
}[NAME]
SHARED = NAME in ("mm", "dct", "mpe")
BLOCKS = NAME in ("mb", "bf", "conv", "dct", "mm", "3des")
COUNTED = NAME != "slud"
FORMS = ("tasks", "serial", "fused", "graph", "pthreads") if COUNTED else ("tasks", "serial", "pthreads")
TASKS = 23
ARGUMENTS = (*SIZES, f"--tasks={TASKS}", "--batch=9") if COUNTED else SIZES


def run(*arguments, under=(GRIDLOOM, "run", "--")):
    return subprocess.run([*under, PROGRAMS / NAME, *arguments], capture_output=True, text=True, timeout=60, check=False)


class Pagoda(unittest.TestCase):
    def good(self, *arguments):
        """Tasks, launches that the program tells, threads, and the digest of a run; and its output."""
        done = run(*arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        counts = re.search(rf"^{NAME} --form=.*: (\d+) tasks, (\d+) launches of kernels, (?:(\d+) threads|\d+ blocks)", done.stdout, re.MULTILINE)
        result = re.search(r"^result ([0-9a-f]{16}), PASS: [1-9]\d* checks$", done.stdout, re.MULTILINE)
        tasks, launches, threads = (int(count or 0) for count in counts.groups())
        return tasks, launches, threads, result.group(1), done.stdout

    def digest(self, *arguments):
        return self.good(*arguments)[3]

    def refused(self, sentence, *arguments):
        done = run(*arguments, under=())
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(sentence, done.stderr)

    def test_forms_have_the_same_result(self):
        results = {form: self.good(f"--form={form}", *ARGUMENTS) for form in FORMS}
        self.assertEqual(len({result[3] for result in results.values()}), 1, results)
        self.assertEqual(len({result[0] for result in results.values()}), 1, results)
        tasks = results["tasks"][0]
        launches = {"tasks": tasks, "serial": tasks, "fused": 3, "graph": tasks, "pthreads": 0}
        self.assertEqual({form: result[1] for form, result in results.items()}, {form: launches[form] for form in FORMS})
        if COUNTED:
            threads = {"tasks": 128, "serial": 128, "fused": 256, "graph": 128, "pthreads": 0}
            self.assertEqual({form: result[2] for form, result in results.items()}, {form: TASKS * threads[form] for form in FORMS})

    def test_launches_are_those_that_there_are(self):
        done = run(*ARGUMENTS, under=(GRIDLOOM, "run", "--summary", "--"))
        tasks = int(re.search(r": (\d+) tasks", done.stdout).group(1))
        launched = sum(int(line.group(1)) for line in re.finditer(r"^\S.* (\d+) +\d+ +[\d.]+ +[\d.]+$", done.stderr, re.MULTILINE))
        self.assertEqual(launched, tasks + (NAME == "3des"), done.stderr)  # one more for the published vectors

    def test_threads_streams_and_copies_change_nothing(self):
        variants = [("--threads=32",), ("--threads=96", "--streams=3"), ("--threads=512", "--copies=no"), ("--streams=1",)]
        if COUNTED:
            variants += [("--form=fused", "--batch=40", "--fused-copies=each"), ("--launchers=3", "--streams=7"), ("--form=fused", "--batch=1", "--copies=no"), ("--form=graph", "--copies=no"),
                         ("--form=graph", "--streams=50"), ("--spawn=batches",), ("--spawn=batches", "--batch=5", "--launchers=3"), ("--spawn=batches", "--batch=200", "--copies=no")]
        else:
            variants += [("--wait=events",), ("--wait=events", "--streams=2", "--threads=32"), ("--wait=events", "--streams=5", "--copies=no")]
        if SHARED:
            variants += [("--shared=no", "--threads=32"), ("--shared=no", "--threads=96"), ("--shared=no", "--form=fused")]
        if BLOCKS:
            variants += [("--blocks=3", "--threads=32"), ("--blocks=2", "--threads=96")]
            variants += [("--blocks=3", "--threads=64", "--shared=no")] if SHARED else []
        if NAME == "mpe":  # its kernels are those of the others, each compiled anew for each number of threads
            variants = [more for more in variants if "--threads=96" not in more and "--threads=512" not in more]
        digest = self.digest(*ARGUMENTS)
        for more in variants:
            self.assertEqual(self.digest(*ARGUMENTS, *more), digest, more)

    def test_runs_print_the_same_unless_they_are_timed(self):
        for form in FORMS:
            self.assertEqual(self.good(f"--form={form}", *ARGUMENTS)[4], self.good(f"--form={form}", *ARGUMENTS, "--repeat=2")[4].replace(" --repeat=2", ""))
            timed = self.good(f"--form={form}", *ARGUMENTS, "--time", "--repeat=2")[4]
            times = r"ms wall, \d+ host threads" if form == "pthreads" else r"ms wall, [0-9.]+ ms between events"
            self.assertEqual(len(re.findall(rf"^{NAME}: [0-9.]+ {times}$", timed, re.MULTILINE)), 2, timed)

    @unittest.skipUnless(COUNTED, "latencies are of tasks that do not wait for each other")
    def test_latencies_are_told(self):
        for form in ("tasks", "serial", "fused", "graph"):
            text = self.good(f"--form={form}", *ARGUMENTS, "--latency")[4]
            mean, most = re.search(rf"^{NAME}: latency of a task ([0-9.]+) ms on average, ([0-9.]+) ms at most$", text, re.MULTILINE).groups()
            self.assertGreaterEqual(float(most), float(mean))

    @unittest.skipUnless(COUNTED, "the sizes of a matrix's blocks are the same")
    def test_irregular_tasks_have_threads_by_their_size(self):
        results = [self.good(f"--form={form}", *ARGUMENTS, "--irregular=5") for form in FORMS]
        self.assertEqual(len({result[3] for result in results}), 1, results)
        self.assertTrue(32 * TASKS < results[0][2] < 256 * TASKS, results[0])
        self.assertEqual(results[2][2], 256 * TASKS)
        self.assertNotIn(results[0][3], {self.digest(*ARGUMENTS), self.digest(*ARGUMENTS, "--irregular=6")})

    def test_seeds_make_other_inputs(self):
        self.assertNotEqual(self.digest(*ARGUMENTS), self.digest(*ARGUMENTS, "--seed", "2"))

    def test_a_wrong_bit_is_found(self):
        for form in FORMS:
            for fault in (0, 11):
                done = run(f"--form={form}", *ARGUMENTS, f"--fault={fault}")
                self.assertEqual(done.returncode, 1, (form, done.stdout))
                self.assertRegex(done.stdout, r"FAIL: [1-9]\d* of \d+ checks")
                if COUNTED:
                    self.assertIn(f"{NAME}: task {fault}, word ", done.stdout)
                    self.assertIn("FAIL: 1 of ", done.stdout)

    @unittest.skipUnless(NAME == "mb", "of MB")
    def test_tasks_cost_more_than_ten_times_as_much_as_others(self):
        least, most = (int(steps) for steps in re.search(r"a task has (\d+) to (\d+) steps", self.good()[4]).groups())
        self.assertGreater(most, 10 * least)

    @unittest.skipUnless(NAME == "3des", "of 3DES")
    def test_packets_have_many_lengths(self):
        least, most = (int(length) for length in re.search(r"a packet has (\d+) to (\d+) bytes", self.good()[4]).groups())
        self.assertGreater(most, 10 * least)
        self.refused("3des: --least=16 is more than --size=8", "--size=8", "--least=16")

    @unittest.skipUnless(NAME == "3des", "of 3DES")
    def test_vectors_can_be_left_to_the_host(self):
        done = run(*ARGUMENTS, "--vectors=no", under=(GRIDLOOM, "run", "--summary", "--"))
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("TripleDesFused", done.stderr)

    @unittest.skipUnless(NAME == "slud", "of SLUD")
    def test_tasks_are_as_many_as_the_suite_has(self):
        for side, tasks in ((1, 1), (2, 5), (8, 84), (16, 488), (32, 3280)):
            self.assertEqual(self.good(f"--side={side}", "--size=2")[0], tasks)

    def test_help_needs_no_device(self):
        done = run("--help", under=())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("--form=tasks|serial", "--threads=N", "--host-threads=N", "--paper", "examples:", f"./{NAME} --time"):
            self.assertIn(text, done.stdout)
        self.assertNotRegex(done.stdout, r"=N +\(default")

    def test_arguments_are_checked(self):
        self.refused(f"{NAME}: there is no --colour; see {NAME} --help", "--colour=red")
        self.refused(f"{NAME}: there is no fast; see", "fast")
        self.refused(f"{NAME}: --form=both is not tasks, serial", "--form", "both")
        self.refused(f"{NAME}: --streams needs a value", "--streams")
        for value in ("0", "16", "100", "-32", "32x", "", "99999999999999999999"):
            self.refused(f"{NAME}: --threads={value} is not a multiple of 32 from 32 to 1024", f"--threads={value}")
        if not COUNTED:
            self.refused("slud: --form=fused is not tasks, serial or pthreads", "--form=fused")
            self.refused("slud: there is no --tasks", "--tasks=5")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
