// What a file or a pointer handed to the driver holds: device code in all the wrappings it comes in.
//
//   static library                    its members, which are object files
//   ELF executable, library, object   sections .nv_fatbin and __nv_relfatbin: fat binary containers, one after the
//                                     other
//   fat binary wrapper (in memory)    points to a container; version 2 also to the parts of an -rdc program
//   fat binary container              entries: PTX text or cubin, plain, LZ4 or zstd
//   cubin                             ELF of machine 190: machine code of one architecture; with its PTX (kept_ptx.h)
//   PTX text                          with or without a closing NUL
//
// docs/design/images.md has the byte layouts. Every read is bounds-checked: broken input is an Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/image/bytes.h"
#include "rewriter/support/compute_capability.h"
#include "rewriter/support/result.h"

namespace gridloom::image {

enum class EntryKind : std::uint8_t { kPtx, kCubin, kOther };
enum class Compression : std::uint8_t { kNone, kLz4, kZstd };

/// sm_90: runs on 9.0 and up. sm_90a: on 9.0 only. sm_100f: on 10.0 and later ones of the family (same major number).
enum class ArchScope : std::uint8_t { kForward, kExact, kFamily };

struct Arch {
  ComputeCapability capability;
  ArchScope scope = ArchScope::kForward;

  /// "sm_90a"
  std::string text() const;
  /// True when PTX for this architecture can be compiled for `device`.
  bool PtxRunsOn(ComputeCapability device) const;
  friend bool operator==(const Arch&, const Arch&) = default;
};

/// Largest payload that is decompressed unless the caller says otherwise.
inline constexpr std::uint64_t kMaxPayloadBytes = 512ull << 20;

/// One piece of device code. Views point into the bytes that were read; see ImageSet for how long they live.
struct Entry {
  EntryKind kind = EntryKind::kOther;
  std::uint16_t raw_kind = 0;  ///< number in the entry header (1 PTX, 2 cubin); 0 outside a container
  Arch arch{};
  std::uint32_t version_major = 0;  ///< PTX: ISA version
  std::uint32_t version_minor = 0;
  Compression compression = Compression::kNone;
  std::uint64_t flags = 0;               ///< of the entry header
  bool debug = false;                    ///< built with -G
  std::string_view source_name{};        ///< kept by -G and -lineinfo
  std::string_view options{};            ///< as ptxas would get them, e.g. "--generate-line-info"
  Bytes stored{};                        ///< as in the file: compressed, without padding where its length is known
  std::uint64_t uncompressed_bytes = 0;  ///< stored.size() when stored plain

  /// The payload, decompressed; PTX ends before its NUL. An error when it is broken or longer than `limit`.
  Result<std::string> Read(std::uint64_t limit = kMaxPayloadBytes) const;
};

/// Entries that belong together: alternatives for one module.
struct Container {
  std::string_view member{};   ///< of a static library: the object file, else empty
  std::string_view section{};  ///< ".nv_fatbin" or "__nv_relfatbin" in an ELF file, else empty
  bool relocatable = false;    ///< built with -rdc: its PTX refers to symbols of the other relocatable containers
  std::vector<Entry> entries{};
};

enum class Format : std::uint8_t { kExecutable, kSharedObject, kObject, kArchive, kCubin, kFatbin, kWrapper, kPtx };
/// "ELF executable", "fat binary", …
std::string_view TextOf(Format format);

struct ImageSet {
  Format format = Format::kPtx;
  std::vector<Container> containers{};
  std::shared_ptr<const void> storage{};  ///< keeps what the views point to alive; null when the caller owns the bytes

  bool HasKind(EntryKind kind) const;
};

/// Reads bytes that the caller keeps alive as long as the result is used. An ELF file without device code gives no
/// containers and is no error.
Result<ImageSet> ReadImages(Bytes bytes);

/// Reads a file; the result keeps it mapped.
Result<ImageSet> ReadImageFile(const std::filesystem::path& file);

/// Reads what a program hands to cuModuleLoadData, cuLibraryLoadData and their like: a pointer without a size. The
/// sizes in the headers found there are trusted up to 2 GiB, as a driver must. The memory has to outlive the result.
Result<ImageSet> ReadImagePointer(const void* image);

}  // namespace gridloom::image
