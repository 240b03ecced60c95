#include "sim/exec/compiler/invalid_values.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <vector>

namespace gridloom::exec {
namespace {

using llvm::Value;

const MarkerInfo* MarkerOf(const SpmdModule& spmd, const Value& value) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&value);
  return call && call->getCalledFunction() ? spmd.Find(call->getCalledFunction()) : nullptr;
}

bool IsNull(const Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  return constant && constant->isNullValue();
}

/// Bits of a type whose values can have invalid bits; 0: of one that is not followed.
unsigned BitsOf(const llvm::Type* type) {
  const auto bits = static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue());
  const bool followed = bits == 1 || bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128;
  return followed ? bits : 0;
}

/// Whether generic addresses of shared memory can be made.
bool MakesGenericShared(SpmdModule& spmd) {
  for (const llvm::Function& function : spmd.ir()) {
    const MarkerInfo* info = spmd.Find(&function);
    if (info && info->kind == MarkerKind::kToGeneric && info->space == Space::kShared && !function.use_empty())
      return true;
  }
  return false;
}

class Follower {
 public:
  Follower(SpmdModule& spmd, llvm::Function& function, bool generic)
      : spmd_(spmd), function_(function), b_(spmd), generic_(generic) {}

  void Run() {
    FindTainted();
    if (tainted_.empty()) return;
    std::vector<llvm::Instruction*> order;
    const llvm::ReversePostOrderTraversal<llvm::Function*> blocks(&function_);
    for (llvm::BasicBlock* block : blocks) {
      for (llvm::Instruction& instruction : *block) order.push_back(&instruction);
    }
    for (llvm::Instruction* instruction : order) {
      if (tainted_.contains(instruction)) Follow(*instruction);
    }
    for (llvm::PHINode* phi : phis_) FillPhi(*phi);
    for (llvm::Instruction* instruction : order) CheckUses(*instruction);
  }

 private:
  bool ReadsShared(const MarkerInfo& info) const {
    return info.kind == MarkerKind::kLoad &&
           (info.space == Space::kShared || (generic_ && info.space == Space::kGeneric));
  }

  static bool IsShuffle(const MarkerInfo& info) {
    return info.kind == MarkerKind::kSync && UnpackImm<SyncImm>(info.imm).op == SyncOp::kShuffle;
  }

  // --- which values can be invalid ---
  void FindTainted() {
    std::vector<const Value*> pending;
    const auto add = [&](const Value& value) {
      if (tainted_.insert(&value).second) pending.push_back(&value);
    };
    for (const llvm::Instruction& instruction : llvm::instructions(function_)) {
      const MarkerInfo* info = MarkerOf(spmd_, instruction);
      if (info && ReadsShared(*info) && BitsOf(info->element) != 0 && !instruction.use_empty()) add(instruction);
      if (info && IsShuffle(*info)) add(instruction);
    }
    while (!pending.empty()) {
      const Value* value = pending.back();
      pending.pop_back();
      for (const llvm::User* user : value->users()) {
        if (const auto* next = llvm::dyn_cast<llvm::Instruction>(user); next && Passes(*next, *value)) add(*next);
      }
    }
  }

  /// Whether the result of an instruction has invalid bits where `operand` has.
  bool Passes(const llvm::Instruction& instruction, const Value& operand) const {
    if (llvm::isa<llvm::ExtractValueInst>(instruction)) return BitsOf(instruction.getType()) != 0;
    if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction)) return PassesCall(*call, operand);
    if (BitsOf(instruction.getType()) == 0) return false;
    if (const auto* extract = llvm::dyn_cast<llvm::ExtractElementInst>(&instruction))
      return llvm::isa<llvm::ConstantInt>(extract->getIndexOperand());
    if (const auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(&instruction))
      return llvm::isa<llvm::ConstantInt>(insert->getOperand(2));
    return instruction.isBinaryOp() || instruction.isUnaryOp() || instruction.isCast() ||
           llvm::isa<llvm::CmpInst>(instruction) || llvm::isa<llvm::SelectInst>(instruction) ||
           llvm::isa<llvm::PHINode>(instruction) || llvm::isa<llvm::FreezeInst>(instruction) ||
           llvm::isa<llvm::ShuffleVectorInst>(instruction);
  }

  bool PassesCall(const llvm::CallInst& call, const Value& operand) const {
    const MarkerInfo* info = MarkerOf(spmd_, call);
    if (!info) return llvm::isa<llvm::IntrinsicInst>(call) && !call.getType()->isVoidTy() && call.doesNotAccessMemory();
    switch (info->kind) {
      case MarkerKind::kToGeneric:
      case MarkerKind::kFromGeneric:
      case MarkerKind::kIsSpace: return true;
      case MarkerKind::kHelper:
        return !call.getType()->isVoidTy() && call.doesNotAccessMemory() && !call.isConvergent();
      case MarkerKind::kSync: {
        const SyncOp op = UnpackImm<SyncImm>(info->imm).op;
        return (op == SyncOp::kShuffle || op == SyncOp::kBallot) && call.getArgOperand(1) == &operand;
      }
      default: return false;
    }
  }

  // --- their invalid bits ---
  llvm::IntegerType* BitsType(const llvm::Type* type) { return b_.getIntNTy(BitsOf(type)); }

  Value* InvalidBits(const Value* value) {
    const auto found = bits_.find(value);
    return found == bits_.end() ? llvm::ConstantInt::get(BitsType(value->getType()), 0) : found->second;
  }
  /// The value's own bits.
  Value* Bits(Value* value) { return b_.CreateBitCast(value, BitsType(value->getType())); }
  Value* Or(Value* a, Value* b) { return IsNull(a) ? b : IsNull(b) ? a : b_.CreateOr(a, b); }
  Value* And(Value* a, Value* b) { return IsNull(a) ? a : IsNull(b) ? b : b_.CreateAnd(a, b); }
  Value* IsAny(Value* bits) {
    return bits->getType()->isIntegerTy(1) ? bits : b_.CreateICmpNE(bits, llvm::ConstantInt::get(bits->getType(), 0));
  }
  /// All bits of `type` where there is any.
  Value* AllOrNone(Value* bits, const llvm::Type* type) { return b_.CreateSExt(IsAny(bits), BitsType(type)); }
  Value* AnyOperand(const llvm::Instruction& instruction) {
    Value* any = b_.getFalse();
    for (const llvm::Use& use : instruction.operands())
      if (tainted_.contains(use.get()) && bits_.contains(use.get())) any = Or(any, IsAny(InvalidBits(use.get())));
    return any;
  }

  void Follow(llvm::Instruction& instruction) {
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction)) {
      b_.SetInsertPoint(phi);
      bits_[phi] = b_.CreatePHI(BitsType(phi->getType()), phi->getNumIncomingValues());
      phis_.push_back(phi);
      return;
    }
    b_.SetInsertPoint(instruction.getNextNode());
    b_.line = LineOf(instruction);
    if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction)) return FollowCall(*call);
    bits_[&instruction] = BitsOfResult(instruction);
  }

  void FillPhi(llvm::PHINode& phi) {
    auto* bits = llvm::cast<llvm::PHINode>(bits_[&phi]);
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
      bits->addIncoming(InvalidBits(phi.getIncomingValue(i)), phi.getIncomingBlock(i));
  }

  Value* BitsOfResult(llvm::Instruction& instruction) {
    llvm::Type* type = instruction.getType();
    if (auto* extract = llvm::dyn_cast<llvm::ExtractValueInst>(&instruction)) {
      const auto found = parts_.find(extract->getAggregateOperand());
      return found == parts_.end() ? llvm::ConstantInt::get(BitsType(type), 0)
                                   : found->second[extract->getIndices()[0]];
    }
    if (auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(&instruction)) return BitsOfBinary(*binary);
    if (auto* cast = llvm::dyn_cast<llvm::CastInst>(&instruction)) return BitsOfCast(*cast);
    if (auto* compare = llvm::dyn_cast<llvm::CmpInst>(&instruction)) return BitsOfCompare(*compare);
    if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&instruction)) return BitsOfSelect(*select);
    if (llvm::isa<llvm::FreezeInst>(instruction) || instruction.isUnaryOp())
      return InvalidBits(instruction.getOperand(0));
    if (llvm::isa<llvm::ExtractElementInst>(instruction)) {
      Value* shifted = b_.CreateLShr(InvalidBits(instruction.getOperand(0)),
                                     ElementShift(instruction.getOperand(0), instruction.getOperand(1)));
      return b_.CreateTrunc(shifted, BitsType(type));
    }
    if (llvm::isa<llvm::InsertElementInst>(instruction)) {
      Value* const shift = ElementShift(&instruction, instruction.getOperand(2));
      Value* const element = InvalidBits(instruction.getOperand(1));
      Value* const ones = llvm::ConstantInt::getAllOnesValue(element->getType());
      Value* const hole = b_.CreateNot(b_.CreateShl(b_.CreateZExt(ones, BitsType(type)), shift));
      return Or(And(InvalidBits(instruction.getOperand(0)), hole),
                b_.CreateShl(b_.CreateZExt(element, BitsType(type)), shift));
    }
    return AllOrNone(AnyOperand(instruction), type);
  }

  /// Where element number `index` begins in a vector's bits.
  Value* ElementShift(const Value* vector, const Value* index) {
    const auto number = llvm::cast<llvm::ConstantInt>(index)->getZExtValue();
    return llvm::ConstantInt::get(BitsType(vector->getType()), number * vector->getType()->getScalarSizeInBits());
  }

  Value* BitsOfBinary(llvm::BinaryOperator& op) {
    Value* const x = InvalidBits(op.getOperand(0));
    Value* const y = InvalidBits(op.getOperand(1));
    Value* const both = Or(x, y);
    if (op.getType()->isVectorTy()) return both;
    switch (op.getOpcode()) {
      // A zero decides an and, a one an or.
      case llvm::Instruction::And: return Or(And(x, y), Or(And(x, op.getOperand(1)), And(op.getOperand(0), y)));
      case llvm::Instruction::Or:
        return Or(And(x, y), Or(IsNull(x) ? x : b_.CreateAnd(x, b_.CreateNot(op.getOperand(1))),
                                IsNull(y) ? y : b_.CreateAnd(b_.CreateNot(op.getOperand(0)), y)));
      case llvm::Instruction::Xor:
      case llvm::Instruction::FAdd:
      case llvm::Instruction::FSub:
      case llvm::Instruction::FMul:
      case llvm::Instruction::FDiv:
      case llvm::Instruction::FRem: return both;
      case llvm::Instruction::Shl:
      case llvm::Instruction::LShr:
      case llvm::Instruction::AShr: {
        Value* const moved = IsNull(x) ? x : b_.CreateBinOp(op.getOpcode(), x, op.getOperand(1));
        return IsNull(y) ? moved : Or(moved, AllOrNone(y, op.getType()));
      }
      // A carry goes to the left.
      case llvm::Instruction::Add:
      case llvm::Instruction::Sub:
      case llvm::Instruction::Mul: return b_.CreateOr(both, b_.CreateNeg(both));
      default: return AllOrNone(both, op.getType());
    }
  }

  Value* BitsOfCast(llvm::CastInst& cast) {
    Value* const bits = InvalidBits(cast.getOperand(0));
    llvm::Type* const type = cast.getType();
    if (cast.getOpcode() == llvm::Instruction::BitCast) return bits;
    if (type->isVectorTy()) return AllOrNone(bits, type);
    switch (cast.getOpcode()) {
      case llvm::Instruction::Trunc: return b_.CreateTrunc(bits, type);
      case llvm::Instruction::ZExt: return b_.CreateZExt(bits, type);
      case llvm::Instruction::SExt: return b_.CreateSExt(bits, type);
      default: return AllOrNone(bits, type);
    }
  }

  Value* BitsOfCompare(llvm::CmpInst& compare) {
    Value* const invalid = Or(InvalidBits(compare.getOperand(0)), InvalidBits(compare.getOperand(1)));
    if (compare.getType()->isVectorTy()) return AllOrNone(invalid, compare.getType());
    Value* any = IsAny(invalid);
    if (!llvm::isa<llvm::ICmpInst>(compare) || !compare.isEquality() || IsNull(invalid)) return any;
    // Two that differ where both are valid are not equal, whatever the rest is.
    Value* const differs =
        b_.CreateAnd(b_.CreateXor(compare.getOperand(0), compare.getOperand(1)), b_.CreateNot(invalid));
    return b_.CreateAnd(any, b_.CreateNot(IsAny(differs)));
  }

  Value* BitsOfSelect(llvm::SelectInst& select) {
    Value* const x = InvalidBits(select.getTrueValue());
    Value* const y = InvalidBits(select.getFalseValue());
    if (select.getCondition()->getType()->isVectorTy()) return AllOrNone(AnyOperand(select), select.getType());
    Value* const chosen = IsNull(x) && IsNull(y) ? x : b_.CreateSelect(select.getCondition(), x, y);
    Value* const condition = InvalidBits(select.getCondition());
    if (IsNull(condition)) return chosen;
    // An invalid choice between two that are alike is none.
    Value* const differ = b_.CreateXor(Bits(select.getTrueValue()), Bits(select.getFalseValue()));
    return Or(chosen, b_.CreateAnd(AllOrNone(condition, select.getType()), Or(differ, Or(x, y))));
  }

  void FollowCall(llvm::CallInst& call) {
    const MarkerInfo* info = MarkerOf(spmd_, call);
    if (info && info->kind == MarkerKind::kLoad) return FollowLoad(call, *info);
    if (info && info->kind == MarkerKind::kSync) {
      Value* const bits = InvalidBits(call.getArgOperand(1));
      bits_[&call] = IsShuffle(*info) ? BitsOfShuffle(call, UnpackImm<SyncImm>(info->imm)) : b_.Ballot(bits);
      return;
    }
    if (info && (info->kind == MarkerKind::kToGeneric || info->kind == MarkerKind::kFromGeneric)) {
      bits_[&call] = InvalidBits(call.getArgOperand(0));
      return;
    }
    if (auto* structure = llvm::dyn_cast<llvm::StructType>(call.getType())) {
      Value* const any = AnyOperand(call);
      for (llvm::Type* part : structure->elements())
        parts_[&call].push_back(BitsOf(part) == 0 ? nullptr : AllOrNone(any, part));
      return;
    }
    if (BitsOf(call.getType()) != 0) bits_[&call] = BitsOfIntrinsic(call);
  }

  /// A lane that takes no part gives zero: of the valid bits, which says that it has none. So each shuffle has one of
  /// its own for them, as lanes may meet in two that stand at different places.
  Value* BitsOfShuffle(llvm::CallInst& shuffle, SyncImm imm) {
    imm.shadow = 1;
    Value* const members = shuffle.getArgOperand(0);
    Value* const source = shuffle.getArgOperand(2);
    Value* const taken = shuffle.getArgOperand(3);
    Value* const valid = b_.Sync(imm, members, {b_.CreateNot(InvalidBits(shuffle.getArgOperand(1))), source, taken});
    Value* const member = b_.CreateTrunc(b_.CreateLShr(members, b_.CreateAnd(source, kWarpSize - 1)), b_.getInt1Ty());
    return Or(b_.CreateNot(valid), b_.CreateSExt(b_.CreateAnd(taken, b_.CreateNot(member)), shuffle.getType()));
  }

  Value* BitsOfIntrinsic(llvm::CallInst& call) {
    const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call);
    const auto id = intrinsic ? intrinsic->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
    if (id == llvm::Intrinsic::bswap || id == llvm::Intrinsic::bitreverse)
      return b_.CreateUnaryIntrinsic(id, InvalidBits(call.getArgOperand(0)));
    const bool funnel = id == llvm::Intrinsic::fshl || id == llvm::Intrinsic::fshr;
    if (funnel && !tainted_.contains(call.getArgOperand(2)))
      return b_.CreateIntrinsic(
          id, {call.getType()},
          {InvalidBits(call.getArgOperand(0)), InvalidBits(call.getArgOperand(1)), call.getArgOperand(2)});
    if (call.getType()->isFloatingPointTy()) {
      Value* bits = llvm::ConstantInt::get(BitsType(call.getType()), 0);
      bool alike = true;
      for (const llvm::Use& arg : call.args()) {
        alike &= arg->getType() == call.getType();
        if (alike) bits = Or(bits, InvalidBits(arg.get()));
      }
      if (alike) return bits;
    }
    return AllOrNone(AnyOperand(call), call.getType());
  }

  void FollowLoad(llvm::CallInst& call, const MarkerInfo& info) {
    const unsigned bits = BitsOf(info.element);
    const ShadowImm imm{.bytes = static_cast<std::uint8_t>(bits / 8), .count = 1, .space = info.space};
    llvm::SmallVector<Value*, 4> parts;
    for (unsigned i = 0; i < info.count; ++i) {
      Value* address = call.getArgOperand(0);
      if (i != 0) address = b_.CreateAdd(address, b_.getInt64(std::uint64_t{i} * imm.bytes));
      parts.push_back(b_.CallHelper(Helper::kLoadedBits, {b_.getIntNTy(bits)}, {address}, PackImm(imm)));
    }
    if (info.count == 1) bits_[&call] = parts[0];
    else parts_[&call] = parts;
  }

  // --- what they decide ---
  void CheckUses(llvm::Instruction& instruction) {
    b_.SetInsertPoint(&instruction);
    b_.line = LineOf(instruction);
    if (auto* branch = llvm::dyn_cast<llvm::BranchInst>(&instruction)) {
      if (branch->isConditional()) Check(branch->getCondition(), InvalidUse::kBranch);
    } else if (auto* choice = llvm::dyn_cast<llvm::SwitchInst>(&instruction)) {
      Check(choice->getCondition(), InvalidUse::kBranch);
    } else if (const MarkerInfo* info = MarkerOf(spmd_, instruction)) {
      CheckAccess(llvm::cast<llvm::CallInst>(instruction), *info);
    }
  }

  void CheckAccess(llvm::CallInst& call, const MarkerInfo& info) {
    if (info.kind != MarkerKind::kLoad && info.kind != MarkerKind::kStore && info.kind != MarkerKind::kAtomic) return;
    Check(call.getArgOperand(0), InvalidUse::kAddress);
    if (info.kind == MarkerKind::kAtomic) {
      Check(call.getArgOperand(1), InvalidUse::kAtomic);
      Check(call.getArgOperand(2), InvalidUse::kAtomic);
    }
    if (info.kind == MarkerKind::kStore && info.space != Space::kLocal) CarryOn(call, info);
  }

  void Check(const Value* value, InvalidUse use) {
    if (!bits_.contains(value)) return;
    Value* const bits = InvalidBits(value);
    if (!IsNull(bits)) b_.CallHelper(Helper::kUseInvalid, {}, {IsAny(bits)}, static_cast<std::uint64_t>(use));
  }

  /// What is stored takes its invalid bits along.
  void CarryOn(llvm::CallInst& store, const MarkerInfo& info) {
    llvm::SmallVector<Value*, 8> inputs{store.getArgOperand(0)};
    bool any = false;
    for (unsigned i = 0; i < info.count; ++i) {
      Value* const value = store.getArgOperand(1 + i);
      if (BitsOf(value->getType()) < 8) return;
      inputs.push_back(InvalidBits(value));
      any |= !IsNull(inputs.back());
    }
    if (!any) return;
    b_.SetInsertPoint(store.getNextNode());
    const ShadowImm imm{.bytes = static_cast<std::uint8_t>(BitsOf(info.element) / 8),
                        .count = static_cast<std::uint8_t>(info.count),
                        .space = info.space};
    b_.CallHelper(Helper::kStoredBits, {}, inputs, PackImm(imm));
  }

  /// PTX line, 0 where it is not known. Accesses say it themselves; what has none is as good as what stands before it.
  std::uint32_t LineOf(const llvm::Instruction& instruction) const {
    for (const llvm::Instruction* at = &instruction; at; at = at->getPrevNode()) {
      if (const llvm::DebugLoc& loc = at->getDebugLoc(); loc && loc.getLine() != 0) return loc.getLine();
    }
    return 0;
  }

  SpmdModule& spmd_;
  llvm::Function& function_;
  SpmdBuilder b_;
  const bool generic_;
  llvm::DenseSet<const Value*> tainted_;
  llvm::DenseMap<const Value*, Value*> bits_;
  llvm::DenseMap<const Value*, llvm::SmallVector<Value*, 4>> parts_;  ///< of calls that give several values
  std::vector<llvm::PHINode*> phis_;
};

}  // namespace

void FollowInvalidValues(SpmdModule& spmd) {
  const bool generic = MakesGenericShared(spmd);
  std::vector<llvm::Function*> functions;
  for (llvm::Function& function : spmd.ir()) {
    if (!function.isDeclaration()) functions.push_back(&function);
  }
  for (llvm::Function* function : functions) Follower(spmd, *function, generic).Run();
}

}  // namespace gridloom::exec
