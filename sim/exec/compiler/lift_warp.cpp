// Instructions between the lanes of a warp (PTX ISA, 9.7.9.5, 9.7.13.7 to 9.7.13.11). The .sync forms first bring the
// lanes of the member mask together (meetings.h).
#include <optional>

#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

namespace {

// The member mask is the last operand of .sync forms; older forms work on the lanes that are active: null.
Value* SyncMembers(Lifter& l, const Instruction& inst) {
  return inst.Has(Mod::kSync) ? l.Read(l.Op(l.OpCount() - 1), ScalarType::kB32) : nullptr;
}

// A .sync instruction, or with null for its members the older form.
Value* Sync(Lifter& l, SyncOp op, std::uint16_t qualifiers, Value* members, llvm::ArrayRef<Value*> inputs) {
  constexpr unsigned kFirstIndependent = 70;  // from sm_70 on, threads of a warp are scheduled independently
  const unsigned sm = l.function.target_sm != 0 ? l.function.target_sm : l.module.module().sm();
  const SyncImm imm{.op = op, .same_place = sm < kFirstIndependent, .qualifiers = qualifiers};
  return members ? l.b.Sync(imm, members, inputs) : l.b.Exchange(imm, l.b.getInt32(~0u), inputs);
}

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
void Lift<semantic::Vote>(Lifter& l, const Instruction& inst) {
  const auto mode = ModeOf<VoteMode>(inst, {{Mod::kBallot, VoteMode::kBallot},
                                            {Mod::kAny, VoteMode::kAny},
                                            {Mod::kAll, VoteMode::kAll},
                                            {Mod::kUni, VoteMode::kUni}});
  if (!mode) l.RefuseInstruction();
  Value* predicate = l.ReadPredicate(l.Op(1));
  Value* members = SyncMembers(l, inst);
  const auto qualifiers = static_cast<std::uint16_t>(*mode);
  if (*mode == VoteMode::kUni)
    return l.Write(l.Op(0), Sync(l, SyncOp::kUni, qualifiers, members, {predicate}), ScalarType::kPred);
  if (*mode == VoteMode::kAll) predicate = l.b.CreateNot(predicate);
  Value* bits = Sync(l, SyncOp::kBallot, qualifiers, members, {predicate});
  if (members) bits = l.b.CreateAnd(bits, members);
  if (*mode == VoteMode::kBallot) return l.Write(l.Op(0), bits, ScalarType::kB32);
  Value* any = l.b.CreateICmpNE(bits, l.b.getInt32(0));
  l.Write(l.Op(0), *mode == VoteMode::kAny ? any : l.b.CreateNot(any), ScalarType::kPred);
}

// shfl d|p, a, b, c: lane arithmetic of the ISA, 9.7.9.6. c holds the segment mask in bits 8 to 12, the clamp in bits 0
// to 4.
template <>
void Lift<semantic::Shfl>(Lifter& l, const Instruction& inst) {
  Value* value = l.Read(l.Op(1), ScalarType::kB32);
  Value* b = l.b.CreateAnd(l.Read(l.Op(2), ScalarType::kU32), 31);
  Value* c = l.Read(l.Op(3), ScalarType::kU32);
  const auto mode = ModeOf<ShuffleMode>(inst, {{Mod::kUp, ShuffleMode::kUp},
                                               {Mod::kDown, ShuffleMode::kDown},
                                               {Mod::kBfly, ShuffleMode::kBfly},
                                               {Mod::kIdx, ShuffleMode::kIdx}});
  if (!mode) l.RefuseInstruction();
  Value* lane = RangedSpecial(l, Special::kLaneId, 0, kWarpSize);
  Value* segment = l.b.CreateAnd(l.b.CreateLShr(c, 8), 31);
  Value* clamp = l.b.CreateAnd(c, 31);
  Value* first = l.b.CreateAnd(lane, segment);
  Value* limit = l.b.CreateOr(first, l.b.CreateAnd(clamp, l.b.CreateNot(segment)));
  Value* source = nullptr;
  switch (*mode) {
    case ShuffleMode::kUp: source = l.b.CreateSub(lane, b); break;
    case ShuffleMode::kDown: source = l.b.CreateAdd(lane, b); break;
    case ShuffleMode::kBfly: source = l.b.CreateXor(lane, b); break;
    case ShuffleMode::kIdx: source = l.b.CreateOr(first, l.b.CreateAnd(b, l.b.CreateNot(segment))); break;
  }
  Value* valid = *mode == ShuffleMode::kUp ? l.b.CreateICmpSGE(source, limit) : l.b.CreateICmpSLE(source, limit);
  const bool pair = l.Op(0).kind == OperandKind::kPair;
  Value* moved =
      Sync(l, SyncOp::kShuffle, static_cast<std::uint16_t>(*mode), SyncMembers(l, inst), {value, source, valid});
  l.Write(pair ? l.Op(0).elements[0] : l.Op(0), moved, ScalarType::kB32);
  if (pair) l.Write(l.Op(0).elements[1], valid, ScalarType::kPred);
}

template <>
void Lift<semantic::Activemask>(Lifter& l, const Instruction&) {
  l.Write(l.Op(0), l.b.ActiveMask(), ScalarType::kB32);
}

// elect.sync d|p, members: the lowest active member leads.
template <>
void Lift<semantic::Elect>(Lifter& l, const Instruction& inst) {
  Value* members = SyncMembers(l, inst);
  Value* active = l.b.CreateAnd(Sync(l, SyncOp::kElect, 0, members, {}), members);
  Value* leader = l.b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, active, l.b.getFalse());
  Value* is_leader = l.b.CreateICmpEQ(leader, RangedSpecial(l, Special::kLaneId, 0, kWarpSize));
  const bool pair = l.Op(0).kind == OperandKind::kPair;
  l.Write(pair ? l.Op(0).elements[0] : l.Op(0), leader, ScalarType::kB32);
  if (pair) l.Write(l.Op(0).elements[1], is_leader, ScalarType::kPred);
}

// match.any.sync d, a, members: lanes with our value; match.all.sync d|p: the members when all values are the same,
// else 0.
template <>
void Lift<semantic::Match>(Lifter& l, const Instruction& inst) {
  const bool all = inst.Has(Mod::kAll);
  Value* value = l.b.CreateZExt(l.Read(l.Op(1), inst.type()), l.b.getInt64Ty());
  Value* members = SyncMembers(l, inst);
  Value* result = Sync(l, all ? SyncOp::kMatchAll : SyncOp::kMatchAny,
                       static_cast<std::uint16_t>(ptx::BitsOf(inst.type())), members, {value});
  if (!all) return l.Write(l.Op(0), result, ScalarType::kB32);
  const bool pair = l.Op(0).kind == OperandKind::kPair;
  l.Write(pair ? l.Op(0).elements[0] : l.Op(0), l.b.CreateExtractValue(result, 0), ScalarType::kB32);
  if (pair) l.Write(l.Op(0).elements[1], l.b.CreateExtractValue(result, 1), ScalarType::kPred);
}

// redux.sync.op.type d, a, members
template <>
void Lift<semantic::Redux>(Lifter& l, const Instruction& inst) {
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
    Value* value = l.Read(l.Op(1), ScalarType::kB32);
    Value* members = SyncMembers(l, inst);
    return l.Write(l.Op(0), Sync(l, SyncOp::kRedux, ReduxQualifiers(imm), members, {value}), ScalarType::kB32);
  }
  l.RefuseInstruction();
}

}  // namespace gridloom::exec
