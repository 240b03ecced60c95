#include "tests/rewriter/image/image_bytes.h"

#include <elf.h>
#include <lz4.h>
#include <zstd.h>

namespace gridloom::image::testing {
namespace {

std::uint32_t Pad8(std::size_t size) { return static_cast<std::uint32_t>((size + 7) / 8 * 8); }

void AppendText(Buffer& buffer, std::string_view text) {
  const Bytes bytes = AsBytes(text);
  buffer.insert(buffer.end(), bytes.begin(), bytes.end());
}

std::string Compress(const EntrySpec& entry) {
  if (entry.compression == Compression::kZstd) {
    std::string out(ZSTD_compressBound(entry.payload.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), entry.payload.data(), entry.payload.size(), 3));
    return out;
  }
  if (entry.compression == Compression::kLz4) {
    std::string out(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(entry.payload.size()))), '\0');
    out.resize(static_cast<std::size_t>(LZ4_compress_default(
        entry.payload.data(), out.data(), static_cast<int>(entry.payload.size()), static_cast<int>(out.size()))));
    return out;
  }
  return entry.payload;
}

Buffer MakeEntry(const EntrySpec& entry) {
  const std::string stored = Compress(entry);
  const bool compressed = entry.compression != Compression::kNone;
  std::uint64_t flags = entry.flags;
  if (entry.compression == Compression::kZstd) flags |= 0x8000;
  if (entry.compression == Compression::kLz4) flags |= 0x2000;
  const std::uint32_t name_offset = entry.name.empty() ? 0 : 64;
  const std::uint32_t options_offset = entry.options.empty() ? 0 : 64 + Pad8(entry.name.size());
  const std::uint32_t header_bytes =
      64 + Pad8(entry.name.size()) + (entry.options.empty() ? 0 : 8 + Pad8(entry.options.size()));

  Buffer out;
  Append(out, entry.kind);
  Append(out, std::uint16_t{0x0101});
  Append(out, header_bytes);
  Append(out, std::uint64_t{Pad8(stored.size())});
  Append(out, static_cast<std::uint32_t>(compressed ? stored.size() : 0));
  Append(out, options_offset);
  Append(out, std::uint16_t{0});
  Append(out, std::uint16_t{9});
  Append(out, entry.sm);
  Append(out, name_offset);
  Append(out, static_cast<std::uint32_t>(entry.name.size()));
  Append(out, flags);
  Append(out, std::uint64_t{0});
  Append(out, std::uint64_t{compressed ? entry.payload.size() : 0});
  AppendText(out, entry.name);
  out.resize(64 + Pad8(entry.name.size()));
  if (!entry.options.empty()) {
    Append(out, options_offset + 8);
    Append(out, static_cast<std::uint32_t>(entry.options.size()));
    AppendText(out, entry.options);
  }
  out.resize(header_bytes);
  AppendText(out, stored);
  out.resize(header_bytes + Pad8(stored.size()));
  return out;
}

}  // namespace

Buffer Concat(const std::vector<Buffer>& buffers) {
  Buffer out;
  for (const Buffer& buffer : buffers) out.insert(out.end(), buffer.begin(), buffer.end());
  return out;
}

Buffer MakeContainer(const std::vector<EntrySpec>& entries) {
  Buffer body;
  for (const EntrySpec& entry : entries) body = Concat({body, MakeEntry(entry)});
  Buffer out;
  Append(out, std::uint32_t{0xBA55ED50});
  Append(out, std::uint16_t{1});
  Append(out, std::uint16_t{16});
  Append(out, std::uint64_t{body.size()});
  return Concat({out, body});
}

Buffer MakeElf(std::uint16_t type, std::uint16_t machine, const std::vector<SectionSpec>& sections, std::uint32_t flags,
               std::uint8_t abi_version) {
  std::string names(1, '\0');
  Buffer bodies;
  std::vector<Elf64_Shdr> headers(1, Elf64_Shdr{});
  const auto add = [&](const std::string& name, std::uint32_t section_type, const Buffer& data) {
    bodies.resize(Pad8(bodies.size()));
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names.size());
    header.sh_type = section_type;
    header.sh_offset = sizeof(Elf64_Ehdr) + bodies.size();
    header.sh_size = data.size();
    headers.push_back(header);
    names += name + '\0';
    bodies.insert(bodies.end(), data.begin(), data.end());
  };
  for (const SectionSpec& section : sections) add(section.name, SHT_PROGBITS, section.data);
  Buffer name_bytes;
  AppendText(name_bytes, names + ".shstrtab" + '\0');
  add(".shstrtab", SHT_STRTAB, name_bytes);
  bodies.resize(Pad8(bodies.size()));

  Elf64_Ehdr header{};
  std::string_view(ELFMAG).copy(reinterpret_cast<char*>(header.e_ident), SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_ident[EI_ABIVERSION] = abi_version;
  header.e_type = type;
  header.e_machine = machine;
  header.e_flags = flags;
  header.e_shoff = sizeof(Elf64_Ehdr) + bodies.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(headers.size());
  header.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
  Buffer out;
  Append(out, header);
  out = Concat({out, bodies});
  for (const Elf64_Shdr& section : headers) Append(out, section);
  return out;
}

}  // namespace gridloom::image::testing
