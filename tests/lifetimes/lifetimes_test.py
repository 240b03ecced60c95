#!/usr/bin/env python3
"""Kernels beside what else happens in a process. usage: lifetimes_test.py GRIDLOOM FOLDER [TOPIC …]"""
import os
import subprocess
import sys
import tempfile
import unittest

GRIDLOOM, FOLDER = sys.argv[1:3]
SECONDS = 60  # what hangs is seen by it; none of the programs takes more than a few


class Programs(unittest.TestCase):
    """Runs programs with a cache of kernels of their own, empty at first."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cache = os.path.join(self.folder.name, "cache")

    def run_program(self, name, *arguments, options=(), **environment):
        command = [GRIDLOOM, "run", *options, "--", os.path.join(FOLDER, name), *arguments]
        done = subprocess.run(command, env={**os.environ, "GRIDLOOM_CACHE_DIR": self.cache, **environment}, timeout=SECONDS,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        return done.returncode, done.stdout

    def passes(self, name, *arguments, options=(), **environment):
        code, output = self.run_program(name, *arguments, options=options, **environment)
        self.assertEqual(code, 0, output)
        self.assertIn("PASS: ", output)
        return output


class AfterMain(Programs):
    def test_kernels_are_compiled_and_run(self):
        for tiers, parts in (("on", ("something-before", "nothing-before", "busy")), ("off", ("busy",)), ("interpret", ("busy",))):
            for part in parts:
                with self.subTest(tiers=tiers, part=part):
                    self.cache = os.path.join(self.folder.name, tiers + part)
                    self.passes("after_main", part, GRIDLOOM_TIERS=tiers)  # compiled in it
                    self.passes("after_main", part, GRIDLOOM_TIERS=tiers)  # taken from the cache

    def test_reports_tell_of_them(self):
        output = self.passes("after_main", "main", options=("--summary",))
        self.assertRegex(output, r"\nlast +1 ")
        self.assertRegex(self.passes("after_main", "main", options=("--timing",)), r"\nlast +1 ")


class SmallStacks(Programs):
    def test_calls_compile_and_run_elsewhere(self):
        for tiers in ("on", "off", "interpret"):
            with self.subTest(tiers=tiers):
                self.cache = os.path.join(self.folder.name, tiers)
                self.passes("small_stacks", GRIDLOOM_TIERS=tiers)


class StreamsAndResets(Programs):
    def test_streams_end_while_the_device_is_reset(self):
        for options in ((), ("--policy", "pagoda")):
            with self.subTest(options=options):
                self.passes("streams_and_resets", "40", "4", options=options)


class MainLeaves(Programs):
    def test_the_process_ends_with_the_last_of_the_programs_threads(self):
        for part in ("alone", "others", "unused", "function"):
            with self.subTest(part=part):
                self.passes("main_leaves", part)

    def test_reports_come_out(self):
        self.assertIn("gridloom: memcheck: no errors", self.passes("main_leaves", "others", options=("--memcheck",)))


class ManyStreams(Programs):
    def test_a_stream_for_each_launch_keeps_the_kernels_pace(self):
        for options in ((), ("--policy", "pagoda")):
            with self.subTest(options=options):
                self.passes("many_streams", "pace", options=options)

    def test_a_program_that_they_wait_for_goes_on(self):
        self.passes("many_streams", "gate")


class ForkCalls(Programs):
    def test_every_call_of_a_child_answers(self):
        self.passes("fork_calls")

    def test_a_fork_beside_the_first_call(self):
        self.passes("fork_calls", "first")


class LoaderLock(Programs):
    def test_kernels_end_while_a_library_is_loaded_or_unloaded(self):
        libraries = [os.path.join(FOLDER, f"libloader_lock_{name}.so") for name in ("library", "fault")]
        for tiers in ("on", "off"):
            with self.subTest(tiers=tiers):
                self.cache = os.path.join(self.folder.name, tiers)
                for _ in range(2):  # compiled, then taken from the cache
                    output = self.passes("loader_lock", *libraries, GRIDLOOM_TIERS=tiers)
                    for part in ("constructor: done", "destructor: done", "fault: done"):
                        self.assertIn(part, output)

    def test_the_library_registers_nothing_with_the_loader(self):
        library = os.path.join(os.path.dirname(GRIDLOOM), "libgridloom.so")
        names = subprocess.run(["nm", "-D", "--undefined-only", library], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertNotIn("__cxa_thread_atexit", names)


class ThreadSignals(Programs):
    def test_a_fault_arrives_where_its_signal_is_blocked(self):
        self.passes("thread_signals", "blocked", CUDA_LAUNCH_BLOCKING="1")  # the thread that launches runs the grid

    def test_handlers_have_the_stack_of_a_thread(self):
        for part in ("handler", "handler-alternate"):
            with self.subTest(part=part):
                self.passes("thread_signals", part)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
