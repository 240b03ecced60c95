"""What `gridloom --help` and `gridloom COMMAND --help` say, taken apart: manual pages and completion are made of it."""

import dataclasses
import re
import subprocess


@dataclasses.dataclass
class Option:
    flags: list  # ["-d", "--device"]
    value: str  # "NAME|FILE"; empty: it takes none
    text: str


@dataclasses.dataclass
class Command:
    name: str
    summary: str
    usage: str
    options: list = dataclasses.field(default_factory=list)
    examples: list = dataclasses.field(default_factory=list)


def help_of(tool, *arguments):
    return subprocess.run([tool, *arguments, "--help"], check=True, capture_output=True, text=True).stdout


def parse_option(left, text):
    """A line such as `-d,--device NAME|FILE`."""
    words = left.split(" ", 1)
    flags = [flag for flag in words[0].split(",") if flag.startswith("-")]
    return Option(flags, words[1].strip() if len(words) > 1 else "", text)


def parse_command(name, summary, text):
    usage = re.search(r"^usage: (.*)$", text, re.MULTILINE)
    command = Command(name, summary, usage.group(1) if usage else f"gridloom {name}")
    part = ""
    for line in text.splitlines():
        if line and not line.startswith(" "):
            part = line.rstrip(":").lower()
        elif part == "options" and re.match(r"^  -", line):
            left, _, right = line.strip().partition("  ")
            command.options.append(parse_option(left, right.strip()))
        elif part == "options" and line.startswith("   ") and command.options:
            last = command.options[-1]
            last.text = f"{last.text} {line.strip()}".strip()
        elif part == "examples" and line.strip():
            command.examples.append(line[2:])
    return command


def commands(tool):
    """All commands of the tool, in its order."""
    found = []
    part = ""
    for line in help_of(tool).splitlines():
        if line and not line.startswith(" "):
            part = line.rstrip(":").lower()
        elif part == "commands" and line.strip():
            name, _, summary = line.strip().partition(" ")
            found.append(parse_command(name, summary.strip(), help_of(tool, name)))
    return found
