// Asynchronous copies and mbarriers (PTX ISA, 9.7.9.25 to 9.7.9.30, 9.7.13.15). Copies happen at once, in order: groups
// are complete when they are committed, and transaction bytes are reported when the copy is made.
#include <cstddef>
#include <iterator>

#include "sim/exec/compiler/lifter.h"
#include "sim/exec/contract/async_copy_immediates.h"
#include "sim/exec/contract/tensor_map.h"

namespace gridloom::exec {

namespace {

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

}  // namespace

Value* FunctionLifter::Mbarrier(MbarrierOp op, Value* address, Value* operand, Value* second) {
  auto* i64 = b_.getInt64Ty();
  return b_.CallHelper(Helper::kMbarrier, {i64},
                       {address, Resize(operand, i64, false), second ? Resize(second, i64, false) : b_.getInt64(0)},
                       static_cast<std::uint64_t>(op));
}

// Host address of an mbarrier operand: shared or generic.
Value* FunctionLifter::MbarrierAddress(const Operand& operand, StateSpace space) {
  const Place place = Locate(operand, space);
  if (place.kind != Place::Kind::kMemory) RefuseInstruction("works on a parameter");
  return place.space == Space::kShared ? b_.ToGeneric(Space::kShared, place.address) : place.address;
}

template <>
void FunctionLifter::Lift<semantic::Mbarrier>(const Instruction& inst) {
  Value* one = b_.getInt32(1);
  auto space = [&] { return inst.space(); };
  if (inst.Has(Mod::kPendingCount)) {
    Value* count = Mbarrier(MbarrierOp::kPendingCount, b_.getInt64(0), Read(Op(1), ScalarType::kB64), nullptr);
    return Write(Op(0), b_.CreateTrunc(count, b_.getInt32Ty()), ScalarType::kU32);
  }
  if (inst.Has(Mod::kInit)) {
    Mbarrier(MbarrierOp::kInit, MbarrierAddress(Op(0), space()), Read(Op(1), ScalarType::kU32), nullptr);
    return;
  }
  if (inst.Has(Mod::kInval)) {
    Mbarrier(MbarrierOp::kInvalidate, MbarrierAddress(Op(0), space()), one, nullptr);
    return;
  }
  if (inst.Has(Mod::kTestWait) || inst.Has(Mod::kTryWait)) {
    const bool parity = inst.Has(Mod::kParity);
    Value* operand = Read(Op(2), parity ? ScalarType::kU32 : ScalarType::kB64);
    Value* over = Mbarrier(parity ? MbarrierOp::kTestParity : MbarrierOp::kTestState, MbarrierAddress(Op(1), space()),
                           operand, nullptr);
    return Write(Op(0), b_.CreateICmpNE(over, b_.getInt64(0)), ScalarType::kPred);
  }
  const bool drop = inst.Has(Mod::kArriveDrop);
  const bool arrives = drop || inst.Has(Mod::kArrive);
  const bool expects = inst.Has(Mod::kExpectTx);
  if (!arrives) {
    if (!expects && !inst.Has(Mod::kCompleteTx)) RefuseInstruction();
    const MbarrierOp op = expects ? MbarrierOp::kExpectTx : MbarrierOp::kCompleteTx;
    Mbarrier(op, MbarrierAddress(Op(0), space()), Read(Op(1), ScalarType::kU32), nullptr);
    return;
  }
  // arrive state, [a] {, count}; remote ones have no state.
  const std::size_t at = Op(0).kind == OperandKind::kAddress ? 0 : 1;
  Value* second = at + 1 < OpCount() ? Read(Op(at + 1), ScalarType::kU32) : one;
  Value* address = MbarrierAddress(Op(at), space());
  Value* state = nullptr;
  if (expects) {
    state = Mbarrier(drop ? MbarrierOp::kArriveDropExpectTx : MbarrierOp::kArriveExpectTx, address, one, second);
  } else {
    state = Mbarrier(drop ? MbarrierOp::kArriveDrop : MbarrierOp::kArrive, address, second, nullptr);
  }
  if (at == 1) Write(Op(0), state, ScalarType::kB64);
}

// clusterlaunchcontrol.try_cancel … [response], [mbarrier]: asks for the place of a cluster that has not begun, which
// then never does. A response is 1 in its lowest word where a place was given, then the first CTA's x, y, z.
template <>
void FunctionLifter::Lift<semantic::ClusterLaunchControl>(const Instruction& inst) {
  if (HasText(inst, "try_cancel")) return LiftTryCancel(inst);
  const std::vector<Value*> response = SplitLanes(Read(Op(1), ScalarType::kB128), 4);
  if (HasText(inst, "is_canceled"))
    return Write(Op(0), b_.CreateICmpNE(response[0], b_.getInt32(0)), ScalarType::kPred);
  const std::vector<Operand> to = Components(Op(0));
  const std::size_t first = HasText(inst, "get_first_ctaid::z") ? 3 : HasText(inst, "get_first_ctaid::y") ? 2 : 1;
  for (std::size_t i = 0; i < to.size(); ++i) {
    // The ISA does not say what the last part of a v4 is. It reads as 0 here.
    Value* const part = first + i < response.size() ? response[first + i] : b_.getInt32(0);
    Write(to[i], part, ScalarType::kB32);
  }
}

void FunctionLifter::LiftTryCancel(const Instruction& inst) {
  constexpr std::uint32_t kResponseBytes = 16;
  Value* const response = AddressOf(Op(0), StateSpace::kShared);
  Value* const barrier = AddressOf(Op(1), StateSpace::kShared);
  auto* const i64 = b_.getInt64Ty();
  Value* const words = b_.CallHelper(Helper::kTryCancel, {i64, i64}, {});
  Value *const low = b_.CreateExtractValue(words, 0), *const high = b_.CreateExtractValue(words, 1);
  const auto answer = [&](Value* to, Value* of) {
    b_.StoreMem(Space::kShared, {low, high}, to, false);
    if (module_.options().memcheck) BeginCopy(b_, to, b_.getInt64(kResponseBytes), b_.ToGeneric(Space::kShared, of));
    CompleteBytes(of, b_.getInt32(kResponseBytes));
  };
  if (!HasText(inst, "multicast::cluster::all")) return answer(response, barrier);
  Value* const ctas = ReadSpecial("%cluster_nctarank");
  Value* const all = b_.CreateSub(b_.CreateShl(b_.getInt32(1), ctas), b_.getInt32(1));
  ForMembers(b_.CreateTrunc(all, b_.getInt16Ty()), [&](auto place) { answer(place(response), place(barrier)); });
}

// cp.async and relatives.
template <>
void FunctionLifter::Lift<semantic::Cp>(const Instruction& inst) {
  const bool bulk = inst.Has(Mod::kBulk);
  if (inst.Has(Mod::kCommitGroup) || inst.Has(Mod::kWaitGroup) || inst.Has(Mod::kWaitAll)) {
    if (!bulk && module_.options().memcheck) OrderCopies(b_, inst);
    return;
  }
  if (bulk && (HasText(inst, "commit_group") || HasText(inst, "wait_group") || HasText(inst, "prefetch"))) return;
  if (inst.Has(Mod::kTensor)) return LiftTensorCopy(inst);
  if (!inst.Has(Mod::kAsync)) RefuseInstruction();
  if (inst.Has(Mod::kMbarrier) && inst.Has(Mod::kArrive)) {
    if (module_.options().memcheck)
      b_.CallHelper(Helper::kCheckOrder, {}, {MbarrierAddress(Op(0), inst.space())}, kCopiesToMbarrier);
    // Without .noinc the barrier expects one arrival more, which follows at once: nothing changes.
    if (inst.Has(Mod::kNoinc))
      Mbarrier(MbarrierOp::kArrive, MbarrierAddress(Op(0), inst.space()), b_.getInt32(1), nullptr);
    return;
  }
  if (bulk) return LiftBulkCopy(inst);
  LiftSmallCopy(inst);
}

// cp.async.{ca,cg}.shared.global [dst], [src], cp-size {, src-size | ignore-src} {, policy}: bytes beyond src-size are
// zero.
void FunctionLifter::LiftSmallCopy(const Instruction& inst) {
  const std::uint64_t size = Op(2).int_literal.value;
  if (Op(2).kind != OperandKind::kInt || (size != 4 && size != 8 && size != 16))
    RefuseInstruction("needs a size of 4, 8 or 16");
  Value* to = AddressOf(Op(0), StateSpace::kShared);
  Value* from = AddressOf(Op(1), StateSpace::kGlobal);
  const bool has_policy = inst.Has(Mod::kL2CacheHint);
  const bool has_source_size = OpCount() > 3 + (has_policy ? 1u : 0u);
  auto* i32 = b_.getInt32Ty();
  const unsigned words = static_cast<unsigned>(size / 4);
  auto copy_all = [&] {
    Value* loaded = b_.LoadMem(Space::kGlobal, i32, words, from, false);
    llvm::SmallVector<Value*, 4> values;
    for (unsigned i = 0; i < words; ++i) values.push_back(words == 1 ? loaded : b_.CreateExtractValue(loaded, i));
    b_.StoreMem(Space::kShared, values, to, false);
  };
  if (!has_source_size) {
    copy_all();
    if (module_.options().memcheck) BeginCopy(b_, to, b_.getInt64(size), nullptr);
    return;
  }
  const bool predicate = Op(3).kind == OperandKind::kRegister && Op(3).variable->type == ScalarType::kPred;
  Value* count =
      predicate ? b_.CreateSelect(ReadPredicate(Op(3)), b_.getInt32(0), b_.getInt32(static_cast<std::uint32_t>(size)))
                : Read(Op(3), ScalarType::kU32);
  auto* full = NewBlock("full");
  auto* partial = NewBlock("partial");
  auto* done = NewBlock("done");
  b_.CreateCondBr(b_.CreateICmpUGE(count, b_.getInt32(static_cast<std::uint32_t>(size))), full, partial);
  b_.SetInsertPoint(full);
  copy_all();
  b_.CreateBr(done);
  b_.SetInsertPoint(partial);
  b_.StoreMem(Space::kShared, llvm::SmallVector<Value*, 4>(words, b_.getInt32(0)), to, false);
  CopyBytes(Space::kShared, to, Space::kGlobal, from, b_.CreateZExt(count, b_.getInt64Ty()), 1);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  if (module_.options().memcheck) BeginCopy(b_, to, b_.getInt64(size), nullptr);
}

// for (offset = 0; offset < end; offset += step) body(offset)
template <typename Body>
void FunctionLifter::ForOffsets(Value* end, std::uint64_t step, Body body) {
  auto* before = b_.GetInsertBlock();
  auto* head = NewBlock("loop");
  auto* inside = NewBlock("loop.body");
  auto* after = NewBlock("loop.end");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* offset = b_.CreatePHI(b_.getInt64Ty(), 2);
  offset->addIncoming(b_.getInt64(0), before);
  b_.CreateCondBr(b_.CreateICmpULT(offset, end), inside, after);
  b_.SetInsertPoint(inside);
  body(offset);
  offset->addIncoming(b_.CreateAdd(offset, b_.getInt64(step)), b_.GetInsertBlock());
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
}

// Copies `bytes`, a multiple of `step` (1 or 16).
void FunctionLifter::CopyBytes(Space to_space, Value* to, Space from_space, Value* from, Value* bytes, unsigned step) {
  ForOffsets(bytes, step, [&](Value* offset) {
    llvm::Type* element = step == 1 ? static_cast<llvm::Type*>(b_.getInt8Ty()) : b_.getInt64Ty();
    const unsigned count = step == 1 ? 1 : 2;
    Value* loaded = b_.LoadMem(from_space, element, count, b_.CreateAdd(from, offset), false);
    llvm::SmallVector<Value*, 2> values;
    for (unsigned i = 0; i < count; ++i) values.push_back(count == 1 ? loaded : b_.CreateExtractValue(loaded, i));
    b_.StoreMem(to_space, values, b_.CreateAdd(to, offset), false);
  });
}

/// The state spaces of a bulk copy: destination, source.
std::vector<StateSpace> FunctionLifter::CopySpaces(const Instruction& inst) const {
  std::vector<StateSpace> spaces;
  for (const ptx::Modifier& modifier : inst.modifiers) {
    if (modifier.mod == Mod::kSpace) spaces.push_back(*ptx::SpaceFromText(modifier.text));
  }
  if (spaces.size() < 2) RefuseInstruction("names no two state spaces");
  return spaces;
}

// cp.async.bulk.dst.src.completion {.multicast::cluster} [dst], [src], size {, [mbar]} {, mask}: multiples of 16 bytes.
// cp.reduce.async.bulk….op.type combines element by element instead.
void FunctionLifter::LiftBulkCopy(const Instruction& inst) {
  const std::vector<StateSpace> spaces = CopySpaces(inst);
  const Space to_space = SpaceOf(spaces[0]), from_space = SpaceOf(spaces[1]);
  Value* to = AddressOf(Op(0), spaces[0]);
  Value* from = AddressOf(Op(1), spaces[1]);
  Value* size = Read(Op(2), ScalarType::kU32);
  Value* bytes = b_.CreateZExt(size, b_.getInt64Ty());
  const bool reports = inst.Has(Mod::kMbarrier) || HasText(inst, "mbarrier::complete_tx::bytes");
  if (HasText(inst, "multicast::cluster")) {
    Value* barrier = AddressOf(Op(3), StateSpace::kShared);
    return MulticastCopy(to, from_space, from, bytes, barrier, Read(Op(4), ScalarType::kU16));
  }
  const bool has_ends = HasText(inst, "ignore_oob");
  if (inst.Has(Mod::kReduce)) {
    ReduceBytes(inst, to_space, to, from_space, from, bytes);
  } else if (HasText(inst, "cp_mask")) {
    CopyMasked(to, from, bytes, Read(Op(OpCount() - 1), ScalarType::kB16));
  } else if (has_ends) {
    CopyWithin(to, from, bytes, b_.CreateZExt(Read(Op(3), ScalarType::kU32), b_.getInt64Ty()),
               b_.CreateZExt(Read(Op(4), ScalarType::kU32), b_.getInt64Ty()));
  } else {
    CopyBytes(to_space, to, from_space, from, bytes, 16);
  }
  if (!reports) return;
  Value* const barrier = MbarrierAddress(Op(has_ends ? 5 : 3), StateSpace::kShared);
  if (module_.options().memcheck && to_space == Space::kShared) BeginCopy(b_, to, bytes, barrier);
  Mbarrier(MbarrierOp::kCompleteTx, barrier, size, nullptr);
}

// .cp_mask, from shared to global memory: of each 16 bytes those whose bit is set.
void FunctionLifter::CopyMasked(Value* to, Value* from, Value* bytes, Value* mask) {
  Value* const bits = b_.CreateZExt(mask, b_.getInt64Ty());
  ForOffsets(bytes, 1, [&](Value* offset) {
    auto* chosen = NewBlock("byte");
    auto* next = NewBlock("next.byte");
    b_.CreateCondBr(b_.CreateTrunc(b_.CreateLShr(bits, b_.CreateAnd(offset, b_.getInt64(15))), b_.getInt1Ty()), chosen,
                    next);
    b_.SetInsertPoint(chosen);
    Value* const loaded = b_.LoadMem(Space::kShared, b_.getInt8Ty(), 1, b_.CreateAdd(from, offset), false);
    b_.StoreMem(Space::kGlobal, {loaded}, b_.CreateAdd(to, offset), false);
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
  });
}

// .ignore_oob: the first `left` and last `right` bytes, up to 15 each, may lie outside of the memory, and what comes of
// them is anything. They are not read and not written. Between the first and the last 16 bytes nothing is left out.
void FunctionLifter::CopyWithin(Value* to, Value* from, Value* bytes, Value* left, Value* right) {
  const auto less = [&](Value* a, Value* b) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, a, b); };
  const auto copy = [&](Value* begin, Value* end, unsigned step) {
    CopyBytes(Space::kShared, b_.CreateAdd(to, begin), Space::kGlobal, b_.CreateAdd(from, begin), less(end, begin),
              step);
  };
  Value *zero = b_.getInt64(0), *chunk = b_.getInt64(16), *end = less(bytes, right);
  Value* head =
      b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, bytes, b_.CreateSelect(b_.CreateICmpNE(left, zero), chunk, zero));
  Value* tail = less(bytes, b_.CreateSelect(b_.CreateICmpNE(right, zero), chunk, zero));
  copy(left, b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, head, end), 1);
  copy(head, tail, 16);
  copy(b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, head, tail), end, 1);
}

// Element-wise atomics, as the ISA defines bulk reductions.
void FunctionLifter::ReduceBytes(const Instruction& inst, Space to_space, Value* to, Space from_space, Value* from,
                                 Value* bytes) {
  const ScalarType type = inst.type();
  if (type == ScalarType::kNone) RefuseInstruction("has no type");
  const AtomicOp op = AtomicOpOf(inst, type);
  const AtomicFlush flush = AtomicFlushOf(inst, op, type);
  ForOffsets(bytes, ptx::BytesOf(type), [&](Value* offset) {
    Value* value = b_.LoadMem(from_space, TypeOf(type), 1, b_.CreateAdd(from, offset), false);
    b_.Atomic(to_space, op, AtomicTypeOf(type), b_.CreateAdd(to, offset), value, nullptr, true, flush);
  });
}

template <typename Body>
void FunctionLifter::ForMembers(Value* mask, Body body) {
  constexpr std::uint64_t kMaxClusterCtas = 16;
  auto* i64 = b_.getInt64Ty();
  const bool clusters = module_.options().clusters;
  Value* stride = clusters ? b_.CreateZExt(b_.SpecialReg(Special::kSharedStride), i64) : b_.getInt64(0);
  Value* guarded = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, stride, b_.getInt64(1));
  Value* members = b_.CreateZExt(mask, i64);
  ForOffsets(b_.getInt64(clusters ? kMaxClusterCtas : 1), 1, [&](Value* rank) {
    auto* chosen = NewBlock("member");
    auto* next = NewBlock("next.member");
    b_.CreateCondBr(b_.CreateTrunc(b_.CreateLShr(members, rank), b_.getInt1Ty()), chosen, next);
    b_.SetInsertPoint(chosen);
    body([&](Value* offset) {
      return clusters ? b_.CreateAdd(b_.CreateURem(offset, guarded), b_.CreateMul(rank, stride)) : offset;
    });
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
  });
}

/// The mbarrier at that shared address hears of `bytes` (i64).
void FunctionLifter::CompleteBytes(Value* barrier, Value* bytes) {
  Mbarrier(MbarrierOp::kCompleteTx, b_.ToGeneric(Space::kShared, barrier), bytes, nullptr);
}

// The same place in the shared window of every CTA named by the mask; its barrier hears of it there.
void FunctionLifter::MulticastCopy(Value* to, Space from_space, Value* from, Value* bytes, Value* barrier,
                                   Value* mask) {
  ForMembers(mask, [&](auto place) {
    CopyBytes(Space::kShared, place(to), from_space, from, bytes, 16);
    if (module_.options().memcheck) BeginCopy(b_, place(to), bytes, b_.ToGeneric(Space::kShared, place(barrier)));
    CompleteBytes(place(barrier), bytes);
  });
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

}  // namespace

// cp.async.bulk.tensor.dim.shared::cluster.global{.tile}.mbarrier::complete_tx::bytes{.multicast::cluster}
//   [shared], [map, {coordinates}], [mbar] {, mask} {, policy}
// cp{.reduce}.async.bulk.tensor.dim.global.shared::cta{.op}{.tile}.bulk_group [map, {coordinates}], [shared] {, policy}
void FunctionLifter::LiftTensorCopy(const Instruction& inst) {
  const std::vector<StateSpace> spaces = CopySpaces(inst);
  const bool load = spaces[1] == StateSpace::kGlobal;
  for (const Mod mode :
       {Mod::kIm2col, Mod::kIm2colW, Mod::kIm2colW128, Mod::kIm2colNoOffs, Mod::kTileGather4, Mod::kTileScatter4}) {
    if (inst.Has(mode)) RefuseInstruction();
  }
  TensorCopyImm imm{.op = load ? TensorCopyOp::kLoad : TensorCopyOp::kStore, .rank = RankOf(inst)};
  if (inst.Has(Mod::kReduce)) {
    const auto* const found =
        std::ranges::find_if(kReductions, [&](const NamedReduction& row) { return inst.Has(row.mod); });
    if (found == std::end(kReductions)) RefuseInstruction();
    imm.op = TensorCopyOp::kReduce;
    imm.reduction = found->reduction;
  }
  const Operand& tensor = Op(load ? 1 : 0);
  const bool named = tensor.kind == OperandKind::kAddress && tensor.address->elements.size() == 1;
  if (!named || imm.rank == 0 || Components(tensor.address->elements[0]).size() != imm.rank)
    RefuseInstruction("names no box of a tensor");
  llvm::SmallVector<Value*, 5> coordinates;
  for (const Operand& coordinate : Components(tensor.address->elements[0]))
    coordinates.push_back(Read(coordinate, ScalarType::kS32));
  Value* map = HostAddress(Locate(tensor, StateSpace::kNone));
  Value* shared = AddressOf(Op(load ? 0 : 1), StateSpace::kShared);
  if (!load) {
    TensorCopy(imm, coordinates, map, shared);
    return;
  }
  Value* barrier = AddressOf(Op(2), StateSpace::kShared);
  const auto copy = [&](Value* to, Value* tells) {
    Value* const bytes = TensorCopy(imm, coordinates, map, to);
    if (module_.options().memcheck) BeginCopy(b_, to, bytes, b_.ToGeneric(Space::kShared, tells));
    CompleteBytes(tells, bytes);
  };
  if (!inst.Has(Mod::kMulticastCluster)) return copy(shared, barrier);
  ForMembers(Read(Op(3), ScalarType::kU16), [&](auto place) { copy(place(shared), place(barrier)); });
}

/// Returns the bytes of the box (i64).
Value* FunctionLifter::TensorCopy(const TensorCopyImm& imm, llvm::ArrayRef<Value*> coordinates, Value* map,
                                  Value* shared) {
  llvm::SmallVector<Value*, 7> inputs{map, b_.ToGeneric(Space::kShared, shared)};
  inputs.append(coordinates.begin(), coordinates.end());
  Value* bytes = b_.CallHelper(Helper::kTensorCopy, {b_.getInt64Ty()}, inputs, PackImm(imm));
  RecordTensorCopy(imm, coordinates, map, shared, bytes);
  return bytes;
}

/// In records a tensor copy is what a plain bulk copy is: 16 bytes at a time, what lies outside of the tensor left out.
void FunctionLifter::RecordTensorCopy(const TensorCopyImm& imm, llvm::ArrayRef<Value*> coordinates, Value* map,
                                      Value* shared, Value* bytes) {
  if (b_.record == Recording::kNone) return;
  constexpr unsigned kBytes = 16;
  const bool load = imm.op == TensorCopyOp::kLoad;
  ForOffsets(bytes, kBytes, [&](Value* offset) {
    llvm::SmallVector<Value*, 7> inputs{map, offset};
    inputs.append(coordinates.begin(), coordinates.end());
    Value* place = b_.CallHelper(Helper::kTensorPlace, {b_.getInt64Ty()}, inputs, PackImm(imm));
    auto* inside = NewBlock("inside");
    auto* next = NewBlock("next.chunk");
    b_.CreateCondBr(b_.CreateICmpNE(place, b_.getInt64(0)), inside, next);
    b_.SetInsertPoint(inside);
    if (load) b_.RecordAccess(AccessKind::kRead, Space::kGlobal, kBytes, place);
    b_.RecordAccess(load ? AccessKind::kWrite : AccessKind::kRead, Space::kShared, kBytes,
                    b_.CreateAdd(shared, offset));
    if (!load)
      b_.RecordAccess(imm.op == TensorCopyOp::kStore ? AccessKind::kWrite : AccessKind::kAtomic, Space::kGlobal, kBytes,
                      place);
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
  });
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
template <>
void FunctionLifter::Lift<semantic::Tensormap>(const Instruction& inst) {
  if (inst.Has(Mod::kCpFenceproxy)) {
    const std::vector<StateSpace> spaces = CopySpaces(inst);
    return CopyBytes(SpaceOf(spaces[0]), AddressOf(Op(0), spaces[0]), SpaceOf(spaces[1]), AddressOf(Op(1), spaces[1]),
                     b_.getInt64(sizeof(TensorMap)), 16);
  }
  const auto* const field = std::ranges::find_if(kMapFields, [&](const MapField& row) { return inst.Has(row.mod); });
  if (field == std::end(kMapFields) || !inst.Has(Mod::kTile)) RefuseInstruction();
  const bool has_axis = OpCount() > 2;
  if (has_axis != (field->step != 0)) RefuseInstruction("has operands of another field");
  const Place place = Locate(Op(0), inst.space());
  if (place.kind != Place::Kind::kMemory) RefuseInstruction("works on a parameter");
  Value* value = Read(Op(OpCount() - 1), field->bytes == 8 ? ScalarType::kB64 : ScalarType::kB32);
  if (field->mod == Mod::kRank) value = b_.CreateAdd(value, b_.getInt32(1));  // counted from zero
  // What does not fit must not become something that does.
  if (field->bytes == 1)
    value = b_.CreateTrunc(b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, value, b_.getInt32(0xff)), b_.getInt8Ty());
  Value* address = b_.CreateAdd(place.address, b_.getInt64(field->offset));
  if (has_axis) {
    const std::uint64_t axes = (field->mod == Mod::kGlobalStride ? kMostTensorAxes - 1 : kMostTensorAxes);
    Value* axis = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, Read(Op(1), ScalarType::kU32), b_.getInt32(axes - 1));
    address = b_.CreateAdd(address, b_.CreateMul(b_.CreateZExt(axis, b_.getInt64Ty()), b_.getInt64(field->step)));
  }
  b_.StoreMem(place.space, {value}, address, false);
}

// st.bulk [a], size, 0: zeroes size bytes, a multiple of 8.
void FunctionLifter::LiftBulkStore(const Instruction& inst) {
  const Place place = Locate(Op(0), inst.space());
  if (place.kind != Place::Kind::kMemory) RefuseInstruction("works on a parameter");
  ForOffsets(Read(Op(1), ScalarType::kU64), 8, [&](Value* offset) {
    b_.StoreMem(place.space, {b_.getInt64(0)}, b_.CreateAdd(place.address, offset), false);
  });
}

// st.async and red.async: the plain form, then the bytes are reported to the mbarrier given last.
void FunctionLifter::LiftAsyncTail(const Instruction& inst, std::size_t values) {
  if (!HasText(inst, "mbarrier::complete_tx::bytes") && !inst.Has(Mod::kMbarrier)) return;
  const auto bytes = static_cast<std::uint32_t>(values * ptx::BytesOf(inst.type()));
  Mbarrier(MbarrierOp::kCompleteTx, MbarrierAddress(Op(OpCount() - 1), StateSpace::kShared), b_.getInt32(bytes),
           nullptr);
}

// mapa: the place in CTA b's shared window that corresponds to a place in ours; getctarank: whose window it is.
template <>
void FunctionLifter::Lift<semantic::Mapa>(const Instruction& inst) {
  const ScalarType type = inst.type();
  const bool shared = inst.space() == StateSpace::kShared || inst.space() == StateSpace::kSharedCluster ||
                      inst.space() == StateSpace::kSharedCta;
  auto* i64 = b_.getInt64Ty();
  const bool rank_of = inst.opcode == Opcode::kGetctarank;
  Value* address = Resize(Read(Op(1), Op(1).kind == OperandKind::kSymbol ? ScalarType::kB64 : type), i64, false);
  if (!module_.options().clusters) {
    if (rank_of) return Write(Op(0), b_.getInt32(0), ScalarType::kU32);
    return Write(Op(0), Resize(address, TypeOf(type), false), type);
  }
  // A variable stands for its offset; as a generic operand it must become an address first.
  const bool is_offset = shared || Op(1).kind == OperandKind::kSymbol;
  Value* offset = is_offset ? address : b_.FromGeneric(Space::kShared, address);
  Value* stride = b_.CreateZExt(b_.SpecialReg(Special::kSharedStride), i64);
  Value* guarded = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, stride, b_.getInt64(1));
  if (rank_of) return Write(Op(0), b_.CreateTrunc(b_.CreateUDiv(offset, guarded), b_.getInt32Ty()), ScalarType::kU32);
  Value* rank = b_.CreateZExt(Read(Op(2), ScalarType::kU32), i64);
  Value* mapped = b_.CreateAdd(b_.CreateURem(offset, guarded), b_.CreateMul(rank, stride));
  if (!shared) mapped = b_.ToGeneric(Space::kShared, mapped);
  Write(Op(0), Resize(mapped, TypeOf(type), false), type);
}

}  // namespace gridloom::exec
