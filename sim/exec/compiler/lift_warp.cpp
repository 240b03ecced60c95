// Instructions between the lanes of a warp (PTX ISA, 9.7.9.5, 9.7.13.7 to 9.7.13.11). The .sync forms first bring the lanes
// of the member mask together.
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

// The member mask is the last operand of .sync forms; older forms work on the lanes that are active.
Value* FunctionLifter::SyncMembers(const Instruction& inst) {
  if (!inst.Has(Mod::kSync)) return nullptr;
  Value* members = Read(Op(OpCount() - 1), ScalarType::kB32);
  b_.WarpSync(members);
  return members;
}

// vote.{all,any,uni}.pred p, {!}a;  vote.ballot.b32 d, {!}a
void FunctionLifter::LiftVote(const Instruction& inst) {
  Value* predicate = ReadPredicate(Op(1));
  Value* members = SyncMembers(inst);
  auto ballot = [&](Value* value) {
    Value* bits = b_.Ballot(value);
    return members ? b_.CreateAnd(bits, members) : bits;
  };
  if (inst.Has(Mod::kBallot)) return Write(Op(0), ballot(predicate), ScalarType::kB32);
  Value* zero = b_.getInt32(0);
  auto any = [&](Value* value) { return b_.CreateICmpNE(ballot(value), zero); };
  Value* result = nullptr;
  if (inst.Has(Mod::kAny)) result = any(predicate);
  if (inst.Has(Mod::kAll)) result = b_.CreateNot(any(b_.CreateNot(predicate)));
  if (inst.Has(Mod::kUni)) result = b_.CreateNot(b_.CreateAnd(any(predicate), any(b_.CreateNot(predicate))));
  if (!result) RefuseInstruction();
  Write(Op(0), result, ScalarType::kPred);
}

// shfl d|p, a, b, c: lane arithmetic of the ISA, 9.7.9.6. c holds the segment mask in bits 8 to 12, the clamp in bits 0 to 4.
void FunctionLifter::LiftShfl(const Instruction& inst) {
  Value* value = Read(Op(1), ScalarType::kB32);
  Value* b = b_.CreateAnd(Read(Op(2), ScalarType::kU32), 31);
  Value* c = Read(Op(3), ScalarType::kU32);
  SyncMembers(inst);
  Value* lane = RangedSpecial(Special::kLaneId, 0, kWarpSize);
  Value* segment = b_.CreateAnd(b_.CreateLShr(c, 8), 31);
  Value* clamp = b_.CreateAnd(c, 31);
  Value* first = b_.CreateAnd(lane, segment);
  Value* limit = b_.CreateOr(first, b_.CreateAnd(clamp, b_.CreateNot(segment)));
  Value* source = nullptr;
  Value* valid = nullptr;
  if (inst.Has(Mod::kUp)) {
    source = b_.CreateSub(lane, b);
    valid = b_.CreateICmpSGE(source, limit);
  } else {
    if (inst.Has(Mod::kDown)) source = b_.CreateAdd(lane, b);
    if (inst.Has(Mod::kBfly)) source = b_.CreateXor(lane, b);
    if (inst.Has(Mod::kIdx)) source = b_.CreateOr(first, b_.CreateAnd(b, b_.CreateNot(segment)));
    if (!source) RefuseInstruction();
    valid = b_.CreateICmpSLE(source, limit);
  }
  const bool pair = Op(0).kind == OperandKind::kPair;
  Write(pair ? Op(0).elements[0] : Op(0), b_.Shuffle(value, source, valid), ScalarType::kB32);
  if (pair) Write(Op(0).elements[1], valid, ScalarType::kPred);
}

void FunctionLifter::LiftActivemask(const Instruction&) { Write(Op(0), b_.ActiveMask(), ScalarType::kB32); }

// elect.sync d|p, members: the lowest active member leads.
void FunctionLifter::LiftElect(const Instruction& inst) {
  Value* members = SyncMembers(inst);
  Value* active = b_.CreateAnd(b_.ActiveMask(), members);
  Value* leader = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, active, b_.getFalse());
  Value* is_leader = b_.CreateICmpEQ(leader, RangedSpecial(Special::kLaneId, 0, kWarpSize));
  const bool pair = Op(0).kind == OperandKind::kPair;
  Write(pair ? Op(0).elements[0] : Op(0), leader, ScalarType::kB32);
  if (pair) Write(Op(0).elements[1], is_leader, ScalarType::kPred);
}

// match.any.sync d, a, members: lanes with our value; match.all.sync d|p: the members when all values are the same, else 0.
void FunctionLifter::LiftMatch(const Instruction& inst) {
  const bool all = inst.Has(Mod::kAll);
  Value* value = b_.CreateZExt(Read(Op(1), inst.type()), b_.getInt64Ty());
  Value* members = SyncMembers(inst);
  if (!all) return Write(Op(0), b_.CallHelper(Helper::kMatchAny, {b_.getInt32Ty()}, {value, members}), ScalarType::kB32);
  Value* result = b_.CallHelper(Helper::kMatchAll, {b_.getInt32Ty(), b_.getInt1Ty()}, {value, members});
  const bool pair = Op(0).kind == OperandKind::kPair;
  Write(pair ? Op(0).elements[0] : Op(0), b_.CreateExtractValue(result, 0), ScalarType::kB32);
  if (pair) Write(Op(0).elements[1], b_.CreateExtractValue(result, 1), ScalarType::kPred);
}

// redux.sync.op.type d, a, members
void FunctionLifter::LiftRedux(const Instruction& inst) {
  static constexpr std::pair<Mod, ReduxOp> kOps[] = {{Mod::kAdd, ReduxOp::kAdd}, {Mod::kMin, ReduxOp::kMin}, {Mod::kMax, ReduxOp::kMax},
                                                     {Mod::kAnd, ReduxOp::kAnd}, {Mod::kOr, ReduxOp::kOr},   {Mod::kXor, ReduxOp::kXor}};
  const ScalarType type = inst.type();
  const ReduxType kind = type == ScalarType::kF32 ? ReduxType::kF32 : ptx::IsSigned(type) ? ReduxType::kS32 : ReduxType::kU32;
  for (const auto& [mod, op] : kOps) {
    if (!inst.Has(mod)) continue;
    std::uint64_t imm = ReduxImm(op, kind);
    if (inst.Has(Mod::kAbs)) imm |= kReduxAbs;
    if (inst.Has(Mod::kNaN)) imm |= kReduxNaN;
    Value* value = Read(Op(1), ScalarType::kB32);
    Value* members = SyncMembers(inst);
    return Write(Op(0), b_.CallHelper(Helper::kRedux, {b_.getInt32Ty()}, {value, members}, imm), ScalarType::kB32);
  }
  RefuseInstruction();
}

}  // namespace gridloom::exec
