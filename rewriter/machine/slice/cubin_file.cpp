#include "rewriter/machine/slice/cubin_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "rewriter/image/cubin.h"
#include "rewriter/image/elf_view.h"

namespace gridloom::machine {
namespace {

constexpr std::uint64_t kMostAlignment = 4096;

bool HasBytes(const Elf64_Shdr& header) {
  return header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL && header.sh_size != 0;
}

template <typename T>
Result<std::vector<T>> ReadTable(image::Bytes bytes, std::uint64_t offset, std::size_t count, std::size_t entry,
                                 const char* what) {
  if (count != 0 && entry != sizeof(T)) return Error{std::string("the entries of the ") + what + " have another size"};
  const auto table = image::Slice(bytes, offset, count * sizeof(T));
  if (!table) return Error{std::string("the ") + what + " lies outside the file"};
  std::vector<T> entries(count);
  if (count != 0) std::memcpy(entries.data(), table->data(), table->size());
  return entries;
}

/// Bytes that are put in behind what ended there.
struct Insertion {
  std::uint64_t at = 0;
  std::uint64_t grown = 0;   ///< by this much is the section longer
  std::uint64_t padded = 0;  ///< and by this much are others moved
};

class Places {
 public:
  explicit Places(std::vector<Insertion> insertions) : insertions_(std::move(insertions)) {
    std::ranges::sort(insertions_, {}, &Insertion::at);
  }
  /// Where what began there begins now.
  std::uint64_t Start(std::uint64_t offset) const {
    std::uint64_t moved = offset;
    for (const Insertion& one : insertions_) moved += one.at <= offset ? one.padded : 0;
    return moved;
  }
  /// Where what ended there ends now.
  std::uint64_t End(std::uint64_t offset) const {
    std::uint64_t moved = offset;
    for (const Insertion& one : insertions_) moved += one.at < offset ? one.padded : one.at == offset ? one.grown : 0;
    return moved;
  }
  const std::vector<Insertion>& insertions() const { return insertions_; }

 private:
  std::vector<Insertion> insertions_;
};

template <typename T>
void PutTable(std::vector<std::byte>& out, std::uint64_t offset, const std::vector<T>& entries) {
  if (!entries.empty()) std::memcpy(out.data() + offset, entries.data(), entries.size() * sizeof(T));
}

/// The file with room behind what grows.
std::vector<std::byte> WithGaps(const std::vector<std::byte>& bytes, const Places& places) {
  std::vector<std::byte> out;
  std::uint64_t done = 0;
  for (const Insertion& one : places.insertions()) {
    out.insert(out.end(), bytes.begin() + static_cast<std::ptrdiff_t>(done),
               bytes.begin() + static_cast<std::ptrdiff_t>(one.at));
    out.resize(out.size() + one.padded);
    done = one.at;
  }
  out.insert(out.end(), bytes.begin() + static_cast<std::ptrdiff_t>(done), bytes.end());
  return out;
}

}  // namespace

Result<CubinFile> CubinFile::Read(image::Bytes bytes) {
  GL_TRY(view, image::ReadElf(bytes));
  if (view.machine != image::kElfMachineCuda) return Error{"it is no cubin"};
  CubinFile file;
  file.bytes_.assign(bytes.begin(), bytes.end());
  file.header_ = *image::ReadAt<Elf64_Ehdr>(bytes, 0);
  file.sm_ = image::CubinArch(view).capability.sm();
  GL_TRY_STATUS(file.ReadSections());
  GL_TRY_STATUS(file.ReadSegments());
  GL_TRY_STATUS(file.CheckSections());
  GL_TRY_STATUS(file.CheckPlaces());
  GL_TRY_STATUS(file.ReadSymbols());
  return file;
}

Status CubinFile::ReadSections() {
  GL_TRY(headers,
         ReadTable<Elf64_Shdr>(bytes_, header_.e_shoff, header_.e_shnum, header_.e_shentsize, "table of sections"));
  if (header_.e_shstrndx >= headers.size()) return Error{"its sections have no names"};
  for (const Elf64_Shdr& header : headers) {
    Section section{.header = header};
    if (HasBytes(header)) {
      const auto data = image::Slice(bytes_, header.sh_offset, header.sh_size);
      if (!data) return Error{"a section lies outside the file"};
      section.data.assign(data->begin(), data->end());
    }
    sections_.push_back(std::move(section));
  }
  const image::Bytes names = sections_[header_.e_shstrndx].data;
  for (Section& section : sections_) section.name = image::TextAt(names, section.header.sh_name);
  return {};
}

Status CubinFile::ReadSegments() {
  GL_TRY(segments,
         ReadTable<Elf64_Phdr>(bytes_, header_.e_phoff, header_.e_phnum, header_.e_phentsize, "table of segments"));
  for (const Elf64_Phdr& segment : segments) {
    if (!image::Slice(bytes_, segment.p_offset, segment.p_filesz)) return Error{"a segment lies outside the file"};
  }
  segments_ = std::move(segments);
  return {};
}

Status CubinFile::CheckSections() const {
  std::set<std::string_view> names;
  for (const Section& section : sections_) {
    if (section.header.sh_addr != 0) return Error{"the section " + section.name + " has an address already"};
    if (!section.name.empty() && !names.insert(section.name).second)
      return Error{"it has two sections " + section.name};
  }
  if (const std::uint64_t alignment = Alignment(); !std::has_single_bit(alignment) || alignment > kMostAlignment)
    return Error{"one of its sections or segments has an alignment of " + std::to_string(alignment) + " bytes"};
  return {};
}

/// Nothing in the file overlaps.
Status CubinFile::CheckPlaces() const {
  struct Place {
    std::uint64_t offset, end;
    std::string name;
  };
  std::vector<Place> places{
      {0, sizeof(Elf64_Ehdr), "its header"},
      {header_.e_shoff, header_.e_shoff + sections_.size() * sizeof(Elf64_Shdr), "the table of sections"}};
  if (!segments_.empty())
    places.push_back(
        {header_.e_phoff, header_.e_phoff + segments_.size() * sizeof(Elf64_Phdr), "the table of segments"});
  for (const Section& section : sections_) {
    const Elf64_Shdr& header = section.header;
    if (HasBytes(header)) places.push_back({header.sh_offset, header.sh_offset + header.sh_size, section.name});
  }
  std::ranges::sort(places, {}, &Place::offset);
  for (std::size_t next = 1; next < places.size(); ++next) {
    if (places[next].offset < places[next - 1].end)
      return Error{places[next - 1].name + " and " + places[next].name + " overlap"};
  }
  return {};
}

Status CubinFile::ReadSymbols() {
  const auto table = Find(".symtab"), names = Find(".strtab");
  if (!table || !names) return Error{"it has no symbols"};
  const Section& section = sections_[*table];
  GL_TRY(entries, ReadTable<Elf64_Sym>(section.data, 0, section.data.size() / sizeof(Elf64_Sym),
                                       section.header.sh_entsize, "table of symbols"));
  for (const Elf64_Sym& entry : entries)
    symbols_.push_back({std::string(image::TextAt(sections_[*names].data, entry.st_name)), entry});
  return {};
}

std::uint64_t CubinFile::Alignment() const {
  std::uint64_t alignment = 128;
  for (const Section& section : sections_) alignment = std::max<std::uint64_t>(alignment, section.header.sh_addralign);
  for (const Elf64_Phdr& segment : segments_) alignment = std::max<std::uint64_t>(alignment, segment.p_align);
  return alignment;
}

std::optional<std::size_t> CubinFile::Find(std::string_view name) const {
  const auto found = std::ranges::find(sections_, name, &Section::name);
  if (found == sections_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - sections_.begin());
}

std::optional<std::uint32_t> CubinFile::SectionSymbol(std::size_t section) const {
  const auto found = std::ranges::find_if(symbols_, [&](const Symbol& symbol) {
    return ELF64_ST_TYPE(symbol.entry.st_info) == STT_SECTION && symbol.entry.st_shndx == section;
  });
  if (found == symbols_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - symbols_.begin());
}

std::vector<CubinFile::Relocation> CubinFile::RelocationsOf(std::size_t section) const {
  std::vector<Relocation> found;
  for (const Section& one : sections_) {
    const bool with_addend = one.header.sh_type == SHT_RELA;
    if ((!with_addend && one.header.sh_type != SHT_REL) || one.header.sh_info != section || section >= sections_.size())
      continue;
    const std::size_t step = with_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    for (std::size_t at = 0; at + step <= one.data.size(); at += step) {
      const auto entry = *image::ReadAt<Elf64_Rel>(one.data, at);
      const auto addend = with_addend ? image::ReadAt<std::int64_t>(one.data, at + sizeof entry)
                                      : image::ReadAt<std::int64_t>(sections_[section].data, entry.r_offset);
      found.push_back({entry.r_offset, static_cast<std::uint32_t>(ELF64_R_TYPE(entry.r_info)),
                       static_cast<std::uint32_t>(ELF64_R_SYM(entry.r_info)), addend.value_or(0)});
    }
  }
  return found;
}

Status CubinFile::SetData(std::size_t section, std::vector<std::byte> data) {
  Section& one = sections_[section];
  if (one.data.empty() || data.size() < one.data.size())
    return Error{"the section " + one.name + " cannot have " + std::to_string(data.size()) + " bytes"};
  one.data = std::move(data);
  return {};
}

std::uint32_t CubinFile::AddName(std::size_t table, const std::string& name) {
  std::vector<std::byte>& names = sections_[table].data;
  const auto at = static_cast<std::uint32_t>(names.size());
  const auto* const text = reinterpret_cast<const std::byte*>(name.c_str());
  names.insert(names.end(), text, text + name.size() + 1);
  return at;
}

Result<std::size_t> CubinFile::AddSection(const std::string& name, std::size_t like, std::vector<std::byte> data) {
  if (Find(name)) return Error{"it has a section " + name + " already"};
  if (sections_.size() + 1 >= SHN_LORESERVE) return Error{"it has no room for more sections"};
  if (sections_[like].data.empty() != data.empty()) return Error{"the section " + name + " has no bytes"};
  Section added{.name = name, .header = sections_[like].header, .data = std::move(data), .behind = like};
  added.header.sh_name = AddName(header_.e_shstrndx, name);
  if (!added.data.empty()) added.header.sh_size = added.data.size();
  sections_.push_back(std::move(added));
  return sections_.size() - 1;
}

Result<std::uint32_t> CubinFile::AddSymbol(const std::string& name, Elf64_Sym entry) {
  Section& table = sections_[*Find(".symtab")];
  if (table.data.size() != symbols_.size() * sizeof entry) return Error{"its table of symbols has another size"};
  entry.st_name = name.empty() ? 0 : AddName(*Find(".strtab"), name);
  // All others keep their numbers, so a local symbol comes to stand behind global ones. ptxas itself has them so for
  // sm_90, with the whole table in sh_info, below which all local symbols have to be.
  const bool local = ELF64_ST_BIND(entry.st_info) == STB_LOCAL;
  if (local || table.header.sh_info == symbols_.size())
    table.header.sh_info = static_cast<Elf64_Word>(symbols_.size() + 1);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&entry);
  table.data.insert(table.data.end(), bytes, bytes + sizeof entry);
  symbols_.push_back({name, entry});
  return static_cast<std::uint32_t>(symbols_.size() - 1);
}

/// Where everything is in the file that is written.
class CubinFile::Layout {
 public:
  explicit Layout(const CubinFile& file) : file_(file), offsets_(file.sections_.size()), places_(Insertions()) {}

  const Places& places() const { return places_; }
  std::uint64_t OffsetOf(std::size_t section) const {
    const Section& one = file_.sections_[section];
    if (!file_.IsAdded(section)) return places_.Start(one.header.sh_offset);
    return places_.Start(file_.sections_[one.behind].header.sh_offset) + offsets_[section];
  }

 private:
  std::vector<Insertion> Insertions() {
    const std::uint64_t alignment = file_.Alignment();
    const auto aligned = [&](std::uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
    std::vector<Insertion> grown;
    const auto insert = [&](std::uint64_t at, std::uint64_t bytes) {
      if (bytes != 0) grown.push_back({at, bytes, aligned(bytes)});
    };
    std::vector<std::uint64_t> ends(file_.header_.e_shnum);  // of a section and what stands behind it, from its start
    for (std::size_t number = 0; number < file_.sections_.size(); ++number) {
      const Section& section = file_.sections_[number];
      if (!file_.IsAdded(number)) {
        ends[number] = section.data.size();
      } else if (!section.data.empty()) {
        const std::uint64_t start = file_.sections_[section.behind].header.sh_offset;
        offsets_[number] = aligned(start + ends[section.behind]) - start;
        ends[section.behind] = offsets_[number] + section.data.size();
      }
    }
    for (std::size_t number = 0; number < ends.size(); ++number) {
      const Elf64_Shdr& header = file_.sections_[number].header;
      if (HasBytes(header)) insert(header.sh_offset + header.sh_size, ends[number] - header.sh_size);
    }
    insert(file_.header_.e_shoff + file_.header_.e_shnum * sizeof(Elf64_Shdr),
           (file_.sections_.size() - file_.header_.e_shnum) * sizeof(Elf64_Shdr));
    return grown;
  }

  const CubinFile& file_;
  std::vector<std::uint64_t> offsets_;  ///< of sections that were put in, from the start of what they stand behind
  Places places_;
};

/// As ptxas counts it, a segment with more in memory than in the file has all sections without bytes in it.
std::uint64_t CubinFile::AddedWithoutBytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t number = header_.e_shnum; number < sections_.size(); ++number)
    bytes += sections_[number].header.sh_type == SHT_NOBITS ? sections_[number].header.sh_size : 0;
  return bytes;
}

std::vector<std::byte> CubinFile::Write() const {
  const Layout layout(*this);
  const Places& places = layout.places();
  std::vector<std::byte> out = WithGaps(bytes_, places);
  std::vector<Elf64_Shdr> headers;
  for (std::size_t number = 0; number < sections_.size(); ++number) {
    Elf64_Shdr header = sections_[number].header;
    header.sh_offset = layout.OffsetOf(number);
    if (HasBytes(header)) {
      header.sh_size = sections_[number].data.size();
      PutTable(out, header.sh_offset, sections_[number].data);
    }
    headers.push_back(header);
  }
  std::vector<Elf64_Phdr> segments = segments_;
  for (Elf64_Phdr& segment : segments) {
    const std::uint64_t end = segment.p_offset + segment.p_filesz;
    if (segment.p_memsz > segment.p_filesz) segment.p_memsz += AddedWithoutBytes();
    segment.p_offset = places.Start(segment.p_offset);
    if (segment.p_filesz == 0) continue;
    const std::uint64_t bytes = places.End(end) - segment.p_offset;
    segment.p_memsz += bytes - segment.p_filesz;
    segment.p_filesz = bytes;
  }
  Elf64_Ehdr header = header_;
  header.e_shnum = static_cast<Elf64_Half>(sections_.size());
  header.e_shoff = places.Start(header.e_shoff);
  header.e_phoff = segments.empty() ? header.e_phoff : places.Start(header.e_phoff);
  std::memcpy(out.data(), &header, sizeof header);
  PutTable(out, header.e_shoff, headers);
  PutTable(out, header.e_phoff, segments);
  return out;
}

}  // namespace gridloom::machine
