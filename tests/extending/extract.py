#!/usr/bin/env python3
"""extract.py PAGE [FOLDER KIND]: the examples of docs/extending.md as files.

With FOLDER and KIND it writes what the section of that kind adds and changes into the folder, under the paths that the files have in the
repository, and prints the C++ sources among them. Without, it only tries every section and says what does not fit any more.

A block of code whose first line names a file after the language is that file, whole; a block of differences is applied to the repository's
file: a hunk (hunks are divided by `@@`) has to be found there exactly once. With `(as it is)` behind the name the block is a part of the
repository's file, and only has to be in it.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Unfit(Exception):
    pass


def sections(page):
    """Kind to its blocks: (language, path, lines, line number); language `part` for a part of a file that is there. The
    kind is the section's heading, with underscores."""
    found, kind, block = {}, None, None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        opening = re.fullmatch(r"```(\w+) (\S+)( \(as it is\))?", line)
        if block is not None:
            if line == "```":
                found.setdefault(kind, []).append(block)
                block = None
            else:
                block[2].append(line)
        elif opening:
            block = ("part" if opening.group(3) else opening.group(1), opening.group(2), [], number)
        elif line.startswith("## "):
            kind = line[3:].strip().lower().replace(" ", "_")
    return found


def apply(hunk, lines, where):
    """The file's lines with one hunk in them."""
    before = [line[1:] for line in hunk if line[:1] != "+"]
    after = [line[1:] for line in hunk if line[:1] != "-"]
    places = [i for i in range(len(lines) - len(before) + 1) if lines[i:i + len(before)] == before]
    if len(places) != 1:
        shown = "\n".join("    " + line for line in before)
        raise Unfit(f"{where}: these lines are {'not' if not places else 'more than once'} in the file:\n{shown}")
    return lines[:places[0]] + after + lines[places[0] + len(before):]


def changed(path, block, number, page):
    file = ROOT / path
    where = f"{page.relative_to(ROOT)}:{number}: {path}"
    if not file.is_file():
        raise Unfit(f"{where}: there is no such file")
    lines, hunk = file.read_text().splitlines(), []
    for line in [*block, "@@"]:
        if line != "@@":
            hunk.append(line or " ")
        elif hunk:
            lines, hunk = apply(hunk, lines, where), []
    return lines


def files_of(page, kind):
    """Path to text of every file that the section has or changes."""
    files = {}
    for language, path, block, number in sections(page)[kind]:
        if language == "part":
            changed(path, [" " + line for line in block], number, page)
            continue
        if language != "diff" and (ROOT / path).exists():
            raise Unfit(f"{page.relative_to(ROOT)}:{number}: {path} is there already; a new file needs another name")
        files[path] = "\n".join(changed(path, block, number, page) if language == "diff" else block) + "\n"
    return files


def check_count(page, kind):
    """The page's table says how many files a kind takes, tests aside."""
    paths = {path for _, path, _, _ in sections(page)[kind] if not path.startswith("tests/")}
    row = re.search(rf"^\| \[{kind.replace('_', ' ')}\]\(#[a-z-]+\) \| (\d+) \|", page.read_text(), re.MULTILINE)
    if not row or int(row.group(1)) != len(paths):
        raise Unfit(f"{page.relative_to(ROOT)}: a {kind.replace('_', ' ')} takes {len(paths)} files; the table says {row and row.group(1)}")


def write(folder, files):
    """Leaves files alone that are right, so that nothing is compiled again."""
    for path, text in files.items():
        file = folder / path
        if not file.exists() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


def main():
    page = pathlib.Path(sys.argv[1]).resolve()
    try:
        if len(sys.argv) == 4:
            files = files_of(page, sys.argv[3])
            write(pathlib.Path(sys.argv[2]), files)
            print(";".join(path for path in files if path.endswith(".cpp")), end="")
            return 0
        for kind in sections(page):
            check_count(page, kind)
            print(f"{kind}: {len(files_of(page, kind))} files, {len(sections(page)[kind])} blocks fit")
        return 0
    except Unfit as problem:
        print(problem, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
