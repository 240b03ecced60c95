#include "rewriter/machine/slice/patch.h"

#include <algorithm>
#include <cstdio>

#include "rewriter/machine/print.h"
#include "rewriter/machine/slice/assemble.h"
#include "rewriter/machine/slice/constants.h"
#include "rewriter/machine/slice/ended.h"
#include "rewriter/machine/slice/scratch.h"

namespace gridloom::machine {
namespace {

using passes::HiddenRole;

constexpr unsigned kSmWithoutConstantOperands = 90;  // ptxas has them in no arithmetic of sm_90
constexpr std::uint8_t kBranchStall = 5;
constexpr std::uint32_t kRegistersOfFullOccupancy = 32;  // 65,536 for 2,048 threads, the most that one has

std::string PlaceOf(const Instruction& instruction, std::uint32_t at) {
  char text[32];
  std::snprintf(text, sizeof text, "at 0x%zx: ", at * kWordBytes);
  return text + Text(instruction, at * kWordBytes);
}

/// Writes the code of one site, instruction by instruction. The first error is kept.
class SiteWriter {
 public:
  SiteWriter(unsigned sm, const Instruction& site, std::uint32_t hidden_at, std::uint32_t address)
      : sm_(sm), site_(site), hidden_at_(hidden_at), address_(address) {
    scoreboard_ = site.control.write_barrier == kNoBarrier ? std::uint8_t{0} : site.control.write_barrier;
    uniform_ = site.format->name == "S2UR";
    destination_ = static_cast<unsigned>(site.Value(site.format->operands.front().value));
  }

  static unsigned ScratchNeeded(const Instruction& site, unsigned sm) {
    return site.format->name == "S2UR" || sm >= kSmWithoutConstantOperands ? 2 : 1;
  }

  Result<std::vector<Word>> Write(const std::vector<unsigned>& scratch, std::uint32_t back) {
    value_ = uniform_ ? scratch[0] : destination_;
    other_ = uniform_ ? scratch[1] : scratch[0];
    constant_ = scratch.back();
    Emit("S2R", kFormImmediate, {Reg(value_), Argument::Name("SR_CTAID.X")}, {}, /*awaited=*/true);
    AddConstant(value_, HiddenRole::kFirstCtaX);
    const std::string_view axis = SpecialReadOf(site_);
    if (axis == "SR_CTAID.X") {
      Divide(other_, HiddenRole::kReciprocalX, HiddenRole::kShiftX);
      SubtractProduct(HiddenRole::kGridX);
    } else {
      Divide(value_, HiddenRole::kReciprocalX, HiddenRole::kShiftX);
      AddConstant(value_, HiddenRole::kFirstCtaY);
      const bool y = axis == "SR_CTAID.Y";
      Divide(y ? other_ : value_, HiddenRole::kReciprocalY, HiddenRole::kShiftY);
      if (y) SubtractProduct(HiddenRole::kGridY);
      else AddConstant(value_, HiddenRole::kFirstCtaZ);
    }
    if (uniform_) ToUniform();
    Jump(back);
    if (!status_.ok()) return status_.error();
    return std::move(words_);
  }

 private:
  static Argument Reg(unsigned number) { return Argument::Register(number); }

  void Emit(std::string_view name, unsigned form, const std::vector<Argument>& arguments,
            std::initializer_list<std::string_view> modifiers = {}, bool awaited = false) {
    auto made = Assemble(sm_, name, form, arguments, modifiers);
    if (!made.ok()) {
      if (status_.ok()) status_ = made.error();
      return;
    }
    made->control = {.stall = kLongStall, .wait = wait_};
    wait_ = 0;
    if (awaited) {
      made->control.write_barrier = scoreboard_;
      wait_ = static_cast<std::uint8_t>(1U << scoreboard_);
    }
    // A uniform predicate is no guard of what the table gives here; the site's own is of all lanes.
    made->guard = site_.guard;
    made->guard_negated = site_.guard_negated;
    words_.push_back(Encode(*made));
  }

  /// The last operand of an instruction whose other form has a constant there: what the hidden parameter has.
  Argument Hidden(HiddenRole role, unsigned& form) {
    const std::int64_t offset = hidden_at_ + OffsetOf(role);
    if (sm_ < kSmWithoutConstantOperands) {
      form = kFormConstant;
      return Argument::Constant(offset);
    }
    if (uniform_) {
      // Into the register that the site writes in the end: no other is known to be free for lanes elsewhere.
      Emit("ULDC", kFormConstant, {Reg(destination_), Argument::Constant(offset)});
      Emit("NOP", kFormImmediate, {});
      form = kFormUniform;
      return Reg(destination_);
    }
    form = kFormRegisters;
    Emit("LDC", kFormConstant, {Reg(constant_), Argument::Constant(offset)}, {}, /*awaited=*/true);
    return Reg(constant_);
  }

  void AddConstant(unsigned to, HiddenRole role) {
    unsigned form = 0;
    const Argument hidden = Hidden(role, form);
    Emit("IADD3", form, {Reg(to), Argument::Default(), Argument::Default(), Reg(to), hidden});
  }

  /// `to` = value / divisor, as slice_range.h has it: (2 * value * multiplier >> 32) >> shift.
  void Divide(unsigned to, HiddenRole multiplier, HiddenRole shift) {
    Emit("IADD3", kFormRegisters, {Reg(other_), Argument::Default(), Argument::Default(), Reg(value_), Reg(value_)});
    unsigned form = 0;
    Argument hidden = Hidden(multiplier, form);
    Emit("IMAD.HI", form, {Reg(other_), Argument::Default(), Reg(other_), hidden}, {".U32"});
    hidden = Hidden(shift, form);
    Emit("SHF", form, {Reg(to), Argument::Default(), hidden, Reg(other_)}, {".R", ".U32", ".HI"});
  }

  void SubtractProduct(HiddenRole divisor) {
    unsigned form = 0;
    const Argument hidden = Hidden(divisor, form);
    Emit("IMAD", form, {Reg(other_), Argument::Default(), Reg(other_), hidden});
    Emit("IADD3", kFormRegisters,
         {Reg(value_), Argument::Default(), Argument::Default(), Reg(value_), Argument::Negated(other_)});
  }

  void ToUniform() {
    Emit("R2UR", kFormRegisters, {Argument::Default(), Reg(destination_), Reg(value_)}, {}, /*awaited=*/true);
  }

  /// Back to the instruction behind the site, for all lanes.
  void Jump(std::uint32_t back) {
    const std::int64_t next =
        address_ + (static_cast<std::int64_t>(words_.size()) + 1) * static_cast<std::int64_t>(kWordBytes);
    auto made = Assemble(sm_, "BRA", kFormImmediate, {Argument::Default(), Argument::Number((back - next) / 4)});
    if (!made.ok()) {
      if (status_.ok()) status_ = made.error();
      return;
    }
    made->control = {.stall = kBranchStall, .yield = true, .wait = kAllScoreboards};
    words_.push_back(Encode(*made));
  }

  const unsigned sm_;
  const Instruction& site_;
  const std::uint32_t hidden_at_, address_;
  std::uint8_t scoreboard_ = 0;
  bool uniform_ = false;
  unsigned destination_ = 0, value_ = 0, other_ = 0, constant_ = 0;
  std::uint8_t wait_ = 0;
  std::vector<Word> words_{};
  Status status_{};
};

class Patcher {
 public:
  Patcher(image::Bytes code, unsigned sm, const FlowGraph& flow, const KernelParts& parts)
      : sm_(sm), flow_(flow), parts_(parts), scratch_(flow, parts.registers, parts.register_limit) {
    out_.code.assign(code.begin(), code.end());
  }

  Result<PatchedCode> Patch() {
    const auto instructions = flow_.instructions();
    for (std::uint32_t at = 0; at < instructions.size(); ++at) {
      GL_TRY_STATUS(RedirectGridReads(at));
      if (SpecialReadOf(instructions[at]).starts_with("SR_CTAID")) GL_TRY_STATUS(PatchSite(at));
    }
    out_.registers = scratch_.registers();
    if (const Status counts = CountEnds(); !counts.ok()) out_.why_uncounted = counts.error().message;
    PadCode();
    return std::move(out_);
  }

 private:
  Status RedirectGridReads(std::uint32_t at) {
    Instruction changed = flow_.instructions()[at];
    bool any = false;
    for (const ConstantRead& read : ConstantReadsOf(changed)) {
      if (read.bank != 0 || !read.Overlaps(kGridFirst, kGridEnd)) continue;
      if (read.indexed || read.offset < kGridFirst || read.offset + static_cast<std::int32_t>(read.bytes) > kGridEnd)
        return Error{PlaceOf(changed, at) + " reads the grid's size together with other things"};
      const std::uint32_t to =
          parts_.hidden_at() + OffsetOf(HiddenRole::kGridX) + static_cast<std::uint32_t>(read.offset - kGridFirst);
      const Field& field = changed.format->fields[read.field];
      const std::uint64_t mask = (std::uint64_t{1} << field.bits()) - 1;
      changed.values[read.field] = to & mask;
      ++out_.grid_reads;
      any = true;
    }
    if (!any) return {};
    const Word word = Encode(changed);
    if (const auto again = Decode(word, sm_); !again || again->format != changed.format)
      return Error{PlaceOf(changed, at) + " has no room for another place in the constant bank"};
    WriteWord(out_.code, at * kWordBytes, word);
    return {};
  }

  Status PatchSite(std::uint32_t at) {
    const Instruction& site = flow_.instructions()[at];
    if (at + 1 == flow_.instructions().size()) return Error{PlaceOf(site, at) + " has nothing behind it"};
    const bool guarded = site.guard != kTrue || site.guard_negated;
    if (guarded && (site.format->uniform_guard || (site.format->name == "S2UR" && sm_ >= kSmWithoutConstantOperands)))
      return Error{PlaceOf(site, at) + " has a guard that its replacement cannot have"};
    GL_TRY(scratch, scratch_.Take(at, SiteWriter::ScratchNeeded(site, sm_)));
    const auto address = static_cast<std::uint32_t>(out_.code.size());
    const auto back = static_cast<std::uint32_t>((at + 1) * kWordBytes);
    GL_TRY(words, SiteWriter(sm_, site, parts_.hidden_at(), address).Write(scratch, back));
    GL_TRY(jump, Assemble(sm_, "BRA", kFormImmediate,
                          {Argument::Default(), Argument::Number((static_cast<std::int64_t>(address) - back) / 4)}));
    jump.control = {.stall = kBranchStall, .yield = true, .wait = kAllScoreboards};
    WriteWord(out_.code, at * kWordBytes, Encode(jump));
    Append(words);
    out_.moved.emplace_back(static_cast<std::uint32_t>(at * kWordBytes), address);
    ++out_.sites;
    return {};
  }

  void Append(const std::vector<Word>& words) {
    const std::size_t address = out_.code.size();
    out_.code.resize(address + words.size() * kWordBytes);
    for (std::size_t number = 0; number < words.size(); ++number)
      WriteWord(out_.code, address + number * kWordBytes, words[number]);
  }

  /// Every end of threads becomes a jump to code that counts them. An error says why the form cannot count; then all of
  /// it is as it was.
  Status CountEnds() {
    const auto instructions = flow_.instructions();
    std::vector<std::uint32_t> ends;
    for (std::uint32_t at = 0; at < instructions.size(); ++at) {
      if (instructions[at].format->flow == Flow::kExit) ends.push_back(at);
    }
    const auto address = static_cast<std::uint32_t>(out_.code.size());
    std::vector<Word> jumps;
    for (const std::uint32_t at : ends) {
      GL_TRY(jump, JumpFromEnd(at, address));
      jumps.push_back(Encode(jump));
    }
    if (ends.empty()) return Error{"its threads do not end"};
    GL_TRY(registers, RegistersForEnds());
    GL_TRY(words, CountEnded(sm_, registers, parts_.hidden_at()));
    for (std::size_t number = 0; number < ends.size(); ++number)
      WriteWord(out_.code, ends[number] * kWordBytes, jumps[number]);
    Append(words);
    out_.exits = static_cast<std::uint32_t>(ends.size());
    for (std::size_t number = 0; number < words.size(); ++number) {
      if (const auto word = Decode(words[number], sm_); word && word->format->flow == Flow::kExit)
        out_.exit_offsets.push_back(address + static_cast<std::uint32_t>(number * kWordBytes));
    }
    return {};
  }

  /// Of those that the kernel has, or that cost it no thread of a multiprocessor.
  Result<EndedRegisters> RegistersForEnds() {
    const std::uint32_t most = std::min({std::max(GivenRegisters(out_.registers), kRegistersOfFullOccupancy),
                                         parts_.register_limit, parts_.registers + kMostMoreRegisters});
    auto found = FreeWhereThreadsEnd(flow_, sm_, out_.registers);
    for (std::uint32_t count = out_.registers + 1; !found.ok() && count <= most; ++count) {
      found = FreeWhereThreadsEnd(flow_, sm_, count);
      if (found.ok()) out_.registers = count;
    }
    return found;
  }

  /// For the lanes that would end there; the others go on as they did.
  Result<Instruction> JumpFromEnd(std::uint32_t at, std::uint32_t address) const {
    const Instruction& end = flow_.instructions()[at];
    const auto& operands = end.format->operands;
    if (end.format->name != "EXIT" || operands.size() != 1 || end.Value(operands[0].value) != kTrue ||
        end.Value(operands[0].negate) != 0)
      return Error{PlaceOf(end, at) + " ends threads in a way that cannot count them"};
    const auto next = static_cast<std::int64_t>((at + 1) * kWordBytes);
    GL_TRY(jump, Assemble(sm_, "BRA", kFormImmediate, {Argument::Default(), Argument::Number((address - next) / 4)}));
    jump.guard = end.guard;
    jump.guard_negated = end.guard_negated;
    jump.control = end.control;
    return jump;
  }

  /// As ptxas ends a function: with a jump to itself, and NOPs up to a multiple of 128 bytes.
  void PadCode() {
    if (out_.sites == 0 && out_.exits == 0) return;
    constexpr std::size_t kCodeAlignment = 128;
    const auto self = Assemble(sm_, "BRA", kFormImmediate, {Argument::Default(), Argument::Number(-4)});
    const auto nop = Assemble(sm_, "NOP", kFormImmediate, {});
    const auto append = [&](const Result<Instruction>& made) {
      if (!made.ok()) return;
      out_.code.resize(out_.code.size() + kWordBytes);
      WriteWord(out_.code, out_.code.size() - kWordBytes, Encode(*made));
    };
    append(self);
    while (nop.ok() && out_.code.size() % kCodeAlignment != 0) append(nop);
  }

  const unsigned sm_;
  const FlowGraph& flow_;
  const KernelParts& parts_;
  ScratchRegisters scratch_;
  PatchedCode out_{};
};

}  // namespace

Result<PatchedCode> PatchCode(image::Bytes code, unsigned sm, const FlowGraph& flow, const KernelParts& parts) {
  return Patcher(code, sm, flow, parts).Patch();
}

}  // namespace gridloom::machine
