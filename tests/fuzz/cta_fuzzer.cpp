// The part of a trace file behind its checksums, which random changes do not get past: CTAs of a fixed piece of code.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "sim/trace/cta_codec.h"

namespace {

gridloom::trace::KernelCode Code() {
  using namespace gridloom::trace;
  KernelCode code;
  code.name = "fuzzed";
  for (int i = 0; i < 8; ++i) {
    Instruction instruction;
    if (i % 2) {
      instruction.op = OpClass::kMemory;
      instruction.space = Space::kGlobal;
      instruction.width = 4;
      instruction.flags = kGeneric;
    }
    code.instructions.push_back(instruction);
  }
  code.blocks = {{0, 1}, {1, 3}, {4, 4}};
  return code;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gridloom::trace;
  static const KernelCode code = Code();
  ByteReader in({data, size});
  CtaDecoder decoder(code);
  while (in.left() != 0) {
    const auto cta = decoder.Decode(in);
    if (!cta) return 0;
    const LaunchShape shape{.ctas = 1, .threads_per_cta = static_cast<std::uint32_t>(cta->trace->warps.size()) * 32};
    if (!CtaChecks().Check(code, shape, *cta).ok()) std::abort();
    for (const MemoryAccess& access : cta->trace->accesses) {
      const AccessWindow window = WindowOf(Space::kGlobal, kGeneric, *cta->trace, access);
      if ((window.space == Space::kGlobal) != (window.added == 0)) std::abort();
    }
  }
  return 0;
}
