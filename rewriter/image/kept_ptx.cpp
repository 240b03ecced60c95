#include "rewriter/image/kept_ptx.h"

#include <elf.h>

#include <cstring>
#include <string>

#include "rewriter/image/cubin.h"
#include "rewriter/image/elf_view.h"

namespace gridloom::image {
namespace {

constexpr std::uint64_t kAlignment = 8;
/// From compute capability 10.0 on, ptxas writes each function a second time, in sections (".nv.merc…", ".nv.capmerc…")
/// that have this processor-specific flag. nvlink 13.0 ends with a segmentation fault when it finds sections that it
/// does not know among those without the flag, and passes over those with it.
constexpr std::uint64_t kSecondForm = 0x10000000;

/// Appends `data` at the next aligned offset, which is the result.
std::uint64_t Append(std::vector<std::byte>* file, Bytes data) {
  file->resize((file->size() + kAlignment - 1) / kAlignment * kAlignment);
  const std::uint64_t offset = file->size();
  file->insert(file->end(), data.begin(), data.end());
  return offset;
}

template <typename T>
Bytes BytesOf(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

Result<std::vector<std::byte>> KeepPtx(Bytes cubin, std::string_view ptx) {
  GL_TRY(elf, ReadElf(cubin));
  if (elf.machine != kElfMachineCuda)
    return Error{"not a cubin: ELF machine " + std::to_string(elf.machine) + ", expected 190"};
  if (elf.FindSection(kKeptPtxSection) != nullptr)
    return Error{"it has a section " + std::string(kKeptPtxSection) + " already"};
  auto header = *ReadAt<Elf64_Ehdr>(cubin, 0);
  // More sections than the header can count are told by the first one; ptxas writes a few per kernel.
  if (header.e_shnum == 0 || header.e_shnum >= SHN_LORESERVE - 1 || header.e_shstrndx >= header.e_shnum)
    return Error{"its section table is not of the usual kind"};

  std::vector<Elf64_Shdr> sections;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i)
    sections.push_back(*ReadAt<Elf64_Shdr>(cubin, header.e_shoff + i * header.e_shentsize));
  Elf64_Shdr& names = sections[header.e_shstrndx];
  std::string text(AsText(elf.sections[header.e_shstrndx].data));
  if (text.size() > UINT32_MAX / 2) return Error{"its table of names is too long"};
  const auto name = static_cast<std::uint32_t>(text.size());
  text.append(kKeptPtxSection).push_back('\0');

  std::vector<std::byte> file(cubin.begin(), cubin.end());
  names.sh_offset = Append(&file, AsBytes(text));
  names.sh_size = text.size();
  const std::uint64_t offset = Append(&file, AsBytes(ptx));
  Elf64_Shdr kept{};
  kept.sh_name = name;
  kept.sh_type = SHT_PROGBITS;
  kept.sh_offset = offset;
  kept.sh_size = ptx.size();
  kept.sh_addralign = 1;
  for (const Elf64_Shdr& section : sections) kept.sh_flags |= section.sh_flags & kSecondForm;
  sections.push_back(kept);
  header.e_shoff = Append(&file, BytesOf(sections));
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  std::memcpy(file.data(), &header, sizeof(header));
  return file;
}

}  // namespace gridloom::image
