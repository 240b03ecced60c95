"""What the tests of memcheck share: programs with a case for each argument, run under memcheck, and what has to come out.
Each is called as TEST.py GRIDLOOM SOURCE PROGRAM…; SOURCE is that of the programs."""
import json
import os
import re
import subprocess
import sys
import tempfile


def run_checked(tool, words, options=()):
    """Runs a program under memcheck: how it ended, and the JSON, None where there is none. In machine code, and once more in the interpreter,
    which has to find the same."""
    done, found = run_in("off", tool, words, options)
    again, also_found = run_in("interpret", tool, words, options)
    if "is not interpreted" in again.stderr:
        raise AssertionError(f"{words}: {again.stderr}")
    if (again.returncode, again.stdout, comparable(also_found)) != (done.returncode, done.stdout, comparable(found)):
        raise AssertionError(f"{words}: not the same in machine code and in the interpreter:\n{done.stdout}{done.stderr}\n{again.stdout}{again.stderr}")
    return done, found


def run_in(tiers, tool, words, options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "found.json")
        command = [tool, "run", "--memcheck", "--memcheck-json", path, *options, "--", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, env={**os.environ, "GRIDLOOM_TIERS": tiers})
        if not os.path.exists(path):
            return done, None
        with open(path, encoding="utf-8") as file:
            return done, json.load(file)


def comparable(found):
    """Without what differs from one process to the next."""
    if isinstance(found, dict):
        return {key: comparable(value) for key, value in found.items() if key not in ("pid", "address", "host")}
    if isinstance(found, list):
        return [comparable(one) for one in found]
    return re.sub(r"0x[0-9a-f]{9,}", "0x…", found) if isinstance(found, str) else found


class Test:
    def __init__(self, tool, source, program, more):
        self.tool, self.program, self.more, self.failures = tool, program, more, []
        self.source = os.path.basename(source)
        self.lines = open(source).read().splitlines()

    def run(self, *options, case):
        return run_checked(self.tool, [self.program, case], options)

    def check(self, case, good, what, done):
        if not good:
            self.failures.append(f"{case}: {what}\n--- exit code {done.returncode}, output:\n{done.stdout}{done.stderr}")

    def defect(self, case, kind, texts, status, times):
        done, found = self.run(case=case)
        self.check(case, done.returncode == 1, "exit code is not 1", done)
        for text in texts:
            self.check(case, re.search(text, done.stderr), f"the text lacks {text}", done)
        if status is not None:
            self.check(case, done.stdout == f"{case}: {status}\n", f"the program did not see {status}", done)
        self.check(case, found is not None, "no JSON", done)
        if found is None:
            return
        kinds = {finding["kind"] for finding in found["findings"]}
        self.check(case, kind in kinds and kinds <= self.more.get(case, {kind}), f"found {kinds}", done)
        lines = [n for n, line in enumerate(self.lines, 1) if re.search(rf"// .*\b{case}(?![-\w])", line)]
        for finding in found["findings"]:
            if finding["kind"] != kind:
                continue
            source = os.path.basename(finding.get("file", ""))
            self.check(case, source == self.source, f"names {source}", done)
            self.check(case, finding.get("line") in lines, f"names line {finding.get('line')}, not {lines}", done)
            self.check(case, f"{source}:{finding.get('line')} (PTX line {finding['ptx_line']})" in done.stderr, "no such place in the text", done)
            self.check(case, times in (None, finding["times"]), f"{finding['times']} accesses", done)
        if case not in self.more:
            self.check(case, len({finding["line"] for finding in found["findings"]}) == len(found["findings"]), "tells twice of one line", done)

    def call(self, case, text):
        done, found = self.run(case=case)
        self.check(case, done.returncode == 1, "exit code is not 1", done)
        self.check(case, re.search(text, done.stderr), f"the text lacks {text}", done)
        self.check(case, found and len(found["calls"]) == 1 and not found["findings"], "the JSON has something else", done)

    def clean(self, case="none"):
        done, found = self.run(case=case)
        self.check(case, done.returncode == 0 and "memcheck: no errors" in done.stderr, "is not clean", done)
        self.check(case, found is not None and not any(found.values()), "JSON is not empty", done)


def main(more, cases, kind=Test):
    """Runs `cases` on a test of each program that the command line names; answers the exit code."""
    tool, source, *programs = sys.argv[1:]
    failures = []
    for program in programs:
        test = kind(tool, source, program, more)
        cases(test)
        failures += test.failures
    for failure in failures:
        print(failure)
    print(f"{len(programs)} programs, {len(failures)} failures")
    return 1 if failures or not programs else 0
