#!/usr/bin/env python3
"""Generates the shim's entry points from interpose/api/driver_api.txt and interpose/hooks/hooks.txt.

    generate.py <driver_api.txt> <hooks.txt> <nvml/functions.txt> <blas/functions.txt> <fft/functions.txt> <output folder>

Writes  api_ids.inc      GL_FN(symbol): one per function, in table order
        api_rows.inc     GL_ROW(...): look-up rows with the addresses of the exports, sorted by name and version
        api_exports.cpp  every exported function: forwards to its hook, or refuses by name
        hooks.h          declarations of the hand-written hooks
        jit_link_names.inc  GL_NAME(function, name): nvJitLink's functions under the names that each toolkit's header gives them
        nvml_functions.inc  GL_NVML(index, name): the functions of NVML
        blas_functions.cpp, fft_functions.cpp  the functions of cuBLAS and cuFFT that the shim answers
        driver_functions.cpp  the driver's functions and NVML's by name, for driver_library.h
        driver_stubs.cpp  the library that has these names in the place of a preloaded shim, without its constructor
        exports.map      linker version script: nothing but the driver's names, NVML's, some of NVRTC, nvJitLink, cuBLAS, cuFFT and the C library is visible
"""
import pathlib
import re
import sys

import generate_blas
import generate_fft

NEEDS = {"none": "kNone", "init": "kInit", "context": "kContext", "launch": "kLaunch"}


def read_lines(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = re.sub(r"\s+#.*|^#.*", "", line).rstrip()
        if line:
            yield number, line


class Function:
    def __init__(self, line):
        self.symbol, self.name, version, twin, self.params = (part.strip() for part in line.split("|"))
        self.version = int(version)
        self.twin, self.twin_version = ("", 0) if twin == "-" else (twin.split()[0], int(twin.split()[1]))
        self.types = [re.sub(r"\s*\w+$", "", p.strip()) for p in self.params.split(",")]
        self.args = ", ".join(re.search(r"(\w+)$", p.strip()).group(1) for p in self.params.split(",") if p.strip())


def read_hooks(path, symbols):
    """hooks.txt: `need: symbol symbol=hook …` or `refuse "why": symbol …`; an indented line continues the group."""
    hooks, refused, group = {}, {}, None
    for number, line in read_lines(path):
        if not line[0].isspace():
            match = re.match(r'(?:refuse "(.*)"|(\w+)):\s*(.*)$', line)
            if not match or (match.group(2) and match.group(2) not in NEEDS):
                sys.exit(f"{path}:{number}: expected one of {', '.join(NEEDS)} or refuse \"why\", then ':' and functions")
            group, line = match.group(1, 2), match.group(3)
        for item in line.split():
            symbol, _, target = item.partition("=")
            if symbol not in symbols:
                sys.exit(f"{path}:{number}: {symbol} is not in the driver API table")
            if symbol in hooks or symbol in refused:
                sys.exit(f"{path}:{number}: {symbol} is listed twice")
            if group[0] is not None:
                refused[symbol] = group[0]
            else:
                hooks[symbol] = (NEEDS[group[1]], target or symbol)
    return hooks, refused


def export(function, suffix, hooks, refused):
    twin = "true" if suffix else "false"
    args = f", {function.args}" if function.args else ""
    if function.symbol in hooks:
        need, target = hooks[function.symbol]
        body = f"Enter<Fn::{function.symbol}, {twin}, Need::{need}>(&hooks::{target}{args})"
    else:
        why = refused.get(function.symbol, "")
        body = f'Refuse<Fn::{function.symbol}, {twin}>("{why}"{args})'
    return f"GL_EXPORT CUresult {function.symbol}{suffix}({function.params}) {{\n  return {body};\n}}\n"


# Functions of other libraries that the shim answers (interpose/hooks/nvrtc.cpp, lookup.cpp, device_files.cpp, jit_link.cpp), and those that programs ask
# for tasks (task_spawn.cpp), and for whether code is final (exec_backend.cpp).
OTHERS = ["dlsym", "nvrtcCompileProgram", "nvrtcDestroyProgram", "nvrtcGetCUBIN", "nvrtcGetCUBINSize", "access", "faccessat", "stat", "stat64", "fstatat", "fstatat64", "statx",
          "__xstat", "__xstat64", "gridloomDriverFunctions", "gridloomTaskSpawn", "gridloomTaskWait", "gridloomTaskCheck", "gridloomTaskWaitAll",
          "gridloomAwaitedKernels"]
JIT_LINK = ["nvJitLinkCreate", "nvJitLinkDestroy", "nvJitLinkAddData", "nvJitLinkAddFile", "nvJitLinkGetLinkedCubinSize",
            "nvJitLinkGetLinkedCubin"]
# Toolkits whose nvJitLink.h may have been compiled into a program: 12.0 is the first; those of 13 beyond 13.0 are yet to come.
JIT_LINK_VERSIONS = [(major, minor) for major in (12, 13) for minor in range(10)]


def main():
    table, hooks_file, nvml_file, blas_file, fft_file, out = map(pathlib.Path, sys.argv[1:7])
    out.mkdir(parents=True, exist_ok=True)
    functions = [Function(line) for _, line in read_lines(table)]
    functions.sort(key=lambda f: (f.name, f.version))
    hooks, refused = read_hooks(hooks_file, {f.symbol for f in functions})
    note = f"// Generated by interpose/gen/generate.py from {table.name} and {hooks_file.name}.\n"

    def write(name, text):
        target = out / name
        if not target.exists() or target.read_text() != text:
            target.write_text(text)

    write("api_ids.inc", note + "".join(f"GL_FN({f.symbol})\n" for f in functions))
    rows = []
    for f in functions:
        twin = f"reinterpret_cast<void*>(&{f.symbol}_{f.twin})" if f.twin else "nullptr"
        kind = f'"_{f.twin}"' if f.twin else '""'
        trait = "kHook" if f.symbol in hooks else ("kRefused" if f.symbol in refused else "kMissing")
        launch = "true" if hooks.get(f.symbol, ("",))[0] == "kLaunch" else "false"
        rows.append(f'GL_ROW({f.symbol}, "{f.name}", {f.version}, {kind}, {f.twin_version}, {twin}, {trait}, {launch})\n')
    write("api_rows.inc", note + "".join(rows))
    symbols_of_driver = [f.symbol for f in functions] + [f"{f.symbol}_{f.twin}" for f in functions if f.twin]
    symbols = symbols_of_driver + OTHERS
    versioned = [(f, f"__{f}_{major}_{minor}") for f in JIT_LINK for major, minor in JIT_LINK_VERSIONS]
    write("jit_link_names.inc", note + "".join(f"GL_NAME({f}, {name})\n" for f, name in versioned))
    symbols += JIT_LINK + [name for _, name in versioned]
    nvml = [line for _, line in read_lines(nvml_file)]
    write("nvml_functions.inc", f"// Generated by interpose/gen/generate.py from {nvml_file.name}.\n" +
          "".join(f"GL_NVML({i}, {name})\n" for i, name in enumerate(nvml)))
    symbols += nvml
    drivers = sorted(symbols_of_driver + nvml)
    write("driver_functions.cpp", note + '#include "interpose/hooks/driver_library.h"\n\nextern "C" {\n' +
          "".join(f"void {s}();\n" for s in drivers) + "}\n\nnamespace gridloom::hooks {\n\n"
          "const DriverFunction kDriverFunctions[] = {\n" + "".join(f'    {{"{s}", &{s}}},\n' for s in drivers) +
          f"}};\nconst std::size_t kDriverFunctionCount = {len(drivers)};\n\n}}  // namespace gridloom::hooks\n")
    write("driver_stubs.cpp", note + f"extern \"C\" {{\n__attribute__((visibility(\"hidden\"))) void* gl_driver_targets[{len(drivers)}];\n"
          f"__attribute__((visibility(\"hidden\"))) extern const unsigned gl_driver_target_count = {len(drivers)};\n}}\n" +
          "".join(f'asm(".globl {s}\\n.type {s}, @function\\n{s}: jmp *gl_driver_targets+{8 * i}(%rip)\\n.size {s}, .-{s}\\n");\n'
                  for i, s in enumerate(drivers)))
    blas_text, blas_names = generate_blas.generate(blas_file)
    write("blas_functions.cpp", blas_text)
    fft_text, fft_names = generate_fft.generate(fft_file)
    write("fft_functions.cpp", fft_text)
    symbols += blas_names + ["cublasSetKernelStream"] + fft_names
    write("exports.map", "{\n  global:\n" + "".join(f"    {s};\n" for s in sorted(symbols)) + "  local:\n    *;\n};\n")

    targets = {}
    for f in functions:
        if f.symbol in hooks:
            target = targets.setdefault(hooks[f.symbol][1], f)
            if target.types != f.types:
                sys.exit(f"{hooks_file}: {f.symbol} and {target.symbol} share a hook but take different parameters")
    declarations = "".join(f"CUresult {target}({', '.join(['Process& process', f.params] if f.params else ['Process& process'])});\n" for target, f in sorted(targets.items()))
    write("hooks.h", note + '#pragma once\n\n#include "interpose/api/newer_types.h"\n\nnamespace gridloom::session {\nclass Process;\n}\n\n'
          "namespace gridloom::hooks {\n\nusing namespace gridloom::cuda;\nusing session::Process;\n\n" + declarations + "\n}  // namespace gridloom::hooks\n")

    head = (note + '#include "interpose/entry/entry.h"\n#include "hooks.h"\n\nusing namespace gridloom;\n'
            "using namespace gridloom::cuda;\nusing api::Enter;\nusing api::Fn;\nusing api::Need;\nusing api::Refuse;\n\n")
    body = "".join(export(f, "", hooks, refused) + (export(f, "_" + f.twin, hooks, refused) if f.twin else "")
                   for f in functions)
    declared = "".join(f'GL_EXPORT CUresult {f.symbol}({f.params});\n' +
                       (f'GL_EXPORT CUresult {f.symbol}_{f.twin}({f.params});\n' if f.twin else "") for f in functions)
    write("api_exports.h", note + '#pragma once\n\n#include "interpose/api/newer_types.h"\n\n#define GL_EXPORT '
          'extern "C" __attribute__((visibility("default")))\n\nusing namespace gridloom::cuda;  // NOLINT\n\n' + declared)
    write("api_exports.cpp", head.replace('#include "hooks.h"', '#include "api_exports.h"\n#include "hooks.h"') + body)


if __name__ == "__main__":
    main()
