"""A wheel: the Python package of interpose/python, with the tree in it."""

import base64
import hashlib
import os
import shutil
import time
import zipfile

from . import tree

METADATA = """Metadata-Version: 2.1
Name: gridloom
Version: {version}
Summary: Run unmodified CUDA programs without a GPU, share one, or simulate one
License: Apache-2.0
Requires-Python: >=3.9
Classifier: Operating System :: POSIX :: Linux
Classifier: Framework :: Pytest
Description-Content-Type: text/markdown

Gridloom takes the place of the CUDA driver under a program: kernels run on the processor's cores, or on a timing model of a GPU.

    gridloom demo
    gridloom run -- python train.py
    pytest --gridloom

`import gridloom; gridloom.enable()` before the first import of a CUDA library does the same for a script.
"""
ENTRY_POINTS = """[console_scripts]
gridloom = gridloom.__main__:main

[pytest11]
gridloom = gridloom.pytest_plugin
"""
# What a wheel has no use for: pages of the system's manual, completion, the headers.
LEFT_OUT = ("include", "share/man", "share/bash-completion", "share/zsh", "share/fish")


def record(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def replace_links(folder):
    """A wheel has no links. The driver's other names are copies of the small library that leads to the shim beside it."""
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.islink(path):
            os.remove(path)
            shutil.copy2(os.path.join(folder, "libgridloom-driver.so"), path)


def make(root, prefix, work, out, facts):
    tag = f"py3-none-manylinux_{facts.glibc.replace('.', '_')}_x86_64"
    package = os.path.join(work, "gridloom")
    shutil.copytree(os.path.join(root, "interpose/python/gridloom"), package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(prefix, os.path.join(package, "tree"), symlinks=True)
    replace_links(os.path.join(package, "tree/lib/gridloom"))
    for name in LEFT_OUT:
        shutil.rmtree(os.path.join(package, "tree", name))
    tree.write(os.path.join(package, "_version.py"), f'version = "{facts.version}"\ncommit = "{facts.commit}"\n')
    information = os.path.join(work, f"gridloom-{facts.version}.dist-info")
    tree.write(os.path.join(information, "METADATA"), METADATA.format(version=facts.version))
    tree.write(os.path.join(information, "WHEEL"), f"Wheel-Version: 1.0\nGenerator: gridloom\nRoot-Is-Purelib: false\nTag: {tag}\n")
    tree.write(os.path.join(information, "entry_points.txt"), ENTRY_POINTS)
    shutil.copytree(os.path.join(package, "tree/share/doc/gridloom/licences"), os.path.join(information, "licences"))
    made = os.path.join(out, f"gridloom-{facts.version}-{tag}.whl")
    when = time.gmtime(max(facts.epoch, 315532800))[:6]  # a zip file's time begins in 1980
    rows = []
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1 if facts.fast else 9) as file:
        for top in (package, information):
            for folder, folders, names in os.walk(top):
                folders.sort()
                for name in sorted(names):
                    path = os.path.join(folder, name)
                    inside = os.path.relpath(path, work)
                    with open(path, "rb") as source:
                        data = source.read()
                    entry = zipfile.ZipInfo(inside, when)
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    entry.external_attr = (0o100755 if os.access(path, os.X_OK) else 0o100644) << 16
                    file.writestr(entry, data)
                    rows.append(f"{inside},{record(data)},{len(data)}\n")
        listed = os.path.relpath(os.path.join(information, "RECORD"), work)
        entry = zipfile.ZipInfo(listed, when)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = 0o100644 << 16
        file.writestr(entry, "".join(rows) + f"{listed},,\n")
    return made
