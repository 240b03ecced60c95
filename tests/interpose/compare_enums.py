#!/usr/bin/env python3
"""Writes one comparison per enumerator of interpose/api/cuda_enums.h and its tables, for cuda_header_test.cpp.

    compare_enums.py <interpose/api folder> <output file>
"""
import pathlib
import re
import sys

api, out = map(pathlib.Path, sys.argv[1:3])
text = re.sub(r"//.*", "", (api / "cuda_enums.h").read_text())
names = re.findall(r"\b(CU\w+) = ", text)
for table in ("results.def", "device_attributes.def"):
    names += re.findall(r"^GL_\w+\((\w+),", (api / table).read_text(), re.M)
out.write_text("".join(f"static_assert(static_cast<long long>(ours::{n}) == static_cast<long long>(::{n}), \"{n}\");\n" for n in names))
