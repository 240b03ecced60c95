// Where a bad address lies, in words: the nearest allocation, block or variable, and by how much it was missed.
#pragma once

#include <cstdint>
#include <string>

#include "sim/exec/device_memory.h"
#include "sim/exec/runtime/device_heap.h"
#include "sim/exec/runtime/program_impl.h"

namespace gridloom::exec {

std::string GlobalPlace(const DeviceMemory& memory, const DeviceHeap& heap, std::uint64_t address, std::uint32_t bytes);
/// "12 bytes into shared variable `tile`".
std::string SharedVariablePlace(const ptx::Module& module, const ptx::Function& kernel, std::uint64_t offset);

/// The address was part of an allocation or block that has been freed since.
bool WasFreed(const DeviceMemory& memory, const DeviceHeap& heap, std::uint64_t address);

/// The program's variable that begins last at or before the address, null when there is none.
const GlobalInfo* VariableBefore(const ProgramImpl& program, std::uint64_t address);

}  // namespace gridloom::exec
