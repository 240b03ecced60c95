#!/usr/bin/env python3
"""classes_test.py [--show]: no class of the product has more than 30 member functions or 20 fields but those of classes.txt.

A row of classes.txt names a class, how many of each it may have, and why. A class may not grow beyond its row, and a row of a class that is
small enough by now fails, too. Overloads count each; constructors count, what is defaulted or deleted does
not, nor do types, constants and static fields.

--show prints the rows as they should be, with the reasons that are there.
"""
import re
import sys

from documents import ROOT

TABLE = ROOT / "tests/docs/classes.txt"
PRODUCT = ("rewriter", "sim", "scheduler", "interpose")
MOST_FUNCTIONS, MOST_FIELDS = 30, 20
NO_CODE = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.M)
HEAD = re.compile(r"\b(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?([\w:]+)\s*(?:final\s*)?(?::[^;{()]*)?\{")
NO_MEMBER = re.compile(r"(using|friend|static_assert|typedef|enum|class|struct|union|static|constexpr)\b|template\s*<[^>]*>\s*(class|struct|using)\b")
ATTRIBUTE = re.compile(r"\b(alignas|decltype|requires|noexcept)\s*\(\)|\[\[\w+\]\]|\b(public|private|protected)\s*:(?!:)")
ANGLES = re.compile(r"<[^<>()]*>")


def end_of(text, begin, closing):
    """Of what is opened at `begin`."""
    opening, depth = text[begin], 0
    for at in range(begin, len(text)):
        depth += (text[at] == opening) - (text[at] == closing)
        if depth == 0:
            return at
    return len(text) - 1


def declarations(body):
    """Of a class, without what is inside of their braces and parentheses."""
    current, at = "", 0
    while at < len(body):
        if body[at] == "{":
            at = end_of(body, at, "}")
            current += "{}"
            function = "()" in current and not re.match(r"\s*(class|struct|enum|union)\b", current)
            if function and not re.match(r"\s*[;,]", body[at + 1:]):
                yield ATTRIBUTE.sub("", current).strip()
                current = ""
        elif body[at] == "(":
            at = end_of(body, at, ")")
            current += "()"
        elif body[at] == ";":
            yield ATTRIBUTE.sub("", current).strip()
            current = ""
        else:
            current += body[at]
        at += 1


def without_angles(text):
    while ANGLES.search(text):
        text = ANGLES.sub("", text)
    return text


def is_function(declaration):
    if "operator" in declaration:
        return True
    return "()" in without_angles(declaration.split("=")[0])


def sizes(body):
    """Member functions and fields."""
    functions = fields = 0
    for declaration in declarations(body):
        declaration = re.sub(r"^template\s*<[^;{]*?>\s*(?=[\w~])", "", declaration)
        if re.search(r"\b(default|delete)\b", declaration):
            continue
        function = is_function(declaration)
        if function and not re.match(r"(friend|static_assert|using)\b", declaration):
            functions += 1
        elif declaration and not function and not NO_MEMBER.match(declaration):
            fields += 1 + len(re.findall(r",\s*\w+\s*(?==|$|,|\{)", without_angles(declaration)))
    return functions, fields


def classes():
    """Large ones: {(name, path): (functions, fields)}."""
    found = {}
    for top in PRODUCT:
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu"):
                continue
            text = NO_CODE.sub(lambda match: "\n" * match[0].count("\n") or " ", path.read_text())
            for match in HEAD.finditer(text):
                body = text[match.end():end_of(text, match.end() - 1, "}")]
                functions, fields = sizes(body)
                if functions > MOST_FUNCTIONS or fields > MOST_FIELDS:
                    found[match[1], str(path.relative_to(ROOT))] = functions, fields
    return found


def rows():
    """{(name, path): (functions, fields, reason)}; a line that begins with # is a comment."""
    found = {}
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            name, path, functions, fields, reason = re.split(r"\s+", line, maxsplit=4)
            found[name, path] = int(functions), int(fields), reason
    return found


def main():
    there, allowed = classes(), rows()
    if sys.argv[1:] == ["--show"]:
        for (name, path), (functions, fields) in there.items():
            print(f"{name:<20} {path:<48} {functions:>4} {fields:>3}  {allowed.get((name, path), (0, 0, '?'))[2]}")
        return
    wrong = [f"{name} ({path}) has {f} functions and {v} fields, more than {MOST_FUNCTIONS} or {MOST_FIELDS}, and no row in classes.txt"
             for (name, path), (f, v) in there.items() if (name, path) not in allowed]
    for (name, path), (functions, fields, _) in allowed.items():
        if (name, path) not in there:
            wrong.append(f"{name} ({path}) is small, or not there: its row in classes.txt can go")
        elif there[name, path][0] > functions or there[name, path][1] > fields:
            wrong.append(f"{name} ({path}) has {there[name, path]} functions and fields, more than {(functions, fields)} of classes.txt")
    if not there:
        wrong.append("no large class was found at all: the reader of classes is wrong")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(there)} large classes, each with its row and its reason")


if __name__ == "__main__":
    main()
