// Proof that a cubin with sliced kernels does what the original does, read from the two files alone: it knows nothing
// of how slices are made, but for what the hidden parameters mean (docs/machine-code.md#proof).
#pragma once

#include <vector>

#include "rewriter/machine/slice/cubin_file.h"
#include "rewriter/machine/slice/slice_cubin.h"

namespace gridloom::machine {

/// One kernel's sliced form. Its code differs from the original's only where %ctaid or the grid's size is read and in
/// what was appended; every way through what was appended comes back behind where it began, with what the original grid
/// has in the register that the original instruction writes, and all others that may still be read as they were;
/// nothing is read before it is there; registers, parameters, attributes and sections say so.
Status ProveKernel(const CubinFile& original, const CubinFile& sliced, const SlicedKernel& kernel);

/// The rest: all that the original has is there as it was, under its number; what was added is of forms alone; segments
/// hold the same sections, and forms where their kernels are.
Status ProveFile(const CubinFile& original, const CubinFile& sliced, const std::vector<SlicedKernel>& kernels);

}  // namespace gridloom::machine
