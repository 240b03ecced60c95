#!/usr/bin/env python3
"""Compiles one source with a given libnvrtc. usage: nvrtc.py LIBNVRTC SOURCE OUTPUT OPTION…"""
import ctypes
import os
import sys


def main() -> int:
    library, source, output, options = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    nvrtc = ctypes.CDLL(library)
    program = ctypes.c_void_p()
    with open(source, "rb") as file:
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), file.read(), os.path.basename(source).encode(), 0, None, None)
    array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    failed = nvrtc.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    get_size, get = (nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog) if failed else (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    get_size(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    get(program, text)
    if failed:
        sys.stderr.write(text.value.decode())
        return 1
    with open(output, "wb") as file:
        file.write(text.value)
    return 0


sys.exit(main())
