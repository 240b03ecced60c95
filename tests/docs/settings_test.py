#!/usr/bin/env python3
"""settings_test.py [--write]: the tables of options and variables in docs/commands.md are those of interpose/settings/settings.def.

--write puts them there.
"""
import re
import sys

from documents import ROOT

PAGE = ROOT / "docs/commands.md"
TABLE = ROOT / "interpose/settings/settings.def"
MADE = "<!-- made of interpose/settings/settings.def by tests/docs/settings_test.py --write: {} -->\n"
END = "<!-- end of {} -->\n"
STRING = r'"(?:[^"\\]|\\.)*"'


def cell(text):
    return text.replace("|", "\\|")


def arguments(row):
    """The arguments of a row, strings without their quotes, those that follow each other as one."""
    parts = re.findall(rf"\s*((?:{STRING}\s*)+|\w+)\s*(?:,|$)", row)
    return ["".join(re.findall(STRING, p)).replace('""', "").strip('"').replace('\\"', '"') if '"' in p else p.strip() for p in parts]


def rows():
    text = TABLE.read_text()
    text = text[text.rindex("#endif"):text.index("#undef")]
    return [(kind, arguments(row)) for kind, row in re.findall(r"^GL_(\w+)\((.*?)\)$(?=\n(?:GL_|\n|\Z))", text, re.M | re.S)]


def spell(flags, placeholder):
    """`-d`, `--device NAME`: the short one first, the value behind the long one."""
    words = sorted(flags.split(","), key=len)
    placeholder = placeholder.replace("...", "…")
    if placeholder.startswith("["):
        return f"`{words[-1]}`, `{words[-1]}={placeholder[1:-1]}`"
    words[-1] += f" {placeholder}" if placeholder else ""
    return ", ".join(f"`{cell(word)}`" for word in words)


def options():
    yield "| option | variable | meaning |"
    yield "| --- | --- | --- |"
    for kind, row in rows():
        if kind == "OPTION":
            _, variable, value, flags, placeholder, _, _, meaning = row
            yield f"| {spell(flags, placeholder)} | `{variable}{'' if value == '{}' else '=' + value}` | {cell(meaning)} |"
        elif kind == "SHORT":
            flags, placeholder, sets, _, meaning = row
            shown = sets.split(",") if "{}" not in sets else [sets.split(",")[-1].split("=")[0]]
            yield f"| {spell(flags, placeholder)} | {', '.join(f'`{one}`' for one in shown)} | {cell(meaning)} |"
    yield "| `--dry-run` | | print the command line that does the same, and start nothing |"


def variables():
    yield "| variable | meaning |"
    yield "| --- | --- |"
    for kind, row in rows():
        if kind == "SETTING":
            yield f"| `{row[1]}` | {cell(row[2])} |"


def main():
    text, stale = PAGE.read_text(), []
    for name, lines in (("options", options()), ("variables", variables())):
        begin, end = MADE.format(name), END.format(name)
        if text.count(begin) != 1 or end not in text.split(begin)[1]:
            print(f"docs/commands.md has no place for the table, from {begin!r} to {end!r}")
            return 1
        before, rest = text.split(begin)
        found, after = rest.split(end, 1)
        wanted = "\n".join(lines) + "\n"
        if found != wanted:
            stale.append(name)
        text = before + begin + wanted + end + after
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text)
        return 0
    if stale:
        print(f"docs/commands.md: {' and '.join(stale)} are not those of interpose/settings/settings.def; tests/docs/settings_test.py --write")
        return 1
    print("options and variables are those of the sources")
    return 0


if __name__ == "__main__":
    sys.exit(main())
