#include "tests/sim/exec/elf_builder.h"

#include <cstring>

namespace gridloom::test {
namespace {

template <typename T>
void Put(std::vector<std::uint8_t>& out, const T& value) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

std::uint32_t PutText(std::vector<std::uint8_t>& table, const std::string& text) {
  const auto at = static_cast<std::uint32_t>(table.size());
  table.insert(table.end(), text.begin(), text.end());
  table.push_back(0);
  return at;
}

}  // namespace

// Layout: header | section contents | section table. Section numbers: 0, sections…, their relocations…, symtab, strtab,
// shstrtab.
std::vector<std::uint8_t> ElfBuilder::Build() const {
  std::vector<std::uint8_t> out(sizeof(Elf64_Ehdr)), names{0}, strings{0};
  std::vector<Elf64_Shdr> headers(1);
  const auto section_index = [&](const std::string& name) -> std::uint16_t {
    for (std::size_t i = 0; i < sections.size(); ++i)
      if (sections[i].name == name) return static_cast<std::uint16_t>(i + 1);
    return SHN_UNDEF;
  };
  const auto symbol_index = [&](const std::string& name) -> std::uint64_t {
    for (std::size_t i = 0; i < symbols.size(); ++i)
      if (symbols[i].name == name) return i + 1;
    return 0;
  };
  const auto add = [&](const std::string& name, std::uint32_t type, std::uint64_t flags, std::uint64_t align,
                       const std::vector<std::uint8_t>& bytes) {
    Elf64_Shdr header{};
    header.sh_name = PutText(names, name);
    header.sh_type = type;
    header.sh_flags = flags;
    header.sh_addralign = align;
    header.sh_offset = out.size();
    header.sh_size = bytes.size();
    out.insert(out.end(), bytes.begin(), bytes.end());
    headers.push_back(header);
  };
  for (const Section& section : sections) add(section.name, section.type, section.flags, section.align, section.bytes);
  std::size_t tables = 0;
  for (const Section& section : sections) tables += section.relocations.empty() ? 0 : 1;
  const std::size_t symtab = 1 + sections.size() + tables;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (sections[i].relocations.empty()) continue;
    std::vector<std::uint8_t> bytes;
    for (const Rela& rela : sections[i].relocations)
      Put(bytes, Elf64_Rela{rela.offset, ELF64_R_INFO(symbol_index(rela.symbol), rela.type), rela.addend});
    add(".rela" + sections[i].name, SHT_RELA, 0, 8, bytes);
    headers.back().sh_entsize = sizeof(Elf64_Rela);
    headers.back().sh_link = static_cast<std::uint32_t>(symtab);
    headers.back().sh_info = static_cast<std::uint32_t>(i + 1);
  }
  std::vector<std::uint8_t> table;
  Put(table, Elf64_Sym{});
  for (const Symbol& symbol : symbols) {
    Elf64_Sym entry{};
    entry.st_name = PutText(strings, symbol.name);
    entry.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    entry.st_shndx = section_index(symbol.section);
    entry.st_value = symbol.value;
    Put(table, entry);
  }
  add(".symtab", SHT_SYMTAB, 0, 8, table);
  headers.back().sh_entsize = sizeof(Elf64_Sym);
  headers.back().sh_link = static_cast<std::uint32_t>(symtab + 1);
  headers.back().sh_info = 1;
  add(".strtab", SHT_STRTAB, 0, 1, strings);
  PutText(names, "");  // room for its own name, which add() appends after the copy
  const auto name_at = PutText(names, ".shstrtab");
  Elf64_Shdr own{};
  own.sh_name = name_at;
  own.sh_type = SHT_STRTAB;
  own.sh_offset = out.size();
  own.sh_size = names.size();
  own.sh_addralign = 1;
  out.insert(out.end(), names.begin(), names.end());
  headers.push_back(own);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_shoff = out.size();
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<std::uint16_t>(headers.size());
  header.e_shstrndx = static_cast<std::uint16_t>(headers.size() - 1);
  for (const Elf64_Shdr& section : headers) Put(out, section);
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

std::vector<std::uint8_t> ThunkObject(const void* function) {
  ElfBuilder builder;
  std::vector<std::uint8_t> code = {0x48, 0xb8};  // movabs $function, %rax; jmp *%rax
  Put(code, reinterpret_cast<std::uint64_t>(function));
  code.insert(code.end(), {0xff, 0xe0});
  builder.sections.push_back({.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .bytes = code, .relocations = {}});
  builder.symbols.push_back({"gl_kernel", ".text", 0});
  return builder.Build();
}

}  // namespace gridloom::test
