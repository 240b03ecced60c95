// Records of fat binary containers, for the reader and the writer.
#pragma once

#include <cstdint>

namespace gridloom::image {

// Layouts as nvcc 11.8 and 13.0 write them; found by comparing containers of known content (docs/design/images.md).
struct WrapperHeader {
  std::uint32_t magic;
  std::uint32_t version;  // 1; 2 when `parts` counts
  const void* container;
  const void* const* parts;  // version 2: containers of the parts of an -rdc program, closed by a null pointer
};
static_assert(sizeof(WrapperHeader) == 24);

struct ContainerHeader {
  std::uint32_t magic;
  std::uint16_t version;       // 1
  std::uint16_t header_bytes;  // 16
  std::uint64_t body_bytes;    // 0 is legal
};
static_assert(sizeof(ContainerHeader) == 16);

struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t version;  // 0x0101
  std::uint32_t header_bytes;
  std::uint64_t payload_bytes;     // as stored, rounded up to 8
  std::uint32_t compressed_bytes;  // exact; 0 when stored plain
  std::uint32_t options_offset;    // from the entry's start, 0 = none
  std::uint16_t version_minor;
  std::uint16_t version_major;
  std::uint32_t sm;
  std::uint32_t name_offset;  // from the entry's start, 0 = none
  std::uint32_t name_bytes;
  std::uint64_t flags;
  std::uint64_t reserved;
  std::uint64_t uncompressed_bytes;  // 0 when stored plain
};
static_assert(sizeof(EntryHeader) == 64);

struct OptionsRecord {
  std::uint32_t offset;  // from the entry's start
  std::uint32_t bytes;
};

enum EntryFlag : std::uint64_t {
  kFlagDebug = 0x2,
  kFlagLz4 = 0x2000,
  kFlagZstd = 0x8000,
  kFlagArchSpecific = 0x100000,
  kFlagFamilySpecific = 0x200000,
};

inline constexpr std::uint64_t kAlignment = 8;

}  // namespace gridloom::image
