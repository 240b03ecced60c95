// Call frame information (DWARF 5, section 6.4) of a kernel whose code grows.
#pragma once

#include <cstdint>

#include "rewriter/machine/slice/cubin_file.h"

namespace gridloom::machine {

/// The description of the kernel's frame that reached up to the end of its code does so again. Where functions of their
/// own stand between, what is added has none.
Status GrowFrame(CubinFile& cubin, std::uint32_t symbol, std::uint64_t before, std::uint64_t after);

}  // namespace gridloom::machine
