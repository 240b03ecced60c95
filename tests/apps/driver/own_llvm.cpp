// A program that shows LLVM's symbols to all libraries in it, as TensorFlow does: Gridloom's compiler must not take
// them for its own.
#include <unistd.h>

#include <ctime>

#include "host.h"

// Names of llvm::LLVMContext's constructor and of two functions that ask for the processor: whoever calls these has
// lost.
extern "C" {
__attribute__((visibility("default"), used)) void _ZN4llvm11LLVMContextC1Ev() { std::abort(); }
__attribute__((visibility("default"), used)) void _ZN4llvm3sys14getHostCPUNameEv() { std::abort(); }
__attribute__((visibility("default"), used)) void _ZN4llvm3sys18getHostCPUFeaturesEv() { std::abort(); }
}

int main() {
  // A kernel that no earlier run left in the cache, so that it is compiled.
  const auto number = static_cast<unsigned>(std::time(nullptr)) * 31 + static_cast<unsigned>(getpid());
  const std::string ptx =
      ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry Store(.param .u64 out) {\n.reg .b64 %p; .reg "
      ".b32 %i;\n"
      "ld.param.u64 %p, [out];\nmov.u32 %i, " +
      std::to_string(number) + ";\nst.global.u32 [%p], %i;\nret;\n}\n";
  driver::Program program(ptx.c_str());
  driver::Buffer<unsigned> out(1);
  program.Launch("Store", {1}, {1}, out.get());
  return driver::Verdict("own_llvm", out.Read()[0] != number, 1);
}
