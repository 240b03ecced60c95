#!/usr/bin/env python3
"""paths_test.py: every file that README and docs name, in backticks or as the target of a link, is there, and so is every heading; and links
lead from README to every page.

A name in backticks is taken for a file of the repository when it begins with one of its folders, or when it ends as its sources do. It may be
a pattern (`lift_*.cpp`, `pass.{h,cpp}`), stand without its ending (`sim/timing/dispatcher`), and leave out the folders in front.
"""
import fnmatch
import os
import re
import sys

from documents import ROOT, anchors, links, pages, spans

FOLDERS = ("rewriter", "sim", "scheduler", "interpose", "tests", "scripts", "configs", "docs", "cmake")
ENDINGS = (".h", ".cpp", ".def", ".cu", ".cmake", ".py", ".md")
# Endings alone, files of the reader's, and what a script puts there on a machine with a GPU.
NOT_OURS = {".cpp", "app.cu", "tests/data/gpu", "tests/data/gpu/", "NAME.cpp", "NAME.cu", "NAME.h", "NAME.{h,cpp}", "NAME_test.cpp"}
WORKED_OUT = re.compile(r"[\w./*{},+-]+")


def repository_files():
    files = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if not f.startswith("build") and f != ".git"]
        files += [os.path.relpath(os.path.join(folder, name), ROOT) for name in [*names, *folders]]
    return files


def alternatives(pattern):
    """`a.{h,cpp}` as `a.h` and `a.cpp`."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if not match:
        return [pattern]
    return [a for choice in match.group(1).split(",") for a in alternatives(pattern[:match.start()] + choice + pattern[match.end():])]


class Files:
    def __init__(self, paths):
        self.by_name = {}
        for path in paths:
            self.by_name.setdefault(os.path.basename(path), []).append("/" + path)

    def has(self, pattern, anywhere):
        """Whether there is a file of that path, with any ending where the pattern has none; `anywhere`: in any folder."""
        pattern = pattern.rstrip("/")
        name = os.path.basename(pattern)
        for candidate in [name] if "." in name else [name, name + ".*", name + "_*"]:
            end = os.path.join(os.path.dirname(pattern), candidate)
            for known in [candidate] if candidate in self.by_name else fnmatch.filter(self.by_name, candidate):
                if any(fnmatch.fnmatch(path, ("*/" if anywhere else "/") + end) for path in self.by_name[known]):
                    return True
        return False


def missing_in_spans(page, files):
    for place, span in spans(page):
        if not WORKED_OUT.fullmatch(span) or span in NOT_OURS or "NAME" in span:
            continue
        inside = span.split("/")[0] in FOLDERS and "/" in span
        if not inside and not span.endswith(ENDINGS) and not re.search(r"\.\{h,cpp\}$", span):
            continue
        for path in alternatives(span):
            if not files.has(path, anywhere=not inside) and not files.has(path, anywhere=True):
                yield f"{place}: there is no file {path}"


def missing_in_links(page):
    for place, target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"{place}: the link leads to {target}, which is not there"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{place}: {file.relative_to(ROOT)} has no heading #{anchor}"


def unreachable():
    """Pages that no way of links leads to from README."""
    found, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in found or page.suffix != ".md" or not page.exists():
            continue
        found.add(page)
        waiting += [(page.parent / target.partition("#")[0]).resolve() for _, target in links(page) if not target.startswith("#")]
    return [f"{page.relative_to(ROOT)}: no link leads here from README" for page in pages() if page not in found]


def main():
    files = Files(repository_files())
    problems = [problem for page in pages() for problem in [*missing_in_spans(page, files), *missing_in_links(page)]]
    problems += unreachable()
    print("\n".join(problems) or "every file that the documents name is there")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
