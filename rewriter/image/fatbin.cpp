#include "rewriter/image/fatbin.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "rewriter/image/fatbin_layout.h"

namespace gridloom::image {
namespace {

constexpr std::size_t kMaxParts = 1 << 16;

std::string Hex(std::uint64_t value) {
  char text[2 + 16 + 1];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

/// Text in an entry's header, without NULs and blanks around it; empty when it is not wholly inside the header.
std::string_view HeaderText(Bytes header, std::uint32_t offset, std::uint32_t size) {
  const auto slice = Slice(header, offset, size);
  if (offset == 0 || !slice) return {};
  std::string_view text = AsText(*slice);
  text = text.substr(0, text.find('\0'));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::string_view Options(Bytes header, std::uint32_t record_offset) {
  if (record_offset == 0) return {};
  const auto record = ReadAt<OptionsRecord>(header, record_offset);
  return record ? HeaderText(header, record->offset, record->bytes) : std::string_view{};
}

EntryKind KindOf(std::uint16_t raw) {
  if (raw == 1) return EntryKind::kPtx;
  return raw == 2 ? EntryKind::kCubin : EntryKind::kOther;
}

Arch ArchOf(const EntryHeader& header) {
  Arch arch{ComputeCapability::FromSm(header.sm)};
  if ((header.flags & kFlagArchSpecific) != 0) arch.scope = ArchScope::kExact;
  else if ((header.flags & kFlagFamilySpecific) != 0) arch.scope = ArchScope::kFamily;
  return arch;
}

/// Fills in how the payload is stored. `payload` includes the padding.
Status SetPayload(Entry& entry, const EntryHeader& header, Bytes payload) {
  if ((header.flags & kFlagZstd) != 0) entry.compression = Compression::kZstd;
  else if ((header.flags & kFlagLz4) != 0) entry.compression = Compression::kLz4;
  if (entry.compression == Compression::kNone) {
    entry.stored = payload;
    entry.uncompressed_bytes = payload.size();
    return {};
  }
  if (header.compressed_bytes > payload.size()) {
    return Error{"compressed size " + std::to_string(header.compressed_bytes) + " exceeds the payload of " +
                 std::to_string(payload.size()) + " bytes"};
  }
  entry.stored = header.compressed_bytes == 0 ? payload : payload.first(header.compressed_bytes);
  entry.uncompressed_bytes = header.uncompressed_bytes;
  return {};
}

struct SizedEntry {
  Entry entry;
  std::uint64_t bytes = 0;  // header and payload
};

Result<SizedEntry> ReadEntry(Bytes bytes) {
  const auto header = ReadAt<EntryHeader>(bytes, 0);
  if (!header) return Error{"entry header is cut off after " + std::to_string(bytes.size()) + " of 64 bytes"};
  if (header->header_bytes < sizeof(EntryHeader)) {
    return Error{"entry header says it is " + std::to_string(header->header_bytes) +
                 " bytes long; expected 64 or more"};
  }
  const auto header_bytes = Slice(bytes, 0, header->header_bytes);
  const auto payload = Slice(bytes, header->header_bytes, header->payload_bytes);
  if (!header_bytes || !payload) {
    return Error{"entry of " + std::to_string(header->header_bytes) + " + " + std::to_string(header->payload_bytes) +
                 " bytes does not fit into the " + std::to_string(bytes.size()) + " bytes left"};
  }
  Entry entry{.kind = KindOf(header->kind),
              .raw_kind = header->kind,
              .arch = ArchOf(*header),
              .version_major = header->version_major,
              .version_minor = header->version_minor,
              .flags = header->flags,
              .debug = (header->flags & kFlagDebug) != 0,
              .source_name = HeaderText(*header_bytes, header->name_offset, header->name_bytes),
              .options = Options(*header_bytes, header->options_offset)};
  GL_TRY_STATUS(SetPayload(entry, *header, *payload));
  return SizedEntry{std::move(entry), header_bytes->size() + payload->size()};
}

bool AllZero(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

Result<Container> ReadContainerPointer(const void* container) {
  if (container == nullptr) return Error{"fat binary wrapper points to no container"};
  const auto* start = static_cast<const std::byte*>(container);
  const auto size = ContainerSize({start, sizeof(ContainerHeader)});
  if (!size) return Error{"fat binary wrapper does not point to a container"};
  if (*size > kMaxContainerBytes) return Error{"fat binary container claims " + std::to_string(*size) + " bytes"};
  return ReadContainer({start, static_cast<std::size_t>(*size)});
}

}  // namespace

std::optional<std::uint64_t> ContainerSize(Bytes bytes) {
  const auto header = ReadAt<ContainerHeader>(bytes, 0);
  if (!header || header->magic != kContainerMagic || header->header_bytes < sizeof(ContainerHeader))
    return std::nullopt;
  if (header->body_bytes > UINT64_MAX - header->header_bytes) return UINT64_MAX;
  return header->header_bytes + header->body_bytes;
}

Result<Container> ReadContainer(Bytes bytes) {
  const auto header = ReadAt<ContainerHeader>(bytes, 0);
  const auto size = ContainerSize(bytes);
  if (!size) return Error{"not a fat binary container"};
  if (header->version != 1)
    return Error{"fat binary container of version " + std::to_string(header->version) + "; expected 1"};
  const auto whole = Slice(bytes, 0, *size);
  if (!whole) {
    return Error{"fat binary container of " + std::to_string(*size) + " bytes is cut off after " +
                 std::to_string(bytes.size())};
  }
  Container container;
  std::uint64_t offset = header->header_bytes;
  while (offset < whole->size()) {
    const Bytes rest = whole->subspan(static_cast<std::size_t>(offset));
    if (rest.size() < sizeof(EntryHeader) && AllZero(rest)) break;
    auto read = ReadEntry(rest);
    if (!read.ok()) return Error{"fat binary entry at offset " + Hex(offset) + ": " + read.error().message};
    container.entries.push_back(std::move(read->entry));
    offset += read->bytes;
  }
  return container;
}

Result<std::vector<Container>> ReadContainers(Bytes bytes) {
  std::vector<Container> containers;
  std::uint64_t offset = 0;
  while (offset < bytes.size()) {
    const Bytes rest = bytes.subspan(static_cast<std::size_t>(offset));
    const auto size = ContainerSize(rest);
    if (!size) {
      const Bytes gap = rest.first(std::min<std::size_t>(kAlignment, rest.size()));
      if (!AllZero(gap)) return Error{"no fat binary container at offset " + Hex(offset)};
      offset += gap.size();
      continue;
    }
    auto container = ReadContainer(rest);
    if (!container.ok()) return Error{"container at offset " + Hex(offset) + ": " + container.error().message};
    containers.push_back(*std::move(container));
    offset += (*size + kAlignment - 1) / kAlignment * kAlignment;
  }
  return containers;
}

Result<std::vector<Container>> ReadWrapper(const void* wrapper) {
  WrapperHeader header;
  std::memcpy(&header, wrapper, sizeof header);
  if (header.magic != kWrapperMagic) return Error{"not a fat binary wrapper"};
  if (header.version != 1 && header.version != 2) {
    return Error{"fat binary wrapper of version " + std::to_string(header.version) + "; expected 1 or 2"};
  }
  std::vector<Container> containers;
  GL_TRY(own, ReadContainerPointer(header.container));
  containers.push_back(std::move(own));
  if (header.version == 1 || header.parts == nullptr) return containers;
  for (const void* const* part = header.parts; *part != nullptr; ++part) {
    if (containers.size() > kMaxParts) return Error{"fat binary wrapper lists more than 65536 parts"};
    GL_TRY(container, ReadContainerPointer(*part));
    container.relocatable = true;
    containers.push_back(std::move(container));
  }
  return containers;
}

}  // namespace gridloom::image
