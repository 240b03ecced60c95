// Instructions between the lanes of a warp (PTX ISA, 9.7.9.5, 9.7.13.7 to 9.7.13.11). The .sync forms first bring the
// lanes of the member mask together (meetings.h).
#include <optional>

#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

// The member mask is the last operand of .sync forms; older forms work on the lanes that are active: null.
Value* FunctionLifter::SyncMembers(const Instruction& inst) {
  return inst.Has(Mod::kSync) ? Read(Op(OpCount() - 1), ScalarType::kB32) : nullptr;
}

// A .sync instruction, or with null for its members the older form.
Value* FunctionLifter::Sync(SyncOp op, std::uint16_t qualifiers, Value* members, llvm::ArrayRef<Value*> inputs) {
  constexpr unsigned kFirstIndependent = 70;  // from sm_70 on, threads of a warp are scheduled independently
  const unsigned sm = function_.target_sm != 0 ? function_.target_sm : module_.module().sm();
  const SyncImm imm{.op = op, .same_place = sm < kFirstIndependent, .qualifiers = qualifiers};
  return members ? b_.Sync(imm, members, inputs) : b_.Exchange(imm, b_.getInt32(~0u), inputs);
}

namespace {

template <typename Mode>
std::optional<Mode> ModeOf(const Instruction& inst, std::initializer_list<std::pair<Mod, Mode>> modes) {
  for (const auto& [mod, mode] : modes) {
    if (inst.Has(mod)) return mode;
  }
  return std::nullopt;
}

}  // namespace

// vote.{all,any,uni}.pred p, {!}a;  vote.ballot.b32 d, {!}a
template <>
void FunctionLifter::Lift<semantic::Vote>(const Instruction& inst) {
  const auto mode = ModeOf<VoteMode>(inst, {{Mod::kBallot, VoteMode::kBallot},
                                            {Mod::kAny, VoteMode::kAny},
                                            {Mod::kAll, VoteMode::kAll},
                                            {Mod::kUni, VoteMode::kUni}});
  if (!mode) RefuseInstruction();
  Value* predicate = ReadPredicate(Op(1));
  Value* members = SyncMembers(inst);
  const auto qualifiers = static_cast<std::uint16_t>(*mode);
  if (*mode == VoteMode::kUni)
    return Write(Op(0), Sync(SyncOp::kUni, qualifiers, members, {predicate}), ScalarType::kPred);
  if (*mode == VoteMode::kAll) predicate = b_.CreateNot(predicate);
  Value* bits = Sync(SyncOp::kBallot, qualifiers, members, {predicate});
  if (members) bits = b_.CreateAnd(bits, members);
  if (*mode == VoteMode::kBallot) return Write(Op(0), bits, ScalarType::kB32);
  Value* any = b_.CreateICmpNE(bits, b_.getInt32(0));
  Write(Op(0), *mode == VoteMode::kAny ? any : b_.CreateNot(any), ScalarType::kPred);
}

// shfl d|p, a, b, c: lane arithmetic of the ISA, 9.7.9.6. c holds the segment mask in bits 8 to 12, the clamp in bits 0
// to 4.
template <>
void FunctionLifter::Lift<semantic::Shfl>(const Instruction& inst) {
  Value* value = Read(Op(1), ScalarType::kB32);
  Value* b = b_.CreateAnd(Read(Op(2), ScalarType::kU32), 31);
  Value* c = Read(Op(3), ScalarType::kU32);
  const auto mode = ModeOf<ShuffleMode>(inst, {{Mod::kUp, ShuffleMode::kUp},
                                               {Mod::kDown, ShuffleMode::kDown},
                                               {Mod::kBfly, ShuffleMode::kBfly},
                                               {Mod::kIdx, ShuffleMode::kIdx}});
  if (!mode) RefuseInstruction();
  Value* lane = RangedSpecial(Special::kLaneId, 0, kWarpSize);
  Value* segment = b_.CreateAnd(b_.CreateLShr(c, 8), 31);
  Value* clamp = b_.CreateAnd(c, 31);
  Value* first = b_.CreateAnd(lane, segment);
  Value* limit = b_.CreateOr(first, b_.CreateAnd(clamp, b_.CreateNot(segment)));
  Value* source = nullptr;
  switch (*mode) {
    case ShuffleMode::kUp: source = b_.CreateSub(lane, b); break;
    case ShuffleMode::kDown: source = b_.CreateAdd(lane, b); break;
    case ShuffleMode::kBfly: source = b_.CreateXor(lane, b); break;
    case ShuffleMode::kIdx: source = b_.CreateOr(first, b_.CreateAnd(b, b_.CreateNot(segment))); break;
  }
  Value* valid = *mode == ShuffleMode::kUp ? b_.CreateICmpSGE(source, limit) : b_.CreateICmpSLE(source, limit);
  const bool pair = Op(0).kind == OperandKind::kPair;
  Value* moved = Sync(SyncOp::kShuffle, static_cast<std::uint16_t>(*mode), SyncMembers(inst), {value, source, valid});
  Write(pair ? Op(0).elements[0] : Op(0), moved, ScalarType::kB32);
  if (pair) Write(Op(0).elements[1], valid, ScalarType::kPred);
}

template <>
void FunctionLifter::Lift<semantic::Activemask>(const Instruction&) {
  Write(Op(0), b_.ActiveMask(), ScalarType::kB32);
}

// elect.sync d|p, members: the lowest active member leads.
template <>
void FunctionLifter::Lift<semantic::Elect>(const Instruction& inst) {
  Value* members = SyncMembers(inst);
  Value* active = b_.CreateAnd(Sync(SyncOp::kElect, 0, members, {}), members);
  Value* leader = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, active, b_.getFalse());
  Value* is_leader = b_.CreateICmpEQ(leader, RangedSpecial(Special::kLaneId, 0, kWarpSize));
  const bool pair = Op(0).kind == OperandKind::kPair;
  Write(pair ? Op(0).elements[0] : Op(0), leader, ScalarType::kB32);
  if (pair) Write(Op(0).elements[1], is_leader, ScalarType::kPred);
}

// match.any.sync d, a, members: lanes with our value; match.all.sync d|p: the members when all values are the same,
// else 0.
template <>
void FunctionLifter::Lift<semantic::Match>(const Instruction& inst) {
  const bool all = inst.Has(Mod::kAll);
  Value* value = b_.CreateZExt(Read(Op(1), inst.type()), b_.getInt64Ty());
  Value* members = SyncMembers(inst);
  Value* result = Sync(all ? SyncOp::kMatchAll : SyncOp::kMatchAny,
                       static_cast<std::uint16_t>(ptx::BitsOf(inst.type())), members, {value});
  if (!all) return Write(Op(0), result, ScalarType::kB32);
  const bool pair = Op(0).kind == OperandKind::kPair;
  Write(pair ? Op(0).elements[0] : Op(0), b_.CreateExtractValue(result, 0), ScalarType::kB32);
  if (pair) Write(Op(0).elements[1], b_.CreateExtractValue(result, 1), ScalarType::kPred);
}

// redux.sync.op.type d, a, members
template <>
void FunctionLifter::Lift<semantic::Redux>(const Instruction& inst) {
  static constexpr std::pair<Mod, ReduxOp> kOps[] = {{Mod::kAdd, ReduxOp::kAdd}, {Mod::kMin, ReduxOp::kMin},
                                                     {Mod::kMax, ReduxOp::kMax}, {Mod::kAnd, ReduxOp::kAnd},
                                                     {Mod::kOr, ReduxOp::kOr},   {Mod::kXor, ReduxOp::kXor}};
  const ScalarType type = inst.type();
  const ReduxType kind = type == ScalarType::kF32 ? ReduxType::kF32
                         : ptx::IsSigned(type)    ? ReduxType::kS32
                                                  : ReduxType::kU32;
  for (const auto& [mod, op] : kOps) {
    if (!inst.Has(mod)) continue;
    std::uint64_t imm = ReduxImm(op, kind);
    if (inst.Has(Mod::kAbs)) imm |= kReduxAbs;
    if (inst.Has(Mod::kNaN)) imm |= kReduxNaN;
    Value* value = Read(Op(1), ScalarType::kB32);
    Value* members = SyncMembers(inst);
    return Write(Op(0), Sync(SyncOp::kRedux, ReduxQualifiers(imm), members, {value}), ScalarType::kB32);
  }
  RefuseInstruction();
}

}  // namespace gridloom::exec
