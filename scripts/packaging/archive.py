"""An archive of the tree that runs wherever it is unpacked."""

import os
import shutil
import subprocess

from . import tree


def make(root, prefix, work, out, facts):
    if shutil.which("zstd") is None:
        raise tree.PackageError("zstd is not installed, which packs the archive: scripts/setup")
    name = f"gridloom-{facts.version}-linux-x86_64"
    folder = os.path.join(work, name)
    os.symlink(prefix, folder)
    tree.set_times(prefix, facts.epoch)
    made = os.path.join(out, name + ".tar.zst")
    packed = subprocess.Popen(["tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", f"--mtime=@{facts.epoch}", "--mode=u+rwX,go+rX,go-w",
                               "--transform", f"s,^{os.path.basename(prefix)},{name},S", "-C", os.path.dirname(prefix), "-cf", "-",
                               os.path.basename(prefix)], stdout=subprocess.PIPE)
    with open(made, "wb") as file:
        subprocess.run(["zstd", "-q", "-1" if facts.fast else "-19", "-T0", "-c"], stdin=packed.stdout, stdout=file, check=True)
    if packed.wait() != 0:
        raise tree.PackageError("tar could not pack the tree")
    return made
