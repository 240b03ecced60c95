#include "rewriter/machine/slice/ended.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <optional>
#include <string>
#include <string_view>

#include "rewriter/machine/slice/assemble.h"
#include "rewriter/machine/table.h"

namespace gridloom::machine {
namespace {

using passes::HiddenRole;

constexpr std::uint8_t kScoreboard = 0;
constexpr unsigned kPredicate = 0;
constexpr unsigned kOr = 0xFC, kAnd = 0xC0;  // tables of LOP3 for its first two sources
constexpr unsigned kCounterBits = 2;         // a count has four bytes

/// Of fixed latency: what is behind cannot write before these have read. Names without modifiers.
constexpr std::array<std::string_view, 40> kReadsAtOnce = {
    "BMSK",  "BRA",   "BREAK", "BSSY",  "BSYNC", "CALL",  "CS2R",  "EXIT",  "FADD",   "FFMA",
    "FMNMX", "FMUL",  "FSEL",  "FSETP", "HADD2", "HFMA2", "HMUL2", "HSET2", "HSETP2", "I2FP",
    "IABS",  "IADD3", "IMAD",  "IMNMX", "ISETP", "LEA",   "LOP3",  "MOV",   "NOP",    "P2R",
    "PLOP3", "PRMT",  "R2P",   "RET",   "SEL",   "SGXT",  "SHF",   "VIADD", "VIMNMX", "VOTE"};

std::vector<bool> FormatsThatReadAtOnce() {
  std::vector<bool> formats;
  for (const Format& format : AllFormats()) {
    const std::string_view name = format.name.substr(0, format.name.find('.'));
    formats.push_back(std::ranges::find(kReadsAtOnce, name) != kReadsAtOnce.end());
  }
  return formats;
}

std::optional<unsigned> FreePair(const std::bitset<256>& taken, unsigned end) {
  for (unsigned number = 0; number + 1 < end; number += 2) {
    if (!taken[number] && !taken[number + 1]) return number;
  }
  return std::nullopt;
}

class EndedWriter {
 public:
  EndedWriter(unsigned sm, const EndedRegisters& registers, std::uint32_t hidden_at)
      : sm_(sm),
        low_(registers.address),
        high_(low_ + 1),
        other_(registers.other),
        registers_(registers),
        hidden_at_(hidden_at) {}

  Result<std::vector<Word>> Write() {
    LeaveUncounted();
    LeaveAllButOne();
    Emit("POPC", kFormRegisters, {Reg(other_), Reg(other_)}, {}, /*awaited=*/true);
    FindCount();
    if (sm_ >= 80) {
      Emit("ULDC", kFormConstant, {Reg(registers_.descriptor), Argument::Constant(GlobalDescriptorAt(sm_))}, {".64"});
      Emit("NOP", kFormImmediate, {});
    }
    const Argument at = Argument::Address(low_, registers_.descriptor);
    Emit(
        sm_ >= 90 ? "REDG" : "RED", kFormImmediate,
        sm_ >= 80 && sm_ < 90 ? std::vector{at, Reg(other_), Reg(registers_.descriptor)} : std::vector{at, Reg(other_)},
        {".E", ".ADD", ".STRONG.GPU"});
    Emit("EXIT", kFormImmediate, {});
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
    made->control = {.stall = kLongStall, .wait = words_.empty() ? kAllScoreboards : wait_};
    wait_ = awaited ? static_cast<std::uint8_t>(1U << kScoreboard) : std::uint8_t{0};
    if (awaited) made->control.write_barrier = kScoreboard;
    if (guarded_) {
      made->guard = kPredicate;
      made->guard_negated = negated_;
    }
    words_.push_back(Encode(*made));
  }
  /// All lanes for which the predicate is so. It is waited for twice as long as other results.
  void ExitIf(bool predicate) {
    Emit("NOP", kFormImmediate, {});
    guarded_ = true;
    negated_ = !predicate;
    Emit("EXIT", kFormImmediate, {});
    guarded_ = false;
  }
  void Load(unsigned to, HiddenRole role, unsigned more = 0) {
    Emit("LDC", kFormConstant, {Reg(to), Argument::Constant(hidden_at_ + OffsetOf(role) + more)}, {}, /*awaited=*/true);
  }
  /// The predicate: whether any bit of the two together is set.
  void AnyBit(unsigned a, unsigned b, unsigned table) {
    Emit("LOP3.LUT", kFormRegisters,
         {Reg(kPredicate), Argument::Default(), Reg(a), Reg(b), Argument::Default(), Argument::Number(table),
          Argument::Negated(kTrue)});
  }

  void LeaveUncounted() {
    Load(low_, HiddenRole::kEndedTable);
    Load(high_, HiddenRole::kEndedTable, 4);
    AnyBit(low_, high_, kOr);
    ExitIf(false);
  }
  void LeaveAllButOne() {
    Emit("VOTE", kFormImmediate, {Reg(other_)}, {".ANY"});
    Emit("S2R", kFormImmediate, {Reg(low_), Argument::Name("SR_LTMASK")}, {}, /*awaited=*/true);
    AnyBit(low_, other_, kAnd);
    ExitIf(true);
  }
  /// Its address.
  void FindCount() {
    Emit("S2R", kFormImmediate, {Reg(low_), Argument::Name("SR_CTAID.X")}, {}, /*awaited=*/true);
    Load(high_, HiddenRole::kEndedShift);
    Emit("SHF", kFormRegisters, {Reg(low_), Argument::Default(), Reg(high_), Reg(low_)}, {".R", ".U32", ".HI"});
    Load(high_, HiddenRole::kEndedTable);
    Emit("LEA", kFormRegisters, {Reg(low_), Reg(kPredicate), Reg(low_), Reg(high_), Argument::Number(kCounterBits)});
    Load(high_, HiddenRole::kEndedTable, 4);
    Emit("IADD3.X", kFormRegisters,
         {Reg(high_), Argument::Default(), Argument::Default(), Argument::Default(), Reg(high_), Argument::Default(),
          Reg(kPredicate), Argument::Negated(kTrue)});
  }

  const unsigned sm_;
  const unsigned low_, high_, other_;
  const EndedRegisters registers_;
  const std::uint32_t hidden_at_;
  bool guarded_ = false, negated_ = false;
  std::uint8_t wait_ = 0;
  std::vector<Word> words_{};
  Status status_{};
};

}  // namespace

bool MayReadLate(const Instruction& instruction) {
  if (instruction.control.read_barrier != kNoBarrier || instruction.control.write_barrier != kNoBarrier) return false;
  static const auto* const at_once = new std::vector<bool>(FormatsThatReadAtOnce());
  return !(*at_once)[static_cast<std::size_t>(instruction.format - AllFormats().data())];
}

Result<EndedRegisters> FreeWhereThreadsEnd(const FlowGraph& flow, unsigned sm, std::uint32_t count) {
  std::bitset<256> taken;
  std::bitset<64> uniform;
  for (std::uint32_t at = 0; at < flow.instructions().size(); ++at) {
    const RegisterUse& use = flow.UseAt(at);
    if (MayReadLate(flow.instructions()[at])) taken |= use.read.general;
    uniform |= use.read.uniform | use.written.uniform;
  }
  const unsigned end = count < kReservedRegisters ? 0 : count - kReservedRegisters;
  EndedRegisters found;
  const auto address = FreePair(taken, end);
  if (!address) return Error{"no pair of its registers is free where its threads end"};
  found.address = *address;
  taken.set(found.address).set(found.address + 1);
  while (found.other < end && taken[found.other]) ++found.other;
  if (found.other >= end) return Error{"no third register is free where its threads end"};
  if (sm < 80) return found;
  while (found.descriptor + 1 < kUniformZeroRegister && (uniform[found.descriptor] || uniform[found.descriptor + 1]))
    found.descriptor += 2;
  if (found.descriptor + 1 >= kUniformZeroRegister) return Error{"it uses all uniform registers"};
  return found;
}

Result<std::vector<Word>> CountEnded(unsigned sm, const EndedRegisters& registers, std::uint32_t hidden_at) {
  return EndedWriter(sm, registers, hidden_at).Write();
}

}  // namespace gridloom::machine
