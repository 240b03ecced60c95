#!/usr/bin/env python3
"""commands_test.py BUILD: every command that README and docs tell a reader to type works, or is named as one that is not run here.

The commands of the pages' blocks, and those in backticks that name a program of this repository, are held against commands.txt, which says
what to do with each. Of all of them, run or not, and of everything else in backticks that begins with `gridloom`, the names are looked up:
scripts, build targets and presets, labels of tests, the tool's commands and their options. The tables of docs/commands.md and the tool's own
help are held against each other, too.
"""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from documents import ROOT, block_commands, blocks, example, is_command, normalized, pages, spans

TABLE = ROOT / "tests/docs/commands.txt"
PATIENCE = 180
# Joins the broker as a CUDA program does, and stays until it is ended.
CONNECTED = """
import ctypes, time
cuda = ctypes.CDLL('libcuda.so.1')
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
print('connected', flush=True)
time.sleep(600)
"""


class Entry:
    FIELDS = {"run", "exit", "makes", "says", "broker", "program", "daemon", "needs", "until", "not run"}

    def __init__(self, command, line):
        self.command, self.line, self.fields = command, line, {}

    def add(self, text):
        field, _, value = text.partition(":")
        if field not in self.FIELDS:
            raise ValueError(f"{TABLE.name}: {self.command}: there is no `{field}`")
        self.fields[field] = value.strip()

    def check(self):
        if sum(kind in self.fields for kind in ("run", "daemon", "not run")) != 1:
            raise ValueError(f"{TABLE.name}:{self.line}: {self.command}: exactly one of `run`, `daemon` and `not run` is wanted")
        if self.fields.get("not run") == "":
            raise ValueError(f"{TABLE.name}:{self.line}: {self.command}: why is it not run?")


def read_table():
    entries, entry = {}, None
    for number, raw in enumerate(TABLE.read_text().splitlines(), 1):
        if raw.startswith("#") or not raw.strip():
            continue
        if raw.startswith(" "):
            entry.add(raw.strip())
            continue
        entry = Entry(raw.strip(), number)
        if entry.command in entries:
            raise ValueError(f"{TABLE.name}:{number}: {entry.command} stands twice")
        entries[entry.command] = entry
    for entry in entries.values():
        entry.check()
    return entries


def page_commands():
    """Command to the places that tell to type it: all of the blocks, and of the running text those of this repository's programs. A part of
    the tool's command line in the running text (`gridloom run --trace`) is no command to type; its names are looked up all the same."""
    commands = {}
    for page in pages():
        found = list(block_commands(page))
        for place, span in spans(page):
            text = normalized(span)
            if not is_command(text) or re.match(r"(nvcc|sbatch|sudo)\b", text) or re.match(r"GRIDLOOM_\w+=", text):
                continue
            inside = re.match(r"(python3 )?(scripts|build|tests)/", text) or text.startswith("for ") or " build/" in text
            complete = "build/gridloom " in span
            if complete or re.match(r"(ctest|cmake) ", text) or inside and names_program(text):
                found.append((place, text))
        for place, command in found:
            commands.setdefault(command, []).append(place)
    return commands


def names_program(text):
    """Whether it begins with something to run, not with a mere file or folder."""
    word = text.split()[0]
    if word.startswith("build/"):
        return not re.search(r"\.\w+$|/$", word)
    path = ROOT / word
    return " " in text or path.is_file() and os.access(path, os.X_OK)


# ---- Names ----

class Names:
    """What the build, the tool and the tests have."""

    def __init__(self, build):
        self.build = build
        self.options = {}
        presets = json.loads((ROOT / "CMakePresets.json").read_text())
        self.presets = {preset["name"] for preset in presets["buildPresets"]}
        ninja = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.targets = {line.rsplit(": ", 1)[0] for line in ninja.splitlines() if ": " in line}
        labels = subprocess.run(["ctest", "--test-dir", build, "--print-labels"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.labels = set(labels.split())
        self.cache = (ROOT / "CMakeLists.txt").read_text()
        self.commands = re.findall(r"^  (\w+) {2,}", self.help(), re.MULTILINE)

    def help(self, *words):
        return subprocess.run([os.path.join(self.build, "gridloom"), *words, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout

    def options_of(self, command):
        if command not in self.options:
            self.options[command] = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", self.help(command)))
        return self.options[command]

    def long_options_of(self, command):
        """Those that its help lists."""
        return set(re.findall(r"^  (?:-\w,)?(--[a-z][\w-]*)", self.help(command), re.MULTILINE)) - {"--help"}

    def examples_of(self, command):
        """The command lines among its help's examples, without what is said of them."""
        lines = self.help(command).partition("examples:")[2].splitlines()
        return [re.split(r" {3,}", line.strip())[0] for line in lines if line.startswith("  gridloom ")]

    def problems(self, command):
        for words in simple_commands(command):
            yield from self.problems_of(words)

    def problems_of(self, words):
        first, rest = words[0], words[1:]
        if first == "gridloom":
            yield from self.problems_of_tool(rest)
        elif first == "scripts/build":
            for word in rest:
                if not word.startswith("-") and word not in self.presets | self.targets:
                    yield f"{word} is neither a preset nor a target"
        elif first in ("ctest", "cmake"):
            for flag, value in zip(rest, rest[1:]):
                if flag == "-L" and value not in self.labels:
                    yield f"no test has the label {value}"
                if flag == "--preset" and value not in self.presets:
                    yield f"there is no preset {value}"
            for definition in re.findall(r"-D(\w+)", " ".join(rest)):
                if definition.startswith("GRIDLOOM_") and definition not in self.cache:
                    yield f"CMakeLists.txt knows no {definition}"
        if first == "python3" and not (ROOT / rest[0]).is_file():
            yield f"there is no {rest[0]}"
        if re.match(r"(scripts|tests)/", first) and not os.access(ROOT / first, os.X_OK):
            yield f"{first} is not a program"
        for word in words:
            yield from self.problems_of_built(word)

    def problems_of_built(self, word):
        braces = re.search(r"\{(.*)\}", word)
        for name in [word[:braces.start()] + choice for choice in braces.group(1).split(",")] if braces else [word]:
            if not name.startswith("build/") or "*" in name or name == "build":
                continue
            # Without nvcc the build has no rule for a CUDA program; its source is there. A folder has the name of one of sources.
            source = ROOT / "tests" / name[len("build/"):]
            if name[len("build/"):] not in self.targets and not (source.with_suffix(".cu").exists() or source.is_dir()):
                yield f"nothing builds {name}"

    def problems_of_tool(self, words):
        """Of a whole command line, or of the beginning of one."""
        if not words or not re.fullmatch(r"[a-z]+", words[0]) or words[0] == "help":
            return
        if words[0] not in self.commands:
            yield f"there is no `gridloom {words[0]}`"
            return
        own = words[1:words.index("--")] if "--" in words else words[1:]
        for word in own:
            option = word.split("=")[0]
            if re.match(r"--?[a-zA-Z]", option) and option not in self.options_of(words[0]):
                yield f"`gridloom {words[0]} --help` knows no {option}"


def check_options(names):
    """docs/commands.md has every option of each command's help and no others, and the examples of the help use those."""
    page = ROOT / "docs/commands.md"
    sections = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)[1:]
    texts = {}
    for section in sections:
        for command in re.findall(r"[a-z]+", section.splitlines()[0].split("[")[0].replace("gridloom", "")):
            texts[command] = section
    problems = []
    for command in names.commands:
        text = texts.get(command)
        if text is None:
            problems.append(f"{page.relative_to(ROOT)}: no section on `gridloom {command}`")
            continue
        wanted = names.long_options_of(command)
        for other in re.findall(r"options are\s+those of `([a-z]+)`", text):
            wanted = wanted - names.long_options_of(other)
        problems += [f"{page.relative_to(ROOT)}: `gridloom {command}` has {option}, and its section does not say so"
                     for option in sorted(wanted) if not re.search(re.escape(option) + r"(?![\w-])", text)]
        rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `-")]
        problems += [f"{page.relative_to(ROOT)}: `gridloom {command}` has no {option}"
                     for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", " ".join(rows)) if option not in names.options_of(command)]
        problems += [f"`gridloom {command} --help`: {problem}" for example in names.examples_of(command) for problem in names.problems(example)]
    return problems


def simple_commands(command):
    """The words of each command of a line, without variables set in front of it."""
    lexer = shlex.shlex(command.replace("`", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words, simple = [], []
    for word in [*lexer, ";"]:
        if re.fullmatch(r"[;&|()<>]+", word) or word in ("do", "done"):
            while simple and re.match(r"[A-Z_]+=", simple[0]):
                simple = simple[1:]
            if simple:
                words.append(simple)
            simple = []
        else:
            simple.append(word)
    return words


# ---- Running ----

class Sandbox:
    """A folder with the files that the pages speak of, and what is needed to run the tool away from the user's own files."""

    def __init__(self, build, folder):
        self.build, self.folder, self.count = build, folder, 0
        self.files = os.path.join(folder, "files")
        os.mkdir(self.files)
        runtime = os.path.join(folder, "runtime")
        os.mkdir(runtime, 0o700)
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith("GRIDLOOM_")}, "HOME": folder, "XDG_RUNTIME_DIR": runtime,
                    "XDG_STATE_HOME": os.path.join(folder, "state"), "XDG_CACHE_HOME": os.path.join(folder, "cache"),
                    "PATH": build + ":" + os.environ["PATH"]}
        self.make_files()

    def make_files(self):
        for name in ("scripts", "tests", "configs"):
            os.symlink(ROOT / name, os.path.join(self.files, name))
        os.symlink(self.build, os.path.join(self.files, "build"))
        # A program of the CUDA runtime where nvcc has built one.
        apps = [os.path.join(self.build, "apps", name) for name in ("vectoradd", "driver_vectoradd")]
        os.symlink(next(app for app in apps if os.path.exists(app)), os.path.join(self.files, "app"))
        os.symlink(os.path.join(self.build, "tests/apps/driver/vectoradd.ptx"), os.path.join(self.files, "kernels.ptx"))
        with open(os.path.join(self.files, "broker.yaml"), "w") as file:
            file.write(broker_example(self.folder))
        for name, page, word in (("misses.yaml", "docs/commands.md", "mixes:"), ("small.yaml", "docs/devices.md", "inherits:")):
            with open(os.path.join(self.files, name), "w") as file:
                file.write(example(ROOT / page, word))
        for name in ("app", "one", "two"):
            self.need("gridloom", "run", "--trace", name + ".gltrace", "--", "./app")
        for name in ("pc", "tea"):
            os.symlink(ROOT / f"configs/experiments/traces/kernelet-{name}.gltrace", os.path.join(self.files, name + ".gltrace"))
        self.need("gridloom", "replay", "-d", "c2050", "--write-profiles", "profiles.json", "app.gltrace")

    def need(self, *words):
        done = subprocess.run(words, cwd=self.files, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}")

    def new_folder(self):
        """A folder in which a command may write what it likes."""
        self.count += 1
        folder = os.path.join(self.folder, str(self.count))
        os.mkdir(folder)
        for name in os.listdir(self.files):
            os.symlink(os.path.join(self.files, name), os.path.join(folder, name))
        return folder

    def start(self, command, folder, **more):
        return subprocess.Popen(["sh", "-c", command], cwd=folder, env={**self.env, **more}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)


def broker_example(folder):
    """The configuration that docs/broker.md shows, for this user and with a secret in this folder."""
    token = os.path.join(folder, "token")
    with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write("a secret of many characters\n")
    for block in blocks(ROOT / "docs/broker.md"):
        lines = [line for _, line in block]
        if any(line.startswith("tenants:") for line in lines):
            text = "\n".join(lines).replace("uid: 1000", f"uid: {os.getuid()}")
            return re.sub(r"token_file: [^,}]+", f"token_file: {token}", text) + "\n"
    raise RuntimeError("docs/broker.md shows no configuration with tenants any more")


def end(process, number=signal.SIGTERM):
    """Ends what the command started, and returns what it printed."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass
    try:
        return process.communicate(timeout=PATIENCE)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0] + f"\n(did not end within {PATIENCE} s)"


class Broker:
    """A broker on the usual socket and, where wanted, a program that is connected to it."""

    def __init__(self, sandbox, command, with_program):
        self.sandbox, self.program = sandbox, None
        self.daemon = sandbox.start("exec " + command.rstrip("& "), sandbox.new_folder())
        self.wait()
        if with_program:
            self.program = subprocess.Popen(["gridloom", "run", "--connect", "--", sys.executable, "-c", CONNECTED], env=sandbox.env,
                                            stdout=subprocess.PIPE, text=True, start_new_session=True)
            if self.program.stdout.readline().strip() != "connected":
                raise RuntimeError("a program could not join the broker")

    def wait(self):
        until = time.monotonic() + PATIENCE
        while subprocess.run(["gridloom", "ps"], env=self.sandbox.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            if self.daemon.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the broker does not answer `gridloom ps`:\n" + end(self.daemon))
            time.sleep(0.05)

    def stop(self):
        """Returns what is wrong with its end, or nothing."""
        if self.program is not None:
            end(self.program, signal.SIGKILL)
        printed = end(self.daemon)
        return "" if self.daemon.returncode == 0 else f"the broker ended with {self.daemon.returncode}:\n{printed}"


def run_daemon(entry, sandbox):
    try:
        return Broker(sandbox, entry.command, with_program=False).stop()
    except RuntimeError as error:
        return str(error)


def run_command(entry, sandbox):
    """Returns what went wrong, or nothing."""
    broker = None
    try:
        if "broker" in entry.fields:
            broker = Broker(sandbox, "gridloom daemon " + entry.fields["broker"], with_program="program" in entry.fields)
        folder = sandbox.new_folder()
        for name in entry.fields.get("makes", "").split():  # made anew, not found
            if os.path.lexists(os.path.join(folder, name)):
                os.unlink(os.path.join(folder, name))
        process = sandbox.start(entry.fields["run"] or entry.command, folder,
                                **({"PROGRAM": str(broker.program.pid)} if "program" in entry.fields else {}))
        if "until" in entry.fields:
            name, seconds = entry.fields["until"].split()
            time.sleep(float(seconds))
            printed = end(process, getattr(signal, "SIG" + name))
        else:
            try:
                printed = process.communicate(timeout=PATIENCE)[0]
            except subprocess.TimeoutExpired:
                return f"did not end within {PATIENCE} s:\n{end(process)}"
        return judge(entry, process.returncode, printed, folder)
    except RuntimeError as error:
        return str(error)
    finally:
        if broker is not None:
            broker.stop()


def judge(entry, code, printed, folder):
    expected = [int(number) for number in entry.fields.get("exit", "0").split()]
    if code not in expected:
        return f"ended with {code}:\n{printed[-3000:]}"
    if entry.fields.get("says", "") not in printed:
        return f"does not say \"{entry.fields['says']}\":\n{printed[-3000:]}"
    for name in entry.fields.get("makes", "").split():
        path = os.path.join(folder, name)
        if not os.path.isfile(path) or os.path.getsize(path) == 0:
            return f"did not make {name}:\n{printed[-3000:]}"
    return ""


# ---- All of them ----

def check_tables(commands, entries, names):
    problems = []
    for command, places in commands.items():
        if command not in entries:
            problems.append(f"{places[0]}: `{command}` is not in {TABLE.relative_to(ROOT)}")
        problems += [f"{places[0]}: `{command}`: {problem}" for problem in names.problems(command)]
    for entry in entries.values():
        if entry.command not in commands:
            problems.append(f"{TABLE.relative_to(ROOT)}:{entry.line}: no page says `{entry.command}`")
        if entry.fields.get("run"):
            problems += [f"{TABLE.relative_to(ROOT)}:{entry.line}: {problem}" for problem in names.problems(entry.fields["run"])]
    for page in pages():
        for place, span in spans(page):
            text = normalized(span)
            if text.startswith("gridloom ") and text not in commands and '"' not in text:
                problems += [f"{place}: `{span}`: {problem}" for problem in names.problems_of(re.split(r"[\s]", text))]
    return problems


def main():
    build = os.path.abspath(sys.argv[1])
    entries, commands, names = read_table(), page_commands(), Names(build)
    problems = check_tables(commands, entries, names) + check_options(names)
    skipped, ran = [], 0
    with tempfile.TemporaryDirectory(prefix="gridloom-docs-") as folder:
        sandbox = Sandbox(build, folder)
        for entry in entries.values():
            if "not run" in entry.fields:
                continue
            needed = entry.fields.get("needs", "")
            if needed and not shutil.which(needed):
                skipped.append(f"not run: {entry.command} (there is no {needed})")
                continue
            began = time.monotonic()
            problem = run_daemon(entry, sandbox) if "daemon" in entry.fields else run_command(entry, sandbox)
            ran += 1
            print(f"{time.monotonic() - began:5.1f} s  {entry.command}", flush=True)
            if problem:
                place = commands.get(entry.command, [f"{TABLE.relative_to(ROOT)}:{entry.line}"])[0]
                problems.append(f"{place}: `{entry.command}` {problem}")
    left = [entry for entry in entries.values() if "not run" in entry.fields]
    print("\n".join(skipped + problems))
    print(f"{sum(map(len, commands.values()))} places tell to type {len(commands)} commands: {ran} were run, {len(skipped)} skipped, "
          f"{len(left)} are named as not run; {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
