"""names_test.py GRIDLOOM OPENS VARIABLES LINKED PROGRAM PROGRAM_NOW: who keeps variables called like the driver's functions keeps them; who is
linked with the driver, or opens it, has it. Under the launcher, with the shim preloaded, and with the folder of its links."""
import os
import subprocess
import sys
import unittest

GRIDLOOM, OPENS, VARIABLES, LINKED, PROGRAM, PROGRAM_NOW = map(os.path.abspath, sys.argv[1:7])
BUILD = os.path.dirname(GRIDLOOM)
SHIM = os.path.join(BUILD, "libgridloom.so")
WAYS = {
    "launcher": ([GRIDLOOM, "run", "--"], {}),
    "preloaded": ([], {"LD_PRELOAD": SHIM, "GRIDLOOM_TEST_NVML": "0"}),
    "folder": ([], {"LD_LIBRARY_PATH": os.path.join(BUILD, "driver")}),
}
PYTHON = """
import ctypes
driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
assert driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value == 1
assert not hasattr(ctypes.CDLL(None), "cuInit"), "opened by one, seen by all"
assert ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL).cuInit(0) == 0 and hasattr(ctypes.CDLL(None), "cuInit")
"""


class Names(unittest.TestCase):
    def passes(self, *words):
        for way, (before, variables) in WAYS.items():
            for shell in ([], ["sh", "-c", '"$@"; exit $?', "sh"]):
                with self.subTest(way=way, shell=bool(shell), words=words[:2]):
                    done = subprocess.run([*before, *shell, *words], env=dict(os.environ, **variables), stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, check=False, timeout=60)
                    self.assertEqual((done.returncode, done.stdout.decode()), (0, ""))

    def test_variables_are_the_librarys_own(self):
        self.passes(OPENS, VARIABLES)

    def test_libraries_that_are_linked_with_the_driver_have_it(self):
        self.passes(OPENS, LINKED, VARIABLES, LINKED)

    def test_programs_that_are_linked_with_the_driver_have_it(self):
        self.passes(PROGRAM)
        self.passes(PROGRAM_NOW)

    def test_python_opens_it(self):
        self.passes(sys.executable, "-c", PYTHON)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
