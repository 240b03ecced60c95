#include "sim/exec/compiler/guarded_sum.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>

#include "sim/exec/contract/guard_zone.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Value;

namespace {

constexpr unsigned kMostParts = 12;
/// What is added to an address without a look at it: the words of an access, and of those made together with it.
constexpr std::uint64_t kSlack = 4096;
constexpr unsigned kMostUsers = 64;

/// Whether each round needs `value` where it is: its block branches by it, stores it, or `header` takes it into the
/// next round. Else LLVM may move a load to where its result is used, behind a branch or behind the loop.
bool IsHeld(const Instruction& value, const BasicBlock* header, unsigned& looked_at) {
  for (const llvm::User* user : value.users()) {
    const auto* use = llvm::cast<Instruction>(user);
    if (++looked_at > kMostUsers) return false;
    if (llvm::isa<llvm::PHINode>(use)) {
      if (use->getParent() == header) return true;
    } else if (use->getParent() == value.getParent()) {
      if (use->isTerminator() || use->mayHaveSideEffects() || IsHeld(*use, header, looked_at)) return true;
    }
  }
  return false;
}

bool IsHeld(const Instruction& access, const BasicBlock* header) {
  unsigned looked_at = 0;
  return access.mayHaveSideEffects() || IsHeld(access, header, looked_at);
}

}  // namespace

GuardedSum GuardedSums::Of(const Value* address, const Instruction& access) const {
  GuardedSum sum;
  if (!Add(address, 0, access, 0, sum) || sum.reach > kGuardZone - kSlack) return {};
  return sum;
}

/// Adds `value` << `shift`. False: it is none of these.
bool GuardedSums::Add(const Value* value, unsigned shift, const Instruction& access, unsigned depth,
                      GuardedSum& sum) const {
  if (AddBounded(value, shift, sum)) return true;
  GuardedSum parts = sum;
  if (depth < kMostParts && AddParts(value, shift, access, depth + 1, parts)) {
    sum = parts;
    return true;
  }
  if (shift != 0 || sum.base || !is_base_(value)) return false;
  sum.base = value;
  return true;
}

/// A number of so few bits that it cannot reach across a zone.
bool GuardedSums::AddBounded(const Value* value, unsigned shift, GuardedSum& sum) const {
  const unsigned bits = 65 - llvm::ComputeNumSignBits(value, layout_) + shift;  // with the sign
  if (bits > 38) return false;
  sum.reach += std::uint64_t{1} << (bits - 1);
  const llvm::KnownBits known = llvm::computeKnownBits(value, layout_);
  sum.align_bits = std::min(sum.align_bits, known.countMinTrailingZeros() + shift);
  return true;
}

bool GuardedSums::AddParts(const Value* value, unsigned shift, const Instruction& access, unsigned depth,
                           GuardedSum& sum) const {
  using namespace llvm::PatternMatch;
  Value *a = nullptr, *b = nullptr;
  const llvm::APInt* number = nullptr;
  if (match(value, m_Add(m_Value(a), m_Value(b))) || match(value, m_DisjointOr(m_Value(a), m_Value(b))))
    return Add(a, shift, access, depth, sum) && Add(b, shift, access, depth, sum);
  if (match(value, m_Sub(m_Value(a), m_Value(b))))
    return Add(a, shift, access, depth, sum) && AddBounded(b, shift, sum);
  if (match(value, m_Shl(m_Value(a), m_APInt(number))) && number->ult(32))
    return Add(a, shift + static_cast<unsigned>(number->getZExtValue()), access, depth, sum);
  if (match(value, m_Freeze(m_Value(a)))) return Add(a, shift, access, depth, sum);
  const auto* phi = llvm::dyn_cast<llvm::PHINode>(value);
  return phi && AddWalk(*phi, shift, access, depth, sum);
}

/// A number that goes on by steps from one round of a loop to the next. An access in every round cannot pass over a
/// zone: the one before was in device memory, and a step does not reach across.
bool GuardedSums::AddWalk(const llvm::PHINode& phi, unsigned shift, const Instruction& access, unsigned depth,
                          GuardedSum& sum) const {
  using namespace llvm::PatternMatch;
  const llvm::Loop* loop = loops_.getLoopFor(phi.getParent());
  if (!loop || loop->getHeader() != phi.getParent() || phi.getNumIncomingValues() != 2) return false;
  const BasicBlock* latch = loop->getLoopLatch();
  const BasicBlock* block = access.getParent();
  if (!latch || !loop->contains(block) || !dominators_.dominates(block, latch) || !IsHeld(access, phi.getParent()))
    return false;
  const int back = phi.getBasicBlockIndex(latch);
  if (back < 0) return false;
  const Value* next = phi.getIncomingValue(static_cast<unsigned>(back));
  Value* step = nullptr;
  if (!match(next, m_c_Add(m_Specific(&phi), m_Value(step)))) return false;
  return AddBounded(step, shift, sum) &&
         Add(phi.getIncomingValue(1 - static_cast<unsigned>(back)), shift, access, depth, sum);
}

}  // namespace gridloom::exec
