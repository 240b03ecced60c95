#include "sim/exec/compiler/shape.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

#include <algorithm>
#include <bit>

namespace gridloom::exec {
namespace {

bool IsIndexType(const llvm::Type* type) { return type->isIntegerTy(32) || type->isIntegerTy(64); }

/// The pattern as its width holds it: sign-extended from 32 bits for an i32.
std::int64_t Wrap(std::int64_t value, const llvm::Type* type) {
  return type->isIntegerTy(32) ? static_cast<std::int32_t>(value) : value;
}

Shape Affine(const LanePattern& pattern, std::uint8_t base_align, const llvm::Type* type) {
  Shape shape;
  shape.kind = ShapeKind::kAffine;
  shape.base_align = base_align;
  bool flat = true;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    shape.pattern[lane] = Wrap(pattern[lane], type);
    flat &= shape.pattern[lane] == 0;
  }
  if (flat) return UniformShape(base_align);
  return shape;
}

std::uint8_t AlignOf(std::uint64_t value) {
  return value == 0 ? 63 : static_cast<std::uint8_t>(__builtin_ctzll(value));
}

template <typename Fn>
LanePattern Map(const LanePattern& a, Fn fn) {
  LanePattern out;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) out[lane] = fn(a[lane]);
  return out;
}

const llvm::ConstantInt* Const(const llvm::Value* value) { return llvm::dyn_cast<llvm::ConstantInt>(value); }

}  // namespace

Shape UniformShape(std::uint8_t base_align) {
  Shape shape;
  shape.kind = ShapeKind::kUniform;
  shape.base_align = base_align;
  return shape;
}

Shape VectorShape() {
  Shape shape;
  shape.kind = ShapeKind::kVector;
  return shape;
}

ShapeAnalysis::ShapeAnalysis(llvm::Function& function, const SpmdModule& spmd, llvm::LoopInfo& loops,
                             const BlockOrder& order, const CompileOptions& options)
    : function_(function), spmd_(spmd), loops_(loops), order_(order), options_(options) {
  FindWaitingLoops();
  lockstep_ = waiting_loops_.empty();
  Solve();
  if (lockstep_ && BarrierInDivergentLoop()) {
    lockstep_ = false;
    Restart();
  }
  if (lockstep_ && FindOutOfStep()) Restart();
  for (const auto& [value, shape] : shapes_) {
    if (shape.kind == ShapeKind::kIndexed) indexes_.insert(shape.index);
  }
}

/// From the beginning, knowing more.
void ShapeAnalysis::Restart() {
  shapes_.clear();
  divergent_branches_.clear();
  divergent_joins_.clear();
  divergent_region_.clear();
  left_loops_.clear();
  Solve();
}

Shape ShapeAnalysis::Of(const llvm::Value* value) const {
  if (const auto* constant = Const(value))
    return UniformShape(AlignOf(constant->getValue().trunc(std::min(64u, constant->getBitWidth())).getZExtValue()));
  if (llvm::isa<llvm::Constant>(value)) return UniformShape();
  if (llvm::isa<llvm::Argument>(value)) return VectorShape();
  const auto it = shapes_.find(value);
  return it == shapes_.end() ? Shape{} : it->second;
}

// ---------------------------------------------------------------------------------------------------------------------
// Loops that wait
// ---------------------------------------------------------------------------------------------------------------------

namespace {

/// What makes the plain loads of a loop wait.
struct LoopOrder {
  bool orders = false;  ///< a fence or a barrier-like helper may order them
  /// Places that are changed by atomic instructions: others change them as well, and shall have their turns (as in
  /// `while (count < enough) atomicAdd(&count, 1)`).
  llvm::DenseSet<const llvm::Value*> atomically;
};

LoopOrder OrderIn(const llvm::Loop& loop, const SpmdModule& spmd) {
  LoopOrder order;
  for (const llvm::BasicBlock* block : loop.blocks()) {
    for (const llvm::Instruction& instruction : *block) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      const MarkerInfo* info = call && call->getCalledFunction() ? spmd.Find(call->getCalledFunction()) : nullptr;
      if (!info) continue;
      const bool helper = info->kind == MarkerKind::kHelper;
      order.orders |= helper && call->getCalledFunction()->isConvergent() && !call->doesNotAccessMemory();
      if (info->kind == MarkerKind::kAtomic) order.atomically.insert(call->getArgOperand(0));
    }
  }
  return order;
}

/// Whether a call in a loop reads what others write, or may wait for it.
bool ReadsStrongly(const llvm::CallInst& call, const LoopOrder& order, const SpmdModule& spmd) {
  const llvm::Function* callee = call.getCalledFunction();
  const MarkerInfo* info = callee ? spmd.Find(callee) : nullptr;
  if (!info) return callee && !callee->isIntrinsic();  // a device function may wait inside or read for us
  switch (info->kind) {
    case MarkerKind::kAtomic:
    case MarkerKind::kIndirectCall: return true;
    case MarkerKind::kLoad: return info->strong || order.orders || order.atomically.contains(call.getArgOperand(0));
    case MarkerKind::kHelper: return !call.onlyReadsMemory() && !call.getType()->isVoidTy();
    default: return false;
  }
}

/// Whether a call reads what the thread itself may have stored: in local memory, where arrays with indices and all
/// values of programs that are compiled for debuggers are.
bool ReadsOwn(const llvm::CallInst& call, const SpmdModule& spmd) {
  const MarkerInfo* info = call.getCalledFunction() ? spmd.Find(call.getCalledFunction()) : nullptr;
  return info && info->kind == MarkerKind::kLoad && (info->space == Space::kLocal || info->space == Space::kGeneric);
}

/// All that a loop stores where ReadsOwn may read it.
llvm::SmallVector<const llvm::Value*> StoredIn(const llvm::Loop& loop, const SpmdModule& spmd) {
  llvm::SmallVector<const llvm::Value*> stored;
  for (const llvm::BasicBlock* block : loop.blocks()) {
    for (const llvm::Instruction& instruction : *block) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      const MarkerInfo* info = call && call->getCalledFunction() ? spmd.Find(call->getCalledFunction()) : nullptr;
      if (!info || info->kind != MarkerKind::kStore) continue;
      if (info->space == Space::kLocal || info->space == Space::kGeneric)
        stored.append(call->arg_begin() + 1, call->arg_end());
    }
  }
  return stored;
}

/// Whether the way out of a loop depends on such a read. Where a branch in the loop does, so may what an iteration does
/// to a value: `while (i < n) if (flag[i]) ++i`. Which of the branches leads to which phi is not looked at, nor which
/// store a thread reads again. Without recursion: a kernel may have 10^5 values in a chain.
bool WaitsForOthers(const llvm::Loop& loop, const SpmdModule& spmd) {
  llvm::SmallVector<const llvm::Value*> left;
  llvm::DenseSet<const llvm::Value*> seen;
  const auto add_conditions = [&](llvm::ArrayRef<llvm::BasicBlock*> blocks) {
    for (const llvm::BasicBlock* block : blocks) {
      const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
      if (branch && branch->isConditional()) left.push_back(branch->getCondition());
    }
  };
  llvm::SmallVector<llvm::BasicBlock*, 8> exiting;
  loop.getExitingBlocks(exiting);
  add_conditions(exiting);
  const LoopOrder order = OrderIn(loop, spmd);
  bool chooses = false, reads_own = false;
  while (!left.empty()) {
    const auto* instruction = llvm::dyn_cast<llvm::Instruction>(left.pop_back_val());
    if (!instruction || !loop.contains(instruction) || !seen.insert(instruction).second) continue;
    const auto* call = llvm::dyn_cast<llvm::CallInst>(instruction);
    if (call && ReadsStrongly(*call, order, spmd)) return true;
    if (call && !reads_own && ReadsOwn(*call, spmd)) {
      reads_own = true;
      left.append(StoredIn(loop, spmd));
    }
    if (llvm::isa<llvm::PHINode>(instruction) && instruction->getParent() != loop.getHeader() && !chooses) {
      chooses = true;
      add_conditions(loop.getBlocks());
    }
    left.append(instruction->op_begin(), instruction->op_end());
  }
  return false;
}

}  // namespace

void ShapeAnalysis::FindWaitingLoops() {
  for (const llvm::Loop* loop : loops_.getLoopsInPreorder()) {
    if (WaitsForOthers(*loop, spmd_)) waiting_loops_.insert(loop);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Divergence of control
// ---------------------------------------------------------------------------------------------------------------------

// Finds where lanes that part at `block` can meet again having come different ways (phis there differ per lane) and
// which loops they leave at different iterations. One pass over the order after `block`; labels name the way taken.
ShapeAnalysis::Spread ShapeAnalysis::SpreadFrom(const llvm::BasicBlock* block) const {
  Spread spread;
  const unsigned start = order_.IndexOf(block);
  std::vector<const llvm::BasicBlock*> label(order_.blocks.size(), nullptr);
  unsigned live = 0;  // labelled blocks not yet visited
  const auto assign = [&](const llvm::BasicBlock* to, const llvm::BasicBlock* way) {
    const unsigned index = order_.IndexOf(to);
    if (!label[index]) {
      label[index] = way;
      ++live;
    } else if (label[index] != way) {
      label[index] = to;
      spread.joins.push_back(to);
    }
  };
  llvm::DenseSet<const llvm::Loop*> latched;  // loops around `block` in which some lanes go on
  const auto leave = [&](const llvm::BasicBlock* from, const llvm::BasicBlock* to, const llvm::BasicBlock* way) {
    if (order_.IsBackEdge(from, to)) {
      const llvm::Loop* loop = loops_.getLoopFor(to);
      if (loop && loop->contains(block)) latched.insert(loop);
      return;
    }
    assign(to, way);
  };
  for (const llvm::BasicBlock* next : llvm::successors(block)) leave(block, next, next);
  for (unsigned i = start + 1; i < order_.blocks.size() && live != 0; ++i) {
    // Past the end of a loop that some lanes left while others went on: each exit is reached at different times.
    for (const llvm::Loop* loop : latched) {
      if (!loop->contains(block) || order_.IndexOf(loop->getLoopLatch()) != i - 1) continue;
      llvm::SmallVector<llvm::BasicBlock*, 8> exits;
      loop->getExitBlocks(exits);
      const bool left =
          std::any_of(exits.begin(), exits.end(), [&](auto* exit) { return label[order_.IndexOf(exit)] != nullptr; });
      if (!left) continue;
      spread.left.insert(loop);
      for (llvm::BasicBlock* exit : exits) {
        assign(exit, exit);
        label[order_.IndexOf(exit)] = exit;
        spread.joins.push_back(exit);
      }
    }
    llvm::BasicBlock* current = order_.blocks[i];
    if (!label[i]) continue;
    --live;
    // All lanes that have not ended meet here, and no loop around the branch still has some of them.
    const bool loops_done = std::all_of(latched.begin(), latched.end(), [&](const llvm::Loop* loop) {
      return order_.IndexOf(loop->getLoopLatch()) < i;
    });
    if (label[i] == current && live == 0 && loops_done) break;
    spread.region.push_back(current);
    for (const llvm::BasicBlock* next : llvm::successors(current)) leave(current, next, label[i]);
  }
  return spread;
}

/// Lanes part at `block`.
bool ShapeAnalysis::PropagateBranch(llvm::BasicBlock* block) {
  const Spread spread = SpreadFrom(block);
  bool changed = false;
  for (const llvm::BasicBlock* join : spread.joins) changed |= divergent_joins_.insert(join).second;
  for (const llvm::BasicBlock* apart : spread.region) changed |= divergent_region_.insert(apart).second;
  left_loops_.insert(spread.left.begin(), spread.left.end());
  return changed;
}

bool ShapeAnalysis::BarrierInDivergentLoop() const {
  for (const llvm::BasicBlock* block : divergent_region_) {
    if (!loops_.getLoopFor(block)) continue;
    for (const llvm::Instruction& instruction : *block) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      const MarkerInfo* info = call && call->getCalledFunction() ? spmd_.Find(call->getCalledFunction()) : nullptr;
      if (info && info->kind == MarkerKind::kBarrier) return true;
    }
  }
  return false;
}

// ---------------------------------------------------------------------------------------------------------------------
// Dataflow
// ---------------------------------------------------------------------------------------------------------------------

void ShapeAnalysis::Solve() {
  bool changed = true;
  while (changed) {
    changed = false;
    for (llvm::BasicBlock* block : order_.blocks) {
      for (llvm::Instruction& instruction : *block) {
        if (instruction.getType()->isVoidTy()) continue;
        Shape& slot = shapes_[&instruction];
        if (slot.vector()) continue;
        Shape next = Transfer(instruction);
        if (next == slot) continue;
        // Descend only: unknown -> uniform -> affine -> indexed -> vector; a different shape of the same kind is a
        // vector.
        if (slot.kind != ShapeKind::kUnknown && next.kind <= slot.kind) {
          Shape aligned = next;
          aligned.base_align = slot.base_align;
          if (aligned == slot) {
            next.base_align = std::min(next.base_align, slot.base_align);
            if (next == slot) continue;
          } else {
            next = VectorShape();
          }
        }
        shapes_[&instruction] = next;
        changed = true;
      }
      const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
      if (!branch || !branch->isConditional() || divergent_branches_.contains(branch)) continue;
      const Shape condition = Of(branch->getCondition());
      if (condition.kind == ShapeKind::kUnknown || condition.uniform()) continue;
      divergent_branches_.insert(branch);
      PropagateBranch(block);
      changed = true;
    }
  }
}

bool ShapeAnalysis::AllUniform(const llvm::Instruction& instruction) const {
  return std::all_of(instruction.op_begin(), instruction.op_end(), [&](const llvm::Use& use) {
    return llvm::isa<llvm::BasicBlock>(use) || llvm::isa<llvm::Function>(use) || Of(use).uniform();
  });
}

Shape ShapeAnalysis::Transfer(const llvm::Instruction& instruction) const {
  if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction)) return TransferPhi(*phi);
  if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction)) return TransferCall(*call);
  for (const llvm::Use& use : instruction.operands()) {
    if (!llvm::isa<llvm::BasicBlock>(use) && Of(use).kind == ShapeKind::kUnknown) return {};
  }
  if (const auto* cast = llvm::dyn_cast<llvm::CastInst>(&instruction)) return TransferCast(*cast);
  if (instruction.isBinaryOp()) return TransferBinary(instruction);
  if (llvm::isa<llvm::FreezeInst>(instruction)) return Of(instruction.getOperand(0));
  if (const auto* select = llvm::dyn_cast<llvm::SelectInst>(&instruction);
      select && Of(select->getCondition()).uniform()) {
    Shape a = Of(select->getTrueValue()), b = Of(select->getFalseValue());
    a.base_align = b.base_align = std::min(a.base_align, b.base_align);
    if (a == b) return a;
  }
  if (const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction); compare && SameOnBothSides(*compare))
    return UniformShape();
  return AllUniform(instruction) ? UniformShape() : VectorShape();
}

// `tid.x < 64` in a row of whole warps: the lanes lie in [base, base + 32), base and bound are multiples of 32, so no
// warp has lanes on both sides, and the base alone tells. `tid.x > 63` is the same the other way round. Signed and
// unsigned order agree on this.
bool ShapeAnalysis::SameOnBothSides(const llvm::ICmpInst& compare) const {
  const bool turned = Of(compare.getOperand(0)).uniform();
  const auto predicate = turned ? compare.getSwappedPredicate() : compare.getPredicate();
  const Shape lanes = Of(compare.getOperand(turned ? 1 : 0));
  const llvm::Value* const bound = compare.getOperand(turned ? 0 : 1);
  if (lanes.kind != ShapeKind::kAffine || !Of(bound).uniform() || compare.isEquality()) return false;
  const auto [least, most] = std::ranges::minmax(lanes.pattern);
  if (least < 0 || most >= std::int64_t{1} << 30) return false;
  const auto bits = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(most)));
  if (lanes.base_align < bits) return false;
  if (llvm::ICmpInst::isLT(predicate) || llvm::ICmpInst::isGE(predicate)) return Of(bound).base_align >= bits;
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(bound);
  return constant && (constant->getValue() + 1).countr_zero() >= bits;
}

Shape ShapeAnalysis::TransferPhi(const llvm::PHINode& phi) const {
  if (!InStep(phi.getParent()) || divergent_joins_.contains(phi.getParent())) return VectorShape();
  Shape out;
  for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
    const Shape in = Of(phi.getIncomingValue(i));
    if (in.kind == ShapeKind::kUnknown) continue;
    if (out.kind == ShapeKind::kUnknown) {
      out = in;
      continue;
    }
    const std::uint8_t align = std::min(in.base_align, out.base_align);
    Shape same = in;
    same.base_align = out.base_align;
    if (!(same == out)) return VectorShape();
    out.base_align = align;
  }
  // The index must be the same instance in every iteration: defined before the loop this phi heads, if it heads one.
  if (out.kind == ShapeKind::kIndexed) {
    const llvm::Loop* loop = loops_.getLoopFor(phi.getParent());
    const auto* index = llvm::dyn_cast<llvm::Instruction>(out.index);
    if (loop && index && loop->contains(index)) return VectorShape();
    if (index && !(order_.IndexOf(index->getParent()) < order_.IndexOf(phi.getParent()))) return VectorShape();
  }
  return out;
}

namespace {

/// An operation on two scalars: what is known of its low bits.
Shape OfScalars(const llvm::Instruction& instruction, const Shape& a, const Shape& b) {
  const unsigned opcode = instruction.getOpcode();
  std::uint8_t align = 0;
  if (opcode == llvm::Instruction::Add || opcode == llvm::Instruction::Sub || opcode == llvm::Instruction::Or)
    align = std::min(a.base_align, b.base_align);
  if (opcode == llvm::Instruction::Mul) align = std::min(63, a.base_align + b.base_align);
  if (opcode == llvm::Instruction::And) align = std::max(a.base_align, b.base_align);
  if (const auto* count = Const(instruction.getOperand(1)); opcode == llvm::Instruction::Shl && count) {
    align = static_cast<std::uint8_t>(std::min<std::uint64_t>(63, a.base_align + count->getZExtValue()));
  }
  return UniformShape(align);
}

/// a + sign * b.
Shape SumOf(const Shape& a, const Shape& b, int sign, const llvm::Type* type) {
  LanePattern pattern;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    pattern[lane] =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(a.pattern[lane]) +
                                  static_cast<std::uint64_t>(sign) * static_cast<std::uint64_t>(b.pattern[lane]));
  }
  Shape out = Affine(pattern, std::min(a.base_align, b.base_align), type);
  if (a.kind != ShapeKind::kIndexed && b.kind != ShapeKind::kIndexed) return out;
  if (a.kind == ShapeKind::kIndexed && b.kind == ShapeKind::kIndexed) {
    if (a.index != b.index || a.index_signed != b.index_signed) return VectorShape();
  }
  const Shape& indexed = a.kind == ShapeKind::kIndexed ? a : b;
  const std::int64_t scale_a = a.kind == ShapeKind::kIndexed ? a.scale : 0;
  const std::int64_t scale_b = b.kind == ShapeKind::kIndexed ? b.scale : 0;
  out.scale = scale_a + sign * scale_b;
  if (out.scale == 0) return out;
  out.kind = ShapeKind::kIndexed;
  out.index = indexed.index;
  out.index_signed = indexed.index_signed;
  return out;
}

Shape Scaled(const Shape& value, std::int64_t factor, const llvm::Type* type) {
  const auto times = [&](std::int64_t v) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(v) * static_cast<std::uint64_t>(factor));
  };
  const int align = std::min(63, value.base_align + AlignOf(static_cast<std::uint64_t>(factor)));
  Shape out = Affine(Map(value.pattern, times), static_cast<std::uint8_t>(align), type);
  if (value.kind == ShapeKind::kIndexed) {
    if (__builtin_mul_overflow(value.scale, factor, &out.scale) || std::abs(out.scale) > (std::int64_t{1} << 30))
      return VectorShape();
    out.kind = ShapeKind::kIndexed;
    out.index = value.index;
    out.index_signed = value.index_signed;
  }
  return out;
}

/// Operations on single bits of an affine value: only where the base leaves the low ones free and the pattern stays
/// inside them.
Shape OfBits(unsigned opcode, const Shape& a, std::int64_t constant, const llvm::Type* type) {
  const std::int64_t room = a.base_align >= 62 ? std::int64_t{1} << 62 : std::int64_t{1} << a.base_align;
  const bool inside =
      std::all_of(a.pattern.begin(), a.pattern.end(), [&](std::int64_t v) { return v >= 0 && v < room; });
  if (!inside) return VectorShape();
  if (opcode == llvm::Instruction::And) {
    const bool low_bits = constant >= 0 && constant < room;
    // (base + p) & c = (base & c) + (p & c), the halves not overlapping.
    return Affine(Map(a.pattern, [&](std::int64_t v) { return v & constant; }), low_bits ? 63 : a.base_align, type);
  }
  if (opcode == llvm::Instruction::Xor) {
    if (constant < 0 || constant >= room) return VectorShape();
    return Affine(Map(a.pattern, [&](std::int64_t v) { return v ^ constant; }), a.base_align, type);
  }
  if (opcode == llvm::Instruction::LShr && constant >= 0 && constant < 32) {
    if (a.base_align < constant) return VectorShape();
    return Affine(Map(a.pattern, [&](std::int64_t v) { return v >> constant; }),
                  static_cast<std::uint8_t>(a.base_align - constant), type);
  }
  return VectorShape();
}

}  // namespace

Shape ShapeAnalysis::TransferBinary(const llvm::Instruction& instruction) const {
  const llvm::Type* type = instruction.getType();
  const Shape a = Of(instruction.getOperand(0)), b = Of(instruction.getOperand(1));
  const unsigned opcode = instruction.getOpcode();
  if (a.uniform() && b.uniform()) return OfScalars(instruction, a, b);
  if (!IsIndexType(type) || a.vector() || b.vector()) return VectorShape();
  const llvm::ConstantInt* right = Const(instruction.getOperand(1));
  const std::int64_t constant = right ? right->getSExtValue() : 0;
  switch (opcode) {
    case llvm::Instruction::Add: return SumOf(a, b, 1, type);
    case llvm::Instruction::Sub: return SumOf(a, b, -1, type);
    case llvm::Instruction::Or:
      return llvm::cast<llvm::PossiblyDisjointInst>(instruction).isDisjoint() ? SumOf(a, b, 1, type) : VectorShape();
    case llvm::Instruction::Mul: return right && constant != 0 ? Scaled(a, constant, type) : VectorShape();
    case llvm::Instruction::Shl:
      return right && constant < 48 ? Scaled(a, std::int64_t{1} << constant, type) : VectorShape();
    default: break;
  }
  return right && a.kind == ShapeKind::kAffine ? OfBits(opcode, a, constant, type) : VectorShape();
}

Shape ShapeAnalysis::TransferCast(const llvm::CastInst& cast) const {
  const Shape in = Of(cast.getOperand(0));
  const llvm::Type* from = cast.getSrcTy();
  const llvm::Type* to = cast.getDestTy();
  if (in.uniform())
    return UniformShape(llvm::isa<llvm::TruncInst>(cast) || llvm::isa<llvm::ZExtInst>(cast) ||
                                llvm::isa<llvm::SExtInst>(cast)
                            ? in.base_align
                            : 0);
  const bool widen = llvm::isa<llvm::SExtInst>(cast) || llvm::isa<llvm::ZExtInst>(cast);
  if (widen && from->isIntegerTy(32) && to->isIntegerTy(64)) {
    if (in.kind == ShapeKind::kAffine && in.pattern[0] == 0) {
      // Proven not negative, all lanes lie in [0, 2^31) and cannot have wrapped apart (pattern distances are small).
      const llvm::KnownBits known = llvm::computeKnownBits(cast.getOperand(0), function_.getDataLayout());
      if (known.isNonNegative()) return Affine(in.pattern, std::min<std::uint8_t>(in.base_align, 31), to);
    }
    Shape out;
    out.kind = ShapeKind::kIndexed;
    out.base_align = 63;
    out.index = cast.getOperand(0);
    out.scale = 1;
    out.index_signed = llvm::isa<llvm::SExtInst>(cast);
    return out;
  }
  if (llvm::isa<llvm::TruncInst>(cast) && from->isIntegerTy(64) && to->isIntegerTy(32) &&
      in.kind == ShapeKind::kAffine) {
    return Affine(in.pattern, std::min<std::uint8_t>(in.base_align, 31), to);
  }
  return VectorShape();
}

Shape ShapeAnalysis::TransferCall(const llvm::CallInst& call) const {
  const llvm::Function* callee = call.getCalledFunction();
  const MarkerInfo* info = callee ? spmd_.Find(callee) : nullptr;
  if (!info) {
    if (!callee || !callee->isIntrinsic()) return VectorShape();
    for (const llvm::Use& arg : call.args()) {
      if (Of(arg).kind == ShapeKind::kUnknown) return {};
    }
    return std::all_of(call.arg_begin(), call.arg_end(), [&](const llvm::Use& arg) { return Of(arg).uniform(); })
               ? UniformShape()
               : VectorShape();
  }
  for (const llvm::Use& arg : call.args()) {
    if (Of(arg).kind == ShapeKind::kUnknown) return {};
  }
  switch (info->kind) {
    case MarkerKind::kSpecial: return SpecialShape(info->special);
    case MarkerKind::kSymbol: return UniformShape(4);
    case MarkerKind::kParam: return Of(call.getArgOperand(0)).uniform() ? UniformShape() : VectorShape();
    case MarkerKind::kLoad:
      return InStep(call.getParent()) && info->space != Space::kLocal && Of(call.getArgOperand(0)).uniform()
                 ? UniformShape()
                 : VectorShape();
    case MarkerKind::kToGeneric:
    case MarkerKind::kFromGeneric: {
      if (info->space == Space::kLocal) return VectorShape();
      Shape shape = Of(call.getArgOperand(0));
      shape.base_align = std::min<std::uint8_t>(shape.base_align, 8);
      return shape;
    }
    case MarkerKind::kIsSpace: return VectorShape();
    case MarkerKind::kHelper:
      return info->helper == Helper::kCheckReads && InStep(call.getParent()) ? UniformShape() : VectorShape();
    case MarkerKind::kBallot:
    case MarkerKind::kActiveMask:
    case MarkerKind::kBarrier: return InStep(call.getParent()) ? UniformShape() : VectorShape();
    // A broadcast of what is the same everywhere. Other shuffles may read lanes that do not take part (EmitShuffle).
    case MarkerKind::kShuffle:
      return InStep(call.getParent()) && Of(call.getArgOperand(0)).uniform() && Of(call.getArgOperand(1)).uniform()
                 ? UniformShape()
                 : VectorShape();
    // What lanes elsewhere gave to a shuffle is another value.
    case MarkerKind::kMet: {
      const auto* given = llvm::cast<llvm::CallInst>(call.getArgOperand(0));
      const MarkerKind kind = spmd_.Find(given->getCalledFunction())->kind;
      return kind == MarkerKind::kBallot || kind == MarkerKind::kActiveMask ? Of(given) : VectorShape();
    }
    default: return VectorShape();
  }
}

Shape ShapeAnalysis::SpecialShape(Special special) const {
  const std::uint32_t x = options_.block[0], y = options_.block[1], z = options_.block[2];
  const llvm::IntegerType* type = llvm::Type::getInt32Ty(function_.getContext());
  LanePattern lanes;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) lanes[lane] = lane;
  const auto pattern_or_zero = [&](auto fn, std::uint8_t align) { return Affine(Map(lanes, fn), align, type); };
  switch (special) {
    case Special::kLaneId: return pattern_or_zero([](std::int64_t l) { return l; }, 63);
    case Special::kTidX:
      if (x == 0 && !IsRowOfWarps(options_.block)) return VectorShape();
      if (x == 0) return pattern_or_zero([](std::int64_t l) { return l; }, 5);
      if (std::uint64_t{x} * y * z <= kWarpSize || kWarpSize % x == 0)
        return pattern_or_zero([&](std::int64_t l) { return l % x; }, 63);
      if (x % kWarpSize == 0) return pattern_or_zero([](std::int64_t l) { return l; }, 5);
      if (y == 1 && z == 1) return pattern_or_zero([](std::int64_t l) { return l; }, 5);  // one ragged row
      return VectorShape();
    case Special::kTidY:
      if (x == 0) return VectorShape();
      if (y == 1) return UniformShape(63);
      if (x % kWarpSize == 0) return UniformShape();
      if (std::uint64_t{x} * y * z <= kWarpSize) return pattern_or_zero([&](std::int64_t l) { return l / x % y; }, 63);
      if (kWarpSize % x == 0 && (x * y % kWarpSize == 0 || z == 1)) {
        return pattern_or_zero([&](std::int64_t l) { return l / x; }, AlignOf(kWarpSize / x));
      }
      if (kWarpSize % (x * y) == 0) return pattern_or_zero([&](std::int64_t l) { return l / x % y; }, 63);
      return VectorShape();
    case Special::kTidZ:
      if (x == 0) return VectorShape();
      if (z == 1) return UniformShape(63);
      if (x * y % kWarpSize == 0) return UniformShape();
      if (std::uint64_t{x} * y * z <= kWarpSize || kWarpSize % (x * y) == 0) {
        return pattern_or_zero([&](std::int64_t l) { return l / (x * y); },
                               AlignOf(kWarpSize % (x * y) == 0 ? kWarpSize / (x * y) : 32));
      }
      return VectorShape();
    default: return UniformShape();
  }
}

}  // namespace gridloom::exec
