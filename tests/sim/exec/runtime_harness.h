// An engine whose "compiled" kernels are C++ functions of the test: everything but the compiler is the real thing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/exec/engine.h"
#include "sim/exec/runtime/context_switch.h"
#include "sim/exec/runtime/helpers.h"

namespace gridloom::test {

using namespace gridloom::exec;

/// How the fake compiler "compiles" the kernel of that name.
struct NativeKernel {
  WarpEntry entry = nullptr;
  bool needs_fiber = false, simple_barriers = false, recursive = false;
  std::uint32_t static_shared_bytes = 0, local_bytes = 0;
  std::string error = {};
  std::vector<std::uint8_t> object = {};  ///< code instead of `entry`
};

class Harness {
 public:
  explicit Harness(unsigned threads = 2, Engine::Options options = {},
                   const DeviceMemory::Options& memory_options = {});

  /// Makes a kernel with one 64-bit parameter per entry of what Run passes.
  void Add(const std::string& name, NativeKernel kernel);
  LaunchFault Run(const std::string& name, Dim3 grid, Dim3 block, std::vector<std::uint64_t> params = {},
                  std::uint32_t dynamic_shared_bytes = 0, Dim3 cluster = {}, bool cooperative = false,
                  LaunchStats* stats = nullptr);

  template <typename T>
  T* Allocate(std::size_t count) {
    return reinterpret_cast<T*>(memory->Allocate(count * sizeof(T), 256, MemoryKind::kDevice));
  }

  static int compilations();

  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<Engine> engine;
  std::shared_ptr<Program> program;
  std::string printed;

 private:
  void Link();
  std::vector<std::string> names_;
};

sim::DeviceSpec TestDevice(std::uint32_t sm_count = 4);

// --- for kernels written in C++ ---
inline std::uint64_t Param(const WarpCtx* warp, unsigned index) {
  return reinterpret_cast<const std::uint64_t*>(warp->launch->params)[index];
}
inline std::uint64_t LinearCta(const WarpCtx* warp) {
  const CtaCtx& cta = *warp->cta;
  const LaunchCtx& launch = *warp->launch;
  return cta.ctaid[0] + std::uint64_t{launch.grid[0]} * (cta.ctaid[1] + std::uint64_t{launch.grid[1]} * cta.ctaid[2]);
}
/// As generated code does in kernels with simple barriers.
inline void RingBarrier(WarpCtx* warp) { SwitchWarp(SwitchableOf(warp), SwitchableOf(warp->next)); }
std::uint32_t Sync(WarpCtx* warp, BarrierOp op = BarrierOp::kSync, std::uint32_t id = 0, std::uint32_t threads = 0,
                   std::uint32_t predicate = 0, std::uint32_t mask = ~0u, std::uint32_t line = 1,
                   std::uint64_t flags = 0);
inline void CallHelper(WarpCtx* warp, Helper helper, std::uint32_t mask, std::uint32_t line, std::uint64_t imm,
                       void* const* args) {
  warp->launch->helpers[static_cast<std::size_t>(helper)](warp, mask, line, imm, args);
}
inline void Yield(WarpCtx* warp, std::uint32_t line = 7) {
  CallHelper(warp, Helper::kWarpYield, ~0u, line, 0, nullptr);
}

}  // namespace gridloom::test
