#include "rewriter/machine/slice/ended_proof.h"

#include <string>
#include <utility>

#include "rewriter/machine/slice/assemble.h"
#include "rewriter/machine/slice/ended.h"
#include "rewriter/machine/slice/ended_execute.h"
#include "rewriter/machine/slice/terms.h"
#include "rewriter/machine/slice/waiting.h"

namespace gridloom::machine {
namespace {

constexpr std::size_t kLongest = 64;

/// Lanes end for which a predicate is so.
using Condition = std::pair<std::string, bool>;

class EndedProof {
 public:
  EndedProof(const FlowGraph& original, const EndedCode& ended) : original_(original), ended_(ended) {}

  Result<std::vector<std::uint32_t>> Prove(unsigned& highest) {
    GL_TRY_STATUS(Run());
    GL_TRY_STATUS(CheckWhat());
    GL_TRY_STATUS(CheckRegisters());
    if (!executor_.general.empty()) highest = std::max(highest, executor_.general.rbegin()->first);
    return std::move(words_);
  }

 private:
  /// Up to the end of all lanes that are left.
  Status Run() {
    for (std::uint32_t number = ended_.from; words_.size() < kLongest; ++number) {
      if ((number + 1) * kWordBytes > ended_.code.size()) return Error{"what counts threads has no end"};
      const auto instruction = Decode(ReadWord(ended_.code, number * kWordBytes), ended_.sm);
      if (!instruction) return Error{"an unknown word counts threads"};
      if (words_.empty() && instruction->control.wait != kAllScoreboards)
        return Error{"what counts threads does not wait for what was begun before"};
      words_.push_back(number);
      GL_TRY_STATUS(waiting_.Step(*instruction));
      GL_TRY(over, StepOne(*instruction));
      if (over) return waiting_.none() ? Status() : Error{"threads end before all results are there"};
    }
    return Error{"what counts threads is too long"};
  }

  /// Whether no lane goes on.
  Result<bool> StepOne(const Instruction& instruction) {
    const bool guarded = instruction.guard != kTrue || instruction.guard_negated;
    if (instruction.format->name != "EXIT") {
      if (guarded) return Error{"an instruction that counts threads has a guard"};
      GL_TRY_STATUS(executor_.StepEnded(instruction));
      return false;
    }
    const Operand& own = instruction.format->operands[0];
    if (instruction.Value(own.value) != kTrue || instruction.Value(own.negate) != 0)
      return Error{"threads end under two conditions"};
    if (!guarded) return true;
    const auto predicate = executor_.predicates.find(instruction.guard);
    if (predicate == executor_.predicates.end()) return Error{"threads end by a predicate of the kernel's"};
    if (!executor_.additions.empty()) return Error{"threads that are counted end in two places"};
    conditions_.emplace_back(predicate->second, !instruction.guard_negated);
    ++executor_.conditional_ends;
    return false;
  }

  Status CheckWhat() const {
    const std::string low = terms_.Constant(ended_.table), high = terms_.Constant(ended_.table + 4);
    const std::string active = terms_.Active(1);
    const std::vector<Condition> conditions = {{terms_.Any(terms_.Or(low, high)), false},
                                               {terms_.Any(terms_.And(terms_.Special("SR_LTMASK"), active)), true}};
    if (conditions_ != conditions) return Error{"not one lane of those that end together counts them"};
    const std::string count = terms_.ShiftRight(terms_.Special("SR_CTAID.X"), terms_.Constant(ended_.shift));
    const std::string offset = terms_.ShiftLeft(count, terms_.Number(2));
    if (executor_.additions.size() != 1) return Error{"threads are not counted once"};
    const auto& made = executor_.additions.front();
    if (made.by != terms_.PopCount(active)) return Error{"it adds " + made.by};
    if (made.low != terms_.Add(offset, low) || made.high != terms_.Add(high, terms_.Carry(offset, low)))
      return Error{"it adds at " + made.low + " and " + made.high};
    const std::int32_t descriptor = GlobalDescriptorAt(ended_.sm);
    const bool named = descriptor == 0 || (made.descriptor_low == terms_.Constant(descriptor) &&
                                           made.descriptor_high == terms_.Constant(descriptor + 4));
    return named ? Status() : Error{"it adds to memory by another descriptor"};
  }

  Status CheckRegisters() const {
    for (std::uint32_t at = 0; at < original_.instructions().size(); ++at) {
      const RegisterUse& use = original_.UseAt(at);
      const bool late = MayReadLate(original_.instructions()[at]);
      for (const auto& [number, value] : executor_.general) {
        if (late && use.read.general[number]) return Error{"R" + std::to_string(number) + " may still be read"};
      }
      for (const auto& [number, value] : executor_.uniform) {
        if (use.read.uniform[number] || use.written.uniform[number])
          return Error{"UR" + std::to_string(number) + " may be of lanes that go on"};
      }
    }
    return {};
  }

  const FlowGraph& original_;
  const EndedCode& ended_;
  Terms terms_{};
  EndedExecutor<Terms> executor_{terms_};
  Waiting waiting_{};
  std::vector<Condition> conditions_{};
  std::vector<std::uint32_t> words_{};
};

}  // namespace

Result<std::vector<std::uint32_t>> ProveEnded(const FlowGraph& original, const EndedCode& ended, unsigned& highest) {
  return EndedProof(original, ended).Prove(highest);
}

}  // namespace gridloom::machine
