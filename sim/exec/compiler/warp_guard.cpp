#include "sim/exec/compiler/warp_guard.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>
#include <bit>

#include "sim/exec/compiler/guarded_sum.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::Value;

namespace {

/// The program asks whether it is null.
bool IsComparedWithNull(const Value* base) {
  return llvm::any_of(base->users(), [](const llvm::User* user) {
    const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(user);
    return compare && compare->isEquality() &&
           (llvm::PatternMatch::match(compare->getOperand(0), llvm::PatternMatch::m_Zero()) ||
            llvm::PatternMatch::match(compare->getOperand(1), llvm::PatternMatch::m_Zero()));
  });
}

}  // namespace

/// Accesses of a kind that the zones can check. Memcheck knows the bounds of each allocation instead.
bool AddressGuards::MayGuard(const MarkerInfo& info) const {
  const bool accesses =
      info.kind == MarkerKind::kLoad || info.kind == MarkerKind::kStore || info.kind == MarkerKind::kAtomic;
  return module_.options.guard_zones && !module_.memcheck() && accesses &&
         (info.space == Space::kGlobal || info.space == Space::kGeneric);
}

GuardedAddress AddressGuards::FindAddress(const llvm::CallInst& call, const Access& access) {
  if (!MayGuard(*module_.MarkerOf(call))) return {};
  const auto is_base = [&](const Value* value) {
    return llvm::isa<llvm::Instruction>(value) && values_.ShapeOf(value).uniform() && values_.IsEntryValue(value);
  };
  const GuardedSums sums(source_.loops, source_.dominators, source_.function.getDataLayout(), is_base);
  const GuardedSum sum = sums.Of(call.getArgOperand(0), call);
  if (!sum.base || sum.align_bits < static_cast<unsigned>(std::countr_zero(access.align))) return {};
  return {sum.base, sum.align_bits};
}

GuardedAddress AddressGuards::AddressOf(const llvm::CallInst& call, const Access& access) {
  if (const auto found = addresses_.find(&call); found != addresses_.end()) return found->second;
  const GuardedAddress made = FindAddress(call, access);
  addresses_[&call] = made;
  return made;
}

/// Code generation makes one instruction of equal ones on both sides of a branch, which then has no line. What keeps
/// them apart is a slow path with the line of each.
void AddressGuards::NoteTwins(const llvm::CallInst& call, const MarkerInfo& info, const Value* base) {
  for (const llvm::CallInst* other : sites_[base]) {
    const MarkerInfo& its = *module_.MarkerOf(*other);
    const bool same = its.kind == info.kind && its.element == info.element && its.count == info.count;
    if (!same || source_.dominators.dominates(other->getParent(), call.getParent()) ||
        source_.dominators.dominates(call.getParent(), other->getParent()))
      continue;
    twins_.insert(&call);
    twins_.insert(other);
  }
  sites_[base].push_back(&call);
}

void AddressGuards::Plan() {
  for (const llvm::BasicBlock* block : source_.order.blocks) {
    for (const llvm::Instruction& instruction : *block) {
      const MarkerInfo* info = module_.MarkerOf(instruction);
      if (!info || !MayGuard(*info)) continue;
      const auto& call = llvm::cast<llvm::CallInst>(instruction);
      const Access access = windows_.AccessOf(call, *info);
      Value* address_value = call.getArgOperand(0);
      if (LeftToHelper(access) || (!values_.ShapeOf(address_value).uniform() && !values_.PatternOf(address_value)))
        continue;
      const GuardedAddress address = AddressOf(call, access);
      if (!address.base) continue;
      NoteTwins(call, *info, address.base);
      const auto [base, inserted] = bases_.insert({address.base, {access.align, false}});
      if (inserted) base->second.optional = IsComparedWithNull(address.base);
      base->second.align = std::min(base->second.align, access.align);
    }
  }
}

/// i1, made where a warp starts: the base is in device memory and a multiple of `align`.
Value* AddressGuards::IsInside(const Value* base, std::uint32_t align) {
  const std::string key =
      "inside" + std::to_string(reinterpret_cast<std::uintptr_t>(base)) + "." + std::to_string(align);
  const Window window = windows_.WindowOf(Space::kGlobal);
  const unsigned shift = static_cast<unsigned>(std::countr_zero(align));
  Value* limit = windows_.ScaledLimit(window, shift, 0);
  Value* address = values_.EntryBase(llvm::cast<llvm::Instruction>(const_cast<Value*>(base)));
  return w_.AtEntry(key, [&] {
    Value* offset = b_.CreateSub(address, window.low);
    if (shift != 0)
      offset = b_.CreateIntrinsic(llvm::Intrinsic::fshr, {b_.getInt64Ty()}, {offset, offset, b_.getInt64(shift)});
    return b_.CreateICmpULT(offset, limit);
  });
}

Value* AddressGuards::WholeMask() {
  Value* inside = nullptr;
  for (const auto& [base, needs] : bases_) {
    if (needs.optional) continue;
    Value* one = IsInside(base, needs.align);
    inside = inside ? w_.AtEntry("inside" + std::to_string(reinterpret_cast<std::uintptr_t>(base)) + ".all",
                                 [&] { return b_.CreateAnd(inside, one); })
                    : one;
  }
  if (!inside) return b_.getInt32(-1);
  return w_.AtEntry("whole_mask", [&] { return b_.CreateSExt(inside, b_.getInt32Ty()); });
}

Value* AddressGuards::Guard(const llvm::CallInst& call, const Access& access) {
  const GuardedAddress address = AddressOf(call, access);
  if (!address.base) return nullptr;
  if (relies_on_loop) return b_.getTrue();
  if (twins_.contains(&call)) return IsInside(address.base, access.align);
  if (const auto base = bases_.find(address.base);
      !w_.divergent_copy && base != bases_.end() && !base->second.optional && access.align <= base->second.align)
    return b_.getTrue();
  return IsInside(address.base, access.align);
}

Value* AddressGuards::GuardOf(const llvm::Loop& loop) {
  Value* all = b_.getTrue();
  for (const llvm::BasicBlock* block : loop.blocks()) {
    for (const llvm::Instruction& instruction : *block) {
      const MarkerInfo* info = module_.MarkerOf(instruction);
      if (!info || !MayGuard(*info)) continue;
      const auto& call = llvm::cast<llvm::CallInst>(instruction);
      if (Value* one = Guard(call, windows_.AccessOf(call, *info))) all = b_.CreateAnd(all, one);
    }
  }
  return all;
}

}  // namespace gridloom::exec
