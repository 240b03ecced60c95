"""The tree that every package holds: what `cmake --install` gives, licences, manual pages, completion for shells."""

import dataclasses
import glob
import os
import re
import shutil
import subprocess

from . import completion, help_text, manual

SAMPLES = ["matmul", "vectoradd", "reduce", "histogram", "daxpy", "collatz", "two_streams"]
TARGETS = ["gridloom", "gridloom-daemon", *[f"driver_{sample}" for sample in SAMPLES]]
# Debian's packages whose code is in ours (docs/third-parties.md).
PARTS = ["llvm-19-dev", "libeigen3-dev", "libspdlog-dev", "libfmt-dev", "nlohmann-json3-dev", "libcli11-dev", "libyaml-dev", "libzstd-dev",
         "liblz4-dev", "libxxhash-dev", "zlib1g-dev", "libelf-dev"]


class PackageError(Exception):
    """Why no package can be made."""


@dataclasses.dataclass
class Facts:
    version: str
    commit: str
    epoch: int  # of the commit, in seconds: the time of all that is in a package
    glibc: str  # the oldest that all programs and libraries run with, as 2.36
    libstdcxx: str  # likewise, as 3.4.30
    fast: bool = False  # little compression


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def facts(root, build):
    with open(os.path.join(root, "CMakeLists.txt"), encoding="utf-8") as file:
        version = re.search(r"project\(gridloom VERSION ([0-9.]+)", file.read()).group(1)
    commit = output("git", "-C", root, "rev-parse", "HEAD").strip()
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or output("git", "-C", root, "log", "-1", "--format=%ct").strip())
    missing = [target for target in ("gridloom", "gridloom-daemon", "libgridloom.so", "libgridloom-compiler.so")
               if not os.path.exists(os.path.join(build, target))]
    if missing:
        raise PackageError(f"{build} has no {', '.join(missing)}: scripts/build {' '.join(TARGETS)}")
    return Facts(version, commit, epoch, "", "")


def executables(prefix):
    """All ELF files below a folder."""
    for folder, _, names in sorted(os.walk(prefix)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.islink(path):
                continue
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def newest_symbol(paths, name):
    """The newest version NAME_x.y that one of the files asks for."""
    versions = set()
    for path in paths:
        versions |= set(re.findall(rf"\b{name}_([0-9.]+)", output("objdump", "-T", path)))
    return max(versions, key=lambda text: [int(part) for part in text.split(".")])


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def add_documents(root, prefix):
    folder = os.path.join(prefix, "share", "doc", "gridloom")
    os.makedirs(os.path.join(folder, "licences"))
    for name in ("LICENSE", "CHANGELOG.md", "docs/third-parties.md"):
        shutil.copy(os.path.join(root, name), folder)
    licence = "/usr/share/common-licenses/Apache-2.0"
    if not os.path.exists(licence):
        raise PackageError(f"{licence} is missing: the text of the licence comes from there (Debian's base-files)")
    shutil.copy(licence, os.path.join(folder, "licences", "Apache-2.0"))
    for part in PARTS:
        texts = glob.glob(f"/usr/share/doc/{part}/copyright")
        if not texts:
            raise PackageError(f"the licence of {part} is missing in /usr/share/doc: scripts/setup installs that package")
        shutil.copy(texts[0], os.path.join(folder, "licences", part))
    for name in ("LGPL-3", "GPL-2", "GPL-3"):  # what libelf's copyright file names
        shutil.copy(f"/usr/share/common-licenses/{name}", os.path.join(folder, "licences", name))


def make(root, build, prefix, found, strip=True):
    """Makes the tree at `prefix`, and notes in `found` what it needs of a system."""
    subprocess.run(["cmake", "--install", build, "--prefix", prefix, *(["--strip"] if strip else [])], check=True,
                   stdout=subprocess.DEVNULL)
    for sample in SAMPLES:
        if not os.path.exists(os.path.join(prefix, "lib/gridloom/samples", f"driver_{sample}")):
            raise PackageError(f"the sample {sample} is not built: scripts/build driver_{sample}")
    files = list(executables(prefix))
    found.glibc = newest_symbol(files, "GLIBC")
    found.libstdcxx = newest_symbol(files, "GLIBCXX")
    add_documents(root, prefix)
    commands = help_text.commands(os.path.join(prefix, "bin", "gridloom"))
    for name, text in manual.pages(commands, found).items():
        write(os.path.join(prefix, "share/man/man1", name), text)
    for path, text in completion.scripts(commands).items():
        write(os.path.join(prefix, path), text)
    return prefix


def set_times(prefix, epoch):
    """The same time for all files, so that the same content gives the same package."""
    for folder, folders, names in os.walk(prefix):
        for name in [*folders, *names]:
            os.utime(os.path.join(folder, name), (epoch, epoch), follow_symlinks=False)
    os.utime(prefix, (epoch, epoch))
