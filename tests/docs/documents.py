"""What the tests of the documents share: the pages, their blocks of commands, and what they name in backticks and links."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A line of a block, or a span in backticks, is a command when it begins with one of these words or with a program of this repository.
COMMAND_WORDS = {"gridloom", "ctest", "cmake", "ninja", "sudo", "apt-get", "git", "cd", "cp", "export", "for", "nvcc", "python3", "systemctl",
                 "sbatch", "curl"}
PROGRAM = re.compile(r"(\./)?(build|scripts|tests)/")
ASSIGNMENT = re.compile(r"[A-Z_]+=\S* +\S")


class Place:
    """A line of a page, as messages name it."""

    def __init__(self, page, line):
        self.page, self.line = page, line

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages():
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md"] + sorted((ROOT / "docs").rglob("*.md"))


def lines_of(page):
    """(line number, text, kind) of every line: `text`, `block` for one of a block of commands or output, `code` for one of a block in a
    language such as yaml or cpp. The text of a block's line has no indentation."""
    fence = None
    block = False  # inside an indented block
    blank = True   # the line before was empty or a heading: where an indented block may begin
    for number, raw in enumerate(page.read_text().splitlines(), 1):
        mark = re.match(r" *```(\w*)", raw)
        if mark:
            fence = None if fence is not None else mark.group(1)
            blank = False
            continue
        if fence is not None:
            yield number, raw, "block" if fence in ("", "sh", "bash", "console") else "code"
            continue
        if raw.startswith("    ") and (block or blank):
            block = True
            yield number, raw[4:], "block"
            continue
        block = block and not raw.strip()
        blank = not raw.strip() or raw.startswith("#")
        yield number, raw, "text"


def is_command(text):
    word = text.split(None, 1)[0] if text.strip() else ""
    return word in COMMAND_WORDS or bool(PROGRAM.match(word)) or bool(ASSIGNMENT.match(text))


def normalized(text):
    """Without comment and superfluous blanks; the tool by its name alone, wherever it lies."""
    text = re.sub(r"\s#\s.*$", "", text)
    return re.sub(r"(^|\s)build/gridloom(?=\s|$)", r"\1gridloom", " ".join(text.split()))


def blocks(page):
    """The blocks of a page: lists of (line number, text), with lines that end in a backslash joined to those that follow."""
    block = []
    for number, text, kind in lines_of(page):
        if kind != "block":
            if block and text.strip():
                yield block
                block = []
            continue
        if block and block[-1][1].endswith("\\"):
            block[-1] = (block[-1][0], block[-1][1][:-1] + " " + text.strip())
        else:
            block.append((number, text))
    if block:
        yield block


def example(page, word):
    """The example of a YAML file on a page that has this word in it."""
    text = page.read_text()
    for block in re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if word in block:
            return block
    raise RuntimeError(f"{page.relative_to(ROOT)} has no example of YAML with {word} in it any more")


def block_commands(page):
    """(place, command) of the blocks. Where lines begin with `$ ` these are the commands, and the others what they print."""
    for block in blocks(page):
        prompts = [(number, text[2:]) for number, text in block if text.startswith("$ ")]
        for number, text in prompts or block:
            if prompts or is_command(text):
                yield Place(page, number), normalized(text)


def spans(page):
    """(place, text) of what stands between backticks in the running text."""
    for number, text, kind in lines_of(page):
        if kind == "text":
            for match in re.finditer(r"`([^`]+)`", text):
                yield Place(page, number), match.group(1).replace("\\|", "|")


def links(page):
    """(place, target) of the links to files of the repository and to headings."""
    for number, text, kind in lines_of(page):
        if kind == "text":
            for match in re.finditer(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "``", text)):
                if not re.match(r"\w+:", match.group(1)):
                    yield Place(page, number), match.group(1)


def anchors(page):
    """The anchors of a page's headings, as the usual viewers make them."""
    found = set()
    for _, text, kind in lines_of(page):
        if kind == "text" and re.match(r"#+ ", text):
            heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.lstrip("#").strip().lower())
            found.add(re.sub(r"[^\w\- ]", "", heading).replace(" ", "-"))
    return found
