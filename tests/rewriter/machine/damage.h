// Cubins that are damaged in ways of which each is a lie of another kind: cut off, bytes that changed, attributes that
// say something else, sections that overlap or are larger than the file, branches out of their function.
#pragma once

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <random>
#include <span>
#include <string_view>
#include <vector>

namespace gridloom::machine {

using DamagedBytes = std::vector<std::byte>;

inline Elf64_Ehdr HeaderOf(const DamagedBytes& cubin) {
  Elf64_Ehdr header;
  std::memcpy(&header, cubin.data(), sizeof header);
  return header;
}
inline std::size_t PlaceOfSection(const DamagedBytes& cubin, std::size_t number) {
  return HeaderOf(cubin).e_shoff + number * sizeof(Elf64_Shdr);
}
inline Elf64_Shdr SectionOf(const DamagedBytes& cubin, std::size_t number) {
  Elf64_Shdr section;
  std::memcpy(&section, cubin.data() + PlaceOfSection(cubin, number), sizeof section);
  return section;
}

class Damage {
 public:
  static constexpr std::array<std::string_view, 6> kKinds = {"cut",      "bytes", "attributes",
                                                             "overlaps", "sizes", "branches"};

  explicit Damage(unsigned seed) : random_(seed) {}

  DamagedBytes Make(DamagedBytes cubin, std::string_view kind) {
    if (kind == "cut") cubin.resize(Below(cubin.size()));
    if (kind == "bytes") Bytes(cubin);
    if (kind == "attributes") Attributes(cubin);
    if (kind == "overlaps" || kind == "sizes") Section(cubin, kind == "overlaps");
    if (kind == "branches") Branches(cubin);
    return cubin;
  }

 private:
  std::uint64_t Below(std::uint64_t end) { return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random_); }
  void Turn(DamagedBytes& cubin, std::size_t at) {
    const auto bit = static_cast<unsigned>(Below(8));
    cubin[at] ^= static_cast<std::byte>(1U << bit);
  }
  void Bytes(DamagedBytes& cubin) {
    for (std::uint64_t count = 1 + Below(12); count > 0; --count) Turn(cubin, Below(cubin.size()));
  }
  /// Sections whose names begin so, but for empty ones.
  static std::vector<Elf64_Shdr> SectionsNamed(const DamagedBytes& cubin, std::string_view beginning) {
    std::vector<Elf64_Shdr> found;
    const Elf64_Ehdr header = HeaderOf(cubin);
    const Elf64_Shdr names = SectionOf(cubin, header.e_shstrndx);
    for (std::size_t number = 1; number < header.e_shnum; ++number) {
      const Elf64_Shdr section = SectionOf(cubin, number);
      const std::string_view name(reinterpret_cast<const char*>(cubin.data()) + names.sh_offset + section.sh_name);
      if (name.starts_with(beginning) && section.sh_type != SHT_NOBITS && section.sh_size != 0)
        found.push_back(section);
    }
    return found;
  }
  void Attributes(DamagedBytes& cubin) {
    const auto infos = SectionsNamed(cubin, ".nv.info");
    for (std::uint64_t count = 1 + Below(3); count > 0; --count) {
      const Elf64_Shdr& info = infos[Below(infos.size())];
      Turn(cubin, info.sh_offset + Below(info.sh_size));
    }
  }
  void Section(DamagedBytes& cubin, bool overlaps) {
    const Elf64_Ehdr header = HeaderOf(cubin);
    const std::size_t number = 1 + Below(header.e_shnum - 1U), other = 1 + Below(header.e_shnum - 1U);
    Elf64_Shdr section = SectionOf(cubin, number);
    if (overlaps) section.sh_offset = SectionOf(cubin, other).sh_offset + Below(64);
    else section.sh_size = Below(2) == 0 ? section.sh_size + 1 + Below(4096) : ~std::uint64_t{0} - Below(4096);
    std::memcpy(cubin.data() + PlaceOfSection(cubin, number), &section, sizeof section);
  }
  /// The distances of some, which are in bits 34 to 81.
  void Branches(DamagedBytes& cubin) {
    constexpr unsigned kWordBytes = 16, kBranch = 0x947, kOpcodeMask = 0xFFF;
    std::vector<std::size_t> branches;
    for (const Elf64_Shdr& text : SectionsNamed(cubin, ".text.")) {
      for (std::size_t at = text.sh_offset; at + kWordBytes <= text.sh_offset + text.sh_size; at += kWordBytes) {
        std::uint64_t low = 0;
        std::memcpy(&low, cubin.data() + at, sizeof low);
        if ((low & kOpcodeMask) == kBranch) branches.push_back(at);
      }
    }
    for (std::uint64_t count = 1 + Below(4); count > 0; --count) {
      const std::size_t place = branches[Below(branches.size())];
      const std::size_t byte = 5 + Below(5);
      Turn(cubin, place + byte);
    }
  }

  std::mt19937 random_;
};

/// One of this project's cubins; those for sm_86 and sm_89 are sm_80's with another number, which has the same words.
inline DamagedBytes ForArchitecture(DamagedBytes cubin, unsigned sm) {
  constexpr std::size_t kNumberAt = offsetof(Elf64_Ehdr, e_flags) + 1;
  cubin[kNumberAt] = static_cast<std::byte>(sm);
  return cubin;
}

}  // namespace gridloom::machine
