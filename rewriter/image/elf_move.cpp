#include "rewriter/image/elf_move.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "rewriter/image/elf_file.h"

namespace gridloom::image {
namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t RoundUp(std::uint64_t value, std::uint64_t to = kPage) { return (value + to - 1) / to * to; }

/// Calls `visit(entry)` for each entry of a section's table; entries for which it says true are written back.
template <class Entry, class Visit>
void ForEachEntry(Elf_Scn* section, Entry* (*get)(Elf_Data*, int, Entry*), int (*put)(Elf_Data*, int, Entry*),
                  Visit visit) {
  Elf_Data* const data = elf_getdata(section, nullptr);
  if (data == nullptr) return;
  Entry entry{};
  for (int i = 0; get(data, i, &entry) != nullptr; ++i) {
    if (visit(i, entry)) put(data, i, &entry);
  }
}

template <class Visit>
void ForEachRelocation(Elf_Scn* section, Visit visit) {
  ForEachEntry<GElf_Rela>(section, gelf_getrela, gelf_update_rela, visit);
}

Result<ElfFile> Open(Bytes file) {
  GL_TRY(elf, ElfFile::Copy(file));
  const GElf_Ehdr& header = elf.header();
  if ((header.e_type != ET_EXEC && header.e_type != ET_DYN && header.e_type != ET_REL) ||
      header.e_machine != EM_X86_64) {
    return Error{"it is no program, library or object for x86-64"};
  }
  return elf;
}

/// Where in the file and in memory the data is.
struct Place {
  std::uint64_t offset = 0, address = 0;
};

/// Maps `bytes` at the end of the file behind all other segments. The loader wants segments in the order of their
/// addresses, so that the notes' header has to stand behind the last one that is loaded.
Result<Place> MapAtEnd(ElfFile& elf, std::uint64_t bytes) {
  const std::vector<GElf_Phdr> segments = elf.Segments();
  std::size_t last_load = 0, notes = segments.size();
  Place place{.offset = RoundUp(elf.size())};
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].p_type == PT_LOAD) {
      last_load = i;
      place.address = std::max(place.address, RoundUp(segments[i].p_vaddr + segments[i].p_memsz));
    }
    if (segments[i].p_type == PT_NOTE) notes = i;
  }
  if (notes == segments.size() || notes < last_load) return Error{"it has no segment to spare for longer device code"};
  GL_TRY_STATUS(elf.SetSegment(notes, {.p_type = PT_LOAD,
                                       .p_flags = PF_R,
                                       .p_offset = place.offset,
                                       .p_vaddr = place.address,
                                       .p_paddr = place.address,
                                       .p_filesz = bytes,
                                       .p_memsz = bytes,
                                       .p_align = kPage}));
  return place;
}

/// Pointers in a section: words in the file, where the address is fixed at link time, and relocations of the section's
/// words. Whether there was one.
bool Repoint(const ElfFile& elf, Elf_Scn* section, std::uint64_t from, std::uint64_t to) {
  bool found = false;
  const GElf_Shdr header = ElfFile::HeaderOf(section);
  if (Elf_Data* const data = elf_getdata(section, nullptr); data != nullptr && data->d_buf != nullptr) {
    for (std::uint64_t at = 0; at + 8 <= data->d_size; at += 8) {
      auto* const word = static_cast<char*>(data->d_buf) + at;
      if (std::memcmp(word, &from, sizeof from) != 0) continue;
      std::memcpy(word, &to, sizeof to);
      elf_flagdata(data, ELF_C_SET, ELF_F_DIRTY);
      found = true;
    }
  }
  for (Elf_Scn* table = elf.NextSection(nullptr); table != nullptr; table = elf.NextSection(table)) {
    if (ElfFile::HeaderOf(table).sh_type != SHT_RELA) continue;
    ForEachRelocation(table, [&](int, GElf_Rela& rela) {
      const bool ours = GELF_R_TYPE(rela.r_info) == R_X86_64_RELATIVE &&
                        rela.r_addend == static_cast<std::int64_t>(from) &&
                        rela.r_offset - header.sh_addr < header.sh_size;
      if (!ours) return false;
      rela.r_addend = static_cast<std::int64_t>(to);
      return found = true;
    });
  }
  return found;
}

/// Where what was at `from` is now; nothing when it stays or is no place that is known.
std::optional<std::uint64_t> NewOf(const std::vector<MovedPlace>& places, std::uint64_t from) {
  const auto found = std::ranges::find(places, from, &MovedPlace::from);
  if (found == places.end() || found->to == from) return std::nullopt;
  return found->to;
}

/// Relocations of an object file that reach places by the symbol of their section.
void MoveAddends(const ElfFile& elf, Elf_Scn* symbols, int number, const std::vector<MovedPlace>& places) {
  for (Elf_Scn* table = elf.NextSection(nullptr); table != nullptr; table = elf.NextSection(table)) {
    const GElf_Shdr header = ElfFile::HeaderOf(table);
    if (header.sh_type != SHT_RELA || header.sh_link != elf_ndxscn(symbols)) continue;
    ForEachRelocation(table, [&](int, GElf_Rela& rela) {
      if (GELF_R_SYM(rela.r_info) != static_cast<std::uint64_t>(number)) return false;
      const auto to = NewOf(places, static_cast<std::uint64_t>(rela.r_addend));
      if (to) rela.r_addend = static_cast<std::int64_t>(*to);
      return to.has_value();
    });
  }
}

/// Symbols of an object file that name places in a section, and relocations that reach them from the section's own
/// symbol.
void MoveSymbols(const ElfFile& elf, Elf_Scn* section, const std::vector<MovedPlace>& places) {
  for (Elf_Scn* table = elf.NextSection(nullptr); table != nullptr; table = elf.NextSection(table)) {
    if (ElfFile::HeaderOf(table).sh_type != SHT_SYMTAB) continue;
    ForEachEntry<GElf_Sym>(table, gelf_getsym, gelf_update_sym, [&](int number, GElf_Sym& symbol) {
      if (symbol.st_shndx != elf_ndxscn(section)) return false;
      if (GELF_ST_TYPE(symbol.st_info) == STT_SECTION) {
        MoveAddends(elf, table, number, places);
        return false;
      }
      const auto to = NewOf(places, symbol.st_value);
      if (to) symbol.st_value = *to;
      return to.has_value();
    });
  }
}

}  // namespace

Result<std::vector<std::byte>> MoveSection(Bytes file, std::string_view section, const std::vector<std::byte>& data,
                                           const std::vector<MovedPlace>& places, std::string_view pointers) {
  GL_TRY(elf, Open(file));
  if (elf.header().e_type == ET_REL) return Error{"it is no linked program or library"};
  Elf_Scn* const moved = elf.FindSection(section);
  Elf_Scn* const pointing = elf.FindSection(pointers);
  if (moved == nullptr || pointing == nullptr)
    return Error{"it has no section " + std::string(moved == nullptr ? section : pointers)};
  const GElf_Shdr old = ElfFile::HeaderOf(moved);
  if (!Slice(file, old.sh_offset, old.sh_size))
    return Error{"section " + std::string(section) + " lies outside of the file"};
  GL_TRY(place, MapAtEnd(elf, data.size()));
  GL_TRY_STATUS(elf.Move(moved, place.offset, place.address, data));
  for (const MovedPlace& moves : places) {
    if (!Repoint(elf, pointing, old.sh_addr + moves.from, place.address + moves.to) && moves.required)
      return Error{"nothing points to a place that moves in " + std::string(section)};
  }
  return elf.Write();
}

Result<std::vector<std::byte>> MoveSectionOfObject(Bytes file, std::string_view section,
                                                   const std::vector<std::byte>& data,
                                                   const std::vector<MovedPlace>& places) {
  GL_TRY(elf, Open(file));
  Elf_Scn* const moved = elf.FindSection(section);
  if (moved == nullptr || elf.header().e_type != ET_REL)
    return Error{"it is no object file with a section " + std::string(section)};
  const GElf_Shdr old = ElfFile::HeaderOf(moved);
  if (!Slice(file, old.sh_offset, old.sh_size))
    return Error{"section " + std::string(section) + " lies outside of the file"};
  const std::uint64_t alignment = std::max<std::uint64_t>(old.sh_addralign, 1);
  if (alignment > kPage) return Error{"section " + std::string(section) + " wants an odd alignment"};
  GL_TRY_STATUS(elf.Move(moved, RoundUp(elf.size(), alignment), old.sh_addr, data));
  MoveSymbols(elf, moved, places);
  return elf.Write();
}

}  // namespace gridloom::image
