// Loads and stores whose lanes follow no pattern known at compile time. Where the address is built on a 32-bit index,
// check and gather work on that index (two vectors of 16 instead of four of 8); rows that turn out consecutive are
// loaded as such; what a lane loads is fetched in one piece and taken apart afterwards.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

namespace {

llvm::SmallVector<int, 128> Range(unsigned first, unsigned count) {
  llvm::SmallVector<int, 128> numbers;
  for (unsigned i = 0; i < count; ++i) numbers.push_back(static_cast<int>(first + i));
  return numbers;
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// The check
// ---------------------------------------------------------------------------------------------------------------------

WarpFunction::Irregular WarpFunction::IrregularOf(Value* address, const Access& access) {
  const Shape shape = ShapeOf(address);
  const bool indexed = shape.kind == ShapeKind::kIndexed && access.space != Space::kLocal && shape.scale > 0 &&
                       shape.pattern == LanePattern{};
  if (indexed) {
    // The hardware scales an index by up to 8; the rest of the scale is multiplied in. Words around bytes need byte
    // offsets.
    const unsigned shift =
        access.bytes < 4
            ? 0
            : std::min(3u, static_cast<unsigned>(llvm::countr_zero(static_cast<std::uint64_t>(shape.scale))));
    const std::int64_t factor = shape.scale >> shift;
    const bool aligned =
        shape.scale % access.align == 0 || llvm::isPowerOf2_64(static_cast<std::uint64_t>(shape.scale));
    if (aligned && factor < (1 << 20))
      return {address, nullptr, Lanes(const_cast<Value*>(shape.index)), factor, shift, shape.index_signed};
  }
  return {address, Lanes(address), nullptr, 1, 0, false};
}

/// The lowest index inside the window (i32), and how many steps of the alignment lie above it (i32, 0: none is inside).
/// With several bases the index must be inside for each: the lowest base bounds it from below, the highest one from
/// above.
WarpFunction::IndexBounds WarpFunction::MakeBounds(const Irregular& at, llvm::ArrayRef<Value*> bases,
                                                   const Access& access, const Window& window) {
  const auto i64 = [&](std::int64_t value) { return b_.getInt64(static_cast<std::uint64_t>(value)); };
  const std::int64_t scale = at.factor << at.shift;
  const unsigned rotate = BoundsRotation(at, access);
  const auto floor_divide = [&](Value* value) -> Value* {
    if (llvm::isPowerOf2_64(static_cast<std::uint64_t>(scale)))
      return b_.CreateAShr(value, llvm::Log2_64(static_cast<std::uint64_t>(scale)));
    Value* quotient = b_.CreateSDiv(value, i64(scale));
    Value* rest = b_.CreateSub(value, b_.CreateMul(quotient, i64(scale)));
    return b_.CreateAdd(quotient, b_.CreateAShr(rest, 63));
  };
  Value *near = nullptr, *far = nullptr, *low_bits = nullptr;
  for (Value* base : bases) {
    Value* offset = window.low ? b_.CreateSub(base, window.low) : base;
    near = near ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, near, offset) : offset;
    far = far ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, far, offset) : offset;
    low_bits = low_bits ? b_.CreateOr(low_bits, offset) : offset;
  }
  Value* lowest = b_.CreateNeg(floor_divide(near));
  Value* highest = floor_divide(b_.CreateSub(b_.CreateSub(window.limit, i64(access.bytes)), far));
  // index * factor must stay inside 32 bits; an unsigned index inside these bounds is not negative as a signed one.
  const std::int64_t most = (std::numeric_limits<std::int32_t>::max() - 7) / at.factor >> rotate << rotate;
  lowest = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, lowest, i64(at.index_signed ? -most : 0));
  highest = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, highest, i64(most));
  Value* steps = b_.CreateAdd(b_.CreateAShr(b_.CreateSub(highest, lowest), rotate), i64(1));
  Value* none = b_.CreateICmpSLT(highest, lowest);
  if (access.align > 1)
    none = b_.CreateOr(none, b_.CreateICmpNE(b_.CreateAnd(low_bits, i64(access.align - 1)), i64(0)));
  steps = b_.CreateSelect(none, i64(0), steps);
  return {b_.CreateTrunc(lowest, b_.getInt32Ty()), b_.CreateTrunc(steps, b_.getInt32Ty())};
}

/// The bits of an index that tell whether its address is aligned.
unsigned WarpFunction::BoundsRotation(const Irregular& at, const Access& access) {
  const std::int64_t scale = at.factor << at.shift;
  return scale % access.align == 0 ? 0
                                   : std::countr_zero(access.align) - std::countr_zero(static_cast<unsigned>(scale));
}

/// Bounds for all places, made at the entry where that is possible.
WarpFunction::IndexBounds WarpFunction::BoundsOf(llvm::ArrayRef<Irregular> places, const Access& access,
                                                 const Window& window) {
  llvm::SmallVector<Value*, 4> bases;
  if (window.changes || !llvm::all_of(places, [&](const Irregular& at) { return IsEntryValue(at.address); })) {
    for (const Irregular& at : places) bases.push_back(Base(at.address));
    return MakeBounds(places.front(), bases, access, window);
  }
  std::string key = "bounds" + std::to_string(access.bytes) + "." + std::to_string(access.align);
  for (const Irregular& at : places) key += "." + std::to_string(reinterpret_cast<std::uintptr_t>(at.address));
  Value* low = AtEntry(key, [&] {
    for (const Irregular& at : places) bases.push_back(EntryBase(llvm::cast<llvm::Instruction>(at.address)));
    const IndexBounds made = MakeBounds(places.front(), bases, access, window);
    entry_values_[key + "steps"] = made.steps;
    return made.low;
  });
  return {low, entry_values_[key + "steps"]};
}

/// i1: at all places, which have an index in common where there are several, every active lane is inside the window and
/// aligned.
Value* WarpFunction::IrregularInRange(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window) {
  const Irregular& at = places.front();
  Value* outside = nullptr;
  if (at.index) {
    const IndexBounds bounds = BoundsOf(places, access, window);
    Value* steps = b_.CreateSub(at.index, Splat(bounds.low));
    if (const unsigned rotate = BoundsRotation(at, access); rotate != 0) {
      steps = b_.CreateIntrinsic(llvm::Intrinsic::fshr, {steps->getType()}, {steps, steps, Splat(b_.getInt32(rotate))});
    }
    outside = b_.CreateICmpUGE(steps, Splat(bounds.steps));
  } else {
    Value* offsets = window.low ? b_.CreateSub(at.lanes, Splat(window.low)) : at.lanes;
    const unsigned shift = std::countr_zero(access.align);
    if (shift != 0) {
      offsets = b_.CreateIntrinsic(llvm::Intrinsic::fshr, {offsets->getType()},
                                   {offsets, offsets, Splat(b_.getInt64(shift))});
    }
    outside = b_.CreateICmpUGE(offsets, Splat(ScaledLimit(window, shift, access.bytes - access.align)));
  }
  if (divergent_) outside = b_.CreateAnd(outside, MaskLanes());
  return b_.CreateICmpEQ(ToBits(outside), b_.getInt32(0));
}

// ---------------------------------------------------------------------------------------------------------------------
// Addresses
// ---------------------------------------------------------------------------------------------------------------------

/// The index in units of 1 << shift bytes: <32 x i32>, signed.
Value* WarpFunction::ScaledIndex(const Irregular& at) {
  return at.factor == 1 ? at.index : b_.CreateMul(at.index, Splat(b_.getInt32(static_cast<std::uint32_t>(at.factor))));
}

/// What the index counts from.
Value* WarpFunction::HostBase(const Irregular& at, const Window& window) {
  Value* base = Base(at.address);
  return b_.CreateIntToPtr(window.host ? b_.CreateAdd(base, window.host) : base, b_.getPtrTy());
}

/// <32 x ptr>: the lanes' host addresses.
Value* WarpFunction::HostPointers(const Irregular& at, const Access& access, const Window& window) {
  llvm::Type* pointers = LanesType(b_.getPtrTy());
  if (!at.index) return b_.CreateIntToPtr(HostLanes(at.lanes, access, window), pointers);
  Value* wide = b_.CreateSExt(ScaledIndex(at), LanesType(b_.getInt64Ty()));
  return b_.CreateGEP(b_.getIntNTy(8u << at.shift), HostBase(at, window), wide);
}

// ---------------------------------------------------------------------------------------------------------------------
// Loads
// ---------------------------------------------------------------------------------------------------------------------

/// Bytes and halfwords: gathers the aligned words around them (they never cross a page) and shifts.
Value* WarpFunction::GatherSmall(const Irregular& at, const Access& access, const Window& window) {
  llvm::Type* words = LanesType(b_.getInt32Ty());
  Value* pointers = nullptr;
  Value* byte = nullptr;
  if (at.index) {
    Value* base = Base(at.address);
    if (window.host) base = b_.CreateAdd(base, window.host);
    Value* offset =
        b_.CreateAdd(ScaledIndex(at), Splat(b_.CreateTrunc(b_.CreateAnd(base, b_.getInt64(3)), b_.getInt32Ty())));
    byte = b_.CreateAnd(offset, Splat(b_.getInt32(3)));
    Value* word = b_.CreateAnd(offset, Splat(b_.getInt32(~3u)));
    Value* start = b_.CreateIntToPtr(b_.CreateAnd(base, b_.getInt64(~std::uint64_t{3})), b_.getPtrTy());
    pointers = b_.CreateGEP(b_.getInt8Ty(), start, b_.CreateSExt(word, LanesType(b_.getInt64Ty())));
  } else {
    Value* host = HostLanes(at.lanes, access, window);
    byte = b_.CreateTrunc(b_.CreateAnd(host, Splat(b_.getInt64(3))), words);
    pointers = b_.CreateIntToPtr(b_.CreateAnd(host, Splat(b_.getInt64(~std::uint64_t{3}))), LanesType(b_.getPtrTy()));
  }
  Value* word = b_.CreateMaskedGather(words, pointers, llvm::Align(4), ActiveLanes());
  return b_.CreateTrunc(b_.CreateLShr(word, b_.CreateShl(byte, Splat(b_.getInt32(3)))),
                        LanesType(b_.getIntNTy(access.bytes * 8)));
}

/// <32 * count x T>: what each lane loads, lane by lane.
Value* WarpFunction::GatherWhole(const Irregular& at, const Access& access, const Window& window) {
  if (access.bytes < 4) return GatherSmall(at, access, window);
  if (half_warp() && at.index && access.bytes == 4) {
    // LLVM would move the widening of an index out of the loop, and gather 8 lanes at a time.
    auto* words = llvm::FixedVectorType::get(b_.getInt32Ty(), kHalfWarp);
    return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_gather_dpi_512, {},
                              {llvm::Constant::getNullValue(words), HostBase(at, window), ScaledIndex(at), MaskLanes(),
                               b_.getInt32(1u << at.shift)});
  }
  return b_.CreateMaskedGather(LanesType(b_.getIntNTy(access.bytes * 8)), HostPointers(at, access, window),
                               llvm::Align(access.align), ActiveLanes());
}

/// Where each lane of some places loads 16 bytes in one piece: the start of a place, and the lanes' offsets, which
/// places have in common.
WarpFunction::PieceLoads WarpFunction::PiecesAt(llvm::ArrayRef<Irregular> places, const Access& access,
                                                const Window& window) {
  const Irregular& first = places.front();
  Value* offsets = first.index ? ScaledIndex(first) : HostLanes(first.lanes, access, window);
  if (divergent_) {
    // Lanes that are off load what an active one does.
    Value* active = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, mask_, b_.getTrue());
    offsets = b_.CreateSelect(MaskLanes(), offsets, Splat(b_.CreateExtractElement(offsets, active)));
  }
  // Through memory: a reload costs less than taking an element out of a vector. Volatile, or LLVM would undo that.
  PieceLoads pieces{
      .offsets = SpillLanes(5, offsets), .offset_type = offsets->getType()->getScalarType(), .shift = first.shift};
  pieces.piece = llvm::FixedVectorType::get(b_.getIntNTy(access.element_bytes * 8), access.count);
  pieces.align = llvm::Align(access.align);
  for (const Irregular& at : places) {
    if (!at.index) break;
    Value* base = Base(at.address);
    pieces.starts.push_back(b_.CreateIntToPtr(window.host ? b_.CreateAdd(base, window.host) : base, b_.getPtrTy()));
  }
  return pieces;
}

Value* WarpFunction::OffsetOf(const PieceLoads& pieces, unsigned lane) {
  Value* slot = b_.CreateConstInBoundsGEP1_64(pieces.offset_type, pieces.offsets, lane);
  Value* offset = b_.CreateAlignedLoad(pieces.offset_type, slot, llvm::Align(4), true);
  return pieces.starts.empty() ? offset : b_.CreateSExt(offset, b_.getInt64Ty());
}

Value* WarpFunction::LoadPiece(const PieceLoads& pieces, std::size_t place, Value* offset) {
  Value* pointer = pieces.starts.empty() ? b_.CreateIntToPtr(offset, b_.getPtrTy())
                                         : b_.CreateGEP(b_.getIntNTy(8u << pieces.shift), pieces.starts[place], offset);
  return b_.CreateAlignedLoad(pieces.piece, pointer, pieces.align);
}

/// Four pieces side by side.
Value* WarpFunction::LoadFour(const PieceLoads& pieces, std::size_t place, llvm::ArrayRef<Value*> offsets) {
  Value* low = Concatenate(LoadPiece(pieces, place, offsets[0]), LoadPiece(pieces, place, offsets[1]));
  return Concatenate(low, Concatenate(LoadPiece(pieces, place, offsets[2]), LoadPiece(pieces, place, offsets[3])));
}

/// Four words a lane and place: one load each, then 4 x 4 transpositions. An eighth of the loads that four gathers
/// make.
std::vector<Value*> WarpFunction::LoadQuads(llvm::ArrayRef<Irregular> places, const Access& access,
                                            const Window& window) {
  const PieceLoads pieces = PiecesAt(places, access, window);
  // Rows of 4 x 4 matrices: row j of a half holds lanes j, j+4, j+8, j+12. All places a row at a time, so that few
  // offsets are live.
  std::vector<Value*> parts(places.size() * 4);
  for (unsigned half = 0; half < width_ / kHalfWarp; ++half) {
    std::vector<std::array<Value*, 4>> rows(places.size());
    for (unsigned row = 0; row < 4; ++row) {
      Value* at_lane[4];
      for (unsigned i = 0; i < 4; ++i) at_lane[i] = OffsetOf(pieces, half * kHalfWarp + row + 4 * i);
      for (std::size_t place = 0; place < places.size(); ++place) rows[place][row] = LoadFour(pieces, place, at_lane);
    }
    for (std::size_t place = 0; place < places.size(); ++place) {
      const std::array<Value*, 4> columns = Transpose(rows[place]);
      for (unsigned part = 0; part < 4; ++part) {
        Value*& whole = parts[place * 4 + part];
        whole = half == 0 ? columns[part] : Concatenate(whole, columns[part]);
      }
    }
  }
  for (Value*& part : parts) part = b_.CreateBitCast(part, LanesType(access.element));
  return parts;
}

/// Two double words a lane and place: one load each, then 2 x 2 transpositions.
std::vector<Value*> WarpFunction::LoadPairs(llvm::ArrayRef<Irregular> places, const Access& access,
                                            const Window& window) {
  constexpr unsigned kEight = 8;
  const PieceLoads pieces = PiecesAt(places, access, window);
  std::vector<std::vector<Value*>> eights(places.size() * 2);
  for (unsigned first = 0; first < width_; first += kEight) {
    Value* at_lane[2][kEight / 2];
    for (unsigned i = 0; i < kEight; ++i) at_lane[i % 2][i / 2] = OffsetOf(pieces, first + i);
    for (std::size_t place = 0; place < places.size(); ++place) {
      // Lanes 0, 2, 4, 6 and 1, 3, 5, 7: what unpacking takes from both in turn.
      Value* even = LoadFour(pieces, place, at_lane[0]);
      Value* odd = LoadFour(pieces, place, at_lane[1]);
      eights[place * 2].push_back(b_.CreateShuffleVector(even, odd, {0, 8, 2, 10, 4, 12, 6, 14}));
      eights[place * 2 + 1].push_back(b_.CreateShuffleVector(even, odd, {1, 9, 3, 11, 5, 13, 7, 15}));
    }
  }
  std::vector<Value*> parts;
  for (std::vector<Value*>& part : eights) {
    for (; part.size() > 1; part.resize(part.size() / 2)) {
      for (std::size_t i = 0; i < part.size() / 2; ++i) part[i] = Concatenate(part[2 * i], part[2 * i + 1]);
    }
    parts.push_back(b_.CreateBitCast(part.front(), LanesType(access.element)));
  }
  return parts;
}

Value* WarpFunction::Concatenate(Value* a, Value* b) {
  return b_.CreateShuffleVector(a, b, Range(0, 2 * llvm::cast<llvm::FixedVectorType>(a->getType())->getNumElements()));
}

/// Four 4 x 4 matrices of words side by side, by rows, to columns: unpacking words, then pairs of words, transposes all
/// four.
std::array<Value*, 4> WarpFunction::Transpose(const std::array<Value*, 4>& rows) {
  const auto unpack = [&](Value* a, Value* b, unsigned words, bool high) {
    llvm::SmallVector<int, 16> pick;
    for (unsigned block = 0; block < 4; ++block) {
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned pair = i / words, from = block * 4 + (high ? 2 : 0) + (words == 1 ? pair / 2 : i % 2);
        pick.push_back(static_cast<int>(pair % 2 == 0 ? from : from + kHalfWarp));
      }
    }
    return b_.CreateShuffleVector(a, b, pick);
  };
  Value* low01 = unpack(rows[0], rows[1], 1, false);
  Value* high01 = unpack(rows[0], rows[1], 1, true);
  Value* low23 = unpack(rows[2], rows[3], 1, false);
  Value* high23 = unpack(rows[2], rows[3], 1, true);
  return {unpack(low01, low23, 2, false), unpack(low01, low23, 2, true), unpack(high01, high23, 2, false),
          unpack(high01, high23, 2, true)};
}

/// The parts of the first place, then those of the next.
std::vector<Value*> WarpFunction::Gather(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window) {
  if (access.bytes == 16 && access.count == 4) return LoadQuads(places, access, window);
  if (access.bytes == 16 && access.count == 2 && module_.avx512) return LoadPairs(places, access, window);
  std::vector<Value*> parts;
  for (const Irregular& at : places) {
    if (access.bytes <= 8) {
      auto* wide = llvm::FixedVectorType::get(access.element, width_ * access.count);
      for (Value* part : Deinterleave(b_.CreateBitCast(GatherWhole(at, access, window), wide), access.count))
        parts.push_back(part);
      continue;
    }
    Value* pointers = HostPointers(at, access, window);
    for (unsigned part = 0; part < access.count; ++part) {
      Value* from =
          part == 0 ? pointers : b_.CreateGEP(b_.getInt8Ty(), pointers, b_.getInt64(part * access.element_bytes));
      parts.push_back(
          b_.CreateMaskedGather(LanesType(access.element), from, llvm::Align(access.element_bytes), ActiveLanes()));
    }
  }
  return parts;
}

/// A checked load of any addresses: vector or scalar loads where the halves turn out to be rows or the same, else a
/// gather. A half without active lanes passes these tests with any address; its load touches nothing. `whole` is what
/// each lane loads, `row` the access at whose distance lanes count as consecutive. Places have an index in common, so
/// what holds for one holds for all.
std::vector<Value*> WarpFunction::LoadIrregularGroup(llvm::ArrayRef<Irregular> places, const Access& whole,
                                                     const Access& row, const Window& window,
                                                     llvm::AllocaInst* in_rows) {
  if (half_warp()) return Gather(places, whole, window);
  const Split split = SplitByRows(places.front(), row, true);
  std::vector<std::pair<BasicBlock*, std::vector<Value*>>> ways;
  const auto way = [&](BasicBlock* block, const auto& load) {
    if (!block) return;
    b_.SetInsertPoint(block);
    if (block == split.rows && in_rows) b_.CreateStore(b_.getTrue(), in_rows);
    std::vector<Value*> parts = load();
    ways.emplace_back(b_.GetInsertBlock(), std::move(parts));
    b_.CreateBr(split.joined);
  };
  const auto halves = [&](HalfKind kind) {
    return [&, kind] {
      std::vector<Value*> all;
      for (const Irregular& at : places) {
        Value* starts[2] = {HalfAddress(at, 0, window), HalfAddress(at, 1, window)};
        for (unsigned offset = 0; offset < whole.bytes; offset += row.bytes) {
          Value* low = LoadHalf(starts[0], offset, kind, 0, row);
          Value* high = LoadHalf(starts[1], offset, kind, 1, row);
          for (Value* part :
               Deinterleave(b_.CreateShuffleVector(low, high, Range(0, kWarpSize * row.count)), row.count))
            all.push_back(part);
        }
      }
      return all;
    };
  };
  way(split.rows, halves(HalfKind::kConsecutive));
  way(split.same, halves(HalfKind::kSame));
  way(split.others, [&] { return Gather(places, whole, window); });
  b_.SetInsertPoint(split.joined);
  std::vector<Value*> parts;
  for (std::size_t part = 0; part < ways.front().second.size(); ++part) {
    auto* phi = b_.CreatePHI(ways.front().second[part]->getType(), static_cast<unsigned>(ways.size()));
    for (const auto& [block, values] : ways) phi->addIncoming(values[part], block);
    parts.push_back(phi);
  }
  return parts;
}

// ---------------------------------------------------------------------------------------------------------------------
// Stores
// ---------------------------------------------------------------------------------------------------------------------

/// One lane's pointer, from what SpillPointers put into memory.
Value* WarpFunction::LanePointer(const Irregular& at, Value* spilled, const Window& window, Value* lane) {
  if (!at.index) {
    return b_.CreateIntToPtr(b_.CreateLoad(b_.getInt64Ty(), b_.CreateGEP(b_.getInt64Ty(), spilled, lane)),
                             b_.getPtrTy());
  }
  Value* index =
      b_.CreateSExt(b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), spilled, lane)), b_.getInt64Ty());
  Value* base = Base(at.address);
  if (window.host) base = b_.CreateAdd(base, window.host);
  return b_.CreateGEP(b_.getIntNTy(8u << at.shift), b_.CreateIntToPtr(base, b_.getPtrTy()), index);
}

Value* WarpFunction::SpillPointers(const Irregular& at, const Access& access, const Window& window) {
  return SpillLanes(1, at.index ? ScaledIndex(at) : HostLanes(at.lanes, access, window));
}

/// A loop that takes active lanes until none is left: `body` gets those still there (i32) and returns what it leaves.
void WarpFunction::WhileLanesAreLeft(const std::function<Value*(Value* left)>& body) {
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* loop = NewBlock("lane");
  BasicBlock* done = NewBlock("lanes_done");
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  auto* left = b_.CreatePHI(b_.getInt32Ty(), 2);
  left->addIncoming(mask_, before);
  Value* rest = body(left);
  left->addIncoming(rest, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpEQ(rest, b_.getInt32(0)), done, loop);
  b_.SetInsertPoint(done);
}

/// `body` for every active lane in turn.
void WarpFunction::ForEachActiveLane(const std::function<void(Value* lane)>& body) {
  WhileLanesAreLeft([&](Value* left) {
    body(b_.CreateZExt(b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, b_.getTrue()), b_.getInt64Ty()));
    return b_.CreateAnd(left, b_.CreateSub(left, b_.getInt32(1)));
  });
}

/// Words and double words have a scatter instruction; smaller and larger pieces are stored lane after lane.
void WarpFunction::Scatter(const Irregular& at, const Access& access, const Window& window,
                           const std::vector<Value*>& values) {
  Value* data = Interleave(values);
  if (half_warp() && at.index && access.bytes == 4) {
    b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scatter_dpi_512, {},
                       {HostBase(at, window), MaskLanes(), ScaledIndex(at),
                        b_.CreateBitCast(data, LanesType(b_.getInt32Ty())), b_.getInt32(1u << at.shift)});
    return;
  }
  if (access.bytes == 4 || access.bytes == 8) {
    b_.CreateMaskedScatter(b_.CreateBitCast(data, LanesType(b_.getIntNTy(access.bytes * 8))),
                           HostPointers(at, access, window), llvm::Align(access.align), ActiveLanes());
    return;
  }
  llvm::Type* piece = access.bytes < 4 ? static_cast<llvm::Type*>(b_.getIntNTy(access.bytes * 8))
                                       : llvm::FixedVectorType::get(b_.getInt32Ty(), access.bytes / 4);
  Value* pointers = SpillPointers(at, access, window);
  Value* pieces = SpillLanes(2, data);
  ForEachActiveLane([&](Value* lane) {
    Value* value = b_.CreateAlignedLoad(piece, b_.CreateGEP(piece, pieces, lane), llvm::Align(access.bytes));
    b_.CreateAlignedStore(value, LanePointer(at, pointers, window, lane), llvm::Align(access.align));
  });
}

/// A checked store to any addresses, as LoadIrregularGroup. `rows` (i1 or null): they are known to be rows, or not to.
void WarpFunction::StoreIrregular(const Irregular& at, const Access& access, const Window& window,
                                  const std::vector<Value*>& values, Value* rows) {
  if (half_warp()) return Scatter(at, access, window, values);
  Split split{};
  if (rows) {
    if (divergent_) MaskLanes();
    split = {NewBlock("rows"), nullptr, NewBlock("others"), NewBlock("joined")};
    b_.CreateCondBr(rows, split.rows, split.others);
  } else {
    split = SplitByRows(at, access, false);
  }
  if (split.rows) {
    b_.SetInsertPoint(split.rows);
    for (unsigned half = 0; half < 2; ++half) StoreHalf(HalfAddress(at, half, window), half, access, values);
    b_.CreateBr(split.joined);
  }
  b_.SetInsertPoint(split.others);
  Scatter(at, access, window, values);
  b_.CreateBr(split.joined);
  b_.SetInsertPoint(split.joined);
}

/// All lanes store to one address: one of them wins, here the last.
void WarpFunction::StoreSame(Value* base, const Access& access, const Window& window,
                             const std::vector<Value*>& values) {
  Value* host = window.host ? b_.CreateAdd(base, window.host) : base;
  Value* lane = b_.CreateSub(b_.getInt32(31), b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, mask_, b_.getTrue()));
  for (unsigned part = 0; part < access.count; ++part) {
    Value* to = b_.CreateIntToPtr(b_.CreateAdd(host, b_.getInt64(part * access.element_bytes)), b_.getPtrTy());
    b_.CreateAlignedStore(b_.CreateExtractElement(values[part], lane), to, llvm::Align(access.element_bytes),
                          access.strong);
  }
}

}  // namespace gridloom::exec
