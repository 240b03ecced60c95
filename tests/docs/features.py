"""interpose/settings/features.def, read by tests."""
import collections
import re

from documents import ROOT

TABLE = ROOT / "interpose/settings/features.def"
Exclusion = collections.namedtuple("Exclusion", "one other sentence")
Need = collections.namedtuple("Need", "one first second sentence")
Features = collections.namedtuple("Features", "options exclusions needs yields")


def read():
    text = re.sub(r"^(//|#).*$", "", TABLE.read_text(), flags=re.M)
    rows = collections.defaultdict(list)
    for kind, arguments in re.findall(r"GL_(\w+)\((.*?)\)\n(?=\n|GL_|\Z)", text, re.S):
        names = re.findall(r"\bk[A-Z]\w+", arguments)
        rows[kind].append((names, "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', arguments)), arguments))
    options = {names[0]: re.search(r'"(.*?)"', arguments).group(1) for names, _, arguments in rows["FEATURE"]}
    known = set(options)
    for kind in ("EXCLUDE", "NEED", "YIELD"):
        for names, _, _ in rows[kind]:
            assert known.issuperset(names), names
    return Features(options,
                    [Exclusion(*names, sentence) for names, sentence, _ in rows["EXCLUDE"]],
                    [Need(*names, sentence) for names, sentence, _ in rows["NEED"]],
                    [tuple(names) for names, _, _ in rows["YIELD"]])
