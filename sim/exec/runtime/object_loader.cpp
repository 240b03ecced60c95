// Memory of a loaded object:   code sections | stubs | page end | read-only sections | table of external addresses
#include "sim/exec/runtime/object_loader.h"

#include <elf.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "sim/exec/runtime/address_space.h"
#include "sim/exec/runtime/external_symbols.h"

namespace gridloom::exec {
namespace {

constexpr std::uint64_t kMaxObjectBytes = std::uint64_t{256} << 20;  // keeps all distances within 32 bits
constexpr std::uint64_t kStubBytes = 8;                              // jmp *slot(%rip), padded

struct Section {
  Elf64_Shdr header{};
  std::string_view name;
  bool code = false;
  bool loaded = false;
  std::uint64_t offset = 0;  // in the loaded memory
};

}  // namespace

class ObjectLoader {
 public:
  ObjectLoader(std::span<const std::uint8_t> bytes, std::string_view name) : bytes_(bytes), name_(name) {}
  Result<std::unique_ptr<CodeObject>> Load();

 private:
  Error Bad(std::string what) const { return Error{"object of " + name_ + ": " + std::move(what)}; }
  bool InFile(std::uint64_t offset, std::uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }
  template <typename T>
  T ReadAt(std::uint64_t offset) const {
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  std::optional<std::string_view> StringAt(const Elf64_Shdr& table, std::uint64_t offset) const;

  Status ReadSections();
  Status ReadSymbols();
  Status ClassifySection(Section& section);
  Status CountExternals();
  Status Place();
  Status CopyAndRelocate();
  Status Relocate(const Section& section, const Elf64_Rela& rela);
  Status FindSymbols();
  Status Protect();

  Result<std::uint64_t> AddressOf(std::uint32_t symbol, bool through_stub);
  template <typename F>
  Status ForEachRelocation(F&& visit);

  std::span<const std::uint8_t> bytes_;
  std::string name_;
  std::vector<Section> sections_;
  std::vector<Elf64_Sym> symbols_;
  Elf64_Shdr symbol_strings_{};
  std::vector<std::int32_t> slot_of_symbol_;  // table slot of a symbol reached through the table, -1 without
  std::uint32_t slots_ = 0;
  std::uint64_t stubs_at_ = 0, slots_at_ = 0;
  std::unique_ptr<CodeObject> object_;
};

std::optional<std::string_view> ObjectLoader::StringAt(const Elf64_Shdr& table, std::uint64_t offset) const {
  if (table.sh_type != SHT_STRTAB || !InFile(table.sh_offset, table.sh_size) || offset >= table.sh_size)
    return std::nullopt;
  const char* const start = reinterpret_cast<const char*>(bytes_.data() + table.sh_offset + offset);
  const void* const end = std::memchr(start, 0, table.sh_size - offset);
  if (!end) return std::nullopt;
  return std::string_view(start, static_cast<const char*>(end));
}

Status ObjectLoader::ReadSections() {
  if (bytes_.size() < sizeof(Elf64_Ehdr)) return Bad("shorter than an ELF header");
  if (bytes_.size() > kMaxObjectBytes) return Bad("larger than 256 MiB");
  const auto header = ReadAt<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB)
    return Bad("not a 64-bit little-endian ELF file");
  if (header.e_type != ET_REL || header.e_machine != EM_X86_64) return Bad("not a relocatable x86-64 object");
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0 ||
      !InFile(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)))
    return Bad("section table outside of the file");
  sections_.resize(header.e_shnum);
  for (std::size_t i = 0; i < sections_.size(); ++i)
    sections_[i].header = ReadAt<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
  if (header.e_shstrndx >= sections_.size()) return Bad("no section names");
  for (Section& section : sections_) {
    const auto name = StringAt(sections_[header.e_shstrndx].header, section.header.sh_name);
    if (!name) return Bad("section name outside of the string table");
    section.name = *name;
    GL_TRY_STATUS(ClassifySection(section));
  }
  return {};
}

Status ObjectLoader::ClassifySection(Section& section) {
  const Elf64_Shdr& header = section.header;
  if ((header.sh_flags & SHF_ALLOC) == 0 || header.sh_size == 0) return {};
  if (header.sh_type == SHT_NOTE || section.name.starts_with(".eh_frame")) return {};
  const std::string name(section.name);
  if (header.sh_type != SHT_PROGBITS) return Bad("section " + name + " is of a type generated code has no use for");
  if (!InFile(header.sh_offset, header.sh_size)) return Bad("section " + name + " lies outside of the file");
  if ((header.sh_flags & SHF_TLS) != 0) return Bad("section " + name + " holds thread-local data");
  if ((header.sh_flags & SHF_WRITE) != 0 && !section.name.starts_with(".data.rel.ro"))
    return Bad("section " + name + " is writable");
  const std::uint64_t align = header.sh_addralign;
  if ((align & (align - 1)) != 0 || align > kPageBytes)
    return Bad("section " + name + " has alignment " + std::to_string(align));
  section.code = (header.sh_flags & SHF_EXECINSTR) != 0;
  section.loaded = true;
  return {};
}

Status ObjectLoader::ReadSymbols() {
  for (const Section& section : sections_) {
    const Elf64_Shdr& header = section.header;
    if (header.sh_type != SHT_SYMTAB) continue;
    if (!symbols_.empty()) return Bad("two symbol tables");
    if (header.sh_entsize != sizeof(Elf64_Sym) || !InFile(header.sh_offset, header.sh_size))
      return Bad("symbol table outside of the file");
    if (header.sh_link >= sections_.size()) return Bad("symbol table without names");
    symbol_strings_ = sections_[header.sh_link].header;
    symbols_.resize(header.sh_size / sizeof(Elf64_Sym));
    for (std::size_t i = 0; i < symbols_.size(); ++i)
      symbols_[i] = ReadAt<Elf64_Sym>(header.sh_offset + i * sizeof(Elf64_Sym));
  }
  slot_of_symbol_.assign(symbols_.size(), -1);
  return {};
}

template <typename F>
Status ObjectLoader::ForEachRelocation(F&& visit) {
  for (const Section& table : sections_) {
    const Elf64_Shdr& header = table.header;
    if (header.sh_type != SHT_RELA && header.sh_type != SHT_REL) continue;
    if (header.sh_info >= sections_.size()) return Bad("relocations of an unknown section");
    const Section& target = sections_[header.sh_info];
    if (!target.loaded) continue;
    if (header.sh_type == SHT_REL || header.sh_entsize != sizeof(Elf64_Rela) ||
        !InFile(header.sh_offset, header.sh_size))
      return Bad("relocations of " + std::string(target.name) + " are malformed");
    for (std::uint64_t at = 0; at + sizeof(Elf64_Rela) <= header.sh_size; at += sizeof(Elf64_Rela)) {
      const auto rela = ReadAt<Elf64_Rela>(header.sh_offset + at);
      if (ELF64_R_SYM(rela.r_info) >= symbols_.size()) return Bad("relocation of an unknown symbol");
      GL_TRY_STATUS(visit(target, rela));
    }
  }
  return {};
}

Status ObjectLoader::CountExternals() {
  return ForEachRelocation([&](const Section&, const Elf64_Rela& rela) -> Status {
    const std::uint32_t symbol = ELF64_R_SYM(rela.r_info);
    const std::uint32_t type = ELF64_R_TYPE(rela.r_info);
    const bool by_table = type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
    const bool external = symbols_[symbol].st_shndx == SHN_UNDEF && symbol != 0;
    if ((by_table || external) && slot_of_symbol_[symbol] < 0)
      slot_of_symbol_[symbol] = static_cast<std::int32_t>(slots_++);
    return {};
  });
}

Status ObjectLoader::Place() {
  std::uint64_t at = 0;
  const auto place = [&](bool code) {
    for (Section& section : sections_) {
      if (!section.loaded || section.code != code) continue;
      at = RoundUp(at, std::max<std::uint64_t>(section.header.sh_addralign, 1));
      section.offset = at;
      if (code && section.name == ".text") {
        object_->text_at_ = at;
        object_->text_bytes_ = section.header.sh_size;
      }
      at += section.header.sh_size;
    }
  };
  place(true);
  stubs_at_ = at = RoundUp(at, 16);
  at += slots_ * kStubBytes;
  object_->code_bytes_ = at = RoundUp(at, kPageBytes);
  place(false);
  slots_at_ = at = RoundUp(at, 8);
  at += slots_ * 8;
  object_->bytes_ = RoundUp(at, kPageBytes);
  if (object_->code_bytes_ == 0) return Bad("holds no code");
  if (object_->bytes_ > kMaxObjectBytes) return Bad("needs more than 256 MiB");
  void* const memory = mmap(nullptr, object_->bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Bad(std::string("no memory for code: ") + std::strerror(errno));
  object_->memory_ = static_cast<std::uint8_t*>(memory);
  return {};
}

/// Where a symbol is. External functions may lie further away than 32 bits reach: `through_stub` gives their stub.
Result<std::uint64_t> ObjectLoader::AddressOf(std::uint32_t symbol, bool through_stub) {
  const auto base = reinterpret_cast<std::uint64_t>(object_->memory_);
  const Elf64_Sym& entry = symbols_[symbol];
  if (entry.st_shndx == SHN_ABS) return std::uint64_t{entry.st_value};
  if (entry.st_shndx == SHN_UNDEF) {
    const auto name = StringAt(symbol_strings_, entry.st_name);
    if (!name || name->empty()) return Bad("relocation of a symbol without name");
    const void* const address = FindExternalSymbol(*name);
    if (!address) return Bad("calls " + std::string(*name) + ", which generated code may not");
    if (through_stub) return base + stubs_at_ + static_cast<std::uint64_t>(slot_of_symbol_[symbol]) * kStubBytes;
    return reinterpret_cast<std::uint64_t>(address);
  }
  if (entry.st_shndx >= sections_.size() || !sections_[entry.st_shndx].loaded)
    return Bad("relocation of a symbol in no loaded section");
  const Section& section = sections_[entry.st_shndx];
  if (entry.st_value > section.header.sh_size)
    return Bad("symbol beyond the end of section " + std::string(section.name));
  return base + section.offset + entry.st_value;
}

Status ObjectLoader::Relocate(const Section& section, const Elf64_Rela& rela) {
  const std::uint32_t symbol = ELF64_R_SYM(rela.r_info);
  const std::uint32_t type = ELF64_R_TYPE(rela.r_info);
  if (type == R_X86_64_NONE) return {};
  const bool wide = type == R_X86_64_64 || type == R_X86_64_PC64;
  const std::uint64_t width = wide ? 8 : 4;
  if (rela.r_offset > section.header.sh_size || width > section.header.sh_size - rela.r_offset)
    return Bad("relocation beyond the end of section " + std::string(section.name));
  std::uint8_t* const place = object_->memory_ + section.offset + rela.r_offset;
  const auto here = reinterpret_cast<std::uint64_t>(place);
  GL_TRY(target, AddressOf(symbol, !wide));
  std::uint64_t value = 0;
  switch (type) {
    case R_X86_64_64:
    case R_X86_64_32:
    case R_X86_64_32S: value = target + static_cast<std::uint64_t>(rela.r_addend); break;
    case R_X86_64_PC64:
    case R_X86_64_PC32:
    case R_X86_64_PLT32: value = target + static_cast<std::uint64_t>(rela.r_addend) - here; break;
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: {
      const auto slot = reinterpret_cast<std::uint64_t>(object_->memory_) + slots_at_ +
                        static_cast<std::uint64_t>(slot_of_symbol_[symbol]) * 8;
      value = slot + static_cast<std::uint64_t>(rela.r_addend) - here;
      break;
    }
    default: return Bad("relocation type " + std::to_string(type) + " is not supported");
  }
  if (wide) {
    std::memcpy(place, &value, 8);
    return {};
  }
  const bool fits =
      type == R_X86_64_32
          ? value <= UINT32_MAX
          : static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(value))) == value;
  if (!fits)
    return Bad("relocation of type " + std::to_string(type) +
               " does not reach its target; compile position independent code");
  const auto narrow = static_cast<std::uint32_t>(value);
  std::memcpy(place, &narrow, 4);
  return {};
}

Status ObjectLoader::CopyAndRelocate() {
  for (const Section& section : sections_)
    if (section.loaded)
      std::memcpy(object_->memory_ + section.offset, bytes_.data() + section.header.sh_offset, section.header.sh_size);
  for (std::uint32_t symbol = 0; symbol < symbols_.size(); ++symbol) {
    if (slot_of_symbol_[symbol] < 0) continue;
    const auto index = static_cast<std::uint64_t>(slot_of_symbol_[symbol]);
    GL_TRY(address, AddressOf(symbol, false));
    std::uint8_t* const slot = object_->memory_ + slots_at_ + index * 8;
    std::memcpy(slot, &address, 8);
    std::uint8_t* const stub = object_->memory_ + stubs_at_ + index * kStubBytes;
    const auto distance = static_cast<std::int32_t>(slot - (stub + 6));
    const std::uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc};  // jmp *distance(%rip); int3; int3
    std::memcpy(stub, jump, sizeof jump);
    std::memcpy(stub + 2, &distance, 4);
  }
  return ForEachRelocation([&](const Section& section, const Elf64_Rela& rela) { return Relocate(section, rela); });
}

Status ObjectLoader::FindSymbols() {
  for (std::uint32_t symbol = 0; symbol < symbols_.size(); ++symbol) {
    const Elf64_Sym& entry = symbols_[symbol];
    if (ELF64_ST_BIND(entry.st_info) == STB_LOCAL || entry.st_shndx == SHN_UNDEF || entry.st_shndx >= sections_.size())
      continue;
    const Section& section = sections_[entry.st_shndx];
    if (!section.loaded) continue;
    const auto name = StringAt(symbol_strings_, entry.st_name);
    if (!name || entry.st_value >= section.header.sh_size) return Bad("malformed symbol");
    object_->symbols_.emplace(*name, object_->memory_ + section.offset + entry.st_value);
  }
  return {};
}

Status ObjectLoader::Protect() {
  const std::size_t data_bytes = object_->bytes_ - object_->code_bytes_;
  if (mprotect(object_->memory_, object_->code_bytes_, PROT_READ | PROT_EXEC) != 0 ||
      (data_bytes != 0 && mprotect(object_->memory_ + object_->code_bytes_, data_bytes, PROT_READ) != 0))
    return Bad(std::string("cannot make code executable: ") + std::strerror(errno));
  return {};
}

Result<std::unique_ptr<CodeObject>> ObjectLoader::Load() {
  object_.reset(new CodeObject);
  GL_TRY_STATUS(ReadSections());
  GL_TRY_STATUS(ReadSymbols());
  GL_TRY_STATUS(CountExternals());
  GL_TRY_STATUS(Place());
  GL_TRY_STATUS(CopyAndRelocate());
  GL_TRY_STATUS(FindSymbols());
  GL_TRY_STATUS(Protect());
  return std::move(object_);
}

Result<std::unique_ptr<CodeObject>> CodeObject::Load(std::span<const std::uint8_t> object, std::string_view name) {
  return ObjectLoader(object, name).Load();
}

CodeObject::~CodeObject() {
  if (memory_) munmap(memory_, bytes_);
}

const void* CodeObject::Find(std::string_view symbol) const {
  const auto it = symbols_.find(symbol);
  return it == symbols_.end() ? nullptr : it->second;
}

}  // namespace gridloom::exec
