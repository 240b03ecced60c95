#!/usr/bin/env python3
"""Writes interpose/api/driver_api.txt from an installed CUDA toolkit. Run by hand when a new toolkit appears.

    derive_api_table.py /usr/local/cuda-13.0 [folder of newer headers] > interpose/api/driver_api.txt

The toolkit lists each function twice: as function pointer types `PFN_<name>_v<version>[_ptds|_ptsz]`, and as exported
symbols `<name>[_v<n>][_ptds|_ptsz]` of the stub library. Sorted by version and by n the two lists pair up one to one.
The functions for OpenGL are in the driver, but not in the stub: their symbols are named as the others are. So are those
of newer headers (cudaTypedefs.h of a later runtime's package, which has no stub).
"""
import collections
import pathlib
import re
import subprocess
import sys

HEADERS = ("cudaTypedefs.h", "cudaProfilerTypedefs.h", "cudaGLTypedefs.h")
NOT_IN_STUB = re.compile(r"cu(Graphics)?GL")
NOT_ON_LINUX = ("cuWGLGetDevice",)
TYPEDEF = re.compile(r"typedef\s+(\w+)\s*\(CUDAAPI \*PFN_(cu\w+?)_v(\d+)(_pt[ds][sz])?\)\((.*?)\);", re.S)
SYMBOL = re.compile(r"(cu\w+?)(?:_v(\d+))?(_pt[ds][sz])?$")
# Types whose newest version is the plain name in the driver header; an older version keeps its suffix.
SECOND_IS_CURRENT = ("CUDA_MEMCPY2D", "CUDA_MEMCPY3D", "CUDA_ARRAY_DESCRIPTOR", "CUDA_ARRAY3D_DESCRIPTOR", "CUdeviceptr")
FIRST_IS_OLD = SECOND_IS_CURRENT + ("CUDA_KERNEL_NODE_PARAMS",)


def plain_type(match):
    name, version = match.group(1), match.group(2)
    if version == "2" and name in SECOND_IS_CURRENT:
        return name
    if version == "1" and name not in FIRST_IS_OLD and name != "CUstreamBatchMemOpParams":
        return name
    return match.group(0).replace("CUstreamBatchMemOpParams_v1", "CUstreamBatchMemOpParams")


def snake(name):
    name = re.sub(r"^(h|p|ph|pp)(?=[A-Z])", "", name)
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
    return {"hfunc": "function", "hmod": "module", "pctx": "context", "ctx": "context", "dptr": "pointer",
            "default": "default_value", "bytesize": "bytes"}.get(name, name)


def parameters(text):
    text = re.sub(r"\s+", " ", text).strip()
    if text in ("", "void"):
        return ""
    out, seen = [], set()
    for parameter in text.split(","):
        array = re.search(r"\[\d*\]\s*$", parameter)
        parameter = re.sub(r"\[\d*\]\s*$", "", parameter).strip()
        match = re.match(r"(.*?[\s*])(\w+)$", parameter)
        kind, name = match.group(1), snake(match.group(2))
        kind = re.sub(r"\b(CU\w+?|cu\w+?)_v([12])\b", plain_type, kind)
        kind = re.sub(r"\bGL(uint|enum)\b|\bCUGLDeviceList\b", "unsigned int", kind)
        kind = re.sub(r"\bunsigned(?! int| long| char| short)\b", "unsigned int", kind)
        kind = kind.replace("unsigned long long", "uint64_t").replace("unsigned int", "unsigned")
        kind = kind.replace("cuuint32_t", "uint32_t").replace("cuuint64_t", "uint64_t")
        kind = re.sub(r"\s*\*", "*", kind.strip()) + ("*" if array else "")
        while name in seen:
            name += "_"
        seen.add(name)
        out.append(f"{kind} {name}")
    return ", ".join(out)


def add_newer(headers, typedefs, exported):
    """What headers without a stub declare beyond the toolkit: each function's next symbol."""
    added = collections.defaultdict(dict)
    for result, name, version, twin, params in TYPEDEF.findall((headers / "cudaTypedefs.h").read_text()):
        if int(version) > max(typedefs[name, ""], default=0) and int(version) not in typedefs[name, twin]:
            added[name, twin][int(version)] = (result, params)
    plain = {name: len(typedefs[name, ""]) for name, _ in added}
    for (name, twin), versions in added.items():
        for n, version in enumerate(sorted(versions), plain[name] + 1):
            typedefs[name, twin][version] = versions[version]
            exported[name, twin].append((n, name + (f"_v{n}" if n > 1 else "") + twin))


def main():
    toolkit = pathlib.Path(sys.argv[1])
    typedefs = collections.defaultdict(dict)
    for header in HEADERS:
        for result, name, version, twin, params in TYPEDEF.findall((toolkit / "include" / header).read_text()):
            typedefs[name, twin][int(version)] = (result, params)
    stub = next(p for p in (toolkit / "lib/stubs/libcuda.so", toolkit / "lib64/stubs/libcuda.so") if p.exists())
    listing = subprocess.run(["nm", "-D", "--defined-only", stub], check=True, capture_output=True, text=True).stdout
    exported = collections.defaultdict(list)
    for symbol in (line.split()[2] for line in listing.splitlines()):
        name, number, twin = SYMBOL.match(symbol).groups()
        exported[name, twin or ""].append((int(number or 1), symbol))

    for (name, twin), versions in typedefs.items():
        if NOT_IN_STUB.match(name) and name not in NOT_ON_LINUX:
            newest = len(typedefs[name, ""])  # a twin is one of the newest form
            for n in range(newest if twin else 1, newest + 1):
                exported[name, twin].append((n, name + (f"_v{n}" if n > 1 else "") + twin))

    if len(sys.argv) > 2:
        add_newer(pathlib.Path(sys.argv[2]), typedefs, exported)

    rows, twins = {}, {}
    for (name, twin), symbols in exported.items():
        versions = sorted(typedefs[name, twin].items())
        if len(symbols) != len(versions):
            sys.exit(f"{name}{twin}: {len(symbols)} symbols but {len(versions)} versions")
        for (_, symbol), (version, (result, params)) in zip(sorted(symbols), versions):
            if result != "CUresult":
                sys.exit(f"{symbol}: returns {result}")
            if twin:
                twins[symbol[: -len(twin)]] = (twin[1:], version, parameters(params))
            else:
                rows[symbol] = (name, version, parameters(params))
    lost = [t for t in twins if t not in rows]
    if lost:
        sys.exit(f"twins without a plain symbol: {lost}")

    print("# The CUDA driver API as data, one line per function:")
    print("#   symbol | name looked up | version that introduced it | per-thread twin and its version, or - | parameters")
    print("# Every function returns CUresult. A twin is exported as <symbol>_<twin> and uses the calling thread's own default")
    print("# stream. Types are those of interpose/api/cuda_types.h. Written by interpose/gen/derive_api_table.py from 13.0 and headers of 13.5.")
    for symbol, (name, version, params) in sorted(rows.items(), key=lambda row: (row[1][0], row[1][1])):
        twin = "-"
        if symbol in twins:
            kind, twin_version, twin_params = twins[symbol]
            twin = f"{kind} {twin_version}"
            if [p.rsplit(" ", 1)[0] for p in twin_params.split(",")] != [p.rsplit(" ", 1)[0] for p in params.split(",")]:
                sys.exit(f"{symbol}: twin differs: {twin_params} / {params}")
        print(f"{symbol} | {name} | {version} | {twin} | {params}")


if __name__ == "__main__":
    main()
