#!/usr/bin/env python3
"""facts_test.py: numbers that the documents and the sources both have are the same.

Each row names a page and a pattern with a group for each number, and where the sources have those numbers. A row whose pattern is not
there any more fails, too: the sentence has changed, and the row has to change with it.
"""
import re
import sys

from documents import ROOT

CONFIG = "scheduler/daemon/config.h"
RECORD = "scheduler/protocol/record.h"
SEGMENT = "scheduler/protocol/segment.h"
CHUNK = "sim/trace/chunk.h"
SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

FACTS = [
    ("docs/broker.md", r"\nVersion (\d+); both sides must have the same", [(RECORD, r"kVersion = (\S+);")]),
    ("docs/broker.md", r"records of (\d+) bytes into a ring of (\d+):",
     [(RECORD, r"sizeof\(RawRecord\) == (\S+)\)"), (SEGMENT, r"kRingRecords = (\S+);")]),
    ("docs/broker.md", r"quantum_us: (\d+) ", [(CONFIG, r"quantum_us = (\S+);")]),
    ("docs/broker.md", r"`most_sessions` \((\d+)\)", [(CONFIG, r"most_sessions = (\S+);")]),
    ("docs/broker.md", r"up to `fair_wait_us` \((\d+)\)", [(CONFIG, r"fair_wait_us =\s+(\S+);")]),
    ("docs/broker.md", r"`slice_timeout_s` \((\d+)\)", [(CONFIG, r"slice_timeout_s =\s+(\S+);")]),
    ("docs/broker.md", r"`timing_patience_ms` \((\S+)\)", [(CONFIG, r"timing_patience_ms =\s+(\S+);")]),
    ("docs/broker.md", r"`timing_memory` \((\S+)\), `timing_disk` \((\S+)\), `timing_launch_s` \((\d+)\), `timing_alone` \((\d+)\)",
     [(CONFIG, r"timing_memory = ([^,;]+),"), (CONFIG, r"timing_disk = ([^,;]+);"), (CONFIG, r"timing_launch_s = (\S+);"),
      (CONFIG, r"timing_alone =\s+(\S+);")]),
    ("docs/broker.md", r"further ones wait \((\d+)\)", [("scheduler/core/scheduler.h", r"in_flight = (\S+);  ///< launches that take part")]),
    ("docs/trace-format.md", r"the format version \(32 bits, now (\d+)\)", [(CHUNK, r"kFormatVersion = (\d+)")]),
    ("docs/trace-format.md", r"Files of versions (\d+) to \d+ are read", [(CHUNK, r"kOldestReadVersion = (\d+)")]),
    ("docs/trace-format.md", r"Files of versions \d+ to (\d+) are read", [(CHUNK, r"kFormatVersion = (\d+)", -1)]),
]


def number(text):
    """Of a page (`2G`, `10,000`) or of a source (`std::uint64_t{2} << 30`, `10'000`)."""
    text = re.sub(r"std::\w+\{(\d+)\}", r"\1", text).replace("'", "").replace(",", "")
    shifted = re.fullmatch(r"(\d+)u? << (\d+)", text.strip())
    if shifted:
        return int(shifted.group(1)) << int(shifted.group(2))
    plain = re.fullmatch(r"(\d+)([KMG]?)", text.strip())
    if not plain:
        raise ValueError(f"{text!r} is no number")
    return int(plain.group(1)) * SUFFIXES[plain.group(2)]


def find(path, pattern):
    """The groups of the pattern's only match."""
    matches = list(re.finditer(pattern, (ROOT / path).read_text()))
    if len(matches) != 1:
        raise ValueError(f"{path}: {len(matches)} places are like {pattern!r}, not 1")
    return matches[0].groups()


def problems():
    for page, pattern, sources in FACTS:
        try:
            said = [number(text) for text in find(page, pattern)]
            for value, (source, where, *more) in zip(said, sources, strict=True):
                wanted = number(find(source, where)[0]) + sum(more)
                if value != wanted:
                    yield f"{page}: {pattern!r} says {value}; in {source} it is {wanted}"
        except ValueError as error:
            yield f"{page}: {error}"


def main():
    found = list(problems())
    print("\n".join(found) or f"{len(FACTS)} facts of the documents are those of the sources")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
