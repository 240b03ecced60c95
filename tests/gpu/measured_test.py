"""The virtual H200 beside a real GPU: what tests/gpu/codes.cpp, attributes.cpp, integer_filter.cpp and others print under Gridloom, against what
they printed on one (tests/data/gpu). Line by line equal, or named here with the reason."""

import os
import subprocess
import sys

# The driver's code is compared, the value is not.
CODE_ONLY = {
    "mem_alloc_async_0": "the pointer",
    "capture.null_stream_is_capturing": "a status that is not stored",
    "no_context.kernel_param_info": "an offset that is not stored",
}

# By probe.
DIFFERENT = {"codes": {}, "integer_filter": {}, "indexed_variables": {"high.shared.u32.-1": "where shared variables begin: the sum wraps only beyond 0"}}
SIGN = "a change of sign keeps an operand's bits or makes a NaN anew, as ptxas finds shorter"
F64 = "an f64 has the bits that the processor gives"
CLAMP = "a sum that overflows is clamped, as the PTX manual says"
DIFFERENT["nan_bits"] = {
    "abs.f32#1": SIGN, "neg.f32#3": SIGN, "neg.bf16x2#1": SIGN, "neg.f64#1": SIGN, "neg.f64#2": SIGN, "abs.f64#1": SIGN,
    "add.f64#4": F64, "add.f64#5": F64, "mul.f64#1": F64,
    "vadd.u32.u32.u32.sat#1": CLAMP,
}
DIFFERENT["attributes"] = {
    "33": "PCI bus: where the board is in its machine",
    "34": "PCI device: where the board is in its machine",
    "107": "compressible memory: none is made",
    "110": "GPUDirect RDMA: no other device reaches device memory",
    "112": "sparse arrays: there are none",
    "114": "timeline semaphores of other interfaces: there are none",
    "116": "GPUDirect RDMA: no other device reaches device memory",
    "117": "GPUDirect RDMA: no other device reaches device memory",
    "118": "GPUDirect RDMA: no other device reaches device memory",
    "119": "handles of memory pools: memory is not shared between processes",
    "121": "arrays that are mapped later: there are none",
    "124": "dma-buf: no other device reaches device memory",
    "125": "events between processes: there are none",
    "128": "fabric handles: memory is not shared between machines",
    "129": "unified function pointers: cuLibraryGetUnifiedFunction is not there",
    "139": "PCI device: a virtual GPU is no PCI device",
    "140": "PCI subsystem: a virtual GPU is no PCI device",
    "141": "virtual memory on a NUMA node of the host: not tried",
    "145": "virtual memory of the host: not tried",
    "memory": "as much as the machine has to give",
}


def lines(text):
    """What a probe printed, by the first word of each line."""
    rows = [line.split(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    found = {row[0]: row[1] for row in rows}
    assert len(found) == len(rows), "two lines begin with the same word"
    return found


def compare(measured, ours, code_only, different):
    """What is wrong, one sentence each."""
    wrong = [f"{name}: printed on one of the two only" for name in sorted(set(measured) ^ set(ours))]
    for name in measured:
        if name not in ours:
            continue
        want, got = measured[name], ours[name]
        if name in code_only:
            want, got = want.split()[0], got.split()[0]
        if (want == got) == (name in different):
            wrong.append(f"{name}: equal, though named as different" if want == got else f"{name}: {got}, a GPU answered {want}")
    for name in sorted((set(code_only) | set(different)) - set(measured)):
        wrong.append(f"{name}: named, but no line begins so")
    return wrong


def main():
    gridloom, probe, file = sys.argv[1:]
    done = subprocess.run([gridloom, "run", "--device", "h200", "-q", "--", probe], stdout=subprocess.PIPE, check=True)
    with open(file, encoding="utf-8") as stored:
        measured = lines(stored.read())
    name = os.path.basename(probe)
    wrong = compare(measured, lines(done.stdout.decode()), CODE_ONLY if name == "codes" else {}, DIFFERENT[name])
    for sentence in wrong:
        print(sentence)
    print(f"{len(measured)} lines, {len(wrong)} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
