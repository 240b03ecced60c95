// The shim with a recording engine behind it: kernels are logged instead of run, unless a test says what they do.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "api_exports.h"
#include "sim/exec/engine.h"

namespace gridloom::test {

struct LoggedLaunch {
  std::string kernel;
  exec::Dim3 grid, block, cluster;
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<std::byte> params;
  bool cooperative = false;
};

/// What the engine saw and what it does. One per process, since there is one driver per process.
class FakeEngine {
 public:
  static FakeEngine& Get();
  /// Runs instead of the kernel; answers how it ended.
  using Body = std::function<exec::LaunchFault(const exec::LaunchParams&)>;
  void set_body(Body body);
  std::vector<LoggedLaunch> TakeLaunches();
  std::size_t launches() const;

  exec::LaunchFault Run(const exec::LaunchParams& launch);

 private:
  mutable std::mutex mutex_;
  std::vector<LoggedLaunch> launches_;
  Body body_;
};

/// `fill(u64 pointer, u32 value, u8 flag)`, `nothing()`, `bounded()` with a launch bound of 64, `shared()` with 1 KiB
/// static, and the variables `table` (64 bytes) and `counter` (managed).
extern const char* const kPtx;

/// cuInit, the primary context current, the module of kPtx loaded; everything undone at the end.
class Fixture {
 public:
  Fixture();
  ~Fixture();
  CUfunction Function(const char* name) const;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
};

/// Value of a parameter by its offset.
template <typename T>
T Param(const LoggedLaunch& launch, std::size_t offset) {
  T value;
  std::memcpy(&value, launch.params.data() + offset, sizeof(T));
  return value;
}

}  // namespace gridloom::test

#define CU_OK(call) REQUIRE((call) == CUDA_SUCCESS)
