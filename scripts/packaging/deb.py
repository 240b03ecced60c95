"""A package for Debian and Ubuntu, made by dpkg-deb."""

import gzip
import hashlib
import os
import shutil
import subprocess

from . import tree

DESCRIPTION = """run unmodified CUDA programs without a GPU, share one, or simulate one
 Gridloom takes the place of the CUDA driver under a program. It reads the PTX
 that the program carries and runs its kernels on the processor's cores, on a
 GPU that many tenants share, or on a timing model of GPU hardware.
 .
 No CUDA toolkit and no GPU is needed."""
# Owned by root alone, read by the broker: secrets of tenants lie beside it.
CONFIGURATION = """# The broker's configuration, read by gridloom.service. docs/broker.md lists the keys.
# A program joins it with: gridloom run --connect=/run/gridloom/broker.sock -- ./app
socket: /run/gridloom/broker.sock
socket_mode: 0666
"""
USER = 'u gridloom - "The broker of Gridloom" /var/lib/gridloom\n'
POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ] && command -v systemd-sysusers >/dev/null; then
  systemd-sysusers gridloom.conf
fi
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
"""
PRERM = """#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --now gridloom.service || true
fi
"""
POSTRM = """#!/bin/sh
set -e
if [ "$1" = purge ]; then
  rm -rf /var/lib/gridloom /etc/gridloom
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
"""


def unit(root):
    """The unit of scripts/, for all users of a machine."""
    with open(os.path.join(root, "scripts", "gridloom.service"), encoding="utf-8") as file:
        lines = [line for line in file.read().splitlines() if not line.startswith("# A broker for one user") and "into /etc/systemd/system" not in line
                 and "into its configuration" not in line and "folder that nobody but root" not in line]
    text = "\n".join(lines) + "\n"
    text = text.replace("/usr/local/bin/gridloom-daemon --quiet", "/usr/bin/gridloom-daemon --quiet --config /etc/gridloom/gridloom.yaml")
    text = text.replace("[Service]\n", "[Service]\nUser=gridloom\nRuntimeDirectory=gridloom\n")
    return text.replace("WantedBy=default.target", "WantedBy=multi-user.target")


def needs(facts):
    # The libraries of a Debian release: libstdc++ 12 has GLIBCXX_3.4.30, 13 3.4.31 and 3.4.32, 14 3.4.33.
    newest = int(facts.libstdcxx.split(".")[2])
    gcc = {29: 11, 30: 12, 31: 13, 32: 13, 33: 14}.get(newest)
    if gcc is None:
        raise tree.PackageError(f"no release of GCC is known that has GLIBCXX_{facts.libstdcxx}")
    return f"libc6 (>= {facts.glibc}), libgcc-s1, libstdc++6 (>= {gcc}), libzstd1 (>= 1.5), zlib1g"


def compress(path):
    with open(path, "rb") as plain, open(path + ".gz", "wb") as file:
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=9) as packed:
            shutil.copyfileobj(plain, packed)
    os.remove(path)


def make(root, prefix, work, out, facts):
    if shutil.which("dpkg-deb") is None:
        raise tree.PackageError("there is no dpkg-deb: a Debian package is made on Debian")
    package = os.path.join(work, "package")
    usr = os.path.join(package, "usr")
    shutil.copytree(prefix, usr, symlinks=True)
    documents = os.path.join(usr, "share/doc/gridloom")
    os.rename(os.path.join(documents, "LICENSE"), os.path.join(documents, "copyright"))
    os.rename(os.path.join(documents, "CHANGELOG.md"), os.path.join(documents, "changelog"))
    compress(os.path.join(documents, "changelog"))
    for page in os.listdir(os.path.join(usr, "share/man/man1")):
        compress(os.path.join(usr, "share/man/man1", page))
    tree.write(os.path.join(package, "lib/systemd/system/gridloom.service"), unit(root))
    tree.write(os.path.join(package, "usr/lib/sysusers.d/gridloom.conf"), USER)
    tree.write(os.path.join(package, "etc/gridloom/gridloom.yaml"), CONFIGURATION)
    control = os.path.join(package, "DEBIAN")
    size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(package) for name in names
               if not os.path.islink(os.path.join(folder, name)))
    tree.write(os.path.join(control, "control"),
               f"Package: gridloom\nVersion: {facts.version}\nArchitecture: amd64\nMaintainer: the authors of Gridloom <gridloom@localhost>\n"
               f"Installed-Size: {-(-size // 1024)}\nDepends: {needs(facts)}\nRecommends: libopenblas0-pthread\nSuggests: libfftw3-double3, libfftw3-single3\n"
               f"Section: science\nPriority: optional\nDescription: {DESCRIPTION}\n")
    tree.write(os.path.join(control, "conffiles"), "/etc/gridloom/gridloom.yaml\n")
    for name, text in (("postinst", POSTINST), ("prerm", PRERM), ("postrm", POSTRM)):
        tree.write(os.path.join(control, name), text)
        os.chmod(os.path.join(control, name), 0o755)
    sums = []
    for folder, folders, names in os.walk(package):
        folders.sort()
        if folder.startswith(control):
            continue
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                with open(path, "rb") as file:
                    sums.append(f"{hashlib.md5(file.read()).hexdigest()}  {os.path.relpath(path, package)}\n")
    tree.write(os.path.join(control, "md5sums"), "".join(sums))
    for folder, folders, names in os.walk(package):
        os.chmod(folder, 0o755)
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, 0o755 if os.access(path, os.X_OK) and not name.endswith(".so") else 0o644)
    tree.set_times(package, facts.epoch)
    made = os.path.join(out, f"gridloom_{facts.version}_amd64.deb")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z0" if facts.fast else "-z9", "--build", package, made], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SOURCE_DATE_EPOCH": str(facts.epoch)})
    return made
