// ProveFile (proof.h).
#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <string>

#include "rewriter/machine/slice/form.h"
#include "rewriter/machine/slice/kernel_parts.h"
#include "rewriter/machine/slice/proof.h"

namespace gridloom::machine {
namespace {

/// Names of the forms that ProveKernel has looked at.
std::set<std::string, std::less<>> FormsOf(const std::vector<SlicedKernel>& kernels) {
  std::set<std::string, std::less<>> forms;
  for (const SlicedKernel& kernel : kernels) {
    if (kernel.why_whole.empty()) forms.insert(SlicedName(kernel.name));
  }
  return forms;
}

/// Whether a section or symbol belongs to one of them.
bool IsOfForm(std::string_view name, const std::set<std::string, std::less<>>& forms) {
  if (forms.contains(name)) return true;
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    if (forms.contains(name.substr(dot + 1))) return true;
  }
  return false;
}

/// Tables to which forms have added something at the end.
bool MayGrow(std::string_view section) {
  constexpr std::string_view kTables[] = {".shstrtab", ".strtab", ".symtab", ".nv.info", ".nv.callgraph"};
  return std::ranges::find(kTables, section) != std::end(kTables);
}

/// Of the table of symbols: as it was, where it holds for all, or all of them.
Status CheckBound(std::uint32_t theirs, std::uint32_t mine, const CubinFile& original, const CubinFile& sliced) {
  const bool all = mine == sliced.symbols().size();
  if (mine != theirs && !all) return Error{"the table of symbols has another bound"};
  if (theirs == original.symbols().size() && !all) return Error{"the table of symbols has another bound"};
  for (std::size_t number = original.symbols().size(); number < sliced.symbols().size(); ++number) {
    if (number >= mine && ELF64_ST_BIND(sliced.symbols()[number].entry.st_info) == STB_LOCAL)
      return Error{"a local symbol stands behind the bound of the table"};
  }
  return {};
}

/// Each section that the original has, under its number; tables have the original's bytes first.
Status CheckSection(const CubinFile& original, const CubinFile& sliced, std::size_t number) {
  const CubinFile::Section& theirs = original.sections()[number];
  const CubinFile::Section& mine = sliced.sections()[number];
  Elf64_Shdr same = mine.header;
  same.sh_offset = theirs.header.sh_offset;
  const bool grows = MayGrow(theirs.name);
  if (grows) same.sh_size = theirs.header.sh_size;
  if (theirs.name == ".symtab") {
    GL_TRY_STATUS(CheckBound(theirs.header.sh_info, mine.header.sh_info, original, sliced));
    same.sh_info = theirs.header.sh_info;
  }
  const bool alike = grows ? mine.data.size() >= theirs.data.size() &&
                                 std::ranges::equal(theirs.data, std::span(mine.data).first(theirs.data.size()))
                           : mine.data == theirs.data;
  if (mine.name != theirs.name || std::memcmp(&same, &theirs.header, sizeof same) != 0 || !alike)
    return Error{"the section " + theirs.name + " is not the original's"};
  if (mine.header.sh_addralign > 1 && mine.header.sh_offset % mine.header.sh_addralign != 0)
    return Error{"the section " + theirs.name + " is not aligned"};
  return {};
}

/// What was added has something to say of forms alone.
Status CheckAdded(const CubinFile& original, const CubinFile& sliced, const std::vector<SlicedKernel>& kernels) {
  const auto forms = FormsOf(kernels);
  for (std::size_t number = original.sections().size(); number < sliced.sections().size(); ++number) {
    if (!IsOfForm(sliced.sections()[number].name, forms)) return Error{"it has a section that nobody needs"};
  }
  for (std::size_t number = original.symbols().size(); number < sliced.symbols().size(); ++number) {
    const CubinFile::Symbol& symbol = sliced.symbols()[number];
    const bool section = symbol.name.empty() && ELF64_ST_TYPE(symbol.entry.st_info) == STT_SECTION &&
                         symbol.entry.st_shndx >= original.sections().size();
    if (!section && !IsOfForm(symbol.name, forms)) return Error{"it has a symbol that nobody needs"};
  }
  for (std::size_t number = 0; number < original.symbols().size(); ++number) {
    if (sliced.symbols()[number].name != original.symbols()[number].name)
      return Error{"the symbol " + original.symbols()[number].name + " has another name"};
  }
  const auto is_new = [&](std::uint32_t symbol) {
    return symbol >= original.symbols().size() && symbol < sliced.symbols().size();
  };
  const Calls theirs = CallsOf(original), mine = CallsOf(sliced);
  for (std::size_t number = theirs.size(); number < mine.size(); ++number) {
    if (!is_new(mine[number].first)) return Error{"it lists a call that the original does not have"};
  }
  const auto info = original.Find(".nv.info");
  if (!info) return {};
  GL_TRY(before, ReadAttributes(original.sections()[*info].data));
  GL_TRY(after, ReadAttributes(sliced.sections()[*info].data));
  for (std::size_t number = before.size(); number < after.size(); ++number) {
    if (!is_new(after[number].Number(0)) || !IsOfSymbol(after[number], after[number].Number(0)))
      return Error{"it has an attribute that the original does not have"};
  }
  return {};
}

bool Holds(const Elf64_Phdr& segment, const Elf64_Shdr& section) {
  return section.sh_type != SHT_NOBITS && section.sh_size != 0 && segment.p_offset <= section.sh_offset &&
         section.sh_offset + section.sh_size <= segment.p_offset + segment.p_filesz;
}

std::uint64_t AddedWithoutBytes(const CubinFile& original, const CubinFile& sliced) {
  std::uint64_t bytes = 0;
  for (std::size_t number = original.sections().size(); number < sliced.sections().size(); ++number) {
    const Elf64_Shdr& header = sliced.sections()[number].header;
    bytes += header.sh_type == SHT_NOBITS ? header.sh_size : 0;
  }
  return bytes;
}

/// For what it has beyond its bytes in the file.
bool HasRoom(const Elf64_Phdr& theirs, const Elf64_Phdr& mine, std::uint64_t added) {
  const std::uint64_t before = theirs.p_memsz - theirs.p_filesz, after = mine.p_memsz - mine.p_filesz;
  return after == (theirs.p_memsz > theirs.p_filesz ? before + added : before);
}

/// A form's section is in the segments that the kernel's is in.
Status CheckPlace(const CubinFile& original, const CubinFile& sliced, std::size_t segment, std::size_t section) {
  const std::string& name = sliced.sections()[section].name;
  const auto like = original.Find(name.substr(0, name.size() - SlicedName("").size()));
  if (!like) return Error{"the section " + name + " is like none of the original"};
  if (Holds(original.segments()[segment], original.sections()[*like].header) !=
      Holds(sliced.segments()[segment], sliced.sections()[section].header))
    return Error{"a segment does not hold what it should"};
  return {};
}

Status CheckSegments(const CubinFile& original, const CubinFile& sliced) {
  if (original.segments().size() != sliced.segments().size()) return Error{"its segments are not the original's"};
  for (std::size_t number = 0; number < original.segments().size(); ++number) {
    const Elf64_Phdr& theirs = original.segments()[number];
    const Elf64_Phdr& mine = sliced.segments()[number];
    for (std::size_t section = 0; section < original.sections().size(); ++section) {
      if (Holds(theirs, original.sections()[section].header) != Holds(mine, sliced.sections()[section].header))
        return Error{"a segment does not hold what it held"};
    }
    for (std::size_t section = original.sections().size(); section < sliced.sections().size(); ++section)
      GL_TRY_STATUS(CheckPlace(original, sliced, number, section));
    if (mine.p_type != theirs.p_type || mine.p_flags != theirs.p_flags || mine.p_align != theirs.p_align ||
        !HasRoom(theirs, mine, AddedWithoutBytes(original, sliced)))
      return Error{"its segments are not the original's"};
  }
  return {};
}

}  // namespace

Status ProveFile(const CubinFile& original, const CubinFile& sliced, const std::vector<SlicedKernel>& kernels) {
  if (original.sections().size() > sliced.sections().size() || original.symbols().size() > sliced.symbols().size() ||
      original.sm() != sliced.sm() || original.is_linked() != sliced.is_linked())
    return Error{"it is another cubin"};
  for (std::size_t number = 0; number < original.sections().size(); ++number)
    GL_TRY_STATUS(CheckSection(original, sliced, number));
  GL_TRY_STATUS(CheckAdded(original, sliced, kernels));
  return CheckSegments(original, sliced);
}

}  // namespace gridloom::machine
