#include "rewriter/image/elf_move.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

namespace gridloom::image {
namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t RoundUp(std::uint64_t value) { return (value + kPage - 1) / kPage * kPage; }

/// Headers of the file, read from its bytes and written back to the copy.
class Mover {
 public:
  Mover(Bytes file, const std::vector<std::byte>& data) : file_(file), data_(data), out_(file.begin(), file.end()) {}

  Result<std::vector<std::byte>> Run(std::string_view section, const std::vector<MovedPlace>& places,
                                     std::string_view pointers) {
    GL_TRY_STATUS(ReadHeaders());
    if (header_.e_type == ET_REL) return Error{"it is no linked program or library"};
    const auto moved = FindSection(section), pointing = FindSection(pointers);
    if (!moved || !pointing) return Error{"it has no section " + std::string(moved ? pointers : section)};
    const Elf64_Shdr old = sections_[*moved];
    const auto old_bytes = Slice(file_, old.sh_offset, old.sh_size);
    if (!old_bytes) return Error{"section " + std::string(section) + " lies outside of the file"};
    GL_TRY_STATUS(MapAtEnd());
    std::memset(out_.data() + old.sh_offset, 0, old.sh_size);
    sections_[*moved].sh_offset = offset_;
    sections_[*moved].sh_addr = address_;
    sections_[*moved].sh_size = data_.size();
    for (const MovedPlace& place : places) {
      if (!Repoint(sections_[*pointing], old.sh_addr + place.from, address_ + place.to) && place.required)
        return Error{"nothing points to a place that moves in " + std::string(section)};
    }
    return Finish();
  }

  Result<std::vector<std::byte>> RunOnObject(std::string_view section, const std::vector<MovedPlace>& places) {
    GL_TRY_STATUS(ReadHeaders());
    const auto moved = FindSection(section);
    if (!moved || header_.e_type != ET_REL) return Error{"it is no object file with a section " + std::string(section)};
    Elf64_Shdr& header = sections_[*moved];
    if (!Slice(file_, header.sh_offset, header.sh_size))
      return Error{"section " + std::string(section) + " lies outside of the file"};
    std::memset(out_.data() + header.sh_offset, 0, header.sh_size);
    const std::uint64_t alignment = std::max<std::uint64_t>(header.sh_addralign, 1);
    if (alignment > kPage) return Error{"section " + std::string(section) + " wants an odd alignment"};
    offset_ = (out_.size() + alignment - 1) / alignment * alignment;
    out_.resize(offset_);
    out_.insert(out_.end(), data_.begin(), data_.end());
    header.sh_offset = offset_;
    header.sh_size = data_.size();
    for (const MovedPlace& place : places) {
      if (place.from != place.to) MoveSymbols(*moved, place);
    }
    return Finish();
  }

 private:
  Status ReadHeaders() {
    const auto header = ReadAt<Elf64_Ehdr>(file_, 0);
    if (!header || header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
      return Error{"it is no 64-bit ELF file"};
    if ((header->e_type != ET_EXEC && header->e_type != ET_DYN && header->e_type != ET_REL) ||
        header->e_machine != EM_X86_64) {
      return Error{"it is no program, library or object for x86-64"};
    }
    header_ = *header;
    for (unsigned i = 0; i < header_.e_shnum; ++i) {
      const auto section = ReadAt<Elf64_Shdr>(file_, header_.e_shoff + i * sizeof(Elf64_Shdr));
      if (!section) return Error{"its section headers are cut off"};
      sections_.push_back(*section);
    }
    for (unsigned i = 0; i < header_.e_phnum; ++i) {
      const auto segment = ReadAt<Elf64_Phdr>(file_, header_.e_phoff + i * sizeof(Elf64_Phdr));
      if (!segment) return Error{"its program headers are cut off"};
      segments_.push_back(*segment);
    }
    return {};
  }

  std::optional<std::size_t> FindSection(std::string_view name) const {
    if (header_.e_shstrndx >= sections_.size()) return std::nullopt;
    const Elf64_Shdr& names = sections_[header_.e_shstrndx];
    const auto texts = Slice(file_, names.sh_offset, names.sh_size);
    for (std::size_t i = 0; texts && i < sections_.size(); ++i) {
      if (TextAt(*texts, sections_[i].sh_name) == name) return i;
    }
    return std::nullopt;
  }

  /// Appends the data and maps it behind all other segments. The loader wants segments in the order of their addresses,
  /// so that the notes' header has to stand behind the last one that is loaded.
  Status MapAtEnd() {
    std::size_t last_load = 0, notes = segments_.size();
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      if (segments_[i].p_type == PT_LOAD) {
        last_load = i;
        address_ = std::max(address_, RoundUp(segments_[i].p_vaddr + segments_[i].p_memsz));
      }
      if (segments_[i].p_type == PT_NOTE) notes = i;
    }
    if (notes == segments_.size() || notes < last_load)
      return Error{"it has no segment to spare for longer device code"};
    offset_ = RoundUp(out_.size());
    out_.resize(offset_);
    out_.insert(out_.end(), data_.begin(), data_.end());
    segments_[notes] = {.p_type = PT_LOAD,
                        .p_flags = PF_R,
                        .p_offset = offset_,
                        .p_vaddr = address_,
                        .p_paddr = address_,
                        .p_filesz = data_.size(),
                        .p_memsz = data_.size(),
                        .p_align = kPage};
    return {};
  }

  /// Pointers in a section: words in the file, where the address is fixed at link time, and relocations of the
  /// section's words.
  bool Repoint(const Elf64_Shdr& section, std::uint64_t from, std::uint64_t to) {
    bool found = false;
    for (std::uint64_t at = 0; at + 8 <= section.sh_size; at += 8) {
      const auto word = ReadAt<std::uint64_t>(file_, section.sh_offset + at);
      if (!word || *word != from) continue;
      std::memcpy(out_.data() + section.sh_offset + at, &to, sizeof to);
      found = true;
    }
    for (const Elf64_Shdr& relocations : sections_) {
      if (relocations.sh_type != SHT_RELA) continue;
      for (std::uint64_t at = 0; at + sizeof(Elf64_Rela) <= relocations.sh_size; at += sizeof(Elf64_Rela)) {
        auto rela = ReadAt<Elf64_Rela>(file_, relocations.sh_offset + at);
        const bool ours = rela && ELF64_R_TYPE(rela->r_info) == R_X86_64_RELATIVE &&
                          rela->r_addend == static_cast<std::int64_t>(from) &&
                          rela->r_offset - section.sh_addr < section.sh_size;
        if (!ours) continue;
        rela->r_addend = static_cast<std::int64_t>(to);
        std::memcpy(out_.data() + relocations.sh_offset + at, &*rela, sizeof *rela);
        found = true;
      }
    }
    return found;
  }

  /// Symbols of an object file that name a place in a section, and relocations that reach it from the section's own
  /// symbol.
  void MoveSymbols(std::size_t section, const MovedPlace& place) {
    for (const Elf64_Shdr& table : sections_) {
      if (table.sh_type != SHT_SYMTAB) continue;
      for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
        auto symbol = ReadAt<Elf64_Sym>(file_, table.sh_offset + at);
        if (!symbol || symbol->st_shndx != section) continue;
        if (ELF64_ST_TYPE(symbol->st_info) == STT_SECTION) {
          MoveAddends(table, at / sizeof(Elf64_Sym), place);
        } else if (symbol->st_value == place.from) {
          symbol->st_value = place.to;
          std::memcpy(out_.data() + table.sh_offset + at, &*symbol, sizeof *symbol);
        }
      }
    }
  }
  void MoveAddends(const Elf64_Shdr& symbols, std::uint64_t number, const MovedPlace& place) {
    for (const Elf64_Shdr& relocations : sections_) {
      if (relocations.sh_type != SHT_RELA || &sections_[relocations.sh_link % sections_.size()] != &symbols) continue;
      for (std::uint64_t at = 0; at + sizeof(Elf64_Rela) <= relocations.sh_size; at += sizeof(Elf64_Rela)) {
        auto rela = ReadAt<Elf64_Rela>(file_, relocations.sh_offset + at);
        if (!rela || ELF64_R_SYM(rela->r_info) != number || rela->r_addend != static_cast<std::int64_t>(place.from))
          continue;
        rela->r_addend = static_cast<std::int64_t>(place.to);
        std::memcpy(out_.data() + relocations.sh_offset + at, &*rela, sizeof *rela);
      }
    }
  }

  std::vector<std::byte> Finish() {
    std::memcpy(out_.data() + header_.e_shoff, sections_.data(), sections_.size() * sizeof(Elf64_Shdr));
    std::memcpy(out_.data() + header_.e_phoff, segments_.data(), segments_.size() * sizeof(Elf64_Phdr));
    return std::move(out_);
  }

  const Bytes file_;
  const std::vector<std::byte>& data_;
  std::vector<std::byte> out_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Phdr> segments_;
  std::uint64_t offset_ = 0, address_ = 0;  ///< of the data: in the file, in memory
};

}  // namespace

Result<std::vector<std::byte>> MoveSection(Bytes file, std::string_view section, const std::vector<std::byte>& data,
                                           const std::vector<MovedPlace>& places, std::string_view pointers) {
  return Mover(file, data).Run(section, places, pointers);
}

Result<std::vector<std::byte>> MoveSectionOfObject(Bytes file, std::string_view section,
                                                   const std::vector<std::byte>& data,
                                                   const std::vector<MovedPlace>& places) {
  return Mover(file, data).RunOnObject(section, places);
}

}  // namespace gridloom::image
