// Atomics of the warp form. Integer operations of 32 and 64 bits and f32/f64 addition run in line, lane after lane in
// lane order; lanes that add to one address without wanting the old value are summed first. Everything else, and every
// access that fails the window check, goes to the runtime helper.
#include "sim/exec/compiler/warp_atomics.h"

#include <llvm/IR/Intrinsics.h>

#include <optional>

#include "sim/exec/compiler/warp_blocks.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_places.h"
#include "sim/exec/compiler/warp_values.h"
#include "sim/exec/compiler/warp_window.h"
#include "sim/exec/contract/immediates.h"

namespace gridloom::exec {

using llvm::AtomicRMWInst;
using llvm::BasicBlock;
using llvm::Value;

namespace {

AtomicOp OpOf(std::uint64_t imm) { return static_cast<AtomicOp>(imm & 0xFF); }
AtomicType TypeOf(std::uint64_t imm) { return static_cast<AtomicType>(imm >> 8 & 0xFF); }

std::optional<AtomicRMWInst::BinOp> InlineOp(std::uint64_t imm) {
  const AtomicType type = TypeOf(imm);
  if (type == AtomicType::kF32 || type == AtomicType::kF64) {
    return OpOf(imm) == AtomicOp::kFAdd ? std::optional(AtomicRMWInst::FAdd) : std::nullopt;
  }
  if (type != AtomicType::kI32 && type != AtomicType::kI64) return std::nullopt;
  switch (OpOf(imm)) {
    case AtomicOp::kAdd: return AtomicRMWInst::Add;
    case AtomicOp::kMin: return AtomicRMWInst::Min;
    case AtomicOp::kMax: return AtomicRMWInst::Max;
    case AtomicOp::kUMin: return AtomicRMWInst::UMin;
    case AtomicOp::kUMax: return AtomicRMWInst::UMax;
    case AtomicOp::kAnd: return AtomicRMWInst::And;
    case AtomicOp::kOr: return AtomicRMWInst::Or;
    case AtomicOp::kXor: return AtomicRMWInst::Xor;
    case AtomicOp::kExch: return AtomicRMWInst::Xchg;
    default: return std::nullopt;
  }
}

bool HasInLineForm(std::uint64_t imm) {
  const bool integer = TypeOf(imm) == AtomicType::kI32 || TypeOf(imm) == AtomicType::kI64;
  return InlineOp(imm) || (OpOf(imm) == AtomicOp::kCas && integer);
}

/// `like`'s type with other elements.
llvm::Type* WithElements(llvm::Type* like, llvm::Type* element) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
}

/// f32, with subnormal numbers as zeros of their sign where `flushes` (i1) says so.
Value* Flushed(llvm::IRBuilder<>& b, Value* number, Value* flushes) {
  llvm::Type* type = WithElements(number->getType(), b.getInt32Ty());
  Value* bits = b.CreateBitCast(number, type);
  Value* no_exponent =
      b.CreateICmpEQ(b.CreateAnd(bits, llvm::ConstantInt::get(type, 0x7f800000)), llvm::ConstantInt::get(type, 0));
  Value* sign = b.CreateAnd(bits, llvm::ConstantInt::get(type, 0x80000000u));
  Value* flushed = b.CreateBitCast(b.CreateSelect(no_exponent, sign, bits), number->getType());
  return b.CreateSelect(flushes, flushed, number);
}

/// Sums of f32 and f64 with the bits of NaNs as helpers_atomic.cpp has them. `flushes`: i1, or null where nothing is
/// flushed.
Value* Sum(llvm::IRBuilder<>& b, Value* old, Value* operand, Value* flushes) {
  if (old->getType()->getScalarType()->isDoubleTy())
    return b.CreateFAdd(old, b.CreateSelect(b.CreateFCmpUNO(old, old), old, operand));
  if (flushes) {
    old = Flushed(b, old, flushes);
    operand = Flushed(b, operand, flushes);
  }
  Value* sum = b.CreateFAdd(old, operand);
  if (flushes) sum = Flushed(b, sum, flushes);
  const llvm::APFloat nan(llvm::APFloat::IEEEsingle(), llvm::APInt(32, 0x7fffffff));
  return b.CreateSelect(b.CreateFCmpUNO(sum, sum), llvm::ConstantFP::get(sum->getType(), nan), sum);
}

/// What the operation leaves, of scalars or lane by lane. `flushes`: as of Sum.
Value* Combine(llvm::IRBuilder<>& b, AtomicRMWInst::BinOp op, Value* old, Value* operand, Value* flushes) {
  switch (op) {
    case AtomicRMWInst::Add: return b.CreateAdd(old, operand);
    case AtomicRMWInst::FAdd: return Sum(b, old, operand, flushes);
    case AtomicRMWInst::And: return b.CreateAnd(old, operand);
    case AtomicRMWInst::Or: return b.CreateOr(old, operand);
    case AtomicRMWInst::Xor: return b.CreateXor(old, operand);
    case AtomicRMWInst::Min: return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, old, operand);
    case AtomicRMWInst::Max: return b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, old, operand);
    case AtomicRMWInst::UMin: return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, old, operand);
    case AtomicRMWInst::UMax: return b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, old, operand);
    default: return operand;  // exchange
  }
}

/// Locked operations of all lanes on neighbouring places, 16 bytes at a time: one cmpxchg16b does four lanes of 32 bits
/// in half the time of four locked instructions (2.8 against 6.0 ns a lane). Several lanes in one step are as good as
/// one after the other.
struct AtomicRow {
  AtomicRMWInst::BinOp op;
  llvm::Type* element;
  Value* place;     ///< of the first lane, a multiple of kBytes (ptr)
  Value* operands;  ///< of the lanes (ptr)
  Value* out;       ///< where the old values go (ptr), or null
  Value* flushes;   ///< as of Sum
  static constexpr unsigned kBytes = 16;
};

/// Leaves the builder behind the last step.
void EmitAtomicRow(llvm::IRBuilder<>& b, const AtomicRow& row) {
  const unsigned lanes = AtomicRow::kBytes * 8 / row.element->getScalarSizeInBits();
  auto* piece = llvm::FixedVectorType::get(row.element, lanes);
  llvm::Type* whole = b.getIntNTy(AtomicRow::kBytes * 8);
  const llvm::Align align(AtomicRow::kBytes);
  BasicBlock* before = b.GetInsertBlock();
  const auto block = [&](const char* name) { return BasicBlock::Create(b.getContext(), name, before->getParent()); };
  BasicBlock *next_piece = block("atomic_piece"), *attempt = block("atomic_attempt"), *made = block("atomic_made"),
             *done = block("atomic_row_done");
  b.CreateBr(next_piece);

  b.SetInsertPoint(next_piece);
  auto* number = b.CreatePHI(b.getInt64Ty(), 2);
  number->addIncoming(b.getInt64(0), before);
  const auto at = [&](Value* pointer) { return b.CreateGEP(piece, pointer, number); };
  Value* place = at(row.place);
  // What is read here need not be of one piece: the exchange finds that out.
  Value* seen = b.CreateBitCast(b.CreateAlignedLoad(piece, place, align, /*isVolatile=*/true), whole);
  Value* operand = b.CreateAlignedLoad(piece, at(row.operands), align);
  b.CreateBr(attempt);

  b.SetInsertPoint(attempt);
  auto* old = b.CreatePHI(whole, 2);
  old->addIncoming(seen, next_piece);
  Value* wanted = b.CreateBitCast(Combine(b, row.op, b.CreateBitCast(old, piece), operand, row.flushes), whole);
  Value* pair = b.CreateAtomicCmpXchg(place, old, wanted, align, llvm::AtomicOrdering::SequentiallyConsistent,
                                      llvm::AtomicOrdering::SequentiallyConsistent);
  old->addIncoming(b.CreateExtractValue(pair, 0), attempt);
  b.CreateCondBr(b.CreateExtractValue(pair, 1), made, attempt);

  b.SetInsertPoint(made);
  if (row.out) b.CreateAlignedStore(b.CreateBitCast(old, piece), at(row.out), align);
  Value* following = b.CreateAdd(number, b.getInt64(1));
  number->addIncoming(following, made);
  b.CreateCondBr(b.CreateICmpEQ(following, b.getInt64(kWarpSize / lanes)), done, next_piece);
  b.SetInsertPoint(done);
}

/// A locked sum of floats, which no processor has: tried until nobody came between. Returns the old value and leaves
/// the builder behind it.
Value* EmitLockedSum(llvm::IRBuilder<>& b, Value* place, Value* operand, Value* flushes) {
  llvm::Type* number = operand->getType();
  llvm::Type* word = b.getIntNTy(number->getScalarSizeInBits());
  const llvm::Align align(number->getScalarSizeInBits() / 8);
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* attempt = BasicBlock::Create(b.getContext(), "atomic_attempt", before->getParent());
  BasicBlock* done = BasicBlock::Create(b.getContext(), "atomic_sum", before->getParent());
  Value* seen = b.CreateAlignedLoad(word, place, align, /*isVolatile=*/true);
  b.CreateBr(attempt);

  b.SetInsertPoint(attempt);
  auto* old = b.CreatePHI(word, 2);
  old->addIncoming(seen, before);
  Value* wanted = b.CreateBitCast(Sum(b, b.CreateBitCast(old, number), operand, flushes), word);
  Value* pair = b.CreateAtomicCmpXchg(place, old, wanted, align, llvm::AtomicOrdering::SequentiallyConsistent,
                                      llvm::AtomicOrdering::SequentiallyConsistent);
  old->addIncoming(b.CreateExtractValue(pair, 0), attempt);
  b.CreateCondBr(b.CreateExtractValue(pair, 1), done, attempt);

  b.SetInsertPoint(done);
  return b.CreateBitCast(old, number);
}

/// The vector reduction that equals applying `op` for every lane, and its neutral element.
struct Reduction {
  llvm::Intrinsic::ID intrinsic;
  std::uint64_t neutral;
};

std::optional<Reduction> ReductionOf(AtomicRMWInst::BinOp op, unsigned bits) {
  const std::uint64_t all = bits == 64 ? ~std::uint64_t{0} : 0xFFFFFFFFu;
  switch (op) {
    case AtomicRMWInst::Add: return Reduction{llvm::Intrinsic::vector_reduce_add, 0};
    case AtomicRMWInst::And: return Reduction{llvm::Intrinsic::vector_reduce_and, all};
    case AtomicRMWInst::Or: return Reduction{llvm::Intrinsic::vector_reduce_or, 0};
    case AtomicRMWInst::Xor: return Reduction{llvm::Intrinsic::vector_reduce_xor, 0};
    case AtomicRMWInst::Min: return Reduction{llvm::Intrinsic::vector_reduce_smin, all >> 1};
    case AtomicRMWInst::Max: return Reduction{llvm::Intrinsic::vector_reduce_smax, (all >> 1) + 1};
    case AtomicRMWInst::UMin: return Reduction{llvm::Intrinsic::vector_reduce_umin, all};
    case AtomicRMWInst::UMax: return Reduction{llvm::Intrinsic::vector_reduce_umax, 0};
    default: return std::nullopt;
  }
}

}  // namespace

/// Every lane's operation by the runtime helper, which writes no old values when `out` is a null pointer.
void AtomicEmitter::SlowAtomic(const AtomicSite& site) {
  Value* host = windows_.HostLanes(values_.Lanes(site.address), site.access, site.window);
  Value* out = site.out ? site.out : llvm::ConstantPointerNull::get(b_.getPtrTy());
  Value* addresses = w_.SpillLanes(1, host);
  Value* b_buffer = w_.SpillLanes(2, site.b);
  Value* c_buffer = w_.SpillLanes(3, site.c);
  calls_.CallHelper(Helper::kAtomic, w_.mask, site.access.line,
                    site.imm | static_cast<std::uint64_t>(site.access.site) << 32,
                    {out, addresses, b_buffer, c_buffer});
}

/// Whether an operation at `pointer` flushes (i1), or null if it never does. All of a row are in the same memory.
Value* AtomicEmitter::FlushesAt(std::uint64_t imm, Space space, Value* pointer) {
  if (FlushOfAtomic(imm) == AtomicFlush::kNever || space == Space::kShared) return nullptr;
  if (space == Space::kGlobal) return b_.getTrue();
  const Window shared = windows_.WindowOf(Space::kShared);
  return b_.CreateICmpUGE(b_.CreateSub(b_.CreatePtrToInt(pointer, b_.getInt64Ty()), shared.host), shared.limit);
}

/// One lane's operation at `pointer`. A CTA stays on one host thread, so its own shared memory needs no lock; with
/// clusters other CTAs reach it, too.
Value* AtomicEmitter::LaneAtomic(std::uint64_t imm, Space space, Value* pointer, Value* b, Value* c) {
  const bool locked = space != Space::kShared || module_.options.clusters;
  const llvm::Align align(b->getType()->getScalarSizeInBits() / 8);
  if (OpOf(imm) == AtomicOp::kCas) {
    if (locked) {
      Value* pair = b_.CreateAtomicCmpXchg(pointer, b, c, align, llvm::AtomicOrdering::SequentiallyConsistent,
                                           llvm::AtomicOrdering::SequentiallyConsistent);
      return b_.CreateExtractValue(pair, 0);
    }
    Value* old = b_.CreateAlignedLoad(b->getType(), pointer, align);
    b_.CreateAlignedStore(b_.CreateSelect(b_.CreateICmpEQ(old, b), c, old), pointer, align);
    return old;
  }
  const AtomicRMWInst::BinOp op = *InlineOp(imm);
  Value* flushes = FlushesAt(imm, space, pointer);
  if (locked && op == AtomicRMWInst::FAdd) return EmitLockedSum(b_, pointer, b, flushes);
  if (locked) return b_.CreateAtomicRMW(op, pointer, b, align, llvm::AtomicOrdering::SequentiallyConsistent);
  Value* old = b_.CreateAlignedLoad(b->getType(), pointer, align);
  b_.CreateAlignedStore(Combine(b_, op, old, b, flushes), pointer, align);
  return old;
}

/// The operation for every lane of a whole warp in turn, two in a round: one load brings the indices of both. (More
/// lanes a round are slower: their accesses get in each other's way.)
void AtomicEmitter::AtomicPairs(const AtomicSite& site, const Irregular& at) {
  llvm::Type* type = site.b->getType()->getScalarType();
  Value* indices = places_.SpillPointers(at, site.access, site.window);
  Value* b_buffer = site.same_b ? nullptr : w_.SpillLanes(2, site.b);
  ForEachNumber(w_, kWarpSize / 2, [&](Value* pair) {
    Value* both = b_.CreateLoad(b_.getInt64Ty(), b_.CreateGEP(b_.getInt64Ty(), indices, pair));
    for (unsigned lane = 0; lane < 2; ++lane) {
      Value* index = b_.CreateTrunc(lane == 0 ? both : b_.CreateLShr(both, 32), b_.getInt32Ty());
      const auto element = [&](Value* buffer) {
        return b_.CreateConstGEP1_32(type, b_.CreateGEP(type, buffer, b_.CreateShl(pair, 1)), lane);
      };
      Value* operand = site.same_b ? site.same_b : b_.CreateLoad(type, element(b_buffer));
      Value* old = LaneAtomic(site.imm, site.access.space, places_.PointerAt(at, site.window, index), operand, nullptr);
      if (site.out) b_.CreateStore(old, element(site.out));
    }
  });
}

/// The operation for every active lane in turn.
void AtomicEmitter::AtomicLoop(const AtomicSite& site, const Irregular& at) {
  const bool unlocked = site.access.space == Space::kShared && !module_.options.clusters;
  if (AllLanesRun(w_) && at.index && unlocked && OpOf(site.imm) != AtomicOp::kCas) return AtomicPairs(site, at);
  llvm::Type* type = site.b->getType()->getScalarType();
  Value* pointers = places_.SpillPointers(at, site.access, site.window);
  Value* b_buffer = site.same_b ? nullptr : w_.SpillLanes(2, site.b);
  Value* c_buffer = OpOf(site.imm) == AtomicOp::kCas ? w_.SpillLanes(3, site.c) : nullptr;
  ForEachActiveLane(w_, [&](Value* lane) {
    const auto element = [&](Value* buffer) { return b_.CreateLoad(type, b_.CreateGEP(type, buffer, lane)); };
    Value* old = LaneAtomic(site.imm, site.access.space, places_.LanePointer(at, pointers, site.window, lane),
                            site.same_b ? site.same_b : element(b_buffer), c_buffer ? element(c_buffer) : nullptr);
    if (site.out) b_.CreateStore(old, b_.CreateGEP(type, site.out, lane));
  });
}

/// Lanes that add to one address without wanting the old value are summed first. False: the operation is none of these.
bool AtomicEmitter::EmitReduced(const AtomicSite& site) {
  const std::optional<AtomicRMWInst::BinOp> op = InlineOp(site.imm);
  if (!op || site.out || !values_.ShapeOf(site.address).uniform()) return false;
  const std::optional<Reduction> reduction = ReductionOf(*op, site.access.bytes * 8);
  if (!reduction) return false;
  Value* values = w_.divergent ? b_.CreateSelect(w_.MaskLanes(), site.b,
                                                 llvm::ConstantInt::get(site.b->getType(), reduction->neutral))
                               : site.b;
  Value* sum = b_.CreateIntrinsic(reduction->intrinsic, {values->getType()}, {values});
  Value* base = values_.Base(site.address);
  Value* host = site.window.host ? b_.CreateAdd(base, site.window.host) : base;
  LaneAtomic(site.imm, site.access.space, b_.CreateIntToPtr(host, b_.getPtrTy()), sum, nullptr);
  return true;
}

/// The lanes' places where they are known to be neighbours, and the machine can do several at once.
std::optional<Linear> AtomicEmitter::RowOf(const AtomicSite& site) {
  const bool locked = site.access.space != Space::kShared || module_.options.clusters;
  const bool has_pairs = module_.pieces <= 2;  // cmpxchg16b: every processor with AVX2 has it
  if (!InlineOp(site.imm) || !locked || !has_pairs || w_.divergent || w_.half_warp() ||
      values_.ShapeOf(site.address).uniform())
    return std::nullopt;
  const std::optional<Linear> row = values_.AsLinear(site.address);
  for (unsigned lane = 0; row && lane < kWarpSize; ++lane)
    if (row->pattern[lane] - row->pattern[0] != static_cast<std::int64_t>(lane) * site.access.bytes)
      return std::nullopt;
  return row;
}

/// i1: nobody has to be asked.
Value* AtomicEmitter::InRange(const AtomicSite& site, const Irregular& at) {
  if (module_.memcheck() && site.access.space == Space::kShared) {
    const bool fills = OpOf(site.imm) == AtomicOp::kExch && !site.out;  // needs no value before it
    return windows_.SharedChecked(site.address, site.access, fills ? AccessKind::kWrite : AccessKind::kAtomic);
  }
  if (windows_.ProvenInRange(site.address, site.access)) return b_.getTrue();
  if (!values_.ShapeOf(site.address).uniform()) return places_.IrregularInRange(at, site.access, site.window);
  return windows_.LinearInRange({values_.Base(site.address), LanePattern{}, nullptr}, site.access, site.window);
}

/// The operation at places that are in range.
void AtomicEmitter::EmitChecked(const AtomicSite& site, const Irregular& at, const std::optional<Linear>& row) {
  if (EmitReduced(site)) return;
  if (!row) return AtomicLoop(site, at);
  // Rows of 16 bytes have to begin at a multiple of that.
  Value* host = b_.CreateAdd(row->base, b_.getInt64(static_cast<std::uint64_t>(row->pattern[0])));
  if (site.window.host) host = b_.CreateAdd(host, site.window.host);
  Value* fits = b_.CreateICmpEQ(b_.CreateAnd(host, b_.getInt64(AtomicRow::kBytes - 1)), b_.getInt64(0));
  if (row->valid) fits = b_.CreateAnd(fits, row->valid);
  BasicBlock *together = w_.NewBlock("atomic_row"), *apart = w_.NewBlock("atomic_lanes");
  BasicBlock* after = w_.NewBlock("atomic_after");
  b_.CreateCondBr(fits, together, apart, w_.Likely());
  b_.SetInsertPoint(together);
  Value* operands = w_.SpillLanes(2, site.b);
  Value* place = b_.CreateIntToPtr(host, b_.getPtrTy());
  EmitAtomicRow(b_, {*InlineOp(site.imm), site.b->getType()->getScalarType(), place, operands, site.out,
                     FlushesAt(site.imm, site.access.space, place)});
  b_.CreateBr(after);
  b_.SetInsertPoint(apart);
  AtomicLoop(site, at);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

void AtomicEmitter::EmitInLine(const AtomicSite& site) {
  const Irregular at = places_.IrregularOf(site.address, site.access);
  const std::optional<Linear> row = RowOf(site);
  Value* ok = InRange(site, at);
  if (w_.divergent) w_.MaskLanes();
  BasicBlock* fast = w_.NewBlock("atomic");
  BasicBlock* slow = w_.NewBlock("atomic_slow");
  BasicBlock* done = w_.NewBlock("atomic_done");
  b_.CreateCondBr(ok, fast, slow, w_.Likely());
  {
    Scope scope(w_);
    b_.SetInsertPoint(fast);
    EmitChecked(site, at, row);
    b_.CreateBr(done);
  }
  {
    Scope scope(w_);
    b_.SetInsertPoint(slow);
    SlowAtomic(site);
    b_.CreateBr(done);
  }
  b_.SetInsertPoint(done);
}

void AtomicEmitter::EmitAtomic(llvm::CallInst& call, const MarkerInfo& info) {
  const unsigned bytes = info.element->getScalarSizeInBits() / 8;
  AtomicSite site;
  site.imm = info.imm;
  site.access = {info.element, 1, bytes, bytes, bytes, info.space, true, call.getArgOperand(3)};
  site.window = windows_.WindowOf(call, site.access);
  site.address = call.getArgOperand(0);
  if (!call.use_empty()) site.out = w_.Scratch(0, kWarpSize * bytes);
  site.b = values_.Lanes(call.getArgOperand(1));
  if (values_.ShapeOf(call.getArgOperand(1)).uniform()) site.same_b = values_.Base(call.getArgOperand(1));
  site.c = values_.Lanes(call.getArgOperand(2));
  CompilerFence(b_);
  // An atomic whose old value is used may be a lock, a ticket or a flag: it orders. Counting alone does not.
  if (module_.memcheck() && site.out) calls_.CheckOrder(kCheckOrderCta);
  if (HasInLineForm(info.imm) && info.space != Space::kLocal) EmitInLine(site);
  else SlowAtomic(site);
  CompilerFence(b_);
  if (site.out) values_.Define(&call, w_.ReloadLanes(site.out, WarpType(call.getType())));
}

}  // namespace gridloom::exec
