#include "rewriter/machine/slice/proof.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <span>

#include "rewriter/machine/control_rules.h"
#include "rewriter/machine/flow.h"
#include "rewriter/machine/slice/assemble.h"
#include "rewriter/machine/slice/ended_proof.h"
#include "rewriter/machine/slice/execute.h"
#include "rewriter/machine/slice/form.h"
#include "rewriter/machine/slice/kernel_parts.h"
#include "rewriter/machine/slice/terms.h"
#include "rewriter/machine/slice/waiting.h"

namespace gridloom::machine {
namespace {

using passes::HiddenRole;

constexpr std::size_t kLongestSite = 64;
constexpr unsigned kOpcodeBits = 9, kExitOpcode = 0x14D;
constexpr unsigned kCountInInfo = 24;  // where sh_info of code has the count of registers

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
    GL_TRY(after, ReadKernelParts(sliced_, SlicedName(kernel_.name)));
    before_ = std::move(before);
    after_ = std::move(after);
    GL_TRY_STATUS(CheckSections());
    GL_TRY_STATUS(CheckSymbol());
    GL_TRY_STATUS(CheckCalls());
    GL_TRY_STATUS(CheckParams());
    GL_TRY_STATUS(CheckAttributes());
    GL_TRY_STATUS(CheckConstants());
    GL_TRY(flow, FlowGraph::Build(original_.sections()[before_.text].data, original_.sm(), before_.targets));
    GL_TRY_STATUS(CheckCode(flow));
    GL_TRY_STATUS(CheckRegisters());
    GL_TRY(all, FlowGraph::Build(code(), sliced_.sm(), after_.targets));
    return CheckControl(all);
  }

 private:
  image::Bytes code() const { return sliced_.sections()[after_.text].data; }

  Status CheckParams() const {
    std::set<std::uint32_t> places;
    for (const passes::HiddenParam& hidden : kernel_.hidden) {
      const std::uint32_t bytes = passes::Info(hidden.role).bytes;
      if (hidden.offset < before_.param_bytes || hidden.offset % bytes != 0 ||
          hidden.offset + bytes > after_.param_bytes)
        return Error{"a hidden parameter does not stand behind the kernel's own"};
      for (std::uint32_t byte = 0; byte < bytes; ++byte) {
        if (!places.insert(hidden.offset + byte).second) return Error{"a hidden parameter stands on another"};
      }
    }
    if (after_.first_param != before_.first_param) return Error{"its parameters have moved"};
    for (const HiddenRole role : SliceRoles()) {
      if (PlaceOfHidden(kernel_, after_, role) < 0) return Error{"a hidden parameter is not there"};
    }
    return {};
  }

  /// A section for each of the original's, with the same header and but for three the same bytes.
  Status CheckSections() const {
    GL_TRY(theirs, SectionsOf(original_, kernel_.name));
    GL_TRY(mine, SectionsOf(sliced_, SlicedName(kernel_.name)));
    if (mine.size() != theirs.size()) return Error{"it has other sections than the original"};
    for (const KernelSection& one : theirs) {
      const auto found = std::ranges::find(mine, one.prefix, &KernelSection::prefix);
      if (found == mine.end()) return Error{"it has no section " + one.prefix};
      const CubinFile::Section& their = original_.sections()[one.section];
      const CubinFile::Section& my = sliced_.sections()[found->section];
      const bool links = one.section != before_.text && their.header.sh_info == before_.text;
      const bool free = one.section == before_.text || one.section == before_.info || one.section == before_.constants;
      Elf64_Shdr same = my.header;
      same.sh_name = their.header.sh_name;
      same.sh_offset = their.header.sh_offset;
      if (free) same.sh_size = their.header.sh_size;
      if (links || one.section == before_.text) same.sh_info = their.header.sh_info;
      if (std::memcmp(&same, &their.header, sizeof same) != 0 || (!free && my.data != their.data))
        return Error{"its section " + my.name + " is not as the original's"};
      if (links && my.header.sh_info != after_.text) return Error{"its section " + my.name + " is of other code"};
      if (my.header.sh_addralign > 1 && my.header.sh_offset % my.header.sh_addralign != 0)
        return Error{"its section " + my.name + " is not aligned"};
    }
    return {};
  }

  Status CheckSymbol() const {
    const Elf64_Sym& theirs = original_.symbols()[before_.symbol].entry;
    const Elf64_Sym& mine = sliced_.symbols()[after_.symbol].entry;
    if (mine.st_info != theirs.st_info || mine.st_other != theirs.st_other || mine.st_value != theirs.st_value ||
        mine.st_size != code().size())
      return Error{"its symbol is not as the original's"};
    return {};
  }

  /// What the file says of its frame and its calls.
  Status CheckCalls() const {
    GL_TRY(theirs, OfFile(original_, before_));
    GL_TRY(mine, OfFile(sliced_, after_));
    if (mine != theirs) return Error{"the file says of its stack what it does not say of the original's"};
    const auto calls = [](const CubinFile& cubin, std::uint32_t symbol) {
      Calls all = CallsOf(cubin);
      std::erase_if(all, [&](const auto& call) { return call.first != symbol; });
      for (auto& call : all) call.first = 0;
      return all;
    };
    return calls(original_, before_.symbol) == calls(sliced_, after_.symbol)
               ? Status()
               : Error{"the file lists other calls of it than of the original"};
  }
  /// Records of .nv.info, without the symbol's number and the count of registers.
  static Result<std::vector<Attribute>> OfFile(const CubinFile& cubin, const KernelParts& parts) {
    GL_TRY(attributes, ReadAttributes(cubin.sections()[parts.file_info].data));
    std::erase_if(attributes, [&](const Attribute& attribute) { return !IsOfSymbol(attribute, parts.symbol); });
    for (Attribute& attribute : attributes) {
      attribute.SetNumber(0, 0);
      if (attribute.code == AttributeCode::kRegcount) attribute.SetNumber(4, 0);
    }
    return attributes;
  }

  /// All as before, but for the size of the parameters and the records of the hidden ones.
  Status CheckAttributes() const {
    std::vector<Attribute> mine = after_.attributes, theirs = before_.attributes;
    const std::uint32_t own = ParamCount(theirs);
    std::size_t found = 0;
    std::erase_if(mine, [&](const Attribute& attribute) {
      const auto param = ReadParam(attribute);
      if (!param || param->ordinal < own || param->ordinal - own >= kernel_.hidden.size()) return false;
      const passes::HiddenParam& hidden = kernel_.hidden[param->ordinal - own];
      const AttributeCode kind = FindAttribute(theirs, AttributeCode::kKparamInfoV2) != nullptr
                                     ? AttributeCode::kKparamInfoV2
                                     : AttributeCode::kKparamInfo;
      const bool right =
          attribute == ParamAttribute(kind, {param->ordinal, hidden.offset, passes::Info(hidden.role).bytes});
      found += right ? 1 : 0;
      return right;
    });
    const auto sizes = [this](const Attribute& attribute) {
      return attribute.code == AttributeCode::kParamCbank || attribute.code == AttributeCode::kCbankParamSize ||
             attribute.code == AttributeCode::kCtaidReadOffsets ||
             (kernel_.exits != 0 && attribute.code == AttributeCode::kExitOffsets);
    };
    std::erase_if(mine, sizes);
    std::erase_if(theirs, sizes);
    if (found != kernel_.hidden.size() || mine != theirs) return Error{"its attributes are not the original's"};
    return CheckExitOffsets();
  }

  /// Those of all ends, where the original lists its own.
  Status CheckExitOffsets() const {
    const Attribute* const theirs = FindAttribute(before_.attributes, AttributeCode::kExitOffsets);
    const Attribute* const mine = FindAttribute(after_.attributes, AttributeCode::kExitOffsets);
    if ((theirs == nullptr) != (mine == nullptr)) return Error{"its ends are listed, or not, unlike the original's"};
    if (mine == nullptr || kernel_.exits == 0) return {};
    std::vector<std::uint32_t> listed, ends;
    for (std::size_t at = 0; at < mine->data.size(); at += 4) listed.push_back(mine->Number(at));
    for (std::size_t at = 0; at + kWordBytes <= code().size(); at += kWordBytes) {
      const Word word = ReadWord(code(), at);
      if (word.Get(0, kOpcodeBits) != kExitOpcode) continue;  // to look up all words again takes its time
      const auto instruction = Decode(word, sliced_.sm());
      if (instruction && instruction->format->flow == Flow::kExit) ends.push_back(static_cast<std::uint32_t>(at));
    }
    return listed == ends ? Status() : Error{"it lists other ends than it has"};
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
    GL_TRY_STATUS(CheckEnded(flow));
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
    if (theirs.format->name == "EXIT") return CheckEnd(theirs, *mine, at);
    if (!SpecialReadOf(theirs).starts_with("SR_CTAID")) return CheckRedirected(theirs, *mine);
    const auto target = JumpTarget(*mine, at);
    if (!target || !IsAppended(*target)) return Error{"it does not lead to what was appended"};
    if (mine->control.wait != kAllScoreboards || mine->control.write_barrier != kNoBarrier ||
        mine->control.read_barrier != kNoBarrier)
      return Error{"it does not wait for what was begun before"};
    return CheckSite(flow, at, static_cast<std::uint32_t>(*target / static_cast<std::int64_t>(kWordBytes)));
  }

  /// Of a word behind the original's.
  bool IsAppended(std::int64_t address) const {
    const auto words = static_cast<std::int64_t>(kWordBytes), end = static_cast<std::int64_t>(code().size());
    return address >= end - static_cast<std::int64_t>(appended_.size()) * words && address < end &&
           address % words == 0;
  }

  /// For the same lanes, and when the end would have come: to where all ends lead.
  Status CheckEnd(const Instruction& theirs, Instruction mine, std::uint32_t at) {
    const Operand& own = theirs.format->operands[0];
    if (mine.guard != theirs.guard || mine.guard_negated != theirs.guard_negated || !(mine.control == theirs.control) ||
        theirs.Value(own.value) != kTrue || theirs.Value(own.negate) != 0)
      return Error{"other lanes end"};
    mine.guard = kTrue;
    mine.guard_negated = false;
    const auto target = JumpTarget(mine, at);
    if (!target || !IsAppended(*target)) return Error{"it does not lead to what was appended"};
    const auto word = static_cast<std::uint32_t>(*target / static_cast<std::int64_t>(kWordBytes));
    if (ended_at_.value_or(word) != word) return Error{"ends lead to several places"};
    ended_at_ = word;
    ++ends_;
    return {};
  }

  /// Each end counts, or none does.
  Status CheckEnded(const FlowGraph& flow) {
    if (ends_ != kernel_.exits) return Error{"not as many ends are counted as are said to be"};
    if (!ended_at_) return {};
    const auto all =
        std::ranges::count(flow.instructions(), Flow::kExit, [](const Instruction& one) { return one.format->flow; });
    if (all != static_cast<std::ptrdiff_t>(ends_)) return Error{"some ends are not counted"};
    const EndedCode ended{code(), sliced_.sm(), *ended_at_, PlaceOfHidden(kernel_, after_, HiddenRole::kEndedTable),
                          PlaceOfHidden(kernel_, after_, HiddenRole::kEndedShift)};
    GL_TRY(words, ProveEnded(flow, ended, highest_));
    for (const std::uint32_t word : words) {
      const std::size_t number = word - flow.instructions().size();
      if (number >= appended_.size() || appended_[number]) return Error{"ends lead into other code"};
      appended_[number] = true;
    }
    return {};
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
      const RegisterUse& use = flow.UseAt(one);
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
        after_.registers > before_.registers + kMostMoreRegisters)
      return Error{"its count of registers is not what it should be"};
    if (appended_.empty() ? false : highest_ + kReservedRegisters >= after_.registers)
      return Error{"R" + std::to_string(highest_) + " is beyond its count of registers"};
    const std::uint32_t theirs = original_.sections()[before_.text].header.sh_info;
    const std::uint32_t mine = sliced_.sections()[after_.text].header.sh_info;
    const std::uint32_t counted = theirs >> kCountInInfo;
    const std::uint32_t expected = counted == before_.registers ? after_.registers : counted;
    constexpr std::uint32_t kSymbol = (1U << kCountInInfo) - 1;
    if ((theirs & kSymbol) != before_.symbol || mine != (after_.symbol | expected << kCountInInfo))
      return Error{"its section has another symbol or count of registers"};
    return {};
  }

  const CubinFile& original_;
  const CubinFile& sliced_;
  const SlicedKernel& kernel_;
  KernelParts before_{}, after_{};
  std::vector<bool> appended_{};  ///< words behind the original's that some site leads to
  unsigned highest_ = 0;
  std::optional<std::uint32_t> ended_at_{};  ///< the word that ends lead to
  std::uint32_t ends_ = 0;
};

}  // namespace

Status ProveKernel(const CubinFile& original, const CubinFile& sliced, const SlicedKernel& kernel) {
  return KernelProof(original, sliced, kernel).Prove();
}

}  // namespace gridloom::machine
