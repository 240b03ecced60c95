// Where a bad address lies, in words: the nearest allocation, block or variable, and by how much it was missed.
#pragma once

#include <cstdint>
#include <string>

#include "sim/exec/device_memory.h"
#include "sim/exec/runtime/device_heap.h"
#include "sim/exec/runtime/program_impl.h"

namespace gridloom::exec {

std::string GlobalPlace(const DeviceMemory& memory, const DeviceHeap& heap, std::uint64_t address, std::uint32_t bytes);
/// The variable that begins last at or before an offset, null when there is none.
struct SharedVariable {
  const ptx::Variable* variable = nullptr;
  std::uint32_t offset = 0;
};
SharedVariable SharedVariableAt(const ptx::Module& module, const ptx::Function& kernel, std::uint64_t offset);
/// "12 bytes into shared variable `tile`".
std::string SharedVariablePlace(const ptx::Module& module, const ptx::Function& kernel, std::uint64_t offset);

/// Names the allocation, block or variable that the address lies in or nearest to, to tell it from others.
std::string GlobalNeighbour(const DeviceMemory& memory, const DeviceHeap& heap, std::uint64_t address);

/// The id of the allocation that GlobalPlace names; 0: it names none.
std::uint64_t NearestAllocation(const DeviceMemory& memory, std::uint64_t address);

/// The address was part of an allocation or block that has been freed since.
bool WasFreed(const DeviceMemory& memory, const DeviceHeap& heap, std::uint64_t address);

/// The program's variable that begins last at or before the address, null when there is none.
const GlobalInfo* VariableBefore(const ProgramImpl& program, std::uint64_t address);

}  // namespace gridloom::exec
