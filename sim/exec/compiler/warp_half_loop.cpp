// Half warps: with 16 lanes or fewer left in a loop that lanes leave one by one (warp_lane_loop.cpp), those are brought
// together in half a warp, and one gather of 16 does what two do for a whole one. The loop is emitted once more, at
// that width.
#include <llvm/IR/IntrinsicsX86.h>

#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

namespace {

/// With so few lanes left each runs the rest alone.
constexpr unsigned kFewOfHalf = 4;

llvm::SmallVector<int, 64> Steps(unsigned first, unsigned step, unsigned count) {
  llvm::SmallVector<int, 64> numbers;
  for (unsigned i = 0; i < count; ++i) numbers.push_back(static_cast<int>(first + i * step));
  return numbers;
}

/// Of double words (<n x i64> or the like): `each` on all low words and on all high ones.
template <typename Each>
Value* ByWords(llvm::IRBuilder<>& b, Value* lanes, Each each) {
  auto* type = llvm::cast<llvm::FixedVectorType>(lanes->getType());
  const unsigned count = type->getNumElements();
  Value* words = b.CreateBitCast(lanes, llvm::FixedVectorType::get(b.getInt32Ty(), count * 2));
  Value* low = each(b.CreateShuffleVector(words, Steps(0, 2, count)));
  Value* high = each(b.CreateShuffleVector(words, Steps(1, 2, count)));
  const unsigned made = llvm::cast<llvm::FixedVectorType>(low->getType())->getNumElements();
  llvm::SmallVector<int, 64> both;
  for (unsigned i = 0; i < made; ++i) both.append({static_cast<int>(i), static_cast<int>(i + made)});
  return b.CreateBitCast(b.CreateShuffleVector(low, high, both),
                         llvm::FixedVectorType::get(type->getElementType(), made));
}

/// `each`, which maps words to words, on lanes of any plain type.
template <typename Each>
Value* AsWords(llvm::IRBuilder<>& b, Value* lanes, Each each) {
  llvm::Type* element = lanes->getType()->getScalarType();
  if (element->getScalarSizeInBits() == 64) return ByWords(b, lanes, each);
  const auto with = [](Value* vector, llvm::Type* type) {
    return llvm::FixedVectorType::get(type, llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
  };
  llvm::Type* number = b.getIntNTy(element->getScalarSizeInBits());
  Value* moved = each(b.CreateZExt(b.CreateBitCast(lanes, with(lanes, number)), with(lanes, b.getInt32Ty())));
  return b.CreateBitCast(b.CreateTrunc(moved, with(moved, number)), with(moved, element));
}

Value* HalfOf(llvm::IRBuilder<>& b, Value* lanes, unsigned half) {
  return b.CreateShuffleVector(lanes, Steps(half * kHalfWarp, 1, kHalfWarp));
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// Bringing lanes together
// ---------------------------------------------------------------------------------------------------------------------

/// The numbers of the lanes in `mask`, 16 or fewer, in order: <16 x i32>.
Value* WarpFunction::PlacesOf(Value* mask) {
  auto* words = llvm::FixedVectorType::get(b_.getInt32Ty(), kHalfWarp);
  auto* bits = llvm::FixedVectorType::get(b_.getInt1Ty(), kHalfWarp);
  const auto mask_of = [&](Value* lanes) { return b_.CreateBitCast(b_.CreateTrunc(lanes, b_.getInt16Ty()), bits); };
  Value* numbers[2];
  for (unsigned half = 0; half < 2; ++half) {
    llvm::SmallVector<llvm::Constant*, kHalfWarp> own;
    for (unsigned lane = 0; lane < kHalfWarp; ++lane) own.push_back(b_.getInt32(half * kHalfWarp + lane));
    Value* active = mask_of(b_.CreateLShr(mask, half * kHalfWarp));
    numbers[half] = b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_compress, {words},
                                       {llvm::ConstantVector::get(own), llvm::Constant::getNullValue(words), active});
  }
  Value* low = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, b_.CreateAnd(mask, b_.getInt32(0xffff)));
  Value* behind = mask_of(b_.CreateShl(b_.getInt32(0xffff), low));
  return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_expand, {words}, {numbers[1], numbers[0], behind});
}

/// From here on code is emitted for the active lanes, 16 or fewer, as lanes 0, 1, ... of a half warp.
void WarpFunction::BeginHalfWarp() {
  places_ = PlacesOf(mask_);
  packed_ = mask_;
  Value* count = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, mask_);
  mask_ = b_.CreateSub(b_.CreateShl(b_.getInt32(1), count), b_.getInt32(1));
  mask_lanes_ = nullptr;
  width_ = kHalfWarp;
}

/// The half warp's lanes among those of a whole warp.
Value* WarpFunction::Pack(Value* lanes) {
  return AsWords(b_, lanes, [&](Value* words) {
    return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_d_512, {},
                              {HalfOf(b_, words, 0), places_, HalfOf(b_, words, 1)});
  });
}

/// The lanes of the half warp where the whole one has them; others are 0.
Value* WarpFunction::Unpack(Value* packed) {
  return AsWords(b_, packed, [&](Value* words) {
    llvm::Type* type = words->getType();
    const auto expand = [&](Value* data, Value* mask) {
      Value* lanes = b_.CreateBitCast(b_.CreateTrunc(mask, b_.getInt16Ty()),
                                      llvm::FixedVectorType::get(b_.getInt1Ty(), kHalfWarp));
      return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_expand, {type},
                                {data, llvm::Constant::getNullValue(type), lanes});
    };
    llvm::SmallVector<llvm::Constant*, kHalfWarp> numbers;
    for (unsigned lane = 0; lane < kHalfWarp; ++lane) numbers.push_back(b_.getInt32(lane));
    Value* in_low = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, b_.CreateAnd(packed_, b_.getInt32(0xffff)));
    Value* from = b_.CreateAdd(b_.CreateVectorSplat(kHalfWarp, in_low), llvm::ConstantVector::get(numbers));
    Value* behind = b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_si_512, {}, {words, from});
    return b_.CreateShuffleVector(expand(words, packed_), expand(behind, b_.CreateLShr(packed_, kHalfWarp)),
                                  Steps(0, 1, kWarpSize));
  });
}

/// A mask of the half warp as one of the whole one.
Value* WarpFunction::UnpackMask(Value* mask) {
  return b_.CreateIntrinsic(llvm::Intrinsic::x86_bmi_pdep_32, {}, {mask, packed_});
}

/// Begins a half warp with the lanes of what the loop uses.
void WarpFunction::PackLiveIn(const llvm::Loop& loop, const LiveIn& live_in) {
  std::vector<std::pair<Value*, Value*>> lanes;
  const auto bring = [&](Value* value) {
    if (ShapeOf(value).vector()) lanes.emplace_back(value, Lanes(value));
    const Value* index = ShapeOf(value).kind == ShapeKind::kIndexed ? ShapeOf(value).index : nullptr;
    const auto* made = llvm::dyn_cast_or_null<llvm::Instruction>(index);
    if (made && !loop.contains(made) && ShapeOf(index).vector())
      lanes.emplace_back(const_cast<Value*>(index), Lanes(const_cast<Value*>(index)));
  };
  for (Value* value : live_in.lanes) bring(value);
  for (BasicBlock* block : loop.blocks()) {
    for (llvm::Instruction& instruction : *block) {
      if (ShapeOf(&instruction).kind == ShapeKind::kIndexed) bring(&instruction);
    }
  }
  lanes_cache_.clear();
  BeginHalfWarp();
  for (const auto& [value, whole] : lanes) {
    if (!lanes_cache_.contains(value)) lanes_cache_[value] = Pack(whole);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The loop
// ---------------------------------------------------------------------------------------------------------------------

/// An iteration has one way through, but for exits. Others could run as half a warp, too, but where an if is part of
/// the loop (BFS) it lost 10 % against a whole warp and lanes one by one.
bool WarpFunction::RunsAsHalf(const llvm::Loop& loop) {
  return llvm::all_of(loop.blocks(), [&](const BasicBlock* block) {
    return llvm::count_if(llvm::successors(block), [&](const BasicBlock* next) { return loop.contains(next); }) == 1;
  });
}

/// One iteration for the lanes of `active`: returns those that go on, never none. Where lanes leave, `results` takes
/// what they take along; `left` is where the last of them did.
Value* WarpFunction::EmitHalfIteration(const llvm::Loop& loop, Value* active, std::vector<Value*>& results,
                                       const std::function<BasicBlock*()>& left) {
  BasicBlock* exit = loop.getUniqueExitBlock();
  const auto find = [&](Value* value) { return ShapeOf(value).vector() ? Lanes(value) : Base(value); };
  for (BasicBlock* block : order_.blocks) {
    if (!loop.contains(block)) continue;
    mask_ = active;
    mask_lanes_ = nullptr;
    for (llvm::Instruction& instruction : *block) {
      if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction)) {
        if (block != loop.getHeader())
          (ShapeOf(phi).vector() ? lanes_cache_ : base_cache_)[phi] = find(phi->getIncomingValue(0));
      } else if (!instruction.isTerminator() && !IsEntryValue(&instruction)) {
        EmitInstruction(instruction);
      }
    }
    const auto* branch = llvm::cast<llvm::BranchInst>(block->getTerminator());
    if (!branch->isConditional()) continue;
    Value* condition = branch->getCondition();
    Value* taken = ShapeOf(condition).uniform() ? b_.CreateSelect(Base(condition), active, b_.getInt32(0))
                                                : b_.CreateAnd(ToBits(Lanes(condition)), active);
    Value* leaving = branch->getSuccessor(0) == exit ? taken : b_.CreateXor(taken, active);
    active = b_.CreateXor(leaving, active);
    std::size_t number = 0;
    for (llvm::PHINode& phi : exit->phis()) {
      Value*& result = results[number++];
      result = b_.CreateSelect(ToLaneMask(leaving), Lanes(phi.getIncomingValueForBlock(block)), result);
    }
    BasicBlock* next = NewBlock("half_stays");
    Value* none = b_.CreateICmpEQ(active, b_.getInt32(0));
    BasicBlock* done = left();
    b_.CreateCondBr(none, done, next);
    b_.SetInsertPoint(next);
  }
  return active;
}

/// The loop for the half warp, from its header until all lanes have left it: what each takes along, for each phi of the
/// exit.
std::vector<Value*> WarpFunction::EmitHalfLoop(const llvm::Loop& loop, const LiveIn& live_in) {
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* head = NewBlock("half_head");
  BasicBlock* in_turn = NewBlock("in_turn");
  BasicBlock* body = NewBlock("half_body");
  BasicBlock* done = NewBlock("half_done");
  std::vector<std::pair<llvm::PHINode*, llvm::PHINode*>> carried;
  std::vector<Value*> starts, results;
  for (llvm::PHINode& phi : loop.getHeader()->phis())
    starts.push_back(ShapeOf(&phi).vector() ? Lanes(&phi) : Base(&phi));
  b_.CreateBr(head);

  b_.SetInsertPoint(head);
  auto* active = b_.CreatePHI(b_.getInt32Ty(), 2);
  active->addIncoming(mask_, before);
  for (llvm::PHINode& phi : loop.getHeader()->phis()) {
    Value* start = starts[carried.size()];
    auto* copy = b_.CreatePHI(start->getType(), 2);
    copy->addIncoming(start, before);
    (ShapeOf(&phi).vector() ? lanes_cache_ : base_cache_)[&phi] = copy;
    carried.emplace_back(&phi, copy);
  }
  std::vector<llvm::PHINode*> left;
  for (llvm::PHINode& phi : loop.getUniqueExitBlock()->phis()) {
    left.push_back(b_.CreatePHI(LanesType(phi.getType()), 2));
    left.back()->addIncoming(llvm::Constant::getNullValue(left.back()->getType()), before);
    results.push_back(left.back());
  }
  mask_ = active;
  mask_lanes_ = nullptr;
  Value* count = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, active);
  b_.CreateCondBr(b_.CreateICmpULE(count, b_.getInt32(kFewOfHalf)), in_turn, body);

  std::vector<std::pair<BasicBlock*, std::vector<Value*>>> ends;
  {
    const Scope scope(*this);
    b_.SetInsertPoint(in_turn);
    std::vector<Value*> rest = EmitLanesInTurn(loop, live_in, results);
    ends.emplace_back(b_.GetInsertBlock(), std::move(rest));
    b_.CreateBr(done);
  }
  {
    const Scope scope(*this);
    b_.SetInsertPoint(body);
    const auto leave = [&] {
      ends.emplace_back(b_.GetInsertBlock(), results);
      return done;
    };
    Value* next = EmitHalfIteration(loop, active, results, leave);
    // As CopyPhis: integers of lanes that have left may run on, numbers that could become subnormal do not.
    std::vector<Value*> nexts;
    for (const auto& [phi, copy] : carried) {
      Value* incoming = phi->getIncomingValueForBlock(loop.getLoopLatch());
      Value* value = ShapeOf(phi).vector() ? Lanes(incoming) : Base(incoming);
      if (ShapeOf(phi).vector() && !phi->getType()->isIntegerTy())
        value = b_.CreateSelect(ToLaneMask(next), value, copy);
      nexts.push_back(value);
    }
    active->addIncoming(next, b_.GetInsertBlock());
    for (std::size_t i = 0; i < carried.size(); ++i) carried[i].second->addIncoming(nexts[i], b_.GetInsertBlock());
    for (std::size_t i = 0; i < left.size(); ++i) left[i]->addIncoming(results[i], b_.GetInsertBlock());
    b_.CreateBr(head);
  }
  b_.SetInsertPoint(done);
  for (std::size_t i = 0; i < left.size(); ++i) {
    auto* phi = b_.CreatePHI(left[i]->getType(), static_cast<unsigned>(ends.size()));
    for (const auto& [from, values] : ends) phi->addIncoming(values[i], from);
    results[i] = phi;
  }
  return results;
}

}  // namespace gridloom::exec
