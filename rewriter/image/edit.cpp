#include "rewriter/image/edit.h"

#include <elf.h>
#include <lz4.h>
#include <lz4hc.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "rewriter/image/archive.h"
#include "rewriter/image/cubin.h"
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

Result<std::string> PackZstd(const std::string& payload) {
  std::string packed(ZSTD_compressBound(payload.size()), '\0');
  const std::size_t bytes = ZSTD_compress(packed.data(), packed.size(), payload.data(), payload.size(), kLevel);
  if (ZSTD_isError(bytes) != 0) return Error{std::string("it cannot be compressed: ") + ZSTD_getErrorName(bytes)};
  packed.resize(bytes);
  return packed;
}

Result<std::string> PackLz4(const std::string& payload) {
  if (payload.size() > LZ4_MAX_INPUT_SIZE) return Error{"it is too long for LZ4"};
  const auto size = static_cast<int>(payload.size());
  std::string packed(static_cast<std::size_t>(LZ4_compressBound(size)), '\0');
  const int bytes =
      LZ4_compress_HC(payload.data(), packed.data(), size, static_cast<int>(packed.size()), LZ4HC_CLEVEL_DEFAULT);
  if (bytes <= 0) return Error{"it cannot be compressed with LZ4"};
  packed.resize(static_cast<std::size_t>(bytes));
  return packed;
}

/// Header and payload of an entry with another payload. `raw` is the old entry: its header may be longer than the
/// record, for names and options.
Result<Buffer> MakeEntry(Bytes raw, std::string payload, Compression how) {
  auto header = *ReadAt<EntryHeader>(raw, 0);
  header.flags &= ~static_cast<std::uint64_t>(kFlagLz4 | kFlagZstd);
  header.compressed_bytes = 0;
  header.uncompressed_bytes = 0;
  if (how != Compression::kNone) {
    header.flags |= how == Compression::kZstd ? kFlagZstd : kFlagLz4;
    header.uncompressed_bytes = payload.size();
    GL_TRY(packed, how == Compression::kZstd ? PackZstd(payload) : PackLz4(payload));
    payload = std::move(packed);
    header.compressed_bytes = static_cast<std::uint32_t>(payload.size());
  }
  header.payload_bytes = (payload.size() + kAlignment - 1) / kAlignment * kAlignment;
  Buffer entry;
  Append(entry, raw.first(header.header_bytes));
  std::memcpy(entry.data(), &header, sizeof header);
  Append(entry, AsBytes(payload));
  PadTo(entry, kAlignment);
  return entry;
}

/// A text is stored with its NUL.
Result<Buffer> MakeTextEntry(Bytes raw, std::string text, bool compress) {
  text += '\0';
  return MakeEntry(raw, std::move(text), compress ? Compression::kZstd : Compression::kNone);
}

/// A container made of an old one's header and these entries.
Buffer MakeContainer(Bytes old, const std::vector<Buffer>& entries) {
  auto header = *ReadAt<ContainerHeader>(old, 0);
  Buffer out;
  Append(out, old.first(header.header_bytes));
  for (const Buffer& entry : entries) Append(out, entry);
  header.body_bytes = out.size() - header.header_bytes;
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

/// An entry and its bytes in the file.
struct RawEntry {
  Entry entry;
  Bytes raw;
};

Result<std::vector<RawEntry>> ReadRawEntries(Bytes container) {
  GL_TRY(read, ReadContainer(container));
  std::vector<RawEntry> entries;
  std::uint64_t offset = ReadAt<ContainerHeader>(container, 0)->header_bytes;
  for (Entry& entry : read.entries) {
    const auto header = *ReadAt<EntryHeader>(container, offset);
    entries.push_back({std::move(entry), container.subspan(offset, header.header_bytes + header.payload_bytes)});
    offset += entries.back().raw.size();
  }
  return entries;
}

/// What becomes of device code.
struct Edits {
  const PtxEdit& ptx;
  const CodeEdit& code;
};

/// One container, entry by entry.
class ContainerEdit {
 public:
  ContainerEdit(const Edits& edits, bool compress_all, PtxRole role)
      : edits_(edits), compress_all_(compress_all), role_(role) {}

  /// The container with edited entries; nothing when no entry was.
  Result<std::optional<Buffer>> Edit(Bytes bytes) {
    GL_TRY(entries, ReadRawEntries(bytes));
    std::vector<std::optional<Buffer>> edited(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto& [entry, raw] = entries[i];
      if (entry.kind == EntryKind::kPtx) GL_TRY_STATUS(EditText(entry, raw, edited[i]));
    }
    const auto is_edited = [](const std::optional<Buffer>& one) { return one.has_value(); };
    const bool texts = std::ranges::any_of(edited, is_edited);
    std::vector<Buffer> out;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto& [entry, raw] = entries[i];
      if (entry.kind == EntryKind::kCubin) {
        const bool alone = edits_.code != nullptr && !HasTextFor(entry.arch.capability, entries);
        if (alone) GL_TRY_STATUS(EditCode(entry, raw, edited[i]));
        if (texts && !alone) continue;
      }
      out.push_back(edited[i] ? *edited[i] : Buffer(raw.begin(), raw.end()));
    }
    if (std::ranges::none_of(edited, is_edited)) return std::optional<Buffer>();
    return std::optional(MakeContainer(bytes, out));
  }

 private:
  static bool HasTextFor(ComputeCapability device, const std::vector<RawEntry>& entries) {
    return std::ranges::any_of(entries, [&](const RawEntry& one) {
      return one.entry.kind == EntryKind::kPtx && one.entry.arch.PtxRunsOn(device);
    });
  }
  Status EditText(const Entry& entry, Bytes raw, std::optional<Buffer>& to) const {
    GL_TRY(text, edits_.ptx({&entry}, role_));
    if (!text) return {};
    GL_TRY(made, MakeTextEntry(raw, *std::move(text), compress_all_ || entry.compression != Compression::kNone));
    to = std::move(made);
    return {};
  }
  Status EditCode(const Entry& entry, Bytes raw, std::optional<Buffer>& to) const {
    GL_TRY(code, edits_.code(entry));
    if (!code) return {};
    GL_TRY(made, MakeEntry(raw, std::string(AsText(*code)), entry.compression));
    to = std::move(made);
    return {};
  }

  const Edits& edits_;
  const bool compress_all_;
  const PtxRole role_;
};

/// A section that holds containers, each edited or as it was.
struct EditedSection {
  struct Piece {
    std::uint64_t offset = 0;
    Bytes old;
    Buffer bytes = {};
    bool edited = false;
  };
  std::string_view name;
  std::vector<Piece> pieces;

  bool IsEdited() const { return std::ranges::any_of(pieces, &Piece::edited); }
  bool FitsInPlace() const {
    return std::ranges::all_of(pieces, [](const Piece& piece) { return piece.bytes.size() <= piece.old.size(); });
  }
};

EditedSection Unedited(std::string_view name, Bytes section) {
  EditedSection out{name, {}};
  for (std::uint64_t offset = 0; offset < section.size();) {
    const Bytes rest = section.subspan(offset);
    const auto size = ContainerSize(rest);
    if (!size) {
      offset += kAlignment;
      continue;
    }
    const Bytes old = rest.first(std::min<std::uint64_t>(*size, rest.size()));
    out.pieces.push_back({offset, old, Buffer(old.begin(), old.end())});
    offset += (old.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  return out;
}

/// What a shorter container leaves behind in its place is zeros, which readers skip. Programs find their containers,
/// those of parts as well, through wrappers in .nvFatBinSegment.
Result<Buffer> PutBack(Bytes file, std::uint16_t elf_type, Bytes section, const EditedSection& edited) {
  Buffer out(file.begin(), file.end());
  if (!edited.IsEdited()) return out;
  if (edited.FitsInPlace()) {
    std::byte* const to = out.data() + (section.data() - file.data());
    for (const EditedSection::Piece& piece : edited.pieces) {
      std::memset(to + piece.offset, 0, piece.old.size());
      std::memcpy(to + piece.offset, piece.bytes.data(), piece.bytes.size());
    }
    return out;
  }
  Buffer data;
  std::vector<MovedPlace> places;
  for (const EditedSection::Piece& piece : edited.pieces) {
    places.push_back({piece.offset, data.size(), piece.edited});
    Append(data, piece.bytes);
    PadTo(data, kAlignment);
  }
  if (elf_type == ET_REL) return MoveSectionOfObject(file, edited.name, data, places);
  return MoveSection(file, edited.name, data, places, ".nvFatBinSegment");
}

/// The parts of a separately compiled program: those compiled for its lowest architecture. Libraries that bring machine
/// code and PTX for newer devices only (libcudadevrt) are linked by the driver, as before.
class Parts {
 public:
  static Result<Parts> Read(const EditedSection& section) {
    Parts parts;
    std::optional<ComputeCapability> lowest;
    std::vector<Part> all;
    for (std::size_t i = 0; i < section.pieces.size(); ++i) {
      GL_TRY(entries, ReadRawEntries(section.pieces[i].old));
      all.push_back({i, std::move(entries)});
      if (const auto low = all.back().Lowest(); low && (!lowest || *low < *lowest)) lowest = low;
    }
    for (Part& part : all) {
      if (lowest && part.Lowest() == lowest) parts.parts_.push_back(std::move(part));
    }
    return parts;
  }

  /// Links the parts for each architecture; the first part's container gets the texts, the others get empty.
  Status Edit(EditedSection& section, const PtxEdit& edit) const {
    std::vector<Buffer> linked;
    for (const RawEntry* arch : Architectures()) {
      std::vector<const Entry*> chosen;
      for (const Part& part : parts_) chosen.push_back(part.Best(arch->entry.arch));
      GL_TRY(text, edit(chosen, PtxRole::kModule));
      if (!text) return {};
      const Entry* const newest = *std::ranges::max_element(
          chosen, {}, [](const Entry* entry) { return std::pair(entry->version_major, entry->version_minor); });
      GL_TRY(made, MakeTextEntry(arch->raw, *std::move(text), /*compress=*/true));
      auto header = *ReadAt<EntryHeader>(made, 0);
      header.version_major = static_cast<std::uint16_t>(newest->version_major);
      header.version_minor = static_cast<std::uint16_t>(newest->version_minor);
      std::memcpy(made.data(), &header, sizeof header);
      linked.push_back(std::move(made));
    }
    for (const Part& part : parts_) {
      EditedSection::Piece& piece = section.pieces[part.piece];
      piece.bytes = MakeContainer(piece.old, &part == &parts_.front() ? linked : std::vector<Buffer>());
      piece.edited = true;
    }
    return {};
  }

 private:
  struct Part {
    std::size_t piece = 0;  ///< of the section
    std::vector<RawEntry> entries;

    std::optional<ComputeCapability> Lowest() const {
      std::optional<ComputeCapability> low;
      for (const auto& [entry, raw] : entries) {
        if (entry.kind == EntryKind::kPtx && (!low || entry.arch.capability < *low)) low = entry.arch.capability;
      }
      return low;
    }
    /// The part's PTX for an architecture: its own, else the newest that runs there.
    const Entry* Best(const Arch& arch) const {
      const Entry* best = nullptr;
      for (const auto& [entry, raw] : entries) {
        if (entry.kind != EntryKind::kPtx) continue;
        if (entry.arch == arch) return &entry;
        if (entry.arch.scope != ArchScope::kForward || entry.arch.capability > arch.capability) continue;
        if (best == nullptr || entry.arch.capability > best->arch.capability) best = &entry;
      }
      return best;
    }
  };

  /// One entry of each architecture that a part was compiled for and all have PTX for.
  std::vector<const RawEntry*> Architectures() const {
    std::vector<const RawEntry*> found;
    for (const Part& part : parts_) {
      for (const RawEntry& raw : part.entries) {
        const bool known =
            std::ranges::any_of(found, [&](const RawEntry* other) { return other->entry.arch == raw.entry.arch; });
        if (raw.entry.kind != EntryKind::kPtx || known) continue;
        if (std::ranges::all_of(parts_, [&](const Part& other) { return other.Best(raw.entry.arch) != nullptr; }))
          found.push_back(&raw);
      }
    }
    return found;
  }

  std::vector<Part> parts_;
};

/// The machine code linked from parts that were edited is left out. It is in the one container of .nv_fatbin that has
/// no PTX.
Status DropLinkedCode(EditedSection& section) {
  EditedSection::Piece* linked = nullptr;
  for (EditedSection::Piece& piece : section.pieces) {
    GL_TRY(container, ReadContainer(piece.old));
    if (container.entries.empty()) return {};  // nothing was linked: the driver does that
    if (std::ranges::any_of(container.entries, [](const Entry& entry) { return entry.kind == EntryKind::kPtx; }))
      continue;
    if (linked != nullptr)
      return Error{"which machine code was linked from its parts cannot be told; write only the PTX (--ptx)"};
    linked = &piece;
  }
  if (linked == nullptr) return {};
  linked->bytes = MakeContainer(linked->old, {});
  linked->edited = true;
  return {};
}

/// Each container of a section on its own.
Status EditPieces(EditedSection& section, const Edits& edits, PtxRole role) {
  for (EditedSection::Piece& piece : section.pieces) {
    GL_TRY(made, ContainerEdit(edits, /*compress_all=*/true, role).Edit(piece.old));
    if (!made) continue;
    piece.bytes = *std::move(made);
    piece.edited = true;
  }
  return {};
}

Result<Buffer> EditElf(Bytes file, const Edits& edits) {
  GL_TRY(elf, ReadElf(file));
  bool parts_edited = false;
  Buffer out(file.begin(), file.end());
  if (const ElfSection* found = elf.FindSection("__nv_relfatbin"); found != nullptr && !found->data.empty()) {
    EditedSection section = Unedited(found->name, found->data);
    if (elf.type == ET_REL) {
      GL_TRY_STATUS(EditPieces(section, edits, PtxRole::kPart));
    } else {
      GL_TRY(parts, Parts::Read(section));
      GL_TRY_STATUS(parts.Edit(section, edits.ptx));
      parts_edited = section.IsEdited();
    }
    GL_TRY(made, PutBack(file, elf.type, found->data, section));
    out = std::move(made);
  }
  GL_TRY(now, ReadElf(out));
  const ElfSection* const found = now.FindSection(".nv_fatbin");
  if (found == nullptr || found->data.empty()) return out;
  EditedSection section = Unedited(found->name, found->data);
  GL_TRY_STATUS(EditPieces(section, edits, PtxRole::kModule));
  if (parts_edited) GL_TRY_STATUS(DropLinkedCode(section));
  return PutBack(out, elf.type, found->data, section);
}

Result<Buffer> EditArchive(Bytes file, const Edits& edits) {
  GL_TRY(members, ReadArchive(file));
  std::vector<std::optional<Buffer>> contents(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!LooksLikeElf(members[i].data)) continue;
    auto edited = EditElf(members[i].data, edits);
    if (!edited.ok()) return Error{"member " + std::string(members[i].name) + ": " + edited.error().message};
    contents[i] = std::move(edited).value();
  }
  return ReplaceMembers(file, contents);
}

Result<Buffer> EditCubin(Bytes file, const CodeEdit& code) {
  GL_TRY(set, ReadImages(file));
  for (const Container& container : set.containers) {
    if (container.entries.size() > 1)
      return Error{"a cubin that has its PTX with it cannot be written; write only the PTX (--ptx)"};
    for (const Entry& entry : container.entries) {
      GL_TRY(edited, code(entry));
      if (edited) return *std::move(edited);
    }
  }
  return Buffer(file.begin(), file.end());
}

}  // namespace

Result<std::vector<std::byte>> EditImages(Bytes file, const PtxEdit& edit, const CodeEdit& code) {
  const Edits edits{edit, code};
  if (LooksLikeElf(file)) {
    GL_TRY(elf, ReadElf(file));
    return elf.machine == kElfMachineCuda && code != nullptr ? EditCubin(file, code) : EditElf(file, edits);
  }
  if (LooksLikeArchive(file)) return EditArchive(file, edits);
  if (ContainerSize(file)) {
    GL_TRY(made, ContainerEdit(edits, /*compress_all=*/false, PtxRole::kModule).Edit(file));
    return made ? *std::move(made) : Buffer(file.begin(), file.end());
  }
  GL_TRY(set, ReadImages(file));
  if (set.format != Format::kPtx)
    return Error{"a " + std::string(TextOf(set.format)) + " cannot be written; write only the PTX (--ptx)"};
  Buffer out(file.begin(), file.end());
  for (const Container& container : set.containers) {
    for (const Entry& entry : container.entries) {
      GL_TRY(text, edit({&entry}, PtxRole::kModule));
      if (text) out.assign(AsBytes(*text).begin(), AsBytes(*text).end());
    }
  }
  return out;
}

}  // namespace gridloom::image
