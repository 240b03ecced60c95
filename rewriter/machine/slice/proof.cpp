#include "rewriter/machine/slice/proof.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>

#include "rewriter/machine/flow.h"
#include "rewriter/machine/slice/execute.h"
#include "rewriter/machine/slice/kernel_parts.h"
#include "rewriter/machine/slice/terms.h"

namespace gridloom::machine {
namespace {

using passes::HiddenRole;

constexpr std::uint8_t kEveryScoreboard = 0x3F;
constexpr std::uint8_t kEnoughStall = 12;  // for any arithmetic of fixed latency
constexpr std::size_t kLongestSite = 64;
constexpr std::uint32_t kParamWord = 4U << 18 | 0x1F000;  // KPARAM_INFO of a parameter of four bytes
constexpr unsigned kCountInInfo = 24;                     // where sh_info of code has the count of registers

std::string Where(std::uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "at 0x%llx: ", static_cast<unsigned long long>(address));
  return text;
}

/// Where a hidden parameter is in constant bank 0; -1 when there is none of the role.
std::int32_t PlaceOfHidden(const SlicedKernel& kernel, const KernelParts& parts, HiddenRole role) {
  const auto found = std::ranges::find(kernel.hidden, role, &passes::HiddenParam::role);
  return found == kernel.hidden.end() ? -1 : static_cast<std::int32_t>(parts.first_param + found->offset);
}

/// What %ctaid of the original grid is, by slice_range.h: the CTA's number counts from that of the slice's first.
class Expected {
 public:
  Expected(const SlicedKernel& kernel, const KernelParts& parts) : kernel_(kernel), parts_(parts) {}

  std::string Of(std::string_view special) const {
    const std::string in_row = terms_.Add(terms_.Special("SR_CTAID.X"), Hidden(HiddenRole::kFirstCtaX));
    const std::string row = Quotient(in_row, HiddenRole::kReciprocalX, HiddenRole::kShiftX);
    if (special == "SR_CTAID.X") return Rest(in_row, row, HiddenRole::kGridX);
    const std::string in_plane = terms_.Add(row, Hidden(HiddenRole::kFirstCtaY));
    const std::string plane = Quotient(in_plane, HiddenRole::kReciprocalY, HiddenRole::kShiftY);
    if (special == "SR_CTAID.Y") return Rest(in_plane, plane, HiddenRole::kGridY);
    return terms_.Add(plane, Hidden(HiddenRole::kFirstCtaZ));
  }

 private:
  std::string Hidden(HiddenRole role) const { return terms_.Constant(PlaceOfHidden(kernel_, parts_, role)); }
  std::string Quotient(const std::string& value, HiddenRole multiplier, HiddenRole shift) const {
    return terms_.ShiftRight(terms_.High(terms_.Add(value, value), Hidden(multiplier)), Hidden(shift));
  }
  std::string Rest(const std::string& value, const std::string& quotient, HiddenRole divisor) const {
    return terms_.Add(value, terms_.Negate(terms_.Multiply(quotient, Hidden(divisor))));
  }

  const SlicedKernel& kernel_;
  const KernelParts& parts_;
  Terms terms_{};
};

/// Whether results are waited for: scoreboards for what takes as long as it takes, a long stall for the rest.
class Waiting {
 public:
  Status Step(const Instruction& instruction) {
    const RegisterUse use = UseOf(instruction);
    for (std::uint8_t board = 0; board < pending_.size(); ++board) {
      RegisterSet& pending = pending_[board];
      if ((instruction.control.wait >> board & 1) != 0) pending = {};
      RegisterSet touched = use.read;
      touched |= use.written;
      if ((pending.general & touched.general).any() || (pending.uniform & touched.uniform).any())
        return Error{"it does not wait for what it uses"};
    }
    if (instruction.control.read_barrier != kNoBarrier) return Error{"it has a scoreboard for what it reads"};
    const std::string_view name = instruction.format->name;
    const bool variable = name == "S2R" || name == "LDC" || name == "R2UR";
    if (!variable) {
      const bool long_enough = instruction.control.stall >= kEnoughStall || instruction.format->flow != Flow::kNext;
      return long_enough ? Status() : Error{"it does not stall for its result"};
    }
    if (instruction.control.write_barrier >= pending_.size()) return Error{"it has no scoreboard for its result"};
    pending_[instruction.control.write_barrier] |= use.written;
    return {};
  }
  bool none() const {
    return std::ranges::all_of(pending_, [](const RegisterSet& set) { return set.none(); });
  }

 private:
  std::array<RegisterSet, 6> pending_{};
};

/// No modifier is set and no predicate asked.
bool HasDefaults(const Instruction& instruction) {
  for (const std::uint8_t field : instruction.format->modifiers) {
    if (!instruction.format->fields[field].names[instruction.Value(field)].empty()) return false;
  }
  return std::ranges::all_of(instruction.format->operands, [&](const Operand& operand) {
    if (operand.kind == OperandKind::kTarget) return true;
    return operand.kind == OperandKind::kPredicate && instruction.Value(operand.value) == kTrue &&
           instruction.Value(operand.negate) == 0;
  });
}

/// Bytes from the start of the code that an unconditional branch leads to; nothing when it is none.
std::optional<std::int64_t> JumpTarget(const Instruction& instruction, std::uint32_t at) {
  const bool guarded = instruction.guard != kTrue || instruction.guard_negated;
  if (instruction.format->name != "BRA" || guarded || !HasDefaults(instruction)) return std::nullopt;
  return BranchTargetOf(instruction, at);
}

class KernelProof {
 public:
  KernelProof(const CubinFile& original, const CubinFile& sliced, const SlicedKernel& kernel)
      : original_(original), sliced_(sliced), kernel_(kernel) {}

  Status Prove() {
    GL_TRY(before, ReadKernelParts(original_, kernel_.name));
    GL_TRY(after, ReadKernelParts(sliced_, kernel_.name));
    before_ = std::move(before);
    after_ = std::move(after);
    GL_TRY_STATUS(CheckParams());
    GL_TRY_STATUS(CheckAttributes());
    GL_TRY_STATUS(CheckConstants());
    GL_TRY(flow, FlowGraph::Build(original_.sections()[before_.text].data, original_.sm()));
    GL_TRY_STATUS(CheckCode(flow));
    return CheckRegisters();
  }

 private:
  image::Bytes code() const { return sliced_.sections()[after_.text].data; }

  Status CheckParams() const {
    std::set<std::uint32_t> places;
    for (const passes::HiddenParam& hidden : kernel_.hidden) {
      if (hidden.offset < before_.param_bytes || hidden.offset % 4 != 0 || hidden.offset + 4 > after_.param_bytes ||
          !places.insert(hidden.offset).second)
        return Error{"a hidden parameter stands on another"};
    }
    if (after_.first_param != before_.first_param) return Error{"its parameters have moved"};
    for (const HiddenRole role : SliceRoles()) {
      if (PlaceOfHidden(kernel_, after_, role) < 0) return Error{"a hidden parameter is not there"};
    }
    return {};
  }

  /// All as before, but for the size of the parameters and the records of the hidden ones.
  Status CheckAttributes() const {
    std::vector<Attribute> mine = after_.attributes, theirs = before_.attributes;
    const auto own =
        static_cast<std::uint32_t>(std::ranges::count(theirs, AttributeCode::kKparamInfo, &Attribute::code));
    std::size_t found = 0;
    std::erase_if(mine, [&](const Attribute& attribute) {
      const std::uint32_t ordinal = attribute.Number(4) & 0xFFFF, offset = attribute.Number(4) >> 16;
      if (attribute.code != AttributeCode::kKparamInfo || ordinal < own || ordinal - own >= kernel_.hidden.size())
        return false;
      const bool right = attribute.Number(8) == kParamWord && kernel_.hidden[ordinal - own].offset == offset;
      found += right ? 1 : 0;
      return right;
    });
    const auto sizes = [](const Attribute& attribute) {
      return attribute.code == AttributeCode::kParamCbank || attribute.code == AttributeCode::kCbankParamSize ||
             attribute.code == AttributeCode::kCtaidReadOffsets;
    };
    std::erase_if(mine, sizes);
    std::erase_if(theirs, sizes);
    if (found != kernel_.hidden.size() || mine != theirs) return Error{"its attributes are not the original's"};
    return {};
  }

  Status CheckConstants() const {
    const auto& mine = sliced_.sections()[after_.constants].data;
    const auto& theirs = original_.sections()[before_.constants].data;
    if (mine.size() < theirs.size() || !std::ranges::equal(theirs, std::span(mine).first(theirs.size())))
      return Error{"its constant bank 0 is not the original's"};
    const auto zero = [](std::byte byte) { return byte == std::byte{0}; };
    return std::ranges::all_of(std::span(mine).subspan(theirs.size()), zero) ? Status()
                                                                             : Error{"hidden parameters have values"};
  }

  Status CheckCode(const FlowGraph& flow) {
    const auto count = static_cast<std::uint32_t>(flow.instructions().size());
    if (code().size() % kWordBytes != 0 || code().size() < count * kWordBytes) return Error{"its code is cut off"};
    appended_.assign(code().size() / kWordBytes - count, false);
    const image::Bytes theirs = original_.sections()[before_.text].data;
    for (std::uint32_t at = 0; at < count; ++at) {
      const Status status = ReadWord(theirs, at * kWordBytes) == ReadWord(code(), at * kWordBytes)
                                ? CheckSame(flow.instructions()[at])
                                : CheckChanged(flow, at);
      if (!status.ok()) return Error{Where(at * kWordBytes) + status.error().message};
    }
    for (std::size_t number = 0; number < appended_.size(); ++number) {
      const auto at = static_cast<std::uint32_t>(count + number);
      if (!appended_[number] && !IsPadding(at)) return Error{Where(at * kWordBytes) + "nothing leads here"};
    }
    return {};
  }

  bool IsPadding(std::uint32_t at) const {
    const auto instruction = Decode(ReadWord(code(), at * kWordBytes), sliced_.sm());
    if (!instruction) return false;
    return instruction->format->name == "NOP" ||
           JumpTarget(*instruction, at) == static_cast<std::int64_t>(at * kWordBytes);
  }

  static bool ReadsGrid(const Instruction& instruction) {
    return std::ranges::any_of(ConstantReadsOf(instruction), [](const ConstantRead& read) {
      return read.unknown ||
             (read.bank == 0 && (read.Overlaps(kGridFirst, kGridEnd) || (read.indexed && read.offset < kGridEnd)));
    });
  }
  static Status CheckSame(const Instruction& instruction) {
    if (SpecialReadOf(instruction).starts_with("SR_CTAID") || ReadsGrid(instruction))
      return Error{"the slice's own place in the grid is read"};
    return {};
  }

  Status CheckChanged(const FlowGraph& flow, std::uint32_t at) {
    const Instruction& theirs = flow.instructions()[at];
    const auto mine = Decode(ReadWord(code(), at * kWordBytes), sliced_.sm());
    if (!mine) return Error{"an unknown word"};
    if (!SpecialReadOf(theirs).starts_with("SR_CTAID")) return CheckRedirected(theirs, *mine);
    const auto target = JumpTarget(*mine, at);
    if (!target || *target < static_cast<std::int64_t>(flow.instructions().size() * kWordBytes) ||
        *target >= static_cast<std::int64_t>(code().size()) || *target % static_cast<std::int64_t>(kWordBytes) != 0)
      return Error{"it does not lead to what was appended"};
    if (mine->control.wait != kEveryScoreboard || mine->control.write_barrier != kNoBarrier ||
        mine->control.read_barrier != kNoBarrier)
      return Error{"it does not wait for what was begun before"};
    return CheckSite(flow, at, static_cast<std::uint32_t>(*target / static_cast<std::int64_t>(kWordBytes)));
  }

  /// A read of the grid's size, of hidden parameters now.
  Status CheckRedirected(const Instruction& theirs, const Instruction& mine) const {
    if (mine.format != theirs.format || mine.guard != theirs.guard || mine.guard_negated != theirs.guard_negated ||
        !(mine.control == theirs.control))
      return Error{"it is another instruction"};
    Instruction back = mine;
    const std::int32_t moved = PlaceOfHidden(kernel_, after_, HiddenRole::kGridX) - kGridFirst;
    const auto before = ConstantReadsOf(theirs), after = ConstantReadsOf(mine);
    for (std::size_t number = 0; number < before.size(); ++number) {
      const bool grid = before[number].bank == 0 && before[number].Overlaps(kGridFirst, kGridEnd);
      const bool whole = before[number].offset >= kGridFirst &&
                         before[number].offset + static_cast<std::int32_t>(before[number].bytes) <= kGridEnd;
      if (!grid) continue;
      if (!whole || before[number].indexed || after[number].offset != before[number].offset + moved)
        return Error{"it reads something else than the grid's size"};
      back.values[before[number].field] = theirs.values[before[number].field];
    }
    if (back.values != theirs.values || ReadsGrid(mine)) return Error{"it is another instruction"};
    // Two dimensions may be read at once.
    if (PlaceOfHidden(kernel_, after_, HiddenRole::kGridY) - PlaceOfHidden(kernel_, after_, HiddenRole::kGridX) != 4 ||
        PlaceOfHidden(kernel_, after_, HiddenRole::kGridZ) - PlaceOfHidden(kernel_, after_, HiddenRole::kGridX) != 8 ||
        moved % 8 != 0)
      return Error{"the hidden parameters do not stand as the grid's size does"};
    return {};
  }

  Status CheckSite(const FlowGraph& flow, std::uint32_t at, std::uint32_t from) {
    const Instruction& site = flow.instructions()[at];
    Terms terms;
    Executor<Terms> executor(terms);
    Waiting waiting;
    const auto count = static_cast<std::uint32_t>(flow.instructions().size());
    for (std::uint32_t number = from; number < from + kLongestSite; ++number) {
      if (static_cast<std::size_t>(number - count) >= appended_.size() || appended_[number - count])
        return Error{"what was appended has no end"};
      const auto instruction = Decode(ReadWord(code(), number * kWordBytes), sliced_.sm());
      if (!instruction) return Error{Where(number * kWordBytes) + "an unknown word"};
      appended_[number - count] = true;
      if (const Status status = waiting.Step(*instruction); !status.ok())
        return Error{Where(number * kWordBytes) + status.error().message};
      if (const auto target = JumpTarget(*instruction, number)) {
        if (at + 1 >= count || *target != static_cast<std::int64_t>((at + 1) * kWordBytes))
          return Error{"it does not come back"};
        return waiting.none() ? CheckAfter(flow, at, executor) : Error{"it comes back before all results are there"};
      }
      // All of it under the site's guard: where that is false nothing happens, as in the original.
      if (instruction->guard != site.guard || instruction->guard_negated != site.guard_negated)
        return Error{Where(number * kWordBytes) + "it has another guard"};
      if (const Status status = executor.Step(*instruction); !status.ok()) return status;
      if (!executor.general.empty()) highest_ = std::max(highest_, executor.general.rbegin()->first);
    }
    return Error{"what was appended is too long"};
  }

  Status CheckAfter(const FlowGraph& flow, std::uint32_t at, const Executor<Terms>& executor) {
    const Instruction& site = flow.instructions()[at];
    const RegisterSet written = UseOf(site).written;
    const std::string expected = Expected(kernel_, after_).Of(SpecialReadOf(site));
    bool there = written.none();
    for (const auto& [number, value] : executor.uniform) {
      if (!written.uniform[number] || value != expected)
        return Error{"UR" + std::to_string(number) + " is not what it was"};
      there = true;
    }
    for (const auto& [number, value] : executor.general) {
      if (written.general[number]) {
        if (value != expected) return Error{"it computes " + value + " in place of " + expected};
        there = true;
      } else if (IsInUse(flow, at, number)) {
        return Error{"R" + std::to_string(number) + " may still be used"};
      }
    }
    return there ? Status() : Error{"it does not write the register"};
  }

  /// It may be read behind the site, or some instruction on a way to it may still be at work with it.
  static bool IsInUse(const FlowGraph& flow, std::uint32_t at, unsigned number) {
    const auto touches = [&](std::uint32_t one) {
      const RegisterUse use = UseOf(flow.instructions()[one]);
      return use.read.general[number] || use.written.general[number];
    };
    bool used = false;
    for (std::uint32_t one = 0; one < flow.instructions().size() && !used; ++one) used = touches(one);
    if (!used) return false;
    if (at + 1 < flow.instructions().size() && flow.LiveBefore(at + 1).general[number]) return true;
    std::vector<bool> seen(flow.instructions().size(), false);
    for (std::uint32_t start = 0; start < flow.instructions().size(); ++start) {
      if (!touches(start) || seen[start]) continue;
      std::vector<std::uint32_t> open{start};
      while (!open.empty()) {
        const std::uint32_t one = open.back();
        open.pop_back();
        for (const std::uint32_t next : flow.Next(one)) {
          if (next == at) return true;
          if (!seen[next]) open.push_back(next);
          seen[next] = true;
        }
      }
    }
    return false;
  }

  Status CheckRegisters() const {
    if (after_.registers != kernel_.registers || after_.registers < before_.registers ||
        after_.registers > before_.registers + 2)
      return Error{"its count of registers is not what it should be"};
    if (appended_.empty() ? false : highest_ + kReservedRegisters >= after_.registers)
      return Error{"R" + std::to_string(highest_) + " is beyond its count of registers"};
    const std::uint32_t theirs = original_.sections()[before_.text].header.sh_info;
    const std::uint32_t mine = sliced_.sections()[after_.text].header.sh_info;
    const bool counted = theirs >> kCountInInfo == before_.registers;
    const std::uint32_t expected =
        counted ? (theirs & ((1U << kCountInInfo) - 1)) | after_.registers << kCountInInfo : theirs;
    return mine == expected ? Status() : Error{"its section has another count of registers"};
  }

  const CubinFile& original_;
  const CubinFile& sliced_;
  const SlicedKernel& kernel_;
  KernelParts before_{}, after_{};
  std::vector<bool> appended_{};  ///< words behind the original's that some site leads to
  unsigned highest_ = 0;
};

/// Sections of sliced kernels, which ProveKernel looks at.
std::set<std::string> Sections(const std::vector<SlicedKernel>& kernels) {
  std::set<std::string> names;
  for (const SlicedKernel& kernel : kernels) {
    if (!kernel.why_whole.empty()) continue;
    for (const char* prefix : {".text.", ".nv.constant0.", ".nv.info."}) names.insert(prefix + kernel.name);
  }
  return names;
}

/// Registers of sliced kernels apart.
Status CheckFileAttributes(const CubinFile& original, const CubinFile& sliced, std::size_t section,
                           const std::vector<SlicedKernel>& kernels) {
  GL_TRY(theirs, ReadAttributes(original.sections()[section].data));
  GL_TRY(mine, ReadAttributes(sliced.sections()[section].data));
  if (mine.size() != theirs.size()) return Error{"attributes of the file are not the original's"};
  for (std::size_t number = 0; number < mine.size(); ++number) {
    if (mine[number] == theirs[number]) continue;
    const std::uint32_t symbol = theirs[number].Number(0);
    const bool named =
        symbol < original.symbols().size() && std::ranges::any_of(kernels, [&](const SlicedKernel& kernel) {
          return kernel.why_whole.empty() && kernel.name == original.symbols()[symbol].name;
        });
    Attribute same = mine[number];
    same.SetNumber(4, theirs[number].Number(4));
    if (theirs[number].code != AttributeCode::kRegcount || !named || !(same == theirs[number]))
      return Error{"attributes of the file are not the original's"};
  }
  return {};
}

/// Only sizes of the code of sliced kernels.
Status CheckSymbols(const CubinFile& original, const CubinFile& sliced, const std::set<std::string>& free) {
  for (std::size_t number = 0; number < original.symbols().size(); ++number) {
    const auto& theirs = original.symbols()[number];
    const auto& mine = sliced.symbols()[number];
    Elf64_Sym same = mine.entry;
    same.st_size = theirs.entry.st_size;
    const bool as_it_was = std::memcmp(&same, &theirs.entry, sizeof same) == 0 && mine.name == theirs.name;
    const auto text = original.Find(".text." + theirs.name);
    const bool grown = free.contains(".text." + theirs.name) && text && theirs.entry.st_shndx == *text &&
                       theirs.entry.st_size == original.sections()[*text].data.size() &&
                       mine.entry.st_size == sliced.sections()[*text].data.size();
    if (!as_it_was || (mine.entry.st_size != theirs.entry.st_size && !grown))
      return Error{"the symbol " + theirs.name + " is not the original's"};
  }
  return {};
}

/// Only sizes of the code of sliced kernels, behind its address.
Status CheckFrames(const CubinFile& original, const CubinFile& sliced, std::size_t section,
                   const std::set<std::string>& free) {
  const auto& theirs = original.sections()[section].data;
  std::vector<std::byte> mine = sliced.sections()[section].data;
  if (mine.size() != theirs.size()) return Error{"the frames are not the original's"};
  for (const CubinFile::Relocation& relocation : original.RelocationsOf(section)) {
    if (relocation.symbol >= original.symbols().size()) continue;
    const std::string text = ".text." + original.symbols()[relocation.symbol].name;
    const std::uint64_t at = relocation.offset + 8;
    const auto size = image::ReadAt<std::uint64_t>(mine, at);
    const auto before = image::ReadAt<std::uint64_t>(theirs, at);
    const auto code = original.Find(text);
    if (!size || !before || !free.contains(text) || !code || relocation.addend != 0) continue;
    if (*before == original.sections()[*code].data.size() && *size == sliced.sections()[*code].data.size())
      std::copy_n(theirs.begin() + static_cast<std::ptrdiff_t>(at), 8, mine.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return mine == theirs ? Status() : Error{"the frames are not the original's"};
}

Status CheckSection(const CubinFile& original, const CubinFile& sliced, std::size_t number,
                    const std::vector<SlicedKernel>& kernels, const std::set<std::string>& free) {
  const CubinFile::Section& theirs = original.sections()[number];
  const CubinFile::Section& mine = sliced.sections()[number];
  Elf64_Shdr same = mine.header;
  same.sh_offset = theirs.header.sh_offset;
  const bool is_free = free.contains(theirs.name);
  if (is_free) {
    same.sh_size = theirs.header.sh_size;
    same.sh_info = theirs.header.sh_info;
  }
  if (mine.name != theirs.name || std::memcmp(&same, &theirs.header, sizeof same) != 0)
    return Error{"the section " + theirs.name + " is not the original's"};
  if (mine.header.sh_addralign > 1 && mine.header.sh_offset % mine.header.sh_addralign != 0)
    return Error{"the section " + theirs.name + " is not aligned"};
  if (is_free) return {};
  if (theirs.name == ".nv.info") return CheckFileAttributes(original, sliced, number, kernels);
  if (theirs.name == ".symtab") return CheckSymbols(original, sliced, free);
  if (theirs.name == ".debug_frame") return CheckFrames(original, sliced, number, free);
  return mine.data == theirs.data ? Status() : Error{"the section " + theirs.name + " is not the original's"};
}

bool Holds(const Elf64_Phdr& segment, const Elf64_Shdr& section) {
  return section.sh_type != SHT_NOBITS && section.sh_size != 0 && segment.p_offset <= section.sh_offset &&
         section.sh_offset + section.sh_size <= segment.p_offset + segment.p_filesz;
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
    if (mine.p_type != theirs.p_type || mine.p_flags != theirs.p_flags || mine.p_align != theirs.p_align ||
        mine.p_memsz - mine.p_filesz != theirs.p_memsz - theirs.p_filesz)
      return Error{"its segments are not the original's"};
  }
  return {};
}

}  // namespace

Status ProveKernel(const CubinFile& original, const CubinFile& sliced, const SlicedKernel& kernel) {
  return KernelProof(original, sliced, kernel).Prove();
}

Status ProveFile(const CubinFile& original, const CubinFile& sliced, const std::vector<SlicedKernel>& kernels) {
  if (original.sections().size() != sliced.sections().size() || original.symbols().size() != sliced.symbols().size() ||
      original.sm() != sliced.sm() || original.is_linked() != sliced.is_linked())
    return Error{"it is another cubin"};
  const std::set<std::string> free = Sections(kernels);
  for (std::size_t number = 0; number < original.sections().size(); ++number)
    GL_TRY_STATUS(CheckSection(original, sliced, number, kernels, free));
  return CheckSegments(original, sliced);
}

}  // namespace gridloom::machine
