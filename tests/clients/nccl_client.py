"""NCCL with one rank. usage: nccl_client.py LIBCUDART LIBNCCL"""
import ctypes
import sys

runtime = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
nccl = ctypes.CDLL(sys.argv[2])
nccl.ncclGetErrorString.restype = ctypes.c_char_p
nccl.ncclGetLastError.restype = ctypes.c_char_p
COUNT = 1000
SIZE = ctypes.c_size_t(4 * COUNT)
FLOAT, SUM, HOST_SCALAR = 7, 0, 1


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def check(library, name, *arguments):
    status = getattr(library, name)(*arguments)
    if status != 0:
        sys.exit(f"{name} -> {status}, {nccl.ncclGetLastError(None)}")


unique, comm = UniqueId(), ctypes.c_void_p()
check(nccl, "ncclGetUniqueId", ctypes.byref(unique))
check(runtime, "cudaSetDevice", 0)
check(nccl, "ncclCommInitRank", ctypes.byref(comm), 1, unique, 0)
values, result = (ctypes.c_float * COUNT)(*range(COUNT)), (ctypes.c_float * COUNT)()
source, target, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
check(runtime, "cudaMalloc", ctypes.byref(source), SIZE)
check(runtime, "cudaMalloc", ctypes.byref(target), SIZE)
check(runtime, "cudaStreamCreate", ctypes.byref(stream))
check(runtime, "cudaMemcpy", source, values, SIZE, 1)


def reduce_to(expected, operation):
    check(nccl, "ncclAllReduce", source, target, ctypes.c_size_t(COUNT), FLOAT, operation, comm, stream)
    check(runtime, "cudaStreamSynchronize", stream)
    check(runtime, "cudaMemcpy", result, target, SIZE, 2)
    assert list(result) == expected, list(result)[:8]


reduce_to(list(values), SUM)
# A sum of one number times another is a kernel of NCCL's.
operation, factor = ctypes.c_int(), ctypes.c_float(2)
check(nccl, "ncclRedOpCreatePreMulSum", ctypes.byref(operation), ctypes.byref(factor), FLOAT, HOST_SCALAR, comm)
reduce_to([2 * value for value in values], operation)
check(nccl, "ncclCommDestroy", comm)
print("all-reduce of one rank: as it should be")
