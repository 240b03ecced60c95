#include "rewriter/image/elf_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gridloom::image {
namespace {

Error SystemError(const std::string& what) { return Error{what + ": " + std::strerror(errno)}; }

Status WriteAll(int file, Bytes bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return SystemError("the copy of the file cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

}  // namespace

Error ElfFile::LastError(std::string what) { return Error{std::move(what) + " (" + elf_errmsg(-1) + ")"}; }

Result<ElfFile> ElfFile::Copy(Bytes file) {
  if (elf_version(EV_CURRENT) == EV_NONE) return LastError("libelf is of another version");
  const int copy = memfd_create("gridloom-elf", MFD_CLOEXEC);
  if (copy < 0) return SystemError("there is no memory for a copy of the file");
  ElfFile out(copy, file.size());
  GL_TRY_STATUS(WriteAll(copy, file, 0));
  out.elf_.reset(elf_begin(copy, ELF_C_RDWR, nullptr));
  if (out.elf_ == nullptr || gelf_getclass(out.elf_.get()) != ELFCLASS64 ||
      gelf_getehdr(out.elf_.get(), &out.header_) == nullptr || out.header_.e_ident[EI_DATA] != ELFDATA2LSB) {
    return Error{"it is no 64-bit ELF file"};
  }
  elf_flagelf(out.elf_.get(), ELF_C_SET, ELF_F_LAYOUT);  // libelf would move everything otherwise
  return out;
}

ElfFile::ElfFile(ElfFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), size_(other.size_), elf_(std::move(other.elf_)), header_(other.header_) {}

ElfFile::~ElfFile() {
  elf_.reset();
  if (file_ >= 0) close(file_);
}

std::vector<GElf_Phdr> ElfFile::Segments() const {
  std::size_t count = 0;
  if (elf_getphdrnum(elf_.get(), &count) != 0) return {};
  std::vector<GElf_Phdr> segments(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (gelf_getphdr(elf_.get(), static_cast<int>(i), &segments[i]) == nullptr) return {};
  }
  return segments;
}

Elf_Scn* ElfFile::FindSection(std::string_view name) const {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf_.get(), &names) != 0) return nullptr;
  for (Elf_Scn* section = NextSection(nullptr); section != nullptr; section = NextSection(section)) {
    const char* const text = elf_strptr(elf_.get(), names, HeaderOf(section).sh_name);
    if (text != nullptr && text == name) return section;
  }
  return nullptr;
}

GElf_Shdr ElfFile::HeaderOf(Elf_Scn* section) {
  GElf_Shdr header{};
  gelf_getshdr(section, &header);
  return header;
}

Status ElfFile::Move(Elf_Scn* section, std::uint64_t offset, std::uint64_t address,
                     const std::vector<std::byte>& bytes) {
  GElf_Shdr header = HeaderOf(section);
  Elf_Data* const data = elf_getdata(section, nullptr);
  if (data == nullptr) return LastError("a section's bytes cannot be read");
  GL_TRY_STATUS(WriteAll(file_, std::vector<std::byte>(header.sh_size), header.sh_offset));
  header.sh_offset = offset;
  header.sh_addr = address;
  header.sh_size = bytes.size();
  data->d_buf = const_cast<std::byte*>(bytes.data());  // libelf only reads it
  data->d_size = bytes.size();
  elf_flagdata(data, ELF_C_SET, ELF_F_DIRTY);
  if (gelf_update_shdr(section, &header) == 0) return LastError("a section cannot be moved");
  return {};
}

Status ElfFile::SetSegment(std::size_t number, GElf_Phdr segment) {
  if (gelf_update_phdr(elf_.get(), static_cast<int>(number), &segment) == 0)
    return LastError("a segment cannot be changed");
  return {};
}

Result<std::vector<std::byte>> ElfFile::Write() {
  if (elf_update(elf_.get(), ELF_C_WRITE) < 0) return LastError("the changed file cannot be made");
  const off_t end = lseek(file_, 0, SEEK_END);
  if (end < 0) return SystemError("the changed file cannot be read");
  std::vector<std::byte> out(static_cast<std::size_t>(end));
  for (std::size_t done = 0; done < out.size();) {
    const ssize_t got = pread(file_, out.data() + done, out.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return SystemError("the changed file cannot be read");
    done += static_cast<std::size_t>(got);
  }
  return out;
}

}  // namespace gridloom::image
