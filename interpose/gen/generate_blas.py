#!/usr/bin/env python3
"""Part of generate.py: the functions of cuBLAS that the shim answers, from interpose/blas/functions.txt."""
import sys

import library_functions

C_TYPES = {"p": "void*", "e": "int", "l": "long long", "c": "char"}
FACTORS = {"S": "float", "D": "double", "C": "Complex<float>", "Z": "Complex<double>"}
REALS = {"S": "float", "D": "double", "C": "float", "Z": "double"}


def families(path):
    for parts in library_functions.rows(path, 4, set("peilcvr")):
        if ("?" in parts[0]) != (parts[2] != "-"):
            sys.exit(f"{path}: {parts[0]}: a ? in the name stands for letters, and they for it")
        yield parts


def function(name, implementation, letter, kinds, wide):
    types = [("long long" if wide else "int") if kind == "i" else C_TYPES[kind] for kind in kinds]
    parameters = ", ".join(["void* handle"] + [f"{type} p{i}" for i, type in enumerate(types)])
    arguments = ", ".join(f"p{i}" for i in range(len(kinds)))
    library = "libcublasLt.so" if name.startswith("cublasLt") else "libcublas.so"
    told = f"k{letter}, " if letter else ""
    return f"""GL_EXPORT int {name}({parameters}) {{
  if (PassOn()) return PassTo("{library}", &{name}, "{name}", handle, {arguments});
  return Guarded([&] {{ return {implementation}({{handle, "{name}", {str(wide).lower()}}}, {told}{arguments}); }});
}}
"""


def is_first_interface(kinds):
    return "c" in kinds


def first_interface_function(name, implementation, letter, kinds):
    """A function of cublas.h: letters for enumerations, factors by value."""
    types = [{"v": FACTORS[letter], "r": REALS[letter], "i": "int"}.get(kind) or C_TYPES[kind] for kind in kinds]
    parameters = ", ".join(f"{type} p{i}" for i, type in enumerate(types))
    passed = ", ".join(f"p{i}" for i in range(len(kinds)))
    given = ", ".join({"c": f"FromLetter(p{i})", "v": f"&p{i}", "r": f"&p{i}"}.get(kind, f"p{i}") for i, kind in enumerate(kinds))
    return f"""GL_EXPORT void {name}({parameters}) {{
  if (PassOn()) return PassOnTo("libcublas.so", &{name}, "{name}", {passed});
  WithoutHandle("{name}", [&](const Call& call) {{ return {implementation}(call, k{letter}, {given}); }});
}}
"""


def generate(path):
    """The text of blas_functions.cpp (every function, and the table that look-ups by name search), and the functions' names."""
    names, bodies = [], []
    for pattern, implementation, letters, kinds in families(path):
        for letter in [""] if letters == "-" else letters.split():
            if is_first_interface(kinds.split()):
                names.append(pattern.replace("?", letter))
                bodies.append(first_interface_function(names[-1], implementation, letter, kinds.split()))
                continue
            for wide in [False, True] if "i" in kinds.split() else [False]:
                name = pattern.replace("?", letter) + ("_64" if wide else "")
                names.append(name)
                bodies.append(function(name, implementation, letter, kinds.split(), wide))
    includes = ("interpose/blas/answers.h", "interpose/blas/entry.h", "interpose/blas/functions.h")
    return library_functions.source(path, "blas", includes, bodies, names), names
