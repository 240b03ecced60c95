#!/usr/bin/env python3
"""The shim exports exactly the functions of the API table, those of NVML, four of NVRTC, six of nvJitLink in every version, those of the
tables of cuBLAS and cuFFT, dlsym and those that look for a file; with a toolkit at hand, the tables are the toolkit's.

    exports_test.py <libgridloom.so> <driver_api.txt> <nvml/functions.txt> <blas/functions.txt> <fft/functions.txt> [<toolkit folder>]
"""
import pathlib
import re
import subprocess
import sys

OTHERS = {"dlsym", "nvrtcCompileProgram", "nvrtcDestroyProgram", "nvrtcGetCUBIN", "nvrtcGetCUBINSize", "cublasSetKernelStream", "access", "faccessat", "stat", "stat64", "fstatat", "fstatat64", "statx",
          "__xstat", "__xstat64", "gridloomDriverFunctions", "gridloomTaskSpawn", "gridloomTaskWait", "gridloomTaskCheck", "gridloomTaskWaitAll",
          "gridloomAwaitedKernels"}
NOT_IN_STUB = re.compile(r"cu(Graphics)?GL")  # functions for OpenGL: the driver has them, the toolkit's stub of it does not


def exports(library):
    listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[2] for line in listing.splitlines()}


def table(path, newest=None):
    """Symbols of the API's table; with `newest`, only those of versions up to it."""
    names = set()
    for line in pathlib.Path(path).read_text().splitlines():
        if line and not line.startswith("#"):
            symbol, _, version, twin, _ = (part.strip() for part in line.split("|"))
            if newest and int(version) > newest:
                continue
            names.add(symbol)
            if twin != "-":
                names.add(f"{symbol}_{twin.split()[0]}")
    return names


def jit_link():
    names = {"nvJitLink" + name for name in ("Create", "Destroy", "AddData", "AddFile", "GetLinkedCubinSize", "GetLinkedCubin")}
    return names | {f"__{name}_{major}_{minor}" for name in names for major in (12, 13) for minor in range(10)}


def blas(path):
    """Functions of cuBLAS with the kinds of their parameters: p pointer, e enumeration, i int, l 64-bit integer."""
    functions = {}
    for line in pathlib.Path(path).read_text().splitlines():
        line = re.sub("#.*", "", line).strip()
        if line:
            name, _, letters, kinds = (part.strip() for part in line.split("|"))
            for letter in letters.split():
                first = "c" in kinds.split()  # without a handle, without a twin
                functions[name.replace("?", letter)] = kinds.replace("r", "v") if first else "p " + kinds
                if "i" in kinds and not first:
                    functions[name.replace("?", letter) + "_64"] = "p " + kinds.replace("i", "l")
    return functions


def fft(path):
    """The same of cuFFT."""
    lines = (re.sub("#.*", "", line).strip() for line in pathlib.Path(path).read_text().splitlines())
    return {name: kinds for name, _, kinds in ([part.strip() for part in line.split("|")] for line in lines if line)}


def kind(parameter):
    if "*" in parameter or "[" in parameter or re.search(r"_t\s+(handle|lightHandle|\w*[dD]esc|preference)$|cublasXtHandle_t|cudaStream_t|cublasLtHandle_t",
                                                         parameter):
        return "p"
    if re.match(r"(const )?(char|float|double|cuComplex|cuDoubleComplex)\b", parameter):
        return "c" if "char" in parameter else "v"
    return "l" if re.search(r"int64_t|long long|size_t", parameter) else "i" if re.match(r"(const )?int\b", parameter) else "e"


def same_as_headers(functions, include, headers, call):
    """Whether the toolkit's headers declare every function with these parameters; `call` stands before a function's name."""
    text = "".join((include / header).read_text() for header in headers)
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    declared = {name: parameters for name, parameters in re.findall(call + r"\s+(cu\w+)\(([^;{]*?)\)\s*;", text, re.S)}
    good = True
    for name, kinds in functions.items():
        found = " ".join(kind(" ".join(parameter.split())) for parameter in declared.get(name, "").split(","))
        # int is passed as an enumeration is
        if found.replace("i", "e") != kinds.replace("i", "e"):
            print(f"{name}: parameters {kinds}, in the header {found}")
            good = False
    return good


def compare(what, found, wanted):
    for name in sorted(wanted - found):
        print(f"{what}: missing {name}")
    for name in sorted(found - wanted):
        print(f"{what}: unexpected {name}")
    return found == wanted


def is_version(toolkit, version):
    header = toolkit / "include/cuda.h"
    major, minor = version.split(".")
    return header.exists() and f"#define CUDA_VERSION {int(major) * 1000 + int(minor) * 10}\n" in header.read_text()


def main():
    library, api = sys.argv[1], table(sys.argv[2])
    nvml = {line for line in pathlib.Path(sys.argv[3]).read_text().splitlines() if line and not line.startswith("#")}
    products, transforms = blas(sys.argv[4]), fft(sys.argv[5])
    good = compare("library", exports(library), api | OTHERS | nvml | jit_link() | set(products) | set(transforms))
    toolkit = pathlib.Path(sys.argv[6]) if len(sys.argv) > 6 else None
    if toolkit and (toolkit / "include/cublasXt.h").exists():
        good = same_as_headers(products, toolkit / "include", ("cublas_api.h", "cublasLt.h", "cublasXt.h", "cublas.h"), "CUBLASWINAPI") and good
    if toolkit and (toolkit / "include/cufftXt.h").exists():
        good = same_as_headers(transforms, toolkit / "include", ("cufft.h", "cufftXt.h"), "CUFFTAPI") and good
    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    if not re.search(r"SONAME.*\[libcuda\.so\.1\]", dynamic):
        print("the SONAME is not libcuda.so.1")
        good = False
    if "BIND_NOW" not in dynamic and "NOW" not in dynamic:
        print("the library is not bound at load time")
        good = False
    stub = None
    if toolkit and is_version(toolkit, "13.0"):
        folders = (toolkit / folder / "stubs/libcuda.so" for folder in ("lib", "lib64"))
        stub = next((path for path in folders if path.exists()), None)
    if stub:
        good = compare("toolkit", {name for name in table(sys.argv[2], 13000) if not NOT_IN_STUB.match(name)}, exports(stub)) and good
    print("exports: " + ("same" if good else "different"), len(api), "functions" + ("" if stub else ", no toolkit of that version to compare with"))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
