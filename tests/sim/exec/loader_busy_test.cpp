// Kernels that are compiled on a thread of ours while a thread of the program holds the loader's lock.
#include <dlfcn.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "rewriter/support/own_thread.h"
#include "tests/sim/exec/tiers_fixture.h"

namespace gridloom::test {
namespace {

/// While one lives, another thread is loading a library.
class HeldLoader {
 public:
  HeldLoader() {
    char where[20];
    std::snprintf(where, sizeof where, "%llx",
                  static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(&word_)));
    setenv("GL_LOADING_UNTIL", where, 1);
    thread_ = std::thread([this] { library_ = dlopen(GL_LOADING_LIBRARY, RTLD_NOW); });
    while (word_ != 2) std::this_thread::yield();
    unsetenv("GL_LOADING_UNTIL");
  }
  ~HeldLoader() {
    word_ = 1;
    thread_.join();
    if (library_ != nullptr) dlclose(library_);
  }

 private:
  std::atomic<int> word_{0};
  void* library_ = nullptr;
  std::thread thread_;
};

/// As the workers of a task pool are.
class AsOwnThread {
 public:
  AsOwnThread() { t_own_thread = true; }
  ~AsOwnThread() { t_own_thread = false; }
};

std::string StoreKernel() {
  return R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 value)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd3, %rd1, %rd2;
  add.u32 %r5, %r5, %r1;
  st.global.u32 [%rd3], %r5;
  ret;
}
)";
}

bool AreCountedFrom(const std::vector<std::uint32_t>& values, std::uint32_t first) {
  for (const std::uint32_t value : values)
    if (value != first++) return false;
  return !values.empty();
}

}  // namespace

TEST_CASE("LoaderBusy_OwnThread_GetsMachineCodeFromTheService") {
  const Folder folder;
  Tiers tiers("on", folder.path());
  const AsOwnThread own;
  const HeldLoader held;
  CHECK(AreCountedFrom(tiers.Run(StoreKernel(), 3, 40).values, 40));
}

TEST_CASE("LoaderBusy_NoService_FailsUntilTheLoaderIsFree") {
  Tiers tiers("off");
  const auto launch = [&] {
    const AsOwnThread own;
    const std::uint64_t out = tiers.executor().memory().Allocate(4096, 256, exec::MemoryKind::kDevice);
    const ParamBlock params = ParamBlock().Add(out).Add(std::uint32_t{1});
    exec::LaunchParams wanted;
    wanted.grid = {1, 1, 1};
    wanted.block = {32, 1, 1};
    wanted.params = params.bytes();
    exec::LaunchStats stats;
    const exec::LaunchFault fault = tiers.executor().Launch(StoreKernel(), "k", std::move(wanted), &stats);
    tiers.executor().Free(out);
    return fault;
  };
  {
    const HeldLoader held;
    const exec::LaunchFault fault = launch();
    CHECK(fault.kind != exec::FaultKind::kNone);
    CHECK_THAT(fault.text, Catch::Matchers::Contains("loads or unloads a library"));
  }
  const exec::LaunchFault fault = launch();
  INFO(fault.text);
  CHECK(fault.kind == exec::FaultKind::kNone);
}

}  // namespace gridloom::test
