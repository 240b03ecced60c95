#include "rewriter/image/cubin.h"

#include <string>

namespace gridloom::image {
namespace {

constexpr std::uint8_t kOtherEntry = 0x10;       // st_other of kernels, as nvcc 11.8 and 13.0 write it
constexpr std::uint8_t kAbiWithArchInByte1 = 8;  // CUDA 13.0; before (11.8: ABI 7) the SM number is in the lowest byte

}  // namespace

Arch CubinArch(const ElfView& elf) {
  const unsigned shift = elf.abi_version >= kAbiWithArchInByte1 ? 8 : 0;
  return {ComputeCapability::FromSm((elf.flags >> shift) & 0xFF)};
}

Result<Cubin> ReadCubin(Bytes bytes) {
  GL_TRY(elf, ReadElf(bytes));
  if (elf.machine != kElfMachineCuda)
    return Error{"not a cubin: ELF machine " + std::to_string(elf.machine) + ", expected 190"};
  Cubin cubin{.arch = CubinArch(elf)};
  for (const ElfSymbol& symbol : elf.Symbols()) {
    if ((symbol.other & kOtherEntry) == 0) continue;
    const ElfSection* code = elf.FindSection(".text." + std::string(symbol.name));
    if (code == nullptr) continue;
    const ElfSection* shared = elf.FindSection(".nv.shared." + std::string(symbol.name));
    cubin.kernels.push_back({symbol.name, code->size, code->data, shared != nullptr ? shared->size : 0});
  }
  return cubin;
}

}  // namespace gridloom::image
