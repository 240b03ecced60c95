#!/usr/bin/env python3
"""What a trace says of the memory that copies touch, and of waits. usage: host_side_test.py GRIDLOOM TRACE_ACTIONS HOST_SIDE"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

GRIDLOOM, TRACE_ACTIONS, HOST_SIDE = sys.argv[1:4]
ROWS, WIDTH = 5, 300


class HostSide(unittest.TestCase):
    def actions(self, part, *options):
        """Of each call of the host: its kind, numbers and flags."""
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace")
            subprocess.run([GRIDLOOM, "run", "--trace", trace, *options, "--", HOST_SIDE, part], check=True)
            lines = subprocess.run([TRACE_ACTIONS, trace], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        actions = []
        for line in lines:
            kind, *words = line.split()
            values = dict(re.findall(r"(\w+)=([0-9,]*)", line))
            reuses = [tuple(int(number) for number in pair.split(":")) for pair in re.search(r"reuses=(.*)", line)[1].split(",") if pair]
            actions.append({"kind": kind, "special": "special" in words, "sees": "sees" in words, "reuses": reuses,
                            **{name: int(values[name]) for name in ("bytes", "span", "source_span", "host_span")}})
        return actions

    def sees(self, part):
        return [action["sees"] for action in self.actions(part) if action["kind"] == "wait"]

    def test_copies_say_what_they_touch(self):
        copies = [action for action in self.actions("copies") if action["kind"] in ("to_device", "to_host", "on_device", "fill")]
        pitch = 512
        spread = (ROWS - 1) * pitch + WIDTH
        wanted = [("to_device", ROWS * WIDTH, spread, 0, False), ("on_device", ROWS * WIDTH, (ROWS - 1) * (WIDTH + 4) + WIDTH, spread, False),
                  ("fill", ROWS * WIDTH, spread, 0, False), ("to_host", ROWS * WIDTH, spread, 0, False), ("to_device", 32, 32, 0, True),
                  ("to_device", 32, 32, 0, False), ("to_device", 64 * 16, None, 0, True)]
        self.assertEqual(len(copies), len(wanted), copies)
        for copy, (kind, size, span, source_span, special) in zip(copies, wanted):
            self.assertEqual((copy["kind"], copy["bytes"], copy["source_span"], copy["special"]), (kind, size, source_span, special), copy)
            if span is not None:  # rows of arrays lie as the device likes
                self.assertEqual(copy["span"], span, copy)

    def test_copies_say_which_earlier_ones_touch_the_same_memory_of_the_hosts(self):
        copies = [action for action in self.actions("reuses") if action["kind"] in ("to_device", "to_host")]
        wanted = [[], [], [], [(1, -2048), (2, -2048), (3, 2048)], [(4, -2048)], [], [(1, 0), (2, 0), (3, 4096), (4, 2048), (5, 4096)],
                  [], [], [], [], [(11, 0)]]
        self.assertEqual([copy["reuses"] for copy in copies], wanted)
        self.assertEqual([copy["host_span"] for copy in copies], [0, 0, 0, 0, 9 * 128 + 64] + 7 * [0])

    def test_waits_behind_copies_to_the_host(self):
        sees = self.sees("waits")
        wanted = [False, True, True, False, True, False, True, False]
        self.assertEqual(sees[:len(wanted)], wanted, sees)

    def test_memory_that_is_only_copied_is_not_shared(self):
        self.assertFalse(any(self.sees("staging")))

    def test_memory_that_kernels_reach_is_shared(self):
        for part in ("parameter", "asked", "managed"):
            self.assertTrue(self.sees(part)[0], part)

    def test_ranges_change_nothing_of_it(self):
        for part in ("copies", "waits", "reuses"):
            self.assertEqual(self.actions(part), self.actions(part, "--ranges", "interval"))


sys.argv[1:] = []
unittest.main()
