"""A client of a shared CUDA runtime: memory, copies, streams, events, and kernels from PTX. usage: runtime_client.py LIBCUDART

A kernel is launched in both ways that a runtime has: from a fat binary that is registered, as nvcc's programs do at their start, and,
from 12.8 on, by cudaLibraryLoadData. Prints the runtime's version.
"""
import ctypes
import struct
import sys

PTX = b""".version 7.0
.target sm_52
.address_size 64
.visible .entry scale(.param .u64 data, .param .u32 factor)
{
  .reg .b32 %r<5>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [factor];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3];
  mul.lo.u32 %r4, %r3, %r1;
  st.global.u32 [%rd3], %r4;
  ret;
}
\0"""
COUNT = 64
runtime = ctypes.CDLL(sys.argv[1])
runtime.cudaGetErrorName.restype = ctypes.c_char_p
runtime.__cudaRegisterFatBinary.restype = ctypes.c_void_p


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


def check(what, status):
    if status != 0:
        sys.exit(f"{what} -> {status} ({runtime.cudaGetErrorName(status)})")


def call(name, *arguments):
    check(name, getattr(runtime, name)(*arguments))


def fat_binary():
    """A wrapper around a container with PTX alone, stored plain."""
    text = PTX + bytes(-len(PTX) % 8)
    entry = struct.pack("<HHIQIIHHIIIQQQ", 1, 0x0101, 64, len(text), 0, 0, 0, 7, 52, 0, 0, 0x11, 0, 0)
    container = ctypes.create_string_buffer(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry) + len(text)) + entry + text)
    wrapper = ctypes.create_string_buffer(struct.pack("<IIQQ", 0x466243B1, 1, ctypes.addressof(container), 0))
    return wrapper, container


def launch(kernel, memory, factor):
    value = ctypes.c_uint(factor)
    arguments = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(value))
    call("cudaLaunchKernel", kernel, Dim3(1, 1, 1), Dim3(COUNT, 1, 1), arguments, ctypes.c_size_t(0), None)


# Before the first call, as constructors of a program do.
wrapper, container = fat_binary()
handle = ctypes.c_void_p(runtime.__cudaRegisterFatBinary(wrapper))
host_function = ctypes.create_string_buffer(16)
name = ctypes.create_string_buffer(b"scale")
runtime.__cudaRegisterFunction(handle, host_function, name, name, -1, None, None, None, None, None)
runtime.__cudaRegisterFatBinaryEnd(handle)

number = ctypes.c_int()
call("cudaGetDeviceCount", ctypes.byref(number))
assert number.value == 1, number
memory, stream = ctypes.c_void_p(), ctypes.c_void_p()
first, last, time = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
values = (ctypes.c_uint * COUNT)(*range(COUNT))
size = ctypes.c_size_t(ctypes.sizeof(values))
call("cudaMalloc", ctypes.byref(memory), size)
call("cudaMemcpy", memory, values, size, 1)
call("cudaStreamCreate", ctypes.byref(stream))
call("cudaEventCreate", ctypes.byref(first))
call("cudaEventCreate", ctypes.byref(last))
call("cudaEventRecord", first, stream)
launch(host_function, memory, 3)
factor = 3
if hasattr(runtime, "cudaLibraryLoadData"):
    library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    call("cudaLibraryLoadData", ctypes.byref(library), PTX, None, None, 0, None, None, 0)
    call("cudaLibraryGetKernel", ctypes.byref(kernel), library, b"scale")
    launch(kernel, memory, 5)
    factor = 15
call("cudaMemcpy", values, memory, size, 2)
assert list(values) == [factor * i for i in range(COUNT)], list(values)
call("cudaEventRecord", last, stream)
call("cudaStreamSynchronize", stream)
call("cudaEventElapsedTime", ctypes.byref(time), first, last)
if hasattr(runtime, "cudaExecutionCtxStreamCreate"):  # from 13.1 on; a resource is a structure of 144 bytes
    resource, part, groups = ctypes.create_string_buffer(144), ctypes.create_string_buffer(144), ctypes.c_uint(1)
    description, context, own = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cudaDeviceGetDevResource", 0, resource, 1)
    call("cudaDevSmResourceSplitByCount", part, ctypes.byref(groups), resource, None, 0, 8)
    call("cudaDevResourceGenerateDesc", ctypes.byref(description), part, 1)
    call("cudaGreenCtxCreate", ctypes.byref(context), description, 0, 0)
    call("cudaExecutionCtxStreamCreate", ctypes.byref(own), context, 1, 0)
    call("cudaExecutionCtxSynchronize", context)
    call("cudaExecutionCtxRecordEvent", context, last)
    call("cudaStreamDestroy", own)
    call("cudaExecutionCtxDestroy", context)
    call("cudaDeviceGetExecutionCtx", ctypes.byref(context), 0)
    assert runtime.cudaExecutionCtxDestroy(context) == 1, "a device's own context cannot be destroyed"
    runtime.cudaGetLastError()
call("cudaMallocAsync", ctypes.byref(memory), size, stream)
call("cudaFreeAsync", memory, stream)
call("cudaDeviceSynchronize")
call("cudaGetLastError")
call("cudaRuntimeGetVersion", ctypes.byref(number))
print(number.value)
