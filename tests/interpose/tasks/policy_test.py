#!/usr/bin/env python3
"""Programs under `gridloom run --policy pagoda`: the same results as plain runs, launches that are tasks, errors as CUDA has them.

    policy_test.py <gridloom> <folder of this test's programs> <folder of the workloads of pagoda> [<test>…]
"""
import os
import re
import signal
import subprocess
import sys
import time
import unittest

GRIDLOOM, PROGRAMS, WORKLOADS = sys.argv[1:4]


def run(*command, policy=True, options=(), timeout=250, environment=None):
    launcher = [GRIDLOOM, "run", *(("--policy", "pagoda", "--summary") if policy else ("--quiet",)), *options, "--"] if policy is not None else []
    return subprocess.run([*launcher, *command], capture_output=True, text=True, timeout=timeout, env={**os.environ, **(environment or {})})


def launches(done):
    """Of a summary: how many launches were tasks, and how many were not, by reason."""
    tasks = sum(int(count) for count in re.findall(r"^tasks: .*: (\d+) launches$", done.stderr, re.MULTILINE))
    others = {}
    for count, why in re.findall(r"^no tasks: .*: (\d+) launches: (.*)$", done.stderr, re.MULTILINE):
        others[re.sub(", PTX line.*", "", why)] = others.get(re.sub(", PTX line.*", "", why), 0) + int(count)
    return tasks, others


class Workloads(unittest.TestCase):
    """The paper's programs."""

    ARGUMENTS = {"3des": ("--tasks=48", "--vectors=no"), "slud": (), "mpe": ("--tasks=60",)}

    def compare(self, name, *more):
        arguments = (f"{WORKLOADS}/{name}", *self.ARGUMENTS.get(name, ("--tasks=64",)), *more)
        plain, tasks = run(*arguments, policy=False), run(*arguments)
        self.assertEqual((plain.returncode, tasks.returncode), (0, 0), plain.stdout + tasks.stdout + tasks.stderr)
        self.assertEqual(plain.stdout, tasks.stdout)
        count = int(re.search(r", (\d+) launches of kernels", tasks.stdout).group(1))
        return count, launches(tasks)

    def test_results_are_those_of_plain_launches(self):
        for name in ("mb", "fb", "bf", "conv", "dct", "mm", "slud", "3des", "mpe"):
            with self.subTest(name):
                count, (tasks, others) = self.compare(name)
                self.assertEqual((tasks, others), (count, {}))

    def test_without_shared_memory_and_copies(self):
        count, (tasks, others) = self.compare("mm", "--shared=no", "--copies=no", "--streams=3", "--threads=64")
        self.assertEqual((tasks, others), (count, {}))

    def test_wide_launches_are_grids(self):
        count, (tasks, others) = self.compare("mm", "--threads=512")
        self.assertEqual((tasks, others), (0, {"it has 512 threads or more": count}))
        done = run(f"{WORKLOADS}/mm", "--tasks=32", "--threads=512", options=("--task-threads", "513"))
        self.assertEqual((done.returncode, launches(done)), (0, (32, {})), done.stderr)


class Mixes(unittest.TestCase):
    """Streams of all sorts, events, copies, callbacks, two modules, wide and narrow launches, kernels that cannot be tasks."""

    def mix(self, operations, seed, sleep=0, options=()):
        done = run(f"{PROGRAMS}/mix", str(operations), str(seed), str(sleep), options=options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        count = int(re.search(r"^PASS: (\d+) launches", done.stdout, re.MULTILINE).group(1))
        tasks, others = launches(done)
        self.assertEqual(tasks + sum(others.values()), count, done.stderr)
        return done, tasks, others

    def test_random_mixes(self):
        for seed, options in ((1, ()), (2, ()), (3, ("--threads", "1")), (4, ("--threads", "5")), (5, ("--task-threads", "100"))):
            with self.subTest(seed):
                done, tasks, others = self.mix(2500, seed, options=options)
                self.assertGreater(tasks, 50 if options else 300)
                for why in ("it prints, which would be seen when the MasterKernel ends", "lanes exchange values where some of its threads may not come"):
                    self.assertTrue(any(reason.startswith(why) for reason in others), others)
                self.assertTrue(any("another CTA" in reason for reason in others), others)
                self.assertTrue(any("threads or more" in reason for reason in others), others)
                if seed == 1:  # the program compares with the host; this is whether a plain run does the same
                    self.assertEqual(run(f"{PROGRAMS}/mix", "2500", "1", policy=False).stdout, done.stdout)

    def test_a_slow_host(self):
        self.mix(500, 6, sleep=3000)

    def test_a_host_that_is_stopped(self):
        process = subprocess.Popen([GRIDLOOM, "run", "--policy", "pagoda", "--quiet", "--", f"{PROGRAMS}/mix", "2500", "7"], stdout=subprocess.PIPE, text=True)
        for _ in range(6):
            time.sleep(0.15)
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.05)
            process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=250)
        self.assertEqual(process.returncode, 0, out)

    def test_launches_that_wait(self):
        done = run(f"{PROGRAMS}/mix", "300", "8", environment={"CUDA_LAUNCH_BLOCKING": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Faults(unittest.TestCase):
    def fault(self, how, at=700):
        done = run(f"{PROGRAMS}/fault", how, str(at))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return dict(line.split(": ") for line in done.stdout.splitlines()), done.stderr

    def test_a_task_that_faults_is_named_and_the_error_stays(self):
        for how, error in (("address", "cudaErrorIllegalAddress"), ("trap", "cudaErrorLaunchFailure"), ("assert", "cudaErrorAssert")):
            with self.subTest(how):
                said, log = self.fault(how)
                self.assertEqual(said, {"waited": error, "stream": error, "launch": error, "memory": error, "reset": "cudaSuccess", "after": "as it should be"})
                named = re.search(r"task (\d+) \(kernel Bad\(.*\), stream \d+\), CTA \(2,0,0\), thread \(5,2,0\)", log)
                self.assertTrue(named, log)
                self.assertEqual(named.group(1), "701")

    def test_without_a_fault(self):
        said, _ = self.fault("none")
        self.assertEqual(set(said.values()) - {"as it should be"}, {"cudaSuccess"})


class Spawned(unittest.TestCase):
    """gridloom/pagoda.h"""

    def test_with_the_policy(self):
        done = run(f"{PROGRAMS}/spawn")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        tasks, others = launches(done)
        self.assertEqual((tasks, others), (3001, {"it has 512 threads or more": 1}))

    def test_without_it(self):
        done = run(f"{PROGRAMS}/spawn", policy=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Life(unittest.TestCase):
    def test_nothing_is_left_of_a_process_that_is_killed(self):
        mark = f"GRIDLOOM_TEST_MARK={os.getpid()}"
        shared = set(os.listdir("/dev/shm"))
        process = subprocess.Popen([GRIDLOOM, "run", "--policy", "pagoda", "--quiet", "--", f"{PROGRAMS}/mix", "100000000", "9"], stdout=subprocess.DEVNULL,
                                   env={**os.environ, mark.split("=")[0]: mark.split("=")[1]})
        time.sleep(1)
        self.assertIsNone(process.poll())
        process.kill()
        process.wait(timeout=10)
        left = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as environment:
                    if mark.encode() in environment.read().split(b"\0"):
                        left.append(pid)
            except OSError:
                continue
        self.assertEqual(left, [])
        self.assertEqual(set(os.listdir("/dev/shm")) - shared, set())

    def test_launches_while_the_device_is_reset(self):
        done = run(f"{PROGRAMS}/reset", "20", timeout=120)
        self.assertEqual((done.returncode, done.stdout), (0, "PASS\n"), done.stderr)

    def test_an_idle_master_kernel_takes_no_time(self):
        run(f"{PROGRAMS}/idle", "1")  # which compiles
        done = run("/bin/sh", "-c", f"{PROGRAMS}/idle 100; times", options=("--quiet",))
        self.assertEqual(done.returncode, 0, done.stderr)
        minutes, seconds = re.findall(r"(\d+)m([\d.]+)s", done.stdout.splitlines()[-1])[0]
        self.assertLess(int(minutes) * 60 + float(seconds), 1, done.stdout)  # it slept for three seconds

    def test_what_does_not_go_together_is_refused(self):
        for option, said in (("--memcheck", "--memcheck"), ("--slice=2", "--slice"), ("--trace=/tmp/t.gltrace", "--trace"), ("--reorder=1", "--reorder"),
                             ("--device=real", "--device real")):
            done = run("/bin/true", options=(option,))
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)
        done = run("/bin/true", options=("--task-threads=0",))
        self.assertIn("--task-threads is '0'; expected a number from 1 to 1000000", done.stderr)
        done = run(f"{PROGRAMS}/idle", "1", policy=False, environment={"GRIDLOOM_POLICY": "pagoda", "GRIDLOOM_TASK_THREADS": "many"})
        self.assertIn("GRIDLOOM_TASK_THREADS=many is not a number of threads", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
