// A cubin whose kernels can run in slices: beside each stands its sliced form, with the same hidden parameters as those
// of PTX (rewriter/passes/slice.h), put into machine code (docs/machine-code.md#slices).
#pragma once

#include <string>
#include <vector>

#include "rewriter/image/bytes.h"
#include "rewriter/passes/pass.h"
#include "rewriter/support/result.h"

namespace gridloom::machine {

struct SlicedKernel {
  std::string name{};
  std::string why_whole{};  ///< not empty: it has no sliced form; a clause that completes "kernel k is not sliced: "
  std::vector<passes::HiddenParam> hidden{};  ///< offsets in the block of parameters
  std::uint32_t own_bytes = 0;                ///< of the program's parameters
  std::uint32_t own_params = 0;               ///< how many they are
  std::uint32_t registers_before = 0, registers = 0;
  std::uint32_t sites = 0;       ///< reads of %ctaid
  std::uint32_t grid_reads = 0;  ///< of the grid's size
  std::uint32_t exits = 0;       ///< ends of threads that count them; 0: the form does not count
};

struct SlicedCubin {
  std::vector<std::byte> bytes{};
  std::vector<SlicedKernel> kernels{};
};

/// The cubin with a sliced form (SlicedName) beside each kernel that can have one; the kernels stay as they were. One
/// that has a form already keeps it. An error when the file is no cubin, or cannot be written again. The result has
/// been proven (proof.h): a form for which that fails is left out.
Result<SlicedCubin> SliceCubin(image::Bytes cubin);

}  // namespace gridloom::machine
