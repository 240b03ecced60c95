#include "rewriter/image/edit.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "rewriter/image/elf_move.h"
#include "rewriter/image/elf_view.h"
#include "rewriter/image/fatbin.h"
#include "rewriter/image/fatbin_layout.h"

namespace gridloom::image {
namespace {

using Buffer = std::vector<std::byte>;

constexpr int kLevel = 19;

void Append(Buffer& to, Bytes bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }
void PadTo(Buffer& to, std::uint64_t alignment) { to.resize((to.size() + alignment - 1) / alignment * alignment); }

Result<std::string> Compress(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  const std::size_t bytes = ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), kLevel);
  if (ZSTD_isError(bytes) != 0) return Error{std::string("text cannot be compressed: ") + ZSTD_getErrorName(bytes)};
  packed.resize(bytes);
  return packed;
}

/// Header and payload of an entry with new text, which is stored with its NUL. `raw` is the old entry: its header may be
/// longer than the record, for names and options.
Result<Buffer> MakeEntry(Bytes raw, std::string text, bool compress) {
  auto header = *ReadAt<EntryHeader>(raw, 0);
  text += '\0';
  header.flags &= ~static_cast<std::uint64_t>(kFlagLz4 | kFlagZstd);
  header.compressed_bytes = 0;
  header.uncompressed_bytes = 0;
  if (compress) {
    header.flags |= kFlagZstd;
    header.uncompressed_bytes = text.size();
    GL_TRY(packed, Compress(text));
    text = std::move(packed);
    header.compressed_bytes = static_cast<std::uint32_t>(text.size());
  }
  header.payload_bytes = (text.size() + kAlignment - 1) / kAlignment * kAlignment;
  Buffer entry;
  Append(entry, raw.first(header.header_bytes));
  std::memcpy(entry.data(), &header, sizeof header);
  Append(entry, AsBytes(text));
  PadTo(entry, kAlignment);
  return entry;
}

/// The container with edited PTX; nothing when no entry was.
Result<std::optional<Buffer>> EditContainer(Bytes bytes, const PtxEdit& edit, bool compress_all) {
  GL_TRY(container, ReadContainer(bytes));
  auto header = *ReadAt<ContainerHeader>(bytes, 0);
  Buffer out;
  Append(out, bytes.first(header.header_bytes));
  std::uint64_t offset = header.header_bytes;
  bool edited = false;
  for (const Entry& entry : container.entries) {
    const auto old = *ReadAt<EntryHeader>(bytes, offset);
    const Bytes raw = bytes.subspan(offset, old.header_bytes + old.payload_bytes);
    offset += raw.size();
    if (entry.kind == EntryKind::kCubin) continue;
    std::optional<std::string> text;
    if (entry.kind == EntryKind::kPtx) {
      GL_TRY(result, edit(entry));
      text = std::move(result);
    }
    if (!text) {
      Append(out, raw);
      continue;
    }
    edited = true;
    GL_TRY(made, MakeEntry(raw, *std::move(text), compress_all || entry.compression != Compression::kNone));
    Append(out, made);
  }
  if (!edited) return std::optional<Buffer>();
  header.body_bytes = out.size() - header.header_bytes;
  std::memcpy(out.data(), &header, sizeof header);
  return std::optional(std::move(out));
}

/// The containers of a section, each edited or as it was.
struct EditedSection {
  struct Piece {
    std::uint64_t offset, old_bytes;
    Buffer bytes;
    bool edited = false;
  };
  std::vector<Piece> pieces;
  bool edited = false;

  bool FitsInPlace() const {
    return std::ranges::all_of(pieces, [](const Piece& piece) { return piece.bytes.size() <= piece.old_bytes; });
  }
};

Result<EditedSection> EditSection(Bytes section, const PtxEdit& edit) {
  EditedSection out;
  for (std::uint64_t offset = 0; offset < section.size();) {
    const Bytes rest = section.subspan(offset);
    const auto size = ContainerSize(rest);
    if (!size) {
      offset += kAlignment;
      continue;
    }
    const Bytes old = rest.first(std::min<std::uint64_t>(*size, rest.size()));
    GL_TRY(made, EditContainer(old, edit, /*compress_all=*/true));
    const bool edited = made.has_value();
    out.edited |= edited;
    out.pieces.push_back({offset, old.size(), made ? *std::move(made) : Buffer(old.begin(), old.end()), edited});
    offset += (old.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  return out;
}

/// What a shorter container leaves behind in its place is zeros, which readers skip.
void PutInPlace(const EditedSection& edited, std::byte* section) {
  for (const EditedSection::Piece& piece : edited.pieces) {
    std::memset(section + piece.offset, 0, piece.old_bytes);
    std::memcpy(section + piece.offset, piece.bytes.data(), piece.bytes.size());
  }
}

/// Programs find their containers through wrappers in .nvFatBinSegment.
Result<Buffer> PutAtEnd(Bytes file, const EditedSection& edited) {
  Buffer data;
  std::vector<MovedPlace> places;
  for (const EditedSection::Piece& piece : edited.pieces) {
    places.push_back({piece.offset, data.size(), piece.edited});
    Append(data, piece.bytes);
    PadTo(data, kAlignment);
  }
  return MoveSection(file, ".nv_fatbin", data, places, ".nvFatBinSegment");
}

Result<Buffer> EditElf(Bytes file, const PtxEdit& edit) {
  GL_TRY(elf, ReadElf(file));
  if (const ElfSection* parts = elf.FindSection("__nv_relfatbin"); parts != nullptr && !parts->data.empty()) {
    return Error{"its parts were compiled separately and have to be linked before they are rewritten; write only the PTX (--ptx)"};
  }
  Buffer out(file.begin(), file.end());
  const ElfSection* const section = elf.FindSection(".nv_fatbin");
  if (section == nullptr || section->data.empty()) return out;
  GL_TRY(edited, EditSection(section->data, edit));
  if (!edited.edited) return out;
  if (!edited.FitsInPlace()) return PutAtEnd(file, edited);
  PutInPlace(edited, out.data() + (section->data.data() - file.data()));
  return out;
}

}  // namespace

Result<std::vector<std::byte>> EditImages(Bytes file, const PtxEdit& edit) {
  if (LooksLikeElf(file)) return EditElf(file, edit);
  if (ContainerSize(file)) {
    GL_TRY(made, EditContainer(file, edit, /*compress_all=*/false));
    return made ? *std::move(made) : Buffer(file.begin(), file.end());
  }
  GL_TRY(set, ReadImages(file));
  if (set.format != Format::kPtx) return Error{"a " + std::string(TextOf(set.format)) + " cannot be written; write only the PTX (--ptx)"};
  Buffer out(file.begin(), file.end());
  for (const Container& container : set.containers) {
    for (const Entry& entry : container.entries) {
      GL_TRY(text, edit(entry));
      if (text) out.assign(AsBytes(*text).begin(), AsBytes(*text).end());
    }
  }
  return out;
}

}  // namespace gridloom::image
