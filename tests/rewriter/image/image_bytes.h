// Builds containers, wrappers and ELF files byte by byte, so that the readers are tested without nvcc and on inputs
// that nvcc would never write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/image/image_set.h"

namespace gridloom::image::testing {

using Buffer = std::vector<std::byte>;

inline constexpr Compression kCompressions[] = {Compression::kNone, Compression::kLz4, Compression::kZstd};

inline constexpr std::string_view kPtx90 =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n";

struct EntrySpec {
  std::uint16_t kind = 1;
  std::uint32_t sm = 90;
  std::uint64_t flags = 0x11;  // 64-bit, Linux
  Compression compression = Compression::kNone;
  std::string payload = std::string(kPtx90) + '\0';
  std::string name{};
  std::string options{};
};

/// One container with these entries, in the layout nvcc writes.
Buffer MakeContainer(const std::vector<EntrySpec>& entries);

struct SectionSpec {
  std::string name;
  Buffer data;
};

/// A 64-bit little-endian ELF file of that type and machine with these sections and a section name table.
Buffer MakeElf(std::uint16_t type, std::uint16_t machine, const std::vector<SectionSpec>& sections,
               std::uint32_t flags = 0, std::uint8_t abi_version = 0);

template <typename T>
void Append(Buffer& buffer, const T& value) {
  const std::size_t old = buffer.size();
  buffer.resize(old + sizeof(T));
  std::memcpy(buffer.data() + old, &value, sizeof(T));
}

Buffer Concat(const std::vector<Buffer>& buffers);

}  // namespace gridloom::image::testing
