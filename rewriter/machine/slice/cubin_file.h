// A cubin that is changed and written again. What was not changed keeps its bytes, its number and its place in the
// order of the file; a section that grows or is put in moves what stands behind it by a multiple of every alignment in
// the file. Without libelf, which the driver shim has no part of (rewriter/image/elf_view.h).
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/image/bytes.h"
#include "rewriter/support/result.h"

namespace gridloom::machine {

class CubinFile {
 public:
  struct Section {
    std::string name{};
    Elf64_Shdr header{};
    std::vector<std::byte> data{};  ///< empty for one without bytes in the file
    std::size_t behind = 0;         ///< of one that was put in: the section that it stands behind in the file
  };
  struct Symbol {
    std::string name{};
    Elf64_Sym entry{};
  };
  /// What a linker or the driver fills in.
  struct Relocation {
    std::uint64_t offset = 0;  ///< in the section that it is for
    std::uint32_t type = 0;
    std::uint32_t symbol = 0;
    std::int64_t addend = 0;  ///< as it stands in the relocation, or in its place where there is none
  };

  /// An error that says what is wrong: no cubin, cut off, sections that overlap or lie outside, several sections of one
  /// name, addresses given away already.
  static Result<CubinFile> Read(image::Bytes bytes);

  unsigned sm() const { return sm_; }
  bool is_linked() const { return header_.e_type == ET_EXEC; }
  const std::vector<Section>& sections() const { return sections_; }
  const std::vector<Symbol>& symbols() const { return symbols_; }
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }
  std::optional<std::size_t> Find(std::string_view name) const;
  /// Its section symbol, or the function's.
  std::optional<std::uint32_t> SectionSymbol(std::size_t section) const;
  /// Of .rel.NAME and .rela.NAME.
  std::vector<Relocation> RelocationsOf(std::size_t section) const;

  /// At least as many bytes as before, and not of one that had none.
  Status SetData(std::size_t section, std::vector<std::byte> data);
  void SetInfo(std::size_t section, std::uint32_t info) { sections_[section].header.sh_info = info; }
  /// A section like another one, and behind it in the file: with its header, and these bytes where it has bytes. Its
  /// number is the next one.
  Result<std::size_t> AddSection(const std::string& name, std::size_t like, std::vector<std::byte> data);
  /// Its number is the next one.
  Result<std::uint32_t> AddSymbol(const std::string& name, Elf64_Sym entry);

  std::vector<std::byte> Write() const;

 private:
  Status ReadSections();
  Status CheckSections() const;
  Status CheckPlaces() const;
  Status ReadSymbols();
  Status ReadSegments();
  std::uint64_t Alignment() const;
  /// Adds a text to a table of names; where it begins there.
  std::uint32_t AddName(std::size_t table, const std::string& name);
  bool IsAdded(std::size_t section) const { return section >= header_.e_shnum; }
  std::uint64_t AddedWithoutBytes() const;
  class Layout;

  std::vector<std::byte> bytes_{};  ///< as they were read
  Elf64_Ehdr header_{};
  unsigned sm_ = 0;
  std::vector<Section> sections_{};
  std::vector<Symbol> symbols_{};
  std::vector<Elf64_Phdr> segments_{};
};

}  // namespace gridloom::machine
