// Relocatable x86-64 objects made byte by byte, for tests of the loader and for native functions as "compiled" kernels.
#pragma once

#include <elf.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gridloom::test {

struct ElfBuilder {
  struct Rela {
    std::uint64_t offset;
    std::uint32_t type;
    std::string symbol;
    std::int64_t addend;
  };
  struct Section {
    std::string name;
    std::uint32_t type = SHT_PROGBITS;
    std::uint64_t flags = SHF_ALLOC;
    std::uint64_t align = 16;
    std::vector<std::uint8_t> bytes;
    std::vector<Rela> relocations;
  };
  struct Symbol {
    std::string name;
    std::string section;  ///< empty: undefined
    std::uint64_t value = 0;
  };
  std::vector<Section> sections;
  std::vector<Symbol> symbols;

  std::vector<std::uint8_t> Build() const;
};

/// An object whose gl_kernel jumps to `function`.
std::vector<std::uint8_t> ThunkObject(const void* function);

}  // namespace gridloom::test
