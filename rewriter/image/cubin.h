// Machine code of one architecture: an ELF file of machine 190. Nothing in it is executed here; what it holds is told
// to the user (which architecture, which kernels).
#pragma once

#include <string_view>
#include <vector>

#include "rewriter/image/elf_view.h"
#include "rewriter/image/image_set.h"

namespace gridloom::image {

inline constexpr std::uint16_t kElfMachineCuda = 190;  // EM_CUDA

struct CubinKernel {
  std::string_view name;  ///< mangled
  std::uint64_t code_bytes = 0;
  Bytes code{};                    ///< in the cubin's bytes; empty where the file has none of it
  std::uint64_t shared_bytes = 0;  ///< static
};

struct Cubin {
  Arch arch{};  ///< the a and f suffixes are not recorded in a cubin
  std::vector<CubinKernel> kernels{};
};

Arch CubinArch(const ElfView& elf);
Result<Cubin> ReadCubin(Bytes bytes);

}  // namespace gridloom::image
