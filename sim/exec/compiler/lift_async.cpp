// Asynchronous copies and mbarriers (PTX ISA, 9.7.9.25 to 9.7.9.30, 9.7.13.15). Copies happen at once, in order: groups
// are complete when they are committed, and transaction bytes are reported when the copy is made.
#include <cstddef>
#include <iterator>

#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"
#include "sim/exec/contract/async_copy_immediates.h"
#include "sim/exec/contract/tensor_map.h"

namespace gridloom::exec {

namespace {

bool IsMulticast(const Instruction& inst) {
  return inst.Has(Mod::kMulticastCluster) || inst.Has(Mod::kMulticastCluster16b);
}

// Where copies are waited for: nothing to do, as they have happened, but memcheck has to know.
void OrderCopies(SpmdBuilder& b, const Instruction& inst) {
  std::uint64_t order = kAllCopiesAwaited;
  if (inst.Has(Mod::kCommitGroup)) order = kCopiesCommitted;
  if (inst.Has(Mod::kWaitGroup)) order = CopiesAwaited(inst.operands[0].int_literal.value);
  b.CallHelper(Helper::kCheckOrder, {}, {}, order);
}

/// memcheck: the bytes at `to` in shared memory are to be waited for. `mbarrier`: the host address of the one that
/// tells of it, or null.
void BeginCopy(SpmdBuilder& b, Value* to, Value* bytes, Value* mbarrier) {
  auto* i64 = b.getInt64Ty();
  b.CallHelper(Helper::kCheckOrder, {},
               {b.CreateZExtOrTrunc(to, i64), b.CreateZExtOrTrunc(bytes, i64), mbarrier ? mbarrier : b.getInt64(0)},
               kCopyBegins);
}

Value* Mbarrier(Lifter& l, MbarrierOp op, Value* address, Value* operand, Value* second) {
  auto* i64 = l.b.getInt64Ty();
  return l.b.CallHelper(
      Helper::kMbarrier, {i64},
      {address, l.Resize(operand, i64, false), second ? l.Resize(second, i64, false) : l.b.getInt64(0)},
      static_cast<std::uint64_t>(op));
}

// Host address of an mbarrier operand: shared or generic.
Value* MbarrierAddress(Lifter& l, const Operand& operand, StateSpace space) {
  const Place place = Locate(l, operand, space);
  if (place.kind != Place::Kind::kMemory) l.RefuseInstruction("works on a parameter");
  return place.space == Space::kShared ? l.b.ToGeneric(Space::kShared, place.address) : place.address;
}

// mbarrier.{test,try}_wait{.parity} p{|report {, value}}, [a], state or parity {, time}: reports are made by operations
// of the fabric, which there are none of. So none is ever there, and the conditional phase ends with the primary one.
void LiftWait(Lifter& l, const Instruction& inst) {
  const bool parity = inst.Has(Mod::kParity);
  const std::size_t at = l.Op(1).kind == OperandKind::kAddress ? 1 : 2;
  Value* operand = l.Read(l.Op(at + 1), parity ? ScalarType::kU32 : ScalarType::kB64);
  Value* over = Mbarrier(l, parity ? MbarrierOp::kTestParity : MbarrierOp::kTestState,
                         MbarrierAddress(l, l.Op(at), inst.space()), operand, nullptr);
  const bool reports = l.Op(0).kind == OperandKind::kPair;
  l.Write(reports ? l.Op(0).elements[0] : l.Op(0), l.b.CreateICmpNE(over, l.b.getInt64(0)), ScalarType::kPred);
  if (reports) l.Write(l.Op(0).elements[1], l.b.getFalse(), ScalarType::kPred);
  if (at == 2) l.Write(l.Op(1), l.b.getInt8(0), ScalarType::kB8);
}

}  // namespace

template <>
void Lift<semantic::Mbarrier>(Lifter& l, const Instruction& inst) {
  Value* one = l.b.getInt32(1);
  auto space = [&] { return inst.space(); };
  if (inst.Has(Mod::kPendingCount)) {
    Value* count = Mbarrier(l, MbarrierOp::kPendingCount, l.b.getInt64(0), l.Read(l.Op(1), ScalarType::kB64), nullptr);
    return l.Write(l.Op(0), l.b.CreateTrunc(count, l.b.getInt32Ty()), ScalarType::kU32);
  }
  if (inst.Has(Mod::kInit)) {
    Value* layout = HasText(inst, "layout::v1") ? one : nullptr;
    Mbarrier(l, MbarrierOp::kInit, MbarrierAddress(l, l.Op(0), space()), l.Read(l.Op(1), ScalarType::kU32), layout);
    return;
  }
  if (inst.Has(Mod::kInval)) {
    Mbarrier(l, MbarrierOp::kInvalidate, MbarrierAddress(l, l.Op(0), space()), one, nullptr);
    return;
  }
  if (HasText(inst, "check_layout")) {
    Value* layout = l.b.getInt64(HasText(inst, "layout::v1") ? 1 : 0);
    Value* same = Mbarrier(l, MbarrierOp::kCheckLayout, MbarrierAddress(l, l.Op(1), space()), layout, nullptr);
    return l.Write(l.Op(0), l.b.CreateICmpNE(same, l.b.getInt64(0)), ScalarType::kPred);
  }
  if (inst.Has(Mod::kTestWait) || inst.Has(Mod::kTryWait)) return LiftWait(l, inst);
  const bool drop = inst.Has(Mod::kArriveDrop);
  const bool arrives = drop || inst.Has(Mod::kArrive);
  const bool expects = inst.Has(Mod::kExpectTx);
  if (!arrives) {
    if (!expects && !inst.Has(Mod::kCompleteTx)) l.RefuseInstruction();
    const MbarrierOp op = expects ? MbarrierOp::kExpectTx : MbarrierOp::kCompleteTx;
    Mbarrier(l, op, MbarrierAddress(l, l.Op(0), space()), l.Read(l.Op(1), ScalarType::kU32), nullptr);
    return;
  }
  // arrive state, [a] {, count}; remote ones have no state.
  const std::size_t at = l.Op(0).kind == OperandKind::kAddress ? 0 : 1;
  Value* second = at + 1 < l.OpCount() ? l.Read(l.Op(at + 1), ScalarType::kU32) : one;
  Value* address = MbarrierAddress(l, l.Op(at), space());
  Value* state = nullptr;
  if (expects) {
    state = Mbarrier(l, drop ? MbarrierOp::kArriveDropExpectTx : MbarrierOp::kArriveExpectTx, address, one, second);
  } else {
    state = Mbarrier(l, drop ? MbarrierOp::kArriveDrop : MbarrierOp::kArrive, address, second, nullptr);
  }
  if (at == 1) l.Write(l.Op(0), state, ScalarType::kB64);
}

namespace {

/// The mbarrier at that shared address hears of `bytes` (i64).
void CompleteBytes(Lifter& l, Value* barrier, Value* bytes) {
  Mbarrier(l, MbarrierOp::kCompleteTx, l.b.ToGeneric(Space::kShared, barrier), bytes, nullptr);
}

// for (offset = 0; offset < end; offset += step) body(offset)
template <typename Body>
void ForOffsets(Lifter& l, Value* end, std::uint64_t step, Body body) {
  auto* before = l.b.GetInsertBlock();
  auto* head = l.NewBlock("loop");
  auto* inside = l.NewBlock("loop.body");
  auto* after = l.NewBlock("loop.end");
  l.b.CreateBr(head);
  l.b.SetInsertPoint(head);
  llvm::PHINode* offset = l.b.CreatePHI(l.b.getInt64Ty(), 2);
  offset->addIncoming(l.b.getInt64(0), before);
  l.b.CreateCondBr(l.b.CreateICmpULT(offset, end), inside, after);
  l.b.SetInsertPoint(inside);
  body(offset);
  offset->addIncoming(l.b.CreateAdd(offset, l.b.getInt64(step)), l.b.GetInsertBlock());
  l.b.CreateBr(head);
  l.b.SetInsertPoint(after);
}

template <typename Body>
void ForMembers(Lifter& l, Value* mask, Body body) {
  constexpr std::uint64_t kMaxClusterCtas = 16;
  auto* i64 = l.b.getInt64Ty();
  const bool clusters = l.module.options().clusters;
  Value* stride = clusters ? l.b.CreateZExt(l.b.SpecialReg(Special::kSharedStride), i64) : l.b.getInt64(0);
  Value* guarded = l.b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, stride, l.b.getInt64(1));
  Value* members = l.b.CreateZExt(mask, i64);
  ForOffsets(l, l.b.getInt64(clusters ? kMaxClusterCtas : 1), 1, [&](Value* rank) {
    auto* chosen = l.NewBlock("member");
    auto* next = l.NewBlock("next.member");
    l.b.CreateCondBr(l.b.CreateTrunc(l.b.CreateLShr(members, rank), l.b.getInt1Ty()), chosen, next);
    l.b.SetInsertPoint(chosen);
    body([&](Value* offset) {
      return clusters ? l.b.CreateAdd(l.b.CreateURem(offset, guarded), l.b.CreateMul(rank, stride)) : offset;
    });
    l.b.CreateBr(next);
    l.b.SetInsertPoint(next);
  });
}

void LiftTryCancel(Lifter& l, const Instruction& inst) {
  constexpr std::uint32_t kResponseBytes = 16;
  Value* const response = AddressOf(l, l.Op(0), StateSpace::kShared);
  Value* const barrier = AddressOf(l, l.Op(1), StateSpace::kShared);
  auto* const i64 = l.b.getInt64Ty();
  Value* const words = l.b.CallHelper(Helper::kTryCancel, {i64, i64}, {});
  Value *const low = l.b.CreateExtractValue(words, 0), *const high = l.b.CreateExtractValue(words, 1);
  const auto answer = [&](Value* to, Value* of) {
    l.b.StoreMem(Space::kShared, {low, high}, to, false);
    if (l.module.options().memcheck)
      BeginCopy(l.b, to, l.b.getInt64(kResponseBytes), l.b.ToGeneric(Space::kShared, of));
    CompleteBytes(l, of, l.b.getInt32(kResponseBytes));
  };
  if (!HasText(inst, "multicast::cluster::all")) return answer(response, barrier);
  Value* const ctas = ReadSpecial(l, "%cluster_nctarank");
  Value* const all = l.b.CreateSub(l.b.CreateShl(l.b.getInt32(1), ctas), l.b.getInt32(1));
  ForMembers(l, l.b.CreateTrunc(all, l.b.getInt16Ty()), [&](auto place) { answer(place(response), place(barrier)); });
}

}  // namespace

// clusterlaunchcontrol.try_cancel … [response], [mbarrier]: asks for the place of a cluster that has not begun, which
// then never does. A response is 1 in its lowest word where a place was given, then the first CTA's x, y, z.
template <>
void Lift<semantic::ClusterLaunchControl>(Lifter& l, const Instruction& inst) {
  if (HasText(inst, "try_cancel")) return LiftTryCancel(l, inst);
  const std::vector<Value*> response = l.SplitLanes(l.Read(l.Op(1), ScalarType::kB128), 4);
  if (HasText(inst, "is_canceled"))
    return l.Write(l.Op(0), l.b.CreateICmpNE(response[0], l.b.getInt32(0)), ScalarType::kPred);
  const std::vector<Operand> to = l.Components(l.Op(0));
  const std::size_t first = HasText(inst, "get_first_ctaid::z") ? 3 : HasText(inst, "get_first_ctaid::y") ? 2 : 1;
  for (std::size_t i = 0; i < to.size(); ++i) {
    // The ISA does not say what the last part of a v4 is. It reads as 0 here.
    Value* const part = first + i < response.size() ? response[first + i] : l.b.getInt32(0);
    l.Write(to[i], part, ScalarType::kB32);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Tensor copies and tensor maps
// ---------------------------------------------------------------------------------------------------------------------
namespace {

struct NamedReduction {
  Mod mod;
  TensorReduction reduction;
};
constexpr NamedReduction kReductions[] = {
    {Mod::kAdd, TensorReduction::kAdd}, {Mod::kMin, TensorReduction::kMin}, {Mod::kMax, TensorReduction::kMax},
    {Mod::kInc, TensorReduction::kInc}, {Mod::kDec, TensorReduction::kDec}, {Mod::kAnd, TensorReduction::kAnd},
    {Mod::kOr, TensorReduction::kOr},   {Mod::kXor, TensorReduction::kXor},
};

std::uint8_t RankOf(const Instruction& inst) {
  constexpr Mod kRanks[] = {Mod::kDim1d, Mod::kDim2d, Mod::kDim3d, Mod::kDim4d, Mod::kDim5d};
  for (std::uint8_t i = 0; i < std::size(kRanks); ++i) {
    if (inst.Has(kRanks[i])) return i + 1;
  }
  return 0;
}

/// The state spaces of a bulk copy: destination, source.
std::vector<StateSpace> CopySpaces(Lifter& l, const Instruction& inst) {
  std::vector<StateSpace> spaces;
  for (const ptx::Modifier& modifier : inst.modifiers) {
    if (modifier.mod == Mod::kSpace) spaces.push_back(*ptx::SpaceFromText(modifier.text));
  }
  if (spaces.size() < 2) l.RefuseInstruction("names no two state spaces");
  return spaces;
}

/// In records a tensor copy is what a plain bulk copy is: 16 bytes at a time, what lies outside of the tensor left out.
void RecordTensorCopy(Lifter& l, const TensorCopyImm& imm, llvm::ArrayRef<Value*> coordinates, Value* map,
                      Value* shared, Value* bytes) {
  if (l.b.record == Recording::kNone) return;
  constexpr unsigned kBytes = 16;
  const bool load = imm.op == TensorCopyOp::kLoad;
  ForOffsets(l, bytes, kBytes, [&](Value* offset) {
    llvm::SmallVector<Value*, 7> inputs{map, offset};
    inputs.append(coordinates.begin(), coordinates.end());
    Value* place = l.b.CallHelper(Helper::kTensorPlace, {l.b.getInt64Ty()}, inputs, PackImm(imm));
    auto* inside = l.NewBlock("inside");
    auto* next = l.NewBlock("next.chunk");
    l.b.CreateCondBr(l.b.CreateICmpNE(place, l.b.getInt64(0)), inside, next);
    l.b.SetInsertPoint(inside);
    if (load) l.b.RecordAccess(AccessKind::kRead, Space::kGlobal, kBytes, place);
    l.b.RecordAccess(load ? AccessKind::kWrite : AccessKind::kRead, Space::kShared, kBytes,
                     l.b.CreateAdd(shared, offset));
    if (!load)
      l.b.RecordAccess(imm.op == TensorCopyOp::kStore ? AccessKind::kWrite : AccessKind::kAtomic, Space::kGlobal,
                       kBytes, place);
    l.b.CreateBr(next);
    l.b.SetInsertPoint(next);
  });
}

/// Returns the bytes of the box (i64).
Value* TensorCopy(Lifter& l, const TensorCopyImm& imm, llvm::ArrayRef<Value*> coordinates, Value* map, Value* shared) {
  llvm::SmallVector<Value*, 7> inputs{map, l.b.ToGeneric(Space::kShared, shared)};
  inputs.append(coordinates.begin(), coordinates.end());
  Value* bytes = l.b.CallHelper(Helper::kTensorCopy, {l.b.getInt64Ty()}, inputs, PackImm(imm));
  RecordTensorCopy(l, imm, coordinates, map, shared, bytes);
  return bytes;
}

// cp.async.bulk.tensor.dim.shared::cluster.global{.tile}.mbarrier::complete_tx::bytes{.multicast::cluster}
//   [shared], [map, {coordinates}], [mbar] {, mask} {, policy}
// cp{.reduce}.async.bulk.tensor.dim.global.shared::cta{.op}{.tile}.bulk_group [map, {coordinates}], [shared] {, policy}
void LiftTensorCopy(Lifter& l, const Instruction& inst) {
  const std::vector<StateSpace> spaces = CopySpaces(l, inst);
  const bool load = spaces[1] == StateSpace::kGlobal;
  for (const Mod mode :
       {Mod::kIm2col, Mod::kIm2colW, Mod::kIm2colW128, Mod::kIm2colNoOffs, Mod::kTileGather4, Mod::kTileScatter4}) {
    if (inst.Has(mode)) l.RefuseInstruction();
  }
  TensorCopyImm imm{.op = load ? TensorCopyOp::kLoad : TensorCopyOp::kStore, .rank = RankOf(inst)};
  if (inst.Has(Mod::kReduce)) {
    const auto* const found =
        std::ranges::find_if(kReductions, [&](const NamedReduction& row) { return inst.Has(row.mod); });
    if (found == std::end(kReductions)) l.RefuseInstruction();
    imm.op = TensorCopyOp::kReduce;
    imm.reduction = found->reduction;
  }
  const Operand& tensor = l.Op(load ? 1 : 0);
  const bool named = tensor.kind == OperandKind::kAddress && tensor.address->elements.size() == 1;
  if (!named || imm.rank == 0 || l.Components(tensor.address->elements[0]).size() != imm.rank)
    l.RefuseInstruction("names no box of a tensor");
  llvm::SmallVector<Value*, 5> coordinates;
  for (const Operand& coordinate : l.Components(tensor.address->elements[0]))
    coordinates.push_back(l.Read(coordinate, ScalarType::kS32));
  Value* map = HostAddress(l, Locate(l, tensor, StateSpace::kNone));
  Value* shared = AddressOf(l, l.Op(load ? 0 : 1), StateSpace::kShared);
  if (!load) {
    TensorCopy(l, imm, coordinates, map, shared);
    return;
  }
  Value* barrier = AddressOf(l, l.Op(2), StateSpace::kShared);
  const auto copy = [&](Value* to, Value* tells) {
    Value* const bytes = TensorCopy(l, imm, coordinates, map, to);
    if (l.module.options().memcheck) BeginCopy(l.b, to, bytes, l.b.ToGeneric(Space::kShared, tells));
    CompleteBytes(l, tells, bytes);
  };
  if (!IsMulticast(inst)) return copy(shared, barrier);
  ForMembers(l, l.Read(l.Op(3), ScalarType::kU16), [&](auto place) { copy(place(shared), place(barrier)); });
}

// Copies `bytes`, a multiple of `step` (1 or 16).
void CopyBytes(Lifter& l, Space to_space, Value* to, Space from_space, Value* from, Value* bytes, unsigned step) {
  ForOffsets(l, bytes, step, [&](Value* offset) {
    llvm::Type* element = step == 1 ? static_cast<llvm::Type*>(l.b.getInt8Ty()) : l.b.getInt64Ty();
    const unsigned count = step == 1 ? 1 : 2;
    Value* loaded = l.b.LoadMem(from_space, element, count, l.b.CreateAdd(from, offset), false);
    llvm::SmallVector<Value*, 2> values;
    for (unsigned i = 0; i < count; ++i) values.push_back(count == 1 ? loaded : l.b.CreateExtractValue(loaded, i));
    l.b.StoreMem(to_space, values, l.b.CreateAdd(to, offset), false);
  });
}

// The same place in the shared window of every CTA named by the mask; its barrier hears of it there.
void MulticastCopy(Lifter& l, Value* to, Space from_space, Value* from, Value* bytes, Value* barrier, Value* mask) {
  ForMembers(l, mask, [&](auto place) {
    CopyBytes(l, Space::kShared, place(to), from_space, from, bytes, 16);
    if (l.module.options().memcheck) BeginCopy(l.b, place(to), bytes, l.b.ToGeneric(Space::kShared, place(barrier)));
    CompleteBytes(l, place(barrier), bytes);
  });
}

// Element-wise atomics, as the ISA defines bulk reductions.
void ReduceBytes(Lifter& l, const Instruction& inst, Space to_space, Value* to, Space from_space, Value* from,
                 Value* bytes) {
  const ScalarType type = inst.type();
  if (type == ScalarType::kNone) l.RefuseInstruction("has no type");
  const AtomicOp op = AtomicOpOf(l, inst, type);
  const AtomicFlush flush = AtomicFlushOf(inst, op, type);
  ForOffsets(l, bytes, ptx::BytesOf(type), [&](Value* offset) {
    Value* value = l.b.LoadMem(from_space, l.TypeOf(type), 1, l.b.CreateAdd(from, offset), false);
    l.b.Atomic(to_space, op, AtomicTypeOf(type), l.b.CreateAdd(to, offset), value, nullptr, true, flush);
  });
}

// .cp_mask, from shared to global memory: of each 16 bytes those whose bit is set.
void CopyMasked(Lifter& l, Value* to, Value* from, Value* bytes, Value* mask) {
  Value* const bits = l.b.CreateZExt(mask, l.b.getInt64Ty());
  ForOffsets(l, bytes, 1, [&](Value* offset) {
    auto* chosen = l.NewBlock("byte");
    auto* next = l.NewBlock("next.byte");
    l.b.CreateCondBr(l.b.CreateTrunc(l.b.CreateLShr(bits, l.b.CreateAnd(offset, l.b.getInt64(15))), l.b.getInt1Ty()),
                     chosen, next);
    l.b.SetInsertPoint(chosen);
    Value* const loaded = l.b.LoadMem(Space::kShared, l.b.getInt8Ty(), 1, l.b.CreateAdd(from, offset), false);
    l.b.StoreMem(Space::kGlobal, {loaded}, l.b.CreateAdd(to, offset), false);
    l.b.CreateBr(next);
    l.b.SetInsertPoint(next);
  });
}

// .ignore_oob: the first `left` and last `right` bytes, up to 15 each, may lie outside of the memory, and what comes of
// them is anything. They are not read and not written. Between the first and the last 16 bytes nothing is left out.
void CopyWithin(Lifter& l, Value* to, Value* from, Value* bytes, Value* left, Value* right) {
  const auto less = [&](Value* a, Value* b) { return l.b.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, a, b); };
  const auto copy = [&](Value* begin, Value* end, unsigned step) {
    CopyBytes(l, Space::kShared, l.b.CreateAdd(to, begin), Space::kGlobal, l.b.CreateAdd(from, begin), less(end, begin),
              step);
  };
  Value *zero = l.b.getInt64(0), *chunk = l.b.getInt64(16), *end = less(bytes, right);
  Value* head = l.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, bytes,
                                          l.b.CreateSelect(l.b.CreateICmpNE(left, zero), chunk, zero));
  Value* tail = less(bytes, l.b.CreateSelect(l.b.CreateICmpNE(right, zero), chunk, zero));
  copy(left, l.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, head, end), 1);
  copy(head, tail, 16);
  copy(l.b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, head, tail), end, 1);
}

// cp.async.bulk.dst.src.completion {.multicast::cluster} [dst], [src], size {, [mbar]} {, mask}: multiples of 16 bytes.
// cp.reduce.async.bulk….op.type combines element by element instead.
void LiftBulkCopy(Lifter& l, const Instruction& inst) {
  const std::vector<StateSpace> spaces = CopySpaces(l, inst);
  const Space to_space = SpaceOf(l, spaces[0]), from_space = SpaceOf(l, spaces[1]);
  Value* to = AddressOf(l, l.Op(0), spaces[0]);
  Value* from = AddressOf(l, l.Op(1), spaces[1]);
  Value* size = l.Read(l.Op(2), ScalarType::kU32);
  Value* bytes = l.b.CreateZExt(size, l.b.getInt64Ty());
  const bool reports = inst.Has(Mod::kMbarrier) || HasText(inst, "mbarrier::complete_tx::bytes");
  if (IsMulticast(inst)) {
    Value* barrier = AddressOf(l, l.Op(3), StateSpace::kShared);
    return MulticastCopy(l, to, from_space, from, bytes, barrier, l.Read(l.Op(4), ScalarType::kU16));
  }
  const bool has_ends = HasText(inst, "ignore_oob");
  if (inst.Has(Mod::kReduce)) {
    ReduceBytes(l, inst, to_space, to, from_space, from, bytes);
  } else if (HasText(inst, "cp_mask")) {
    CopyMasked(l, to, from, bytes, l.Read(l.Op(l.OpCount() - 1), ScalarType::kB16));
  } else if (has_ends) {
    CopyWithin(l, to, from, bytes, l.b.CreateZExt(l.Read(l.Op(3), ScalarType::kU32), l.b.getInt64Ty()),
               l.b.CreateZExt(l.Read(l.Op(4), ScalarType::kU32), l.b.getInt64Ty()));
  } else {
    CopyBytes(l, to_space, to, from_space, from, bytes, 16);
  }
  if (!reports) return;
  Value* const barrier = MbarrierAddress(l, l.Op(has_ends ? 5 : 3), StateSpace::kShared);
  if (l.module.options().memcheck && to_space == Space::kShared) BeginCopy(l.b, to, bytes, barrier);
  Mbarrier(l, MbarrierOp::kCompleteTx, barrier, size, nullptr);
}

// cp.async.{ca,cg}.shared.global [dst], [src], cp-size {, src-size | ignore-src} {, policy}: bytes beyond src-size are
// zero.
void LiftSmallCopy(Lifter& l, const Instruction& inst) {
  const std::uint64_t size = l.Op(2).int_literal.value;
  if (l.Op(2).kind != OperandKind::kInt || (size != 4 && size != 8 && size != 16))
    l.RefuseInstruction("needs a size of 4, 8 or 16");
  Value* to = AddressOf(l, l.Op(0), StateSpace::kShared);
  Value* from = AddressOf(l, l.Op(1), StateSpace::kGlobal);
  const bool has_policy = inst.Has(Mod::kL2CacheHint);
  const bool has_source_size = l.OpCount() > 3 + (has_policy ? 1u : 0u);
  auto* i32 = l.b.getInt32Ty();
  const unsigned words = static_cast<unsigned>(size / 4);
  auto copy_all = [&] {
    Value* loaded = l.b.LoadMem(Space::kGlobal, i32, words, from, false);
    llvm::SmallVector<Value*, 4> values;
    for (unsigned i = 0; i < words; ++i) values.push_back(words == 1 ? loaded : l.b.CreateExtractValue(loaded, i));
    l.b.StoreMem(Space::kShared, values, to, false);
  };
  if (!has_source_size) {
    copy_all();
    if (l.module.options().memcheck) BeginCopy(l.b, to, l.b.getInt64(size), nullptr);
    return;
  }
  const bool predicate = l.Op(3).kind == OperandKind::kRegister && l.Op(3).variable->type == ScalarType::kPred;
  Value* count = predicate ? l.b.CreateSelect(l.ReadPredicate(l.Op(3)), l.b.getInt32(0),
                                              l.b.getInt32(static_cast<std::uint32_t>(size)))
                           : l.Read(l.Op(3), ScalarType::kU32);
  auto* full = l.NewBlock("full");
  auto* partial = l.NewBlock("partial");
  auto* done = l.NewBlock("done");
  l.b.CreateCondBr(l.b.CreateICmpUGE(count, l.b.getInt32(static_cast<std::uint32_t>(size))), full, partial);
  l.b.SetInsertPoint(full);
  copy_all();
  l.b.CreateBr(done);
  l.b.SetInsertPoint(partial);
  l.b.StoreMem(Space::kShared, llvm::SmallVector<Value*, 4>(words, l.b.getInt32(0)), to, false);
  CopyBytes(l, Space::kShared, to, Space::kGlobal, from, l.b.CreateZExt(count, l.b.getInt64Ty()), 1);
  l.b.CreateBr(done);
  l.b.SetInsertPoint(done);
  if (l.module.options().memcheck) BeginCopy(l.b, to, l.b.getInt64(size), nullptr);
}

}  // namespace

// cp.async and relatives.
template <>
void Lift<semantic::Cp>(Lifter& l, const Instruction& inst) {
  const bool bulk = inst.Has(Mod::kBulk);
  if (inst.Has(Mod::kCommitGroup) || inst.Has(Mod::kWaitGroup) || inst.Has(Mod::kWaitAll)) {
    if (!bulk && l.module.options().memcheck) OrderCopies(l.b, inst);
    return;
  }
  if (bulk && (HasText(inst, "commit_group") || HasText(inst, "wait_group") || HasText(inst, "prefetch"))) return;
  if (inst.Has(Mod::kTensor)) return LiftTensorCopy(l, inst);
  if (!inst.Has(Mod::kAsync)) l.RefuseInstruction();
  if (inst.Has(Mod::kMbarrier) && inst.Has(Mod::kArrive)) {
    if (l.module.options().memcheck)
      l.b.CallHelper(Helper::kCheckOrder, {}, {MbarrierAddress(l, l.Op(0), inst.space())}, kCopiesToMbarrier);
    // Without .noinc the barrier expects one arrival more, which follows at once: nothing changes.
    if (inst.Has(Mod::kNoinc))
      Mbarrier(l, MbarrierOp::kArrive, MbarrierAddress(l, l.Op(0), inst.space()), l.b.getInt32(1), nullptr);
    return;
  }
  if (bulk) return LiftBulkCopy(l, inst);
  LiftSmallCopy(l, inst);
}

namespace {

/// A field of a tensor map: where, how wide, and by what its elements are apart (0: there is one).
struct MapField {
  Mod mod;
  std::size_t offset;
  unsigned bytes, step;
};
constexpr MapField kMapFields[] = {
    {Mod::kGlobalAddress, offsetof(TensorMap, address), 8, 0},
    {Mod::kRank, offsetof(TensorMap, rank), 1, 0},
    {Mod::kBoxDim, offsetof(TensorMap, box), 4, 4},
    {Mod::kGlobalDim, offsetof(TensorMap, size), 4, 4},
    {Mod::kGlobalStride, offsetof(TensorMap, stride), 8, 8},
    {Mod::kElementStride, offsetof(TensorMap, step), 1, 1},
    {Mod::kElemtype, offsetof(TensorMap, element), 1, 0},
    {Mod::kInterleaveLayout, offsetof(TensorMap, interleave), 1, 0},
    {Mod::kSwizzleMode, offsetof(TensorMap, swizzle), 1, 0},
    {Mod::kFillMode, offsetof(TensorMap, fill), 1, 0},
};

}  // namespace

// tensormap.replace.tile.field{.ss}.b1024.type [map], {axis,} value: a store to the field; what it makes of the map is
// looked at when the map is used.
// tensormap.cp_fenceproxy.…  [to], [from], 128 copies.
// tensormap.query.alloc_class_large{.ss}.b1024 p, [map]: all maps have the small class (cuTensorMapSetAllocationClass).
template <>
void Lift<semantic::Tensormap>(Lifter& l, const Instruction& inst) {
  if (inst.Has(Mod::kCpFenceproxy)) {
    const std::vector<StateSpace> spaces = CopySpaces(l, inst);
    return CopyBytes(l, SpaceOf(l, spaces[0]), AddressOf(l, l.Op(0), spaces[0]), SpaceOf(l, spaces[1]),
                     AddressOf(l, l.Op(1), spaces[1]), l.b.getInt64(sizeof(TensorMap)), 16);
  }
  if (HasText(inst, "query")) return l.Write(l.Op(0), l.b.getFalse(), ScalarType::kPred);
  const auto* const field = std::ranges::find_if(kMapFields, [&](const MapField& row) { return inst.Has(row.mod); });
  if (field == std::end(kMapFields) || !inst.Has(Mod::kTile)) l.RefuseInstruction();
  const bool has_axis = l.OpCount() > 2;
  if (has_axis != (field->step != 0)) l.RefuseInstruction("has operands of another field");
  const Place place = Locate(l, l.Op(0), inst.space());
  if (place.kind != Place::Kind::kMemory) l.RefuseInstruction("works on a parameter");
  Value* value = l.Read(l.Op(l.OpCount() - 1), field->bytes == 8 ? ScalarType::kB64 : ScalarType::kB32);
  if (field->mod == Mod::kRank) value = l.b.CreateAdd(value, l.b.getInt32(1));  // counted from zero
  // What does not fit must not become something that does.
  if (field->bytes == 1)
    value =
        l.b.CreateTrunc(l.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, value, l.b.getInt32(0xff)), l.b.getInt8Ty());
  Value* address = l.b.CreateAdd(place.address, l.b.getInt64(field->offset));
  if (has_axis) {
    const std::uint64_t axes = (field->mod == Mod::kGlobalStride ? kMostTensorAxes - 1 : kMostTensorAxes);
    Value* axis =
        l.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, l.Read(l.Op(1), ScalarType::kU32), l.b.getInt32(axes - 1));
    address = l.b.CreateAdd(address, l.b.CreateMul(l.b.CreateZExt(axis, l.b.getInt64Ty()), l.b.getInt64(field->step)));
  }
  l.b.StoreMem(place.space, {value}, address, false);
}

// st.bulk [a], size, 0: zeroes size bytes, a multiple of 8.
void LiftBulkStore(Lifter& l, const Instruction& inst) {
  const Place place = Locate(l, l.Op(0), inst.space());
  if (place.kind != Place::Kind::kMemory) l.RefuseInstruction("works on a parameter");
  ForOffsets(l, l.Read(l.Op(1), ScalarType::kU64), 8, [&](Value* offset) {
    l.b.StoreMem(place.space, {l.b.getInt64(0)}, l.b.CreateAdd(place.address, offset), false);
  });
}

// st.async and red.async: the plain form, then the bytes are reported to the mbarrier given last.
void LiftAsyncTail(Lifter& l, const Instruction& inst, std::size_t values) {
  if (!HasText(inst, "mbarrier::complete_tx::bytes") && !inst.Has(Mod::kMbarrier)) return;
  const auto bytes = static_cast<std::uint32_t>(values * ptx::BytesOf(inst.type()));
  Mbarrier(l, MbarrierOp::kCompleteTx, MbarrierAddress(l, l.Op(l.OpCount() - 1), StateSpace::kShared),
           l.b.getInt32(bytes), nullptr);
}

// mapa: the place in CTA b's shared window that corresponds to a place in ours; getctarank: whose window it is.
template <>
void Lift<semantic::Mapa>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  const bool shared = inst.space() == StateSpace::kShared || inst.space() == StateSpace::kSharedCluster ||
                      inst.space() == StateSpace::kSharedCta;
  auto* i64 = l.b.getInt64Ty();
  const bool rank_of = inst.opcode == Opcode::kGetctarank;
  Value* address =
      l.Resize(l.Read(l.Op(1), l.Op(1).kind == OperandKind::kSymbol ? ScalarType::kB64 : type), i64, false);
  if (!l.module.options().clusters) {
    if (rank_of) return l.Write(l.Op(0), l.b.getInt32(0), ScalarType::kU32);
    return l.Write(l.Op(0), l.Resize(address, l.TypeOf(type), false), type);
  }
  // A variable stands for its offset; as a generic operand it must become an address first.
  const bool is_offset = shared || l.Op(1).kind == OperandKind::kSymbol;
  Value* offset = is_offset ? address : l.b.FromGeneric(Space::kShared, address);
  Value* stride = l.b.CreateZExt(l.b.SpecialReg(Special::kSharedStride), i64);
  Value* guarded = l.b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, stride, l.b.getInt64(1));
  if (rank_of)
    return l.Write(l.Op(0), l.b.CreateTrunc(l.b.CreateUDiv(offset, guarded), l.b.getInt32Ty()), ScalarType::kU32);
  Value* rank = l.b.CreateZExt(l.Read(l.Op(2), ScalarType::kU32), i64);
  Value* mapped = l.b.CreateAdd(l.b.CreateURem(offset, guarded), l.b.CreateMul(rank, stride));
  if (!shared) mapped = l.b.ToGeneric(Space::kShared, mapped);
  l.Write(l.Op(0), l.Resize(mapped, l.TypeOf(type), false), type);
}

}  // namespace gridloom::exec
