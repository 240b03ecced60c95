#include "interpose/objects/driver_refusals.h"

#include "interpose/objects/ptx_sources.h"
#include "interpose/objects/tile_kernel.h"
#include "rewriter/ptx/undefined_calls.h"
#include "sim/exec/contract/layout.h"

namespace gridloom::session {
namespace {

/// Static shared memory of a block at most, whatever the device: what is more has to be dynamic (CUDA C++ Programming
/// Guide, Compute Capabilities).
constexpr std::uint64_t kMostStaticShared = 48 << 10;

std::uint64_t SharedBytes(const ptx::Variable& variable) {
  return variable.space == ptx::StateSpace::kShared ? variable.bytes() : 0;
}

std::uint64_t SharedBytes(const ptx::Block& block) {
  std::uint64_t bytes = 0;
  for (const ptx::Variable& variable : block.variables) bytes += SharedBytes(variable);
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) bytes += SharedBytes(**nested);
  }
  return bytes;
}

/// The shared memory of all kernels together: no single kernel has more.
std::uint64_t SharedBytes(const ptx::Module& module) {
  std::uint64_t bytes = 0;
  for (const ptx::Variable& variable : module.variables) bytes += SharedBytes(variable);
  for (const ptx::Function& function : module.functions) {
    if (function.body != nullptr) bytes += SharedBytes(*function.body);
  }
  return bytes;
}

std::string WhoHasTooMuchShared(const ptx::Module& module) {
  if (SharedBytes(module) <= kMostStaticShared) return {};
  for (const ptx::Function& function : module.functions) {
    if (!function.is_entry || function.body == nullptr) continue;
    const std::uint32_t bytes = exec::LayoutShared(module, function).static_bytes();
    if (bytes <= kMostStaticShared || IsTileKernel(function)) continue;
    return "kernel " + std::string(function.name) + " has " + std::to_string(bytes) +
           " bytes of static shared memory; the limit is " + std::to_string(kMostStaticShared);
  }
  return {};
}

}  // namespace

std::string WhyDriversRefuse(const ptx::Module& module) {
  if (const auto call = ptx::FindUndefinedCall(module, IsProvided))
    return "line " + std::to_string(call->loc.line) + ": function '" + std::string(call->function) +
           "' is used and defined nowhere";
  return WhoHasTooMuchShared(module);
}

}  // namespace gridloom::session
