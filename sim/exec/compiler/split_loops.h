// Small loops whose vectors do not fit into a processor's registers go over half of the lanes, and then over the
// others: 32 words are four registers of 16 without AVX-512, so four sums and a temporary spill in each round.
#pragma once

#include <llvm/IR/Module.h>

namespace gridloom::exec {

/// Of the warp form, once its values are in registers. `vector_bits`: of a machine vector; the processor has 16 of
/// them.
void SplitWideLoops(llvm::Module& module, unsigned vector_bits);

}  // namespace gridloom::exec
