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

}  // namespace gridloom::exec
