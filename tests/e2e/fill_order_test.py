#!/usr/bin/env python3
"""The order in which programs fill what they copy. usage: fill_order_test.py GRIDLOOM TRACE_ACTIONS FILL_ORDER WORKLOADS LOG_READS

run --record-order: a trace says in which order the pages were first written to, by the program or by the kernel for it, and nothing else
changes. A replay goes by it with hardware.crcs.order=recorded.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

GRIDLOOM, TRACE_ACTIONS, FILL_ORDER, WORKLOADS, LOG_READS = (os.path.abspath(argument) for argument in sys.argv[1:6])
NEVER = 2**32 - 1


def call(*words, preload=None):
    environment = {**os.environ, "LD_PRELOAD": preload} if preload else None
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, (words, done.returncode, done.stdout[-1000:], done.stderr[-2000:])
    return done


def record(trace, *program, preload=None):
    return call(GRIDLOOM, "run", "--trace", trace, "--ranges", "interval", "--record-order", "--", *program, preload=preload)


def ranks_of(trace):
    """Of each copy to the device that has some."""
    copies = [line for line in call(TRACE_ACTIONS, trace).stdout.splitlines() if line.startswith("to_device ")]
    ranks = [re.search(r" ranks=([0-9,]*)(?: |$)", line).group(1) for line in copies]
    return [[int(rank) for rank in text.split(",") if rank] for text in ranks]


def order_of(ranks):
    """Pages in the order in which they were filled; those that never were are left out."""
    return [page for rank, page in sorted((rank, page) for page, rank in enumerate(ranks)) if rank != NEVER]


class FillOrder(unittest.TestCase):
    def recorded(self, part):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace")
            plain, done = call(GRIDLOOM, "run", "--", FILL_ORDER, part), record(trace, FILL_ORDER, part)
            self.assertEqual(done.stdout, plain.stdout)
            self.assertNotIn("FAIL", done.stdout)
            self.said = done.stdout
            ranks = ranks_of(trace)
            listed = json.loads(call(GRIDLOOM, "trace", "--json", trace).stdout)["order"]
            self.assertEqual(listed, {"copies_to_device": len(ranks), "recorded": sum(bool(copy) for copy in ranks)})
            return ranks

    def test_stores(self):
        first, second, third, middle = self.recorded("stores")
        self.assertEqual(order_of(first), [5, 2, 7, 0])
        self.assertEqual(order_of(second), [5, 2, 7, 1, 0])
        self.assertEqual(third, second)
        self.assertEqual(middle, [max(second[0], second[1]), max(second[1], second[2])])

    def test_what_the_kernel_writes_for_the_program(self):
        self.assertEqual([order_of(copy) for copy in self.recorded("reads")], [[7, 6, 5, 4, 3, 2, 1, 0]])

    def test_threads(self):
        self.assertEqual([order_of(copy) for copy in self.recorded("threads")], [[6, 4, 3, 1, 0, 2, 5, 7]])

    def test_memory_that_is_registered_later(self):
        first, second = self.recorded("registered")
        self.assertEqual((first, order_of(second)), ([], [1, 0, 7, 6, 5, 4, 3, 2]))

    def test_pageable_memory_has_no_order(self):
        self.assertEqual(self.recorded("pageable"), [[]])

    def test_handlers_and_children_of_the_program(self):
        self.assertEqual([order_of(copy) for copy in self.recorded("signals")], [[3, 0, 1, 2, 4, 5, 6, 7]])
        self.assertIn("caught 1", self.said)

    def test_workloads(self):
        """As their files are read, whatever the order; arrays are called by the order in which they come first."""
        def named(pages):
            names = {}
            return [(names.setdefault(array, len(names)), page) for array, page in pages]

        for program in ("3mm", "hsp", "conv", "stn"):
            for order in ("interleaved", "arrays", "random"):
                with tempfile.TemporaryDirectory() as folder:
                    trace = os.path.join(folder, "trace")
                    words = (os.path.join(WORKLOADS, program), "--small", "--order", order, "--data", folder)
                    plain = call(GRIDLOOM, "run", "--", *words).stdout
                    done = record(trace, *words, preload=LOG_READS)
                    self.assertEqual(done.stdout, plain)
                    reads = re.findall(rf"^read .*/{program}-(?!result)(\w+)\.bin (\d+) \d+$", done.stderr, re.MULTILINE)
                    wanted = named([(array, int(begin) // 4096) for array, begin in reads])
                    first = {}  # an array that is copied twice has the same ranks twice
                    for copy, all_of in enumerate(ranks_of(trace)):
                        for page, rank in enumerate(all_of):
                            first.setdefault(rank, (copy, page))
                    self.assertEqual(named([first[rank] for rank in sorted(first)]), wanted, (program, order))

    def test_replays_go_by_it(self):
        """Read at random or page by page, an array is ready at another time; one that is read as the model thinks is at the same."""
        def cycles(trace, order):
            done = call(GRIDLOOM, "replay", "--json", "-d", "crcs", "-p", "crcs-fifo", "--storage", "500MB/s", "--set",
                        f"hardware.crcs.order={order}", trace)
            return json.loads(done.stdout)[0]["cycles"]

        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace")
            for order in ("interleaved", "random"):
                record(trace, os.path.join(WORKLOADS, "hsp"), "--small", "--order", order)
                same = cycles(trace, "recorded") == cycles(trace, "interleaved")
                self.assertEqual(same, order == "interleaved", order)

    def test_it_is_for_something(self):
        done = subprocess.run([GRIDLOOM, "run", "--record-order", "--", FILL_ORDER, "stores"], stderr=subprocess.PIPE, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--record-order is for a trace or a timing", done.stderr)


def not_allowed():
    """Why the system lets nobody follow writes here; empty where it does."""
    with tempfile.TemporaryDirectory() as folder:
        said = re.search("userfaultfd: .*", record(os.path.join(folder, "trace"), FILL_ORDER, "stores").stderr)
    return said.group(0) if said else ""


if __name__ == "__main__":
    if reason := not_allowed():
        print("skipped:", reason)
        sys.exit(0)
    unittest.main(argv=sys.argv[:1])
