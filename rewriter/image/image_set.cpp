#include "rewriter/image/image_set.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rewriter/image/archive.h"
#include "rewriter/image/cubin.h"
#include "rewriter/image/elf_view.h"
#include "rewriter/image/fatbin.h"
#include "rewriter/image/kept_ptx.h"
#include "rewriter/image/ptx_text.h"

namespace gridloom::image {
namespace {

constexpr std::uint64_t kMaxImageInMemory = kMaxContainerBytes;

/// Sections that hold containers; the parts of an -rdc program are kept apart from the rest.
struct FatbinSection {
  std::string_view name;
  bool relocatable;
};
constexpr FatbinSection kFatbinSections[] = {{".nv_fatbin", false}, {"__nv_relfatbin", true}};

Format FormatOf(const ElfView& elf) {
  if (elf.type == ET_REL) return Format::kObject;
  return elf.type == ET_EXEC || elf.has_interpreter ? Format::kExecutable : Format::kSharedObject;
}

Entry PtxEntry(const PtxHeader& header, Bytes bytes) {
  return {.kind = EntryKind::kPtx,
          .arch = header.arch,
          .version_major = header.version_major,
          .version_minor = header.version_minor,
          .stored = bytes,
          .uncompressed_bytes = bytes.size()};
}

ImageSet SetOf(Format format, std::vector<Entry> entries) {
  ImageSet set{.format = format};
  set.containers.push_back({.entries = std::move(entries)});
  return set;
}

/// The machine code, and the PTX it was made of where that was kept.
ImageSet CubinSet(const ElfView& elf, Bytes bytes) {
  std::vector<Entry> entries = {
      {.kind = EntryKind::kCubin, .arch = CubinArch(elf), .stored = bytes, .uncompressed_bytes = bytes.size()}};
  if (const ElfSection* kept = elf.FindSection(kKeptPtxSection)) {
    if (const auto header = ReadPtxHeader(AsText(kept->data))) entries.push_back(PtxEntry(*header, kept->data));
  }
  return SetOf(Format::kCubin, std::move(entries));
}

Result<ImageSet> ReadElfImages(Bytes bytes) {
  GL_TRY(elf, ReadElf(bytes));
  if (elf.machine == kElfMachineCuda) return CubinSet(elf, bytes);
  ImageSet set{.format = FormatOf(elf)};
  for (const FatbinSection& wanted : kFatbinSections) {
    // An object file may have several sections of one name.
    for (const ElfSection& section : elf.sections) {
      if (section.name != wanted.name) continue;
      auto containers = ReadContainers(section.data);
      if (!containers.ok()) return Error{std::string(wanted.name) + ": " + containers.error().message};
      for (Container& container : *containers) {
        container.section = wanted.name;
        container.relocatable = wanted.relocatable;
        set.containers.push_back(std::move(container));
      }
    }
  }
  return set;
}

/// Members that are no object files with device code count for nothing.
Result<ImageSet> ReadArchiveImages(Bytes bytes) {
  GL_TRY(members, ReadArchive(bytes));
  ImageSet set{.format = Format::kArchive};
  for (const ArchiveMember& member : members) {
    if (!LooksLikeElf(member.data)) continue;
    auto images = ReadElfImages(member.data);
    if (!images.ok()) return Error{std::string(member.name) + ": " + images.error().message};
    for (Container& container : images->containers) {
      container.member = member.name;
      set.containers.push_back(std::move(container));
    }
  }
  return set;
}

/// The first bytes in a form fit for a message.
std::string Glimpse(Bytes bytes) {
  std::string text;
  for (const char c : AsText(bytes.first(std::min<std::size_t>(bytes.size(), 16))))
    text += c >= ' ' && c <= '~' ? c : '.';
  return text;
}

Result<std::shared_ptr<const void>> MapFile(int file, std::size_t size) {
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (address == MAP_FAILED) return Error{std::string("cannot map it: ") + std::strerror(errno)};
  return std::shared_ptr<const void>(address, [size](const void* mapped) { munmap(const_cast<void*>(mapped), size); });
}

struct FileCloser {
  int file;
  ~FileCloser() { close(file); }
};

}  // namespace

std::string Arch::text() const {
  static constexpr std::string_view kSuffixes[] = {"", "a", "f"};
  return "sm_" + std::to_string(capability.sm()) + std::string(kSuffixes[static_cast<std::size_t>(scope)]);
}

bool Arch::PtxRunsOn(ComputeCapability device) const {
  switch (scope) {
    case ArchScope::kForward: return capability <= device;
    case ArchScope::kExact: return capability == device;
    case ArchScope::kFamily: return capability.major == device.major && capability <= device;
  }
  return false;
}

std::string_view TextOf(Format format) {
  static constexpr std::string_view kTexts[] = {
      "ELF executable", "ELF shared object", "ELF object file",    "static library",
      "cubin",          "fat binary",        "fat binary wrapper", "PTX text"};
  return kTexts[static_cast<std::size_t>(format)];
}

bool ImageSet::HasKind(EntryKind kind) const {
  return std::ranges::any_of(containers, [&](const Container& container) {
    return std::ranges::any_of(container.entries, [&](const Entry& entry) { return entry.kind == kind; });
  });
}

Result<ImageSet> ReadImages(Bytes bytes) {
  if (LooksLikeElf(bytes)) return ReadElfImages(bytes);
  if (LooksLikeArchive(bytes)) return ReadArchiveImages(bytes);
  if (ContainerSize(bytes)) {
    GL_TRY(containers, ReadContainers(bytes));
    ImageSet set{.format = Format::kFatbin};
    set.containers = std::move(containers);
    return set;
  }
  if (const auto header = ReadPtxHeader(AsText(bytes))) return SetOf(Format::kPtx, {PtxEntry(*header, bytes)});
  if (bytes.empty()) return Error{"it is empty"};
  return Error{"neither ELF, fat binary nor PTX (it begins with \"" + Glimpse(bytes) + "\")"};
}

Result<ImageSet> ReadImageFile(const std::filesystem::path& file) {
  const auto fail = [&](const std::string& message) { return Error{file.string() + ": " + message}; };
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO would wait for a writer
  if (descriptor < 0) return fail(std::strerror(errno));
  const FileCloser closer{descriptor};
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return fail("not a regular file");
  if (status.st_size == 0) return fail("it is empty");
  const auto size = static_cast<std::size_t>(status.st_size);
  auto mapping = MapFile(descriptor, size);
  if (!mapping.ok()) return fail(mapping.error().message);
  auto set = ReadImages({static_cast<const std::byte*>(mapping->get()), size});
  if (!set.ok()) return fail(set.error().message);
  set->storage = *std::move(mapping);
  return set;
}

Result<ImageSet> ReadImagePointer(const void* image) {
  if (image == nullptr) return Error{"image pointer is null"};
  const auto* start = static_cast<const std::byte*>(image);
  std::uint32_t magic = 0;
  // Text may be shorter than four bytes, then it ends with a NUL before.
  const std::size_t readable = strnlen(static_cast<const char*>(image), sizeof magic);
  std::memcpy(&magic, start, readable);
  if (magic == kWrapperMagic) {
    GL_TRY(containers, ReadWrapper(image));
    ImageSet set{.format = Format::kWrapper};
    set.containers = std::move(containers);
    return set;
  }
  if (magic == kContainerMagic) {
    const std::uint64_t size = ContainerSize({start, 16}).value_or(0);
    if (size > kMaxImageInMemory) return Error{"fat binary container claims " + std::to_string(size) + " bytes"};
    return ReadImages({start, static_cast<std::size_t>(size)});
  }
  if (LooksLikeElf({start, readable})) {
    const auto size = ElfSizeInMemory(start, kMaxImageInMemory);
    if (!size) return Error{"ELF image in memory has no plausible size"};
    return ReadImages({start, static_cast<std::size_t>(*size)});
  }
  const std::size_t length = strnlen(static_cast<const char*>(image), kMaxImageInMemory);
  return ReadImages({start, length});
}

}  // namespace gridloom::image
