#include "rewriter/image/elf_view.h"

#include <elf.h>

#include <algorithm>
#include <string>

namespace gridloom::image {
namespace {

template <typename T>
std::optional<T> TableEntry(Bytes bytes, std::uint64_t table, std::uint64_t entry_bytes, std::uint64_t index) {
  // index < 2^32 and entry_bytes < 2^16: the product fits; the sum may not.
  const std::uint64_t offset = index * entry_bytes;
  if (table > UINT64_MAX - offset) return std::nullopt;
  return ReadAt<T>(bytes, table + offset);
}

Result<ElfSection> ReadSection(Bytes bytes, const Elf64_Shdr& header) {
  ElfSection section{.type = header.sh_type, .info = header.sh_info, .size = header.sh_size};
  if (header.sh_type == SHT_NOBITS || header.sh_type == SHT_NULL) return section;
  const auto data = Slice(bytes, header.sh_offset, header.sh_size);
  if (!data) {
    return Error{"section of " + std::to_string(header.sh_size) + " bytes at " + std::to_string(header.sh_offset) +
                 " lies outside the file of " + std::to_string(bytes.size()) + " bytes"};
  }
  section.data = *data;
  return section;
}

bool HasInterpreter(Bytes bytes, const Elf64_Ehdr& header) {
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = TableEntry<Elf64_Phdr>(bytes, header.e_phoff, header.e_phentsize, i);
    if (segment && segment->p_type == PT_INTERP) return true;
  }
  return false;
}

}  // namespace

const ElfSection* ElfView::FindSection(std::string_view name) const {
  const auto section = std::ranges::find(sections, name, &ElfSection::name);
  return section == sections.end() ? nullptr : &*section;
}

std::vector<ElfSymbol> ElfView::Symbols() const {
  std::vector<ElfSymbol> symbols;
  const ElfSection* table = FindSection(".symtab");
  const ElfSection* names = FindSection(".strtab");
  if (table == nullptr || names == nullptr) return symbols;
  for (std::uint64_t offset = 0; offset + sizeof(Elf64_Sym) <= table->data.size(); offset += sizeof(Elf64_Sym)) {
    const auto symbol = *ReadAt<Elf64_Sym>(table->data, offset);
    symbols.push_back({TextAt(names->data, symbol.st_name), symbol.st_info, symbol.st_other, symbol.st_size});
  }
  return symbols;
}

bool LooksLikeElf(Bytes bytes) { return AsText(bytes).starts_with(std::string_view(ELFMAG, SELFMAG)); }

Result<ElfView> ReadElf(Bytes bytes) {
  const auto header = ReadAt<Elf64_Ehdr>(bytes, 0);
  if (!LooksLikeElf(bytes)) return Error{"not an ELF file"};
  if (!header) return Error{"ELF header is cut off after " + std::to_string(bytes.size()) + " bytes"};
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return Error{"only 64-bit little-endian ELF files are supported"};
  }
  ElfView view{.type = header->e_type,
               .machine = header->e_machine,
               .abi_version = header->e_ident[EI_ABIVERSION],
               .flags = header->e_flags,
               .has_interpreter = HasInterpreter(bytes, *header)};
  if (header->e_shoff == 0) return view;

  std::uint64_t count = header->e_shnum;
  std::uint64_t names_index = header->e_shstrndx;
  const auto first = TableEntry<Elf64_Shdr>(bytes, header->e_shoff, header->e_shentsize, 0);
  if (header->e_shentsize < sizeof(Elf64_Shdr) || !first) return Error{"ELF section table lies outside the file"};
  if (count == 0) count = first->sh_size;  // more than 65279 sections
  if (names_index == SHN_XINDEX) names_index = first->sh_link;
  if (count > bytes.size() / header->e_shentsize)
    return Error{"ELF file claims " + std::to_string(count) + " sections"};

  std::vector<std::uint32_t> name_offsets;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto section_header = TableEntry<Elf64_Shdr>(bytes, header->e_shoff, header->e_shentsize, i);
    if (!section_header) return Error{"ELF section table is cut off"};
    auto section = ReadSection(bytes, *section_header);
    if (!section.ok()) return Error{"ELF section " + std::to_string(i) + ": " + section.error().message};
    view.sections.push_back(*std::move(section));
    name_offsets.push_back(section_header->sh_name);
  }
  if (names_index >= view.sections.size()) return view;
  const Bytes names = view.sections[names_index].data;
  for (std::size_t i = 0; i < view.sections.size(); ++i) view.sections[i].name = TextAt(names, name_offsets[i]);
  return view;
}

std::optional<std::uint64_t> ElfSizeInMemory(const std::byte* start, std::uint64_t limit) {
  const auto header = *ReadAt<Elf64_Ehdr>({start, sizeof(Elf64_Ehdr)}, 0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return std::nullopt;
  std::uint64_t end = sizeof(Elf64_Ehdr);
  const auto extend = [&](std::uint64_t offset, std::uint64_t size) {
    if (offset > limit || size > limit - offset) return false;
    end = std::max(end, offset + size);
    return true;
  };
  const std::uint64_t sections = std::uint64_t{header.e_shnum} * header.e_shentsize;
  const std::uint64_t segments = std::uint64_t{header.e_phnum} * header.e_phentsize;
  if (!extend(header.e_shoff, sections) || !extend(header.e_phoff, segments)) return std::nullopt;
  const Bytes tables{start, static_cast<std::size_t>(end)};
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = TableEntry<Elf64_Shdr>(tables, header.e_shoff, header.e_shentsize, i);
    if (!section) return std::nullopt;
    if (section->sh_type != SHT_NOBITS && !extend(section->sh_offset, section->sh_size)) return std::nullopt;
  }
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = TableEntry<Elf64_Phdr>(tables, header.e_phoff, header.e_phentsize, i);
    if (!segment || !extend(segment->p_offset, segment->p_filesz)) return std::nullopt;
  }
  return end;
}

}  // namespace gridloom::image
