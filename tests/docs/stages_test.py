#!/usr/bin/env python3
"""stages_test.py COMPILE_TIME: docs/design/one-kernel.md shows what the compiler really makes of its kernel.

The page's PTX is compiled, and the lines of each excerpt are looked for in the stage that it names: one after the other, from one `…` to the next
without a gap. Numbers of values, registers and jump targets are not compared.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/design/one-kernel.md"
SKIPPED = 77


def excerpts():
    """(language, stage, line number, lines) of each block."""
    block = None
    for number, line in enumerate(PAGE.read_text().splitlines(), 1):
        if block is None and line.startswith("```"):
            language, _, stage = line[3:].partition(" ")
            block = (language, stage, number, [])
        elif line == "```":
            yield block
            block = None
        elif block is not None:
            block[3].append(line)


def plain_ir(line):
    line = re.sub(r'@"gl\.(\d+)[.…][^"]*"', r"@gl.\1", line.split(";")[0])
    line = re.sub(r"%([a-z_.]*?)\d+\b", r"%\1", line)
    line = re.sub(r"^([a-z_]+)\d*:", r"\1:", line)
    return " ".join(re.sub(r"!(prof|range|invariant\.load) !\d+", r"!\1", line).split())


def plain_asm(line):
    line = re.sub(r"^\s*[0-9a-f]+:\s*", "", line.split("#")[0])
    return " ".join(re.sub(r"%\w+", "%", re.sub(r"^(j\w+) .*", r"\1", line.strip())).split())


def find(wanted, lines, start):
    """Where `wanted` begins in `lines`, from `start` on; -1: nowhere."""
    for i in range(start, len(lines) - len(wanted) + 1):
        if lines[i:i + len(wanted)] == wanted:
            return i
    return -1


def check(excerpt, made, plain, title):
    lines = [text for text in map(plain, made) if text]
    group, at = [], 0
    for line in [*excerpt, "…"]:
        if line.strip() not in ("…", ""):
            group.append(line)
            continue
        found = find([plain(text) for text in group], lines, at)
        if found < 0:
            sys.exit(f"{title}: the compiler does not make, or not in this place:\n" + "\n".join(group))
        at = found + len(group)
        group = []


def main():
    blocks = list(excerpts())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "scale.ptx").write_text("\n".join(next(b[3] for b in blocks if b[0] == "ptx")) + "\n")
        subprocess.run([pathlib.Path(sys.argv[1]).resolve(), "--ptx", "scale.ptx", "--block", "128", "--cpu", "x86-64-v3", "--runs", "1", "--ir", "scale.ll",
                        "--object", "scale.o"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        stages = dict(re.findall(r"^; ---- (.*)\n((?:(?!; ----).*\n)*)", (folder / "scale.ll").read_text(), re.MULTILINE))
        objdump = shutil.which("objdump")
        code = subprocess.run([objdump, "-d", "--no-show-raw-insn", folder / "scale.o"], check=True, stdout=subprocess.PIPE,
                              text=True).stdout.splitlines() if objdump else None
    count = 0
    for language, stage, number, lines in blocks:
        title = f"{PAGE.name}:{number}"
        if language == "llvm":
            check(lines, stages[stage].splitlines(), plain_ir, title)
        elif language == "asm" and code is not None:
            check(lines, code, plain_asm, title)
        else:
            continue
        count += 1
    print(f"{count} excerpts are what the compiler makes")
    if code is None:
        print("skipped: the machine code is not compared, there is no objdump")
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
