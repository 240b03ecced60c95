// The passes from PTX to what a GPU executes.
#pragma once

#include <cstdint>
#include <span>

#include "sim/lowering/kernel.h"

namespace gridloom::lowering {

struct Pass {
  const char* name;
  const char* meaning;
  void (*run)(Kernel& kernel, const Target& target);
  bool needs_meanings;
};

#define LOWERING_PASS(name, function, needs, meaning) void function(Kernel& kernel, const Target& target);
#include "sim/lowering/passes.def"
#undef LOWERING_PASS

/// All of them, in the order in which they run.
std::span<const Pass> Passes();

}  // namespace gridloom::lowering
