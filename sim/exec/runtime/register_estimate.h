// How many 32-bit registers a kernel would need per thread: what the driver API reports and the occupancy is computed
// from. PTX has no register allocation, so this is the widest point of a linear live-range scan, loops taken into
// account. Functions are called by a convention that has the same registers for all of them, so a kernel needs as many
// as the widest of what it reaches.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "rewriter/ptx/ir.h"

namespace gridloom::exec {

/// Registers that the code of one function needs, without what it calls; 0 without a body.
std::uint32_t EstimateRegisters(const ptx::Function& function);

/// Estimates for the kernels of one module. Each function is looked at once.
class KernelRegisters {
 public:
  explicit KernelRegisters(const ptx::Module& module) : module_(module) {}

  /// Registers that a kernel needs with what it calls, by name or by address. Their bodies must have been read
  /// (LazyBodies).
  std::uint32_t Of(const ptx::Function& kernel);

 private:
  std::uint32_t OfBody(const ptx::Function& function);

  const ptx::Module& module_;
  std::unordered_map<const ptx::Function*, std::uint32_t> of_bodies_;
};

}  // namespace gridloom::exec
