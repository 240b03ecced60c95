#!/usr/bin/env python3
"""Files, orders and arguments of the programs of tests/workloads/crcs. usage: files_test.py GRIDLOOM PROGRAMS LOG_READS"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

GRIDLOOM, PROGRAMS, LOG_READS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
ORDERS = ("interleaved", "arrays", "random")
# Each program's inputs with its small size: name, bytes.
INPUTS = {
    "3mm": {"a": 65536, "b": 65536, "c": 65536, "d": 65536},
    "stn": {"grid": 262144},
    "hsp": {"temperature": 65536, "power": 65536},
    "bfs": {"nodes": 32768, "edges": 4},
    "lpc": {"cells": 262144},
    "conv": {"filter": 68, "image": 262144},
    "path": {"wall": 4000000},
    "gaussian": {"matrix": 16384, "right-side": 256},
}


def run(program, *arguments, under=(GRIDLOOM, "run", "--"), preload=None):
    environment = {**os.environ, "LD_PRELOAD": str(preload)} if preload else None
    return subprocess.run([*under, PROGRAMS / program, *arguments], capture_output=True, text=True, timeout=60, check=False, env=environment)


def result_of(done):
    """The result's digest, from the one line that a program prints."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 1, done.stdout
    return re.search(r"result ([0-9a-f]{16}), PASS: [1-9][0-9]* checks$", done.stdout.strip()).group(1)


class Files(unittest.TestCase):
    def refused(self, sentence, program, *arguments, under=(GRIDLOOM, "run", "--")):
        done = run(program, *arguments, under=under)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(sentence, done.stderr)

    def test_every_order_gives_the_same_result(self):
        for program in ("hsp", "bfs"):
            self.assertEqual(len({result_of(run(program, "--order", order)) for order in ORDERS}), 1, program)

    def test_pages_are_read_in_the_order_that_was_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            result_of(run("3mm", "--size=64", f"--data={folder}"))

            def pages(order):
                done = run("3mm", "--size=64", f"--data={folder}", f"--order={order}", preload=LOG_READS)
                result_of(done)
                reads = re.findall(r"^read .*/3mm-([abcd])\.bin ([0-9]+) 4096$", done.stderr, re.MULTILINE)
                return [array + str(int(begin) // 4096) for array, begin in reads]

            arrays = [array + str(page) for array in "abcd" for page in range(4)]
            self.assertEqual(pages("arrays"), arrays)
            self.assertEqual(pages("interleaved"), [array + str(page) for page in range(4) for array in "abcd"])
            drawn = pages("random")
            self.assertNotEqual(drawn, arrays)
            self.assertEqual([sorted(drawn[first:first + 4]) for first in range(0, 16, 4)], [arrays[first:first + 4] for first in range(0, 16, 4)])
            self.assertEqual(pages("random"), drawn)

    def test_made_inputs_are_kept_and_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            first = result_of(run("hsp", f"--data={folder}"))
            self.assertEqual(first, result_of(run("hsp")))
            result = pathlib.Path(folder, "hsp-result.bin")
            self.assertEqual(result.stat().st_size, 128 * 128 * 4)
            before = result.read_bytes()
            power = pathlib.Path(folder, "hsp-power.bin")
            power.write_bytes(bytes(len(power.read_bytes())))
            self.assertNotEqual(result_of(run("hsp", f"--data={folder}", "--order=random")), first)
            self.assertNotEqual(result.read_bytes(), before)

    def test_short_inputs_are_refused(self):
        for program, inputs in INPUTS.items():
            for name, size in inputs.items():
                with tempfile.TemporaryDirectory() as folder:
                    path = pathlib.Path(folder, f"{program}-{name}.bin")
                    path.write_bytes(bytes(size - 1))
                    self.refused(f"{program}: {path}: has {size - 1} bytes", program, f"--data={folder}")

    def test_what_is_no_file_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "lpc-cells.bin").mkdir()
            self.refused("is no regular file", "lpc", f"--data={folder}", under=())
        self.refused("--data=/nowhere is no folder", "lpc", "--data=/nowhere", under=())

    def test_graphs_with_edges_that_lead_nowhere_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            result_of(run("bfs", f"--data={folder}"))
            for name, sentence in (("edges", "edge 0 leads to no node"), ("nodes", "node 0 has edges that the file of edges does not have")):
                path = pathlib.Path(folder, f"bfs-{name}.bin")
                good = path.read_bytes()
                path.write_bytes(b"\xff\xff\xff\x7f" + good[4:])
                self.refused(sentence, "bfs", f"--data={folder}")
                path.write_bytes(good)

    def test_arguments_are_checked(self):
        for program in INPUTS:
            self.refused(f"{program}: --order=up is none of interleaved, arrays, random", program, "--order=up", under=())
            self.refused(f"{program}: there is no --colour=red; usage: {program} [--small | --paper]", program, "--colour=red", under=())
            self.refused("--order needs a value", program, "--order", under=())
        for argument in ("--size=0", "--size=-1", "--size=128x", "--size=", "--size=99999999999999999999"):
            self.refused("is not a number from 2 to 8192", "hsp", argument, under=())
        self.refused("3mm: --size=33 is not a multiple of 32 from 32 to 4096", "3mm", "--size", "33", under=())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
