"""nvml_view.py [MIB]: for each line of its input one line of JSON: what NVML tells now, by every function that lists processes. With MIB it
has a context of its own, and that much memory."""
import ctypes
import json
import sys

SUCCESS, INVALID, NOT_FOUND, TOO_SMALL, MISMATCH = 0, 2, 6, 7, 25
NVML = ctypes.CDLL("libnvidia-ml.so.1")


def structure(*fields):
    return type("Structure", (ctypes.Structure,), {"_fields_": [(name, kind) for name, kind in fields]})


U32, U64 = ctypes.c_uint, ctypes.c_ulonglong
MEMORY = structure(("total", U64), ("free", U64), ("used", U64))
MEMORY_2 = structure(("version", U32), ("total", U64), ("reserved", U64), ("free", U64), ("used", U64))
UTILISATION = structure(("gpu", U32), ("memory", U32))
PROCESS_1 = structure(("pid", U32), ("bytes", U64))
PROCESS = structure(("pid", U32), ("bytes", U64), ("gpu", U32), ("compute", U32))
DETAIL = structure(("pid", U32), ("bytes", U64), ("gpu", U32), ("compute", U32), ("protected", U64))
DETAILS = structure(("version", U32), ("mode", U32), ("count", U32), ("list", ctypes.POINTER(DETAIL)))
SAMPLE = structure(("pid", U32), ("stamp", U64), ("sm", U32), ("memory", U32), ("encoder", U32), ("decoder", U32))
WORK = structure(("stamp", U64), ("pid", U32), ("sm", U32), ("memory", U32), ("encoder", U32), ("decoder", U32), ("jpeg", U32), ("flow", U32))
WORKS = structure(("version", U32), ("count", U32), ("last_seen", U64), ("list", ctypes.POINTER(WORK)))


def call(name, *arguments, expected=SUCCESS):
    status = getattr(NVML, name)(*arguments)
    assert status == expected, (name, status)


def device():
    call("nvmlInit_v2")
    handle = ctypes.c_void_p()
    call("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(handle))
    return handle


def listed(handle, name, kind, wanted=("pid", "bytes")):
    """The list by count, then with room; programs come and go, so what is there the second time counts."""
    count = U32(0)
    status = getattr(NVML, name)(handle, ctypes.byref(count), None)
    assert status == (TOO_SMALL if count.value else SUCCESS), (name, status, count.value)
    if count.value > 1:  # too little room is as none
        little = U32(1)
        call(name, handle, ctypes.byref(little), (kind * 1)(), expected=TOO_SMALL)
    entries = (kind * (count.value + 8))()
    room = U32(len(entries))
    call(name, handle, ctypes.byref(room), entries)
    return sorted([getattr(entry, field) for field in wanted] for entry in entries[:room.value])


def details(handle, mode):
    ask = DETAILS(0x1000000 | ctypes.sizeof(DETAILS), mode, 8, (DETAIL * 8)())
    call("nvmlDeviceGetRunningProcessDetailList", handle, ctypes.byref(ask))
    return sorted([entry.pid, entry.bytes] for entry in ask.list[:ask.count])


def samples(handle):
    """Shares of the device in percent; none is an answer of its own."""
    count = U32(0)
    status = NVML.nvmlDeviceGetProcessUtilization(handle, None, ctypes.byref(count), U64(0))
    if status == NOT_FOUND:
        return []
    assert status == TOO_SMALL, status
    entries = (SAMPLE * 8)()
    room = U32(8)
    call("nvmlDeviceGetProcessUtilization", handle, entries, ctypes.byref(room), U64(0))
    call("nvmlDeviceGetProcessUtilization", handle, entries, ctypes.byref(room), U64(entries[0].stamp + 10**12), expected=NOT_FOUND)
    ask = WORKS(0x1000000 | ctypes.sizeof(WORKS), 8, 0, (WORK * 8)())
    call("nvmlDeviceGetProcessesUtilizationInfo", handle, ctypes.byref(ask))
    assert ask.count > 0 and ask.list[0].stamp >= entries[0].stamp, ask.count
    return [[entry.pid, entry.sm] for entry in entries[:8] if entry.pid]


def name_of(pid):
    text = ctypes.create_string_buffer(1024)
    call("nvmlSystemGetProcessName", U32(pid), text, U32(1024))
    short = ctypes.create_string_buffer(4)
    call("nvmlSystemGetProcessName", U32(pid), short, U32(4))
    assert short.value == text.value[:3], (short.value, text.value)
    return text.value.decode()


def view(handle):
    memory, memory_2, utilisation = MEMORY(), MEMORY_2(version=0x2000000 | ctypes.sizeof(MEMORY_2)), UTILISATION()
    name = ctypes.create_string_buffer(96)
    call("nvmlDeviceGetName", handle, name, 96)
    call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
    call("nvmlDeviceGetMemoryInfo_v2", handle, ctypes.byref(memory_2))
    call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(utilisation))
    lists = [listed(handle, f"nvmlDeviceGetComputeRunningProcesses{version}", PROCESS if version else PROCESS_1) for version in ("", "_v2", "_v3")]
    lists.append(details(handle, 0))
    for kind in ("Graphics", "MPSCompute"):
        for version in ("", "_v2", "_v3"):
            assert not listed(handle, f"nvmlDeviceGet{kind}RunningProcesses{version}", PROCESS if version else PROCESS_1)
    assert not details(handle, 1) and not details(handle, 2)
    call("nvmlSystemGetProcessName", U32(2**30), name, U32(96), expected=NOT_FOUND)
    return {"name": name.value.decode(), "memory": [memory.total, memory.free, memory.used],
            "memory_2": [memory_2.total, memory_2.free, memory_2.used], "utilisation": utilisation.gpu, "lists": lists,
            "samples": samples(handle), "names": {pid: name_of(pid) for pid, _ in lists[0]}}


def use(mib):
    cuda = ctypes.CDLL("libcuda.so.1")
    context, pointer = ctypes.c_void_p(), U64()
    for status in (cuda.cuInit(0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0),
                   cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(mib << 20))):
        assert status == 0, status


def main():
    if len(sys.argv) > 1:
        use(int(sys.argv[1]))
    handle = device()
    for _ in sys.stdin:
        print(json.dumps(view(handle)), flush=True)


main()
