// Modules that are loaded, run and unloaded again leave memory as it was: of one text, and of texts that are all
// different.
#include <fstream>
#include <string>

#include "host.h"

namespace {

/// A module of one kernel, which stores `number`.
std::string Text(int number) {
  return ".version 7.0\n.target sm_75\n.address_size 64\n.global .align 4 .u32 kept" + std::to_string(number) +
         ";\n.visible .entry store(.param .u64 p) {\n.reg .u64 %rd<2>;\n.reg .u32 %r<2>;\nld.param.u64 %rd1, [p];\n"
         "mov.u32 %r1, " +
         std::to_string(number) + ";\nst.global.u32 [%rd1], %r1;\nret;\n}\n";
}

/// Memory of its own that the process has in use, in KiB.
long OwnMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stol(line.substr(8));
  return -1;
}

void LoadAndUnload(const std::string& text, bool run, driver::Pointer result) {
  driver::Handle module = nullptr, kernel = nullptr;
  driver::Call("cuModuleLoadData", &module, static_cast<const void*>(text.c_str()));
  driver::Call("cuModuleGetFunction", &kernel, module, "store");
  if (run) {
    void* parameters[] = {&result};
    void** extra = nullptr;
    driver::Call("cuLaunchKernel", kernel, 1u, 1u, 1u, 32u, 1u, 1u, 0u, driver::Handle{},
                 static_cast<void**>(parameters), extra);
    driver::Call("cuCtxSynchronize");
  }
  driver::Call("cuModuleUnload", module);
}

}  // namespace

int main() {
  constexpr int kBefore = 500, kModules = 10'000;
  constexpr long kMostGrowth = 2048;  // KiB: 0.2 for each module would be kept for good
  driver::Call("cuInit", 0u);
  driver::Device device = 0;
  driver::Handle context = nullptr;
  driver::Call("cuDeviceGet", &device, 0);
  driver::Call("cuDevicePrimaryCtxRetain", &context, device);
  driver::Call("cuCtxSetCurrent", context);
  const driver::Buffer<int> result(1);
  long bad = 0;
  for (const bool run : {true, false}) {  // texts that are all different are not run: each would be compiled
    long before = 0;
    for (int i = 0; i < kModules; ++i) {
      if (i == kBefore) before = OwnMemory();
      LoadAndUnload(Text(run ? 7 : i), run, result.get());
    }
    const long growth = OwnMemory() - before;
    std::printf("%s modules: memory grew by %ld KiB\n", run ? "equal" : "different", growth);
    bad += before <= 0 || growth > kMostGrowth;
  }
  bad += result.Read() != std::vector<int>{7};
  return driver::Verdict("modules and memory", bad, 3);
}
