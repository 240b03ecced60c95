#!/usr/bin/env python3
"""features_test.py [--write]: the table "What goes together" in docs/commands.md is that of interpose/settings/features.def.

--write puts it there.
"""
import sys

import features
from documents import ROOT

PAGE = ROOT / "docs/commands.md"
BEGIN, END = "<!-- made of interpose/settings/features.def by tests/docs/features_test.py --write -->\n", "<!-- end -->\n"


def spans(options):
    """`--a, --b` as two spans; words that are no option as they are."""
    return ", ".join(f"`{part}`" if part.startswith("--") else part for part in options.split(", "))


def lines(table):
    yield "| with | not |"
    yield "| --- | --- |"
    others = {name: [] for name in table.options}
    for row in table.exclusions:
        others[row.one].append(row.other)
        others[row.other].append(row.one)
    for name, excluded in others.items():
        if excluded:
            yield f"| {spans(table.options[name])} | {'; '.join(spans(table.options[other]) for other in table.options if other in excluded)} |"
    yield ""
    for row in table.needs:
        yield f"{spans(table.options[row.one])} is for {spans(table.options[row.first])} or {spans(table.options[row.second])}, and is refused without."
    for name in dict.fromkeys(one for one, _ in table.yields):
        yielding = [spans(table.options[other]) for one, other in table.yields if one == name]
        yield f"Without a message, {table.options[name]} do not run beside {'; '.join(yielding)}."


def main():
    text = PAGE.read_text()
    wanted = "\n".join(lines(features.read())) + "\n"
    if text.count(BEGIN) != 1 or END not in text.split(BEGIN)[1]:
        print(f"docs/commands.md has no place for the table, from {BEGIN!r} to {END!r}")
        return 1
    before, rest = text.split(BEGIN)
    found, after = rest.split(END, 1)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(before + BEGIN + wanted + END + after)
        return 0
    if found != wanted:
        print("docs/commands.md: the table of what goes together is not that of interpose/settings/features.def; tests/docs/features_test.py --write")
        return 1
    print("the table of what goes together is that of the sources")
    return 0


if __name__ == "__main__":
    sys.exit(main())
