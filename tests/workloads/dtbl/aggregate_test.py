#!/usr/bin/env python3
"""The programs of tests/workloads/dtbl under --aggregate: the same results; launches become groups of thread blocks where nothing waits for
them, and stay what they are where something does. usage: aggregate_test.py GRIDLOOM PROGRAMS"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from dtbl_test import GRIDLOOM, INPUTS, NO_CHILDREN, PROGRAMS


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def result(done):
    return re.search(r"^result ([0-9a-f]{16}), PASS: ", done.stdout, re.MULTILINE).group(1)


def children(done):
    return int(re.search(r", (\d+) device launches; ", done.stdout).group(1))


class Aggregate(unittest.TestCase):
    def traced(self, program, *arguments, options=("--aggregate",)):
        """A run, and how many launches by kernels, aggregated ones and streams that kernels make its trace has."""
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace"
            done = run(GRIDLOOM, "run", *options, "--summary", "--trace", trace, "--", PROGRAMS / program, *arguments)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            shown = run(GRIDLOOM, "trace", "--check", "--json", trace)
        self.assertEqual(shown.returncode, 0, shown.stdout + shown.stderr)
        kernels = json.loads(shown.stdout)["kernels"]
        launches, streams = (sum(kernel["events"][kind] for kernel in kernels) for kind in ("device_launch", "stream_create"))
        return done, launches, sum(kernel["aggregated_launches"] for kernel in kernels), streams

    def test_launches_that_nothing_waits_for_are_groups(self):
        for program, (inputs, sizes) in INPUTS.items():
            for name in inputs:
                arguments = ("--form=cdp", f"--input={name}", *sizes)
                for streams in ("own", "forget", "none"):
                    with self.subTest(program=program, input=name, streams=streams):
                        plain, launches, aggregated, made = self.traced(program, *arguments, f"--streams={streams}", options=())
                        self.assertEqual((launches, aggregated), (children(plain), 0))
                        self.assertEqual(launches == 0, (program, name) in NO_CHILDREN)
                        self.assertEqual(made, launches if streams == "own" else 0)
                        done, launches, aggregated, made = self.traced(program, *arguments, f"--streams={streams}")
                        self.assertEqual(result(done), result(plain))
                        self.assertEqual((launches, aggregated), (children(plain), 0 if streams == "none" else launches))
                        self.assertEqual(made, 0)
                        self.assertRegex(done.stderr, r"launch: \S+.*, PTX line \d+: aggregated, unless the launch goes into the NULL stream")
                        self.assertNotIn("not aggregated", done.stderr)

    def test_only_groups_join_where_launches_are_marked(self):
        arguments = ("--", PROGRAMS / "bfs", "--form=cdp", "--input=citation", "--vertices=301", "--threshold=8")
        joined = {}
        for options in ((), ("--aggregate",)):
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "timing.json"
                done = run(GRIDLOOM, "run", *options, "--timing-device", "k20c", "--hardware", "dtbl", "--set", "hardware.dtbl.launches=marked",
                           "--timing-json", file, *arguments)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                joined[options] = json.loads(file.read_text())["counters"]["dtbl_joined"]
        self.assertEqual(joined[()], 0)
        self.assertGreater(joined[("--aggregate",)], 0)

    def test_inspect_says_of_each_launch_whether_it_is_aggregated(self):
        for program in INPUTS:
            done = run(GRIDLOOM, "inspect", "--json", PROGRAMS / program)
            self.assertEqual(done.returncode, 0, done.stderr)
            places = []
            for container in json.loads(done.stdout)["containers"]:
                for kernel in container["kernels"]:
                    answer = kernel["passes"]["aggregate"]
                    places += answer.get("places", [])
                    self.assertTrue(answer["applies"], (program, kernel["name"]))
            # Compilers make copies of a launch for the streams that it can have.
            null = "the launch goes into the NULL stream of its block, whose launches are in order"
            self.assertEqual({(place["applies"], place.get("unless", null)) for place in places}, {(True, null)}, program)
            self.assertTrue(any("unless" in place for place in places), program)
            details = run(GRIDLOOM, "inspect", "--details", PROGRAMS / program).stdout
            self.assertRegex(details, rf"line {places[0]['line']} of .*: yes")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
