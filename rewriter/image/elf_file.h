// An ELF file that is changed by libelf: a copy that only this process sees. For tools alone: the driver shim links
// nothing of this (docs/design/images.md).
#pragma once

#include <gelf.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/image/bytes.h"
#include "rewriter/support/result.h"

namespace gridloom::image {

class ElfFile {
 public:
  /// A copy of a 64-bit little-endian file, whose sections stay where they are until they are moved. An error when
  /// libelf does not take it for one, or when there is no memory for the copy.
  static Result<ElfFile> Copy(Bytes file);
  ElfFile(ElfFile&& other) noexcept;
  ElfFile& operator=(ElfFile&&) = delete;
  ~ElfFile();

  const GElf_Ehdr& header() const { return header_; }
  std::vector<GElf_Phdr> Segments() const;
  /// The section of that name; nullptr when there is none.
  Elf_Scn* FindSection(std::string_view name) const;
  Elf_Scn* NextSection(Elf_Scn* before) const { return elf_nextscn(elf_.get(), before); }
  static GElf_Shdr HeaderOf(Elf_Scn* section);

  /// Where what has been read ends; sections that are put there stand behind all others.
  std::uint64_t size() const { return size_; }
  /// Puts a section elsewhere, with other bytes, which have to live until the file is written. What it had is zeroed.
  Status Move(Elf_Scn* section, std::uint64_t offset, std::uint64_t address, const std::vector<std::byte>& bytes);
  Status SetSegment(std::size_t number, GElf_Phdr segment);

  /// The whole file with all changes.
  Result<std::vector<std::byte>> Write();

  /// What libelf says of its last failure.
  static Error LastError(std::string what);

 private:
  ElfFile(int file, std::uint64_t size) : file_(file), size_(size) {}
  struct End {
    void operator()(Elf* elf) const { elf_end(elf); }
  };

  int file_ = -1;  ///< in memory
  std::uint64_t size_ = 0;
  std::unique_ptr<Elf, End> elf_;
  GElf_Ehdr header_{};
};

}  // namespace gridloom::image
