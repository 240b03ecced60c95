// Which memory the operations of a program touch, as far as its host knows. `memory`: the device's, which knows what
// kind of memory lies where.
#pragma once

#include <initializer_list>

#include "interpose/objects/operation.h"
#include "interpose/observe/host_reuse.h"
#include "sim/trace/trace_file.h"

namespace gridloom::session {

struct GraphPlan;

/// What a copy over PCIe touches of pinned or registered memory; its bytes are 0 where it touches none. Copies of
/// pageable memory are done with it when the call returns.
HostReuse::Memory HostMemoryOf(const exec::DeviceMemory& memory, const Operation& operation,
                               const trace::HostAction& action);

/// Bytes that several copies move together.
struct CopiedBytes {
  std::uint64_t to_device = 0, to_host = 0;
};

/// What kind of copy it is, and what it touches on the device. One that takes the device no time is left as it is.
void DescribeCopy(const exec::DeviceMemory& memory, const CopyOp& op, trace::HostAction& action);
/// Adds what it copies over PCIe.
void AddCopied(const exec::DeviceMemory& memory, const Operation& operation, CopiedBytes& copied);
/// The same of a graph's nodes. Without those of conditional nodes' bodies: how often these run is not known before.
void AddCopied(const exec::DeviceMemory& memory, const GraphPlan& plan, CopiedBytes& copied);
void DescribeFill(const exec::DeviceMemory& memory, const FillOp& op, trace::HostAction& action);

/// Whether it writes memory that the host looks at without asking: a copy or fill of its own memory.
bool WritesHostMemory(const exec::DeviceMemory& memory, const Operation& operation);
/// Whether one of the kernel's parameters is a pointer into memory of one of these kinds.
bool PointsInto(const exec::DeviceMemory& memory, const KernelOp& op, std::initializer_list<exec::MemoryKind> kinds);
/// Whether the kernel may reach memory that the host looks at: managed, pinned or registered, by a parameter that
/// points there or as a variable of its module. Pointers in structures that parameters point at are not followed.
bool ReachesHostMemory(const exec::DeviceMemory& memory, const KernelOp& op);

}  // namespace gridloom::session
