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
# What not every toolkit that this is built with has: from which one on it is compared.
NEWER = dict.fromkeys(("CUDA_ERROR_STREAM_DETACHED", "CUDA_ERROR_GRAPH_RECAPTURE_FAILURE", "CUDA_ERROR_FABRIC_NOT_READY"), 13050)
NEWEST_ATTRIBUTE_OF_13_0 = 147
for name, value in re.findall(r"^GL_\w+\((\w+), (\d+)\)", (api / "device_attributes.def").read_text(), re.M):
    if int(value) > NEWEST_ATTRIBUTE_OF_13_0:
        NEWER[name] = 13050


def comparison(name):
    line = f"static_assert(static_cast<long long>(ours::{name}) == static_cast<long long>(::{name}), \"{name}\");\n"
    return f"#if CUDA_VERSION >= {NEWER[name]}\n{line}#endif\n" if name in NEWER else line


out.write_text("".join(map(comparison, names)))
