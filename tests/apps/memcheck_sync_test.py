#!/usr/bin/env python3
"""Runs memcheck_sync case by case under memcheck: each wrong use of a barrier or .sync instruction has to be found, and nothing in the
right programs. usage: memcheck_sync_test.py GRIDLOOM SOURCE PROGRAM"""
import re
import sys

from memcheck_cases import Test, main

# case: kind, what the text must contain (regular expressions), the program's own last line, times (None: not said)
DEFECTS = {
    "some-lanes": ("barrier-divergence", [r"barrier that not all threads come to in kernel `SomeLanes\(int\*\)`", r"thread \(0,0,0\): thread \(16,0,0\) has passed it by"], "cudaSuccess", None),
    "some-warps": ("barrier-divergence", [r"thread \(0,0,0\): thread \(32,0,0\) has passed it by"], "cudaSuccess", None),
    "two-barriers": ("barrier-divergence", [r"of the same warp waits at another barrier", r"that thread, \([01],0,0\), waits at .*memcheck_sync.cu:\d+"], "cudaSuccess", None),
    "loop-barrier": ("barrier-divergence", [r"has passed it by"], "cudaSuccess", None),
    "counted-barrier": ("barrier-divergence", [r"thread \(\d+,0,0\): thread \(40,0,0\) has passed it by"], "cudaSuccess", None),
    "wrong-mask": ("sync-mask", [r"thread \(16,0,0\): its mask 0x0000ffff does not hold its own lane, 16"], "cudaSuccess", None),
    "warp-missing": ("sync-missing", [r"its mask 0xffffffff names lanes that did not come, 0xffff0000: thread \(16,0,0\) has passed it by"], "cudaSuccess", None),
    "shuffle-missing": ("sync-missing", [r"lanes that did not come, 0xffff0000: thread \(16,0,0\) has passed it by"], "cudaSuccess", None),
    "shuffle-loop": ("sync-missing", [r"lanes that did not come, 0xfffc0000: thread \(18,0,0\) has passed it by"], "cudaSuccess", None),
    "vote-missing": ("sync-missing", [r"lanes that did not come, 0x55555555: thread \(0,0,0\)"], "cudaSuccess", None),
    "match-missing": ("sync-missing", [r"lanes that did not come, 0x0000000f: thread \(0,0,0\)"], "cudaSuccess", None),
    "reduce-missing": ("sync-missing", [r"lanes that did not come, 0x0000000f: thread \(0,0,0\)"], "cudaSuccess", None),
    "reduce-beside-sync": ("sync-missing", [r"its mask 0xffffffff names lanes that did not come, 0x(ffff0000|0000ffff): thread \(\d+,0,0\) waits at another place", r"that thread, \(\d+,0,0\), waits at .*memcheck_sync.cu:\d+"], "cudaSuccess", None),
    "some-of-block": ("barrier-divergence", [r"thread \(0,0,0\): thread \(32,0,0\) has passed it by"], "cudaSuccess", None),
    "warp-at-barrier": ("sync-missing", [r"lanes that did not come, 0xffff0000: thread \(16,0,0\) waits at another place", r"that thread, \(16,0,0\), waits at .*memcheck_sync.cu:\d+"], "cudaSuccess", None),
    "shuffle-source": ("shuffle-source", [r"value of a lane that took no part in a shuffle is stored to global memory"], "cudaSuccess", None),
    "shuffle-ended": ("shuffle-source", [r"value of a lane that took no part in a shuffle is stored to global memory", r"thread \(4,0,0\)"], "cudaSuccess", None),
    "before-init": ("mbarrier", [r"the mbarrier at shared 0x[0-9a-f]+ \(the first byte of shared variable `.*barrier.*`\) is used before mbarrier.init"], "cudaSuccess", 1),
    "init-twice": ("mbarrier", [r"is initialised again without mbarrier.inval"], "cudaSuccess", 1),
    "init-count": ("mbarrier", [r"is initialised for 0 arrivals, not 1 to 1,048,575"], "cudaSuccess", 1),
    "overwritten": ("mbarrier", [r"is used after something else was written to its memory"], "cudaSuccess", 1),
}
# What lanes get from others that did not come, and store.
MORE = {case: {"sync-missing", "shuffle-source"} for case in ("shuffle-missing", "shuffle-loop")}
MORE["loop-barrier"] = {"barrier-divergence"}  # copies of its unrolled loop
# Those that end their grid: the kind of the fault and its text.
FAULTS = {
    "arrival-short": ("deadlock", r"warp 0 of CTA \(0,0,0\) waits for an mbarrier at shared 0x[0-9a-f]+, of which 1 arrival is missing"),
    "grid-short": ("deadlock", r"warp 0 of CTA \(0,0,0\) waits for the grid's barrier, to which 1 of 2 CTAs has not come"),
    "arrive-too-often": ("illegal-instruction", r"more arrivals at an mbarrier than it expects"),
}


class SyncTest(Test):
    def fault(self, case, kind, text):
        done, found = self.run(case=case)
        self.check(case, done.returncode == 1 and found, "exit code is not 1", done)
        faults = found["faults"] if found else []
        self.check(case, [fault["kind"] for fault in faults] == [kind], f"found {faults}", done)
        for fault in faults:
            self.check(case, re.search(text, fault["what"]), f"says {fault['what']}", done)

    def filters(self):
        done, found = self.run("--memcheck-checks", "sync-mask,race", case="some-lanes")
        self.check("checks", done.returncode == 0 and found and not found["findings"], "tells of a kind that is not asked for", done)
        done, found = self.run("--memcheck-checks", "sync-mask,race", case="wrong-mask")
        self.check("checks", done.returncode == 1 and found and len(found["findings"]) == 1, "does not tell of a kind that is asked for", done)
        finding = found["findings"][0] if found and found["findings"] else {}
        self.check("json", not {"space", "address", "access"} & finding.keys(), f"speaks of an access: {finding}", done)


def cases(test):
    for case, expected in DEFECTS.items():
        test.defect(case, *expected)
    for case, expected in FAULTS.items():
        test.fault(case, *expected)
    test.clean()
    test.clean("host-flag")
    test.filters()


if __name__ == "__main__":
    sys.exit(main(MORE, cases, SyncTest))
