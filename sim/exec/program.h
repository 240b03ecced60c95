// A loaded program: one linked PTX module with its variables placed in device memory. Kernels are compiled on first
// launch, per block shape, and kept in memory and in the disk cache. Thread-safe after Load.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "rewriter/support/result.h"
#include "sim/exec/device_memory.h"

namespace gridloom::exec {

class Program;

/// Names a program wherever something is made from it: XXH3 128 of its text, or what a variant was given. Kernels'
/// compiled code has keys of its own.
using ProgramKey = std::array<std::uint64_t, 2>;

/// What the driver API reports of a kernel (cuFuncGetAttribute) and what a launch needs.
struct KernelInfo {
  std::string name;
  const ptx::Function* function = nullptr;
  ptx::ParamLayout params;
  std::vector<std::uint32_t> param_bytes;  ///< size of each parameter
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t local_bytes = 0;  ///< per thread, PTX .local variables of the deepest chain of calls (FindStackUse)
  bool open_stack = false;        ///< a thread may take more, up to the limit of the stack
  std::uint32_t const_bytes = 0;
  std::uint32_t registers = 0;                  ///< estimate from liveness; caps as .maxnreg says
  std::uint32_t max_threads = 1024;             ///< .maxntid / .reqntid product, else the device's limit
  std::uint32_t required_block[3] = {0, 0, 0};  ///< .reqntid, zeros when absent
  std::uint32_t required_cluster[3] = {0, 0, 0};
  std::uint32_t own_memory_bytes = 0;  ///< of each CTA, in global memory (.minperctamemory)
  bool uses_grid_sync = false;
  /// Local memory of a thread, where stacks may have so many bytes.
  std::uint64_t LocalBytes(std::uint32_t stack_bytes) const {
    return std::uint64_t{local_bytes} + (open_stack ? stack_bytes : 0);
  }
};

struct GlobalInfo {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  bool managed = false;
  bool constant = false;
  const ptx::Variable* variable = nullptr;
};

class Program : public AllocationOwner {
 public:
  /// Takes a linked module: places its variables, applies initialisers, numbers symbols and functions. `text` is the
  /// PTX it came from (for the key). Fails naming what the executor cannot place.
  static Result<std::shared_ptr<Program>> Load(std::unique_ptr<ptx::Module> module, std::string text,
                                               DeviceMemory& memory);
  /// A program with rewritten code (rewriter/passes) that works on the variables of another one: it has the same
  /// functions in the same order, so that device function pointers mean the same, and further ones behind them.
  /// Variables of a name that the original has are the original's; others are placed and initialised. `key` stands in
  /// place of a hash of its text. The original lives as long as the variant.
  static Result<std::shared_ptr<Program>> LoadVariant(std::shared_ptr<const ptx::Module> module, ProgramKey key,
                                                      std::shared_ptr<const Program> original, DeviceMemory& memory);
  /// Reads bodies of kernels that are unread (rewriter/ptx/lazy_bodies.h).
  virtual const ptx::Module& module() const = 0;
  /// Kernels that nobody has asked for by FindKernel may have no statements in it.
  virtual const ptx::Module& module_as_read() const = 0;
  virtual const ProgramKey& key() const = 0;
  virtual std::span<const KernelInfo> kernels() const = 0;  ///< reads the bodies of all
  virtual std::vector<std::string_view> kernel_names() const = 0;
  virtual std::span<const GlobalInfo> globals() const = 0;
  /// Null: there is none, or its body has errors (ProblemOf).
  virtual const KernelInfo* FindKernel(std::string_view name) const = 0;
  /// What is wrong with the body of a kernel that was read when it was asked for; empty: nothing.
  virtual std::string ProblemOf(std::string_view kernel) const = 0;
  virtual const GlobalInfo* FindGlobal(std::string_view name) const = 0;
};

/// The variables of the loaded program whose allocation it is; none of any other memory.
std::span<const GlobalInfo> VariablesIn(const Allocation& allocation);

}  // namespace gridloom::exec
