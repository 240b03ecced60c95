// The little of ELF that finding device code takes: sections and symbols of 64-bit little-endian files.
//
// A reader of our own, because the driver shim lives in other people's processes and wants no shared libraries there;
// also so that broken files are our errors to report. What writes files uses libelf (elf_file.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "rewriter/image/bytes.h"
#include "rewriter/support/result.h"

namespace gridloom::image {

struct ElfSection {
  std::string_view name{};
  std::uint32_t type = 0;
  std::uint32_t info = 0;
  std::uint64_t size = 0;
  Bytes data{};  ///< empty for a section without bytes in the file (SHT_NOBITS)
};

struct ElfSymbol {
  std::string_view name;
  std::uint8_t info = 0;  ///< binding and type
  std::uint8_t other = 0;
  std::uint64_t size = 0;
};

struct ElfView {
  std::uint16_t type = 0;  ///< ET_EXEC, ET_DYN, ET_REL
  std::uint16_t machine = 0;
  std::uint8_t abi_version = 0;
  std::uint32_t flags = 0;
  bool has_interpreter = false;  ///< a program rather than a library, when type is ET_DYN
  std::vector<ElfSection> sections{};

  const ElfSection* FindSection(std::string_view name) const;
  /// Symbols of .symtab; names that lie outside the string table are empty.
  std::vector<ElfSymbol> Symbols() const;
};

bool LooksLikeElf(Bytes bytes);
Result<ElfView> ReadElf(Bytes bytes);

/// Length of the ELF file that lies complete in memory at `start`: the end of the last thing its tables name. Nothing
/// when a table or section claims to end beyond `limit`.
std::optional<std::uint64_t> ElfSizeInMemory(const std::byte* start, std::uint64_t limit);

}  // namespace gridloom::image
