#!/usr/bin/env python3
"""usage: cache_test.py GRIDLOOM: `gridloom cache` shows, prunes, exports and imports compiled kernels."""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile

gridloom = os.path.abspath(sys.argv[1])
SAMPLES = ["matmul", "reduce", "histogram"]
failures = 0


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print(f"FAILED: {what}")


def run(cache, *words):
    environment = {**os.environ, "GRIDLOOM_CACHE_DIR": cache, "GRIDLOOM_TIERS": "off", "GRIDLOOM_LOG": "debug"}
    done = subprocess.run([gridloom, *words], env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def shown(cache):
    return json.loads(run(cache, "cache", "--json")[1])


def kernels(cache):
    return sorted(name for name in os.listdir(cache) if name.endswith(".glk"))


def add(archive, name, data, **fields):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    for field, value in fields.items():
        setattr(entry, field, value)
    archive.addfile(entry, io.BytesIO(data))


with tempfile.TemporaryDirectory() as folder:
    one, two, archive = (os.path.join(folder, name) for name in ("one", "two", "kernels.tar.gz"))
    check(run(one, "cache", "export", archive)[0] == 125, "an empty cache is exported")
    for sample in SAMPLES:
        code, out, err = run(one, "demo", sample)
        check(code == 0 and "PASS" in out and "(from cache)" not in err, f"{sample}, cold: {code} {out} {err[-500:]}")
    facts = shown(one)
    check(facts["kernels"] == len(SAMPLES) and facts["folder"] == one and facts["bytes"] > 0, f"what is shown: {facts}")

    code, out, err = run(one, "cache", "export", archive)
    check(code == 0 and "3 kernels" in out, f"export: {code} {out} {err}")
    code, out, err = run(two, "cache", "import", archive)
    check(code == 0 and "added 3 kernels; 0 were there" in out and shown(two) == {**facts, "folder": two}, f"import: {code} {out} {err}")
    check(sorted(os.listdir(two)) == sorted(name for name in os.listdir(one) if not name.endswith(".lock")), f"what is in the folder: {os.listdir(two)}")
    for sample in SAMPLES:
        code, out, err = run(two, "demo", sample)
        check(code == 0 and "PASS" in out and "(from cache)" in err, f"{sample} does not find the kernel that was imported: {err[-500:]}")
    code, out, err = run(two, "cache", "import", archive)
    check("added 0 kernels; 3 were there" in out, f"import again: {out}")

    # Only kernels come in, and they stay where they belong; damaged ones are not run.
    bad = os.path.join(folder, "bad.tar")
    names = kernels(one)
    with tarfile.open(bad, "w") as file:
        for name in names:
            add(file, name, b"not a kernel")
        add(file, "0" * 32 + ".glk", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd")
        add(file, "processor.txt", b"x")
        add(file, "processor-" + "0" * 16 + ".txt", b"ahead of nothing")
        add(file, "A" * 32 + ".glk", b"x")
    three = os.path.join(folder, "three")
    code, out, err = run(three, "cache", "import", bad)
    check(code == 0 and "added 3 kernels" in out and "3 files are no part" in out and kernels(three) == names, f"a bad archive: {code} {out} {err} {os.listdir(three)}")
    outward = os.path.join(folder, "outward.tar")
    with tarfile.open(outward, "w") as file:
        add(file, "../escaped.glk", b"x")
        add(file, "1" * 32 + ".glk", b"x")
    code, out, err = run(three, "cache", "import", outward)
    check(code == 125 and kernels(three) == names, f"a name with ..: {code} {os.listdir(three)}")
    check(not os.path.exists(os.path.join(three, "escaped.glk")), "a name with .. came out of its folder")
    for sample in SAMPLES:
        code, out, err = run(three, "demo", sample)
        check(code == 0 and "PASS" in out and "(from cache)" not in err, f"{sample} with a damaged entry: {code} {out}")
    for path in (os.path.join(folder, "absent.tar"), gridloom):
        code, out, err = run(three, "cache", "import", path)
        check(code == 125 and "tar could not do it" in err, f"import of {path}: {code} {out} {err}")

    # The one used last stays.
    for number, name in enumerate(names):
        os.utime(os.path.join(two, name), (1e9 + number, 1e9 + number))
    size = os.path.getsize(os.path.join(two, names[-1]))
    code, out, err = run(two, "cache", "prune", "--size", str(size))
    check(code == 0 and kernels(two) == [names[-1]], f"prune --size: {out} {err} {os.listdir(two)}")
    code, out, err = run(two, "cache", "prune", "--days", "1")
    check(code == 0 and "removed 1 kernel" in out and not kernels(two), f"prune --days: {out} {err}")
    run(one, "cache", "prune", "--all")
    check(shown(one)["kernels"] == 0, "prune --all leaves something")
    check(run(one, "cache", "prune")[0] == 125 and run(one, "cache", "prune", "--size", "much")[0] == 125, "prune without a measure")
    check(run(one, "cache", "polish")[0] == 125 and run("off", "cache")[0] == 125, "what there is not")
print("the cache is kept" if failures == 0 else f"{failures} failures")
sys.exit(1 if failures else 0)
