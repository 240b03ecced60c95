// PTX that travels inside a cubin. Compilers that call the toolkit's assembler themselves (Triton, XLA, Julia) load
// what it makes: machine code, which nothing here runs. So the PTX it was made of is put beside it, in a section of its
// own that drivers and tools overlook.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "rewriter/image/bytes.h"
#include "rewriter/support/result.h"

namespace gridloom::image {

inline constexpr std::string_view kKeptPtxSection = ".gridloom.ptx";

/// A copy of the cubin with `ptx` in a section kKeptPtxSection; everything else stays at its offset. An error when it
/// is no cubin, or has such a section already.
Result<std::vector<std::byte>> KeepPtx(Bytes cubin, std::string_view ptx);

}  // namespace gridloom::image
