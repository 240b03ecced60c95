#!/usr/bin/env python3
"""usage: package_test.py SOURCE BUILD: makes all packages of a build, unpacks them, and uses them as somebody would who has no clone."""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile

source, build = map(os.path.abspath, sys.argv[1:3])
failures = []
skipped = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}")


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, **options)
    return done.returncode, done.stdout + done.stderr


def make(out, *kinds):
    code, text = run(os.path.join(source, "scripts/package"), "--fast", "--build", build, "--out", out, *kinds)
    check(code == 0, f"scripts/package {' '.join(kinds)}: {text}")
    return [os.path.join(out, name) for name in sorted(os.listdir(out))]


def content(path):
    with open(path, "rb") as file:
        return file.read()


def unpack_wheel(wheel, folder):
    """As pip does: with the rights that the archive notes."""
    with zipfile.ZipFile(wheel) as file:
        for entry in file.infolist():
            path = file.extract(entry, folder)
            os.chmod(path, stat.S_IMODE(entry.external_attr >> 16))


def demo(name, *tool, **options):
    code, text = run(*tool, "demo", "reduce", **options)
    check(code == 0 and "PASS" in text and "Reduce" in text, f"{name}: gridloom demo ends with {code}: {text}")
    check("/tree/lib/" in text or "/lib/gridloom/samples/" in text, f"{name}: the sample is not the package's own: {text}")


def wheel_records(wheel):
    """Each file of a wheel is in its RECORD, and the other way round."""
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        record = next(name for name in names if name.endswith("/RECORD"))
        listed = {line.rsplit(",", 2)[0] for line in file.read(record).decode().splitlines()}
    check(names == listed, f"RECORD differs from the wheel: {sorted(names ^ listed)[:5]}")


SCRIPT = """
import ctypes, sys
import gridloom
print("begins", sys.argv[1:])
gridloom.enable(device="a100")
driver, name = ctypes.CDLL("libcuda.so.1"), ctypes.create_string_buffer(99)
assert driver.cuInit(0) == 0 and driver.cuDeviceGetName(name, 99, 0) == 0
gridloom.enable()
print("runs on", name.value.decode(), gridloom.is_active())
"""
# Some library under the runtime's name.
LATE = """
import ctypes, shutil, gridloom
with open("/proc/self/maps") as maps:
    shutil.copy(next(line.split()[5] for line in maps if "/libm.so.6" in line), "libcudart.so.13")
ctypes.CDLL("./libcudart.so.13")
gridloom.enable()
"""
TESTS = """
import ctypes, os, pytest

def test_runs():
    driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    assert driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value == 1

@pytest.mark.real_gpu
def test_needs_a_gpu():
    assert False

def test_time(gridloom_timer):
    assert gridloom_timer(lambda: None) >= 0
"""


def use_python(site, folder):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GRIDLOOM_")}
    environment["PYTHONPATH"] = site
    options = {"env": environment, "cwd": folder}
    demo("wheel", sys.executable, "-m", "gridloom", **options)
    for name, text in (("begin.py", SCRIPT), ("late.py", LATE), ("test_it.py", TESTS)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    code, text = run(sys.executable, "begin.py", "one two", **options)
    check(code == 0 and "runs on NVIDIA A100" in text and text.count("begins ['one two']") == 2, f"gridloom.enable(): {code} {text}")
    code, text = run(sys.executable, "-c", "import gridloom; gridloom.enable(); print('active', gridloom.is_active())", **options)
    check(code == 0 and "active True" in text, f"python -c with enable(): {code} {text}")
    code, text = run(sys.executable, "late.py", **options)
    check(code == 1 and "libcudart.so.13 is loaded already" in text, f"enable() too late: {code} {text}")
    done = subprocess.run([sys.executable, "-"], input="import gridloom; gridloom.enable()", capture_output=True, text=True, **options)
    check(done.returncode == 1 and "standard input" in done.stderr, f"enable() on standard input: {done.stderr}")
    if run(sys.executable, "-c", "import pytest")[0] != 0:
        skipped.append("the plug-in of pytest: pytest is not installed")
        return
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "test_it.py"]
    code, text = run(*command, "--gridloom=a100", **options)
    check(code == 0 and re.search(r"2 passed, 1 skipped", text), f"pytest --gridloom: {code} {text}")
    code, text = run(*command, "--gridloom", "--gridloom-options=--no-such-option", **options)
    check(code == 125 and "--no-such-option" in text, f"pytest with a wrong option: {code} {text}")


def manual_pages(tree):
    if shutil.which("groff") is None:
        skipped.append("how manual pages look: groff is not installed")
        return
    for page in sorted(os.listdir(os.path.join(tree, "share/man/man1"))):
        code, text = run("groff", "-k", "-man", "-Tutf8", "-ww", "-P-cbou", os.path.join(tree, "share/man/man1", page), env={**os.environ, "LC_ALL": "C.UTF-8"})
        check(code == 0 and "warning" not in text and "SYNOPSIS" in text, f"{page}: {text[:300]}")


def completion(tree):
    script = os.path.join(tree, "share/bash-completion/completions/gridloom")
    ask = 'source "$1"; COMP_WORDS=(gridloom {}); COMP_CWORD={}; _gridloom; echo "${{COMPREPLY[@]}}"'
    code, text = run("bash", "-c", ask.format("re", 1), "bash", script)
    check(text.split() == ["rewrite", "replay"], f"completion of commands: {text}")
    code, text = run("bash", "-c", ask.format("run --memcheck-l", 2), "bash", script)
    check(text.split() == ["--memcheck-limit"], f"completion of options: {text}")
    path = os.pathsep.join([os.path.join(tree, "bin"), os.environ["PATH"]])
    code, text = run("bash", "-c", ask.format("run --device a1", 3), "bash", script, env={**os.environ, "PATH": path})
    check("a100" in text.split(), f"completion of devices: {text}")


def debian(package, folder):
    if shutil.which("dpkg-deb") is None:
        skipped.append("the Debian package: there is no dpkg-deb")
        return
    code, text = run("dpkg-deb", "--extract", package, folder)
    check(code == 0, f"dpkg-deb: {text}")
    demo("deb", os.path.join(folder, "usr/bin/gridloom"))
    code, text = run("dpkg-deb", "--info", package)
    check("libc6 (>=" in text and "postinst" in text, f"what the package says of itself: {text}")
    unit = content(os.path.join(folder, "lib/systemd/system/gridloom.service")).decode()
    check("User=gridloom" in unit and "ExecStart=/usr/bin/gridloom-daemon" in unit, f"the unit: {unit}")
    names = run("dpkg-deb", "--contents", package)[1]
    check("./usr/share/doc/gridloom/copyright" in names and "licences/llvm-19-dev" in names, "licences are missing in the package")


def main():
    with tempfile.TemporaryDirectory(prefix="gridloom-packages-") as folder:
        path = lambda name: os.path.join(folder, name)  # noqa: E731
        for name in ("first", "second", "site", "deb", "tar", "work"):
            os.mkdir(path(name))
        made = {name.rsplit(".", 1)[1]: name for name in make(path("first"), "all")}
        deb, archive, wheel = made["deb"], made["zst"], made["whl"]
        again = make(path("second"), "wheel")
        check(content(wheel) == content(again[0]), "the same build gives two different wheels")
        wheel_records(wheel)
        unpack_wheel(wheel, path("site"))
        use_python(path("site"), path("work"))
        debian(deb, path("deb"))
        code, text = run("tar", "--zstd", "-xf", archive, "-C", path("tar"))
        if code != 0 and shutil.which("zstd") is None:
            skipped.append("the archive: zstd is not installed")
        else:
            check(code == 0, f"tar: {text}")
            tree = os.path.join(path("tar"), os.listdir(path("tar"))[0])
            demo("archive", os.path.join(tree, "bin/gridloom"))
            manual_pages(tree)
            completion(tree)
        code, text = run(os.path.join(source, "scripts/package"), "--build", path("work"), "--out", path("work"), "tar")
        check(code == 1 and "has no gridloom" in text, f"a folder that is no build: {code} {text}")
    for what in skipped:
        print(f"not looked at: {what}")
    print("packages work" if not failures else f"{len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
