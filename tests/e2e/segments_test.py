#!/usr/bin/env python3
"""segments_test.py FILE…: what the loader makes read-only after relocation lies in pages that it has mapped.

mold 1.10 may put the beginning of PT_GNU_RELRO into a page that no PT_LOAD has; such a program does not start
(findings/mold-tbss-relro.sh). Whether it happens depends on the size of the code, so it would come and go.
"""
import struct
import sys

LOAD, RELRO, PAGE = 1, 0x6474E552, 0x1000


def segments(path):
    """(type, address, bytes in memory) of each program header."""
    with open(path, "rb") as file:
        header = file.read(64)
        if header[:5] != b"\x7fELF\x02":
            sys.exit(f"segments: {path} is no ELF file of 64 bits")
        offset, size, count = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
        file.seek(offset)
        table = file.read(size * count)
    for i in range(count):
        fields = struct.unpack_from("<IIQQQQQQ", table, i * size)
        yield fields[0], fields[3], fields[6]


def main():
    wrong = 0
    for path in sys.argv[1:]:
        found = list(segments(path))
        mapped = set()
        for kind, address, size in found:
            if kind == LOAD:
                mapped.update(range(address // PAGE, (address + size + PAGE - 1) // PAGE))
        for kind, address, size in found:
            # The loader rounds the beginning down, and so the end.
            if kind == RELRO and not mapped.issuperset(range(address // PAGE, (address + size) // PAGE)):
                wrong += 1
                print(f"{path}: PT_GNU_RELRO at {address:#x}, {size:#x} bytes, is not mapped from its beginning to its end")
    print(f"{len(sys.argv) - 1} files, {wrong} wrong")
    return 1 if wrong or len(sys.argv) < 2 else 0


sys.exit(main())
