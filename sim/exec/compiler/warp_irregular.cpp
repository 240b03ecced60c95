// Loads and stores whose lanes follow no pattern known at compile time. Where the address is built on a 32-bit index,
// check and gather work on that index (two vectors of 16 instead of four of 8); rows that turn out consecutive are
// loaded as such; what a lane loads is fetched in one piece and taken apart afterwards.
#include "sim/exec/compiler/warp_irregular.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "sim/exec/compiler/warp_blocks.h"
#include "sim/exec/compiler/warp_halves.h"
#include "sim/exec/compiler/warp_places.h"
#include "sim/exec/compiler/warp_rows.h"
#include "sim/exec/compiler/warp_values.h"
#include "sim/exec/compiler/warp_window.h"

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
// Loads
// ---------------------------------------------------------------------------------------------------------------------

/// Bytes and halfwords: gathers the aligned words around them (they never cross a page) and shifts.
Value* IrregularAccess::GatherSmall(const Irregular& at, const Access& access, const Window& window) {
  llvm::Type* words = w_.LanesType(b_.getInt32Ty());
  Value* pointers = nullptr;
  Value* byte = nullptr;
  if (at.index) {
    Value* base = values_.Base(at.address);
    if (window.host) base = b_.CreateAdd(base, window.host);
    Value* offset = b_.CreateAdd(places_.ScaledIndex(at),
                                 w_.Splat(b_.CreateTrunc(b_.CreateAnd(base, b_.getInt64(3)), b_.getInt32Ty())));
    byte = b_.CreateAnd(offset, w_.Splat(b_.getInt32(3)));
    Value* word = b_.CreateAnd(offset, w_.Splat(b_.getInt32(~3u)));
    Value* start = b_.CreateIntToPtr(b_.CreateAnd(base, b_.getInt64(~std::uint64_t{3})), b_.getPtrTy());
    pointers = b_.CreateGEP(b_.getInt8Ty(), start, b_.CreateSExt(word, w_.LanesType(b_.getInt64Ty())));
  } else {
    Value* host = windows_.HostLanes(at.lanes, access, window);
    byte = b_.CreateTrunc(b_.CreateAnd(host, w_.Splat(b_.getInt64(3))), words);
    pointers =
        b_.CreateIntToPtr(b_.CreateAnd(host, w_.Splat(b_.getInt64(~std::uint64_t{3}))), w_.LanesType(b_.getPtrTy()));
  }
  Value* word = b_.CreateMaskedGather(words, pointers, llvm::Align(4), w_.ActiveLanes());
  return b_.CreateTrunc(b_.CreateLShr(word, b_.CreateShl(byte, w_.Splat(b_.getInt32(3)))),
                        w_.LanesType(b_.getIntNTy(access.bytes * 8)));
}

/// <32 * count x T>: what each lane loads, lane by lane.
Value* IrregularAccess::GatherWhole(const Irregular& at, const Access& access, const Window& window) {
  if (access.bytes < 4) return GatherSmall(at, access, window);
  if (w_.half_warp() && at.index && access.bytes == 4) {
    // LLVM would move the widening of an index out of the loop, and gather 8 lanes at a time.
    auto* words = llvm::FixedVectorType::get(b_.getInt32Ty(), kHalfWarp);
    return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_gather_dpi_512, {},
                              {llvm::Constant::getNullValue(words), places_.HostBase(at, window),
                               places_.ScaledIndex(at), w_.MaskLanes(), b_.getInt32(1u << at.shift)});
  }
  return b_.CreateMaskedGather(w_.LanesType(b_.getIntNTy(access.bytes * 8)), places_.HostPointers(at, access, window),
                               llvm::Align(access.align), w_.ActiveLanes());
}

/// Where each lane of some places loads 16 bytes in one piece: the start of a place, and the lanes' offsets, which
/// places have in common.
PieceLoads IrregularAccess::PiecesAt(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window) {
  const Irregular& first = places.front();
  Value* offsets = first.index ? places_.ScaledIndex(first) : windows_.HostLanes(first.lanes, access, window);
  if (w_.divergent) {
    // Lanes that are off load what an active one does.
    Value* active = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, w_.mask, b_.getTrue());
    offsets = b_.CreateSelect(w_.MaskLanes(), offsets, w_.Splat(b_.CreateExtractElement(offsets, active)));
  }
  // Through memory: a reload costs less than taking an element out of a vector. Volatile, or LLVM would undo that.
  PieceLoads pieces{
      .offsets = w_.SpillLanes(5, offsets), .offset_type = offsets->getType()->getScalarType(), .shift = first.shift};
  pieces.piece = llvm::FixedVectorType::get(b_.getIntNTy(access.element_bytes * 8), access.count);
  pieces.align = llvm::Align(access.align);
  for (const Irregular& at : places) {
    if (!at.index) break;
    Value* base = values_.Base(at.address);
    pieces.starts.push_back(b_.CreateIntToPtr(window.host ? b_.CreateAdd(base, window.host) : base, b_.getPtrTy()));
  }
  return pieces;
}

Value* IrregularAccess::OffsetOf(const PieceLoads& pieces, unsigned lane) {
  Value* slot = b_.CreateConstInBoundsGEP1_64(pieces.offset_type, pieces.offsets, lane);
  Value* offset = b_.CreateAlignedLoad(pieces.offset_type, slot, llvm::Align(4), true);
  return pieces.starts.empty() ? offset : b_.CreateSExt(offset, b_.getInt64Ty());
}

Value* IrregularAccess::LoadPiece(const PieceLoads& pieces, std::size_t place, Value* offset) {
  Value* pointer = pieces.starts.empty() ? b_.CreateIntToPtr(offset, b_.getPtrTy())
                                         : b_.CreateGEP(b_.getIntNTy(8u << pieces.shift), pieces.starts[place], offset);
  return b_.CreateAlignedLoad(pieces.piece, pointer, pieces.align);
}

/// Four pieces side by side.
Value* IrregularAccess::LoadFour(const PieceLoads& pieces, std::size_t place, llvm::ArrayRef<Value*> offsets) {
  Value* low = Concatenate(LoadPiece(pieces, place, offsets[0]), LoadPiece(pieces, place, offsets[1]));
  return Concatenate(low, Concatenate(LoadPiece(pieces, place, offsets[2]), LoadPiece(pieces, place, offsets[3])));
}

/// Four words a lane and place: one load each, then 4 x 4 transpositions. An eighth of the loads that four gathers
/// make.
std::vector<Value*> IrregularAccess::LoadQuads(llvm::ArrayRef<Irregular> places, const Access& access,
                                               const Window& window) {
  const PieceLoads pieces = PiecesAt(places, access, window);
  // Rows of 4 x 4 matrices: row j of a half holds lanes j, j+4, j+8, j+12. All places a row at a time, so that few
  // offsets are live.
  std::vector<Value*> parts(places.size() * 4);
  for (unsigned half = 0; half < w_.width / kHalfWarp; ++half) {
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
  for (Value*& part : parts) part = b_.CreateBitCast(part, w_.LanesType(access.element));
  return parts;
}

/// Two double words a lane and place: one load each, then 2 x 2 transpositions.
std::vector<Value*> IrregularAccess::LoadPairs(llvm::ArrayRef<Irregular> places, const Access& access,
                                               const Window& window) {
  constexpr unsigned kEight = 8;
  const PieceLoads pieces = PiecesAt(places, access, window);
  std::vector<std::vector<Value*>> eights(places.size() * 2);
  for (unsigned first = 0; first < w_.width; first += kEight) {
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
    parts.push_back(b_.CreateBitCast(part.front(), w_.LanesType(access.element)));
  }
  return parts;
}

Value* IrregularAccess::Concatenate(Value* a, Value* b) {
  return b_.CreateShuffleVector(a, b, Range(0, 2 * llvm::cast<llvm::FixedVectorType>(a->getType())->getNumElements()));
}

/// Four 4 x 4 matrices of words side by side, by rows, to columns: unpacking words, then pairs of words, transposes all
/// four.
std::array<Value*, 4> IrregularAccess::Transpose(const std::array<Value*, 4>& rows) {
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
std::vector<Value*> IrregularAccess::Gather(llvm::ArrayRef<Irregular> places, const Access& access,
                                            const Window& window) {
  if (access.bytes == 16 && access.count == 4) return LoadQuads(places, access, window);
  if (access.bytes == 16 && access.count == 2 && module_.avx512) return LoadPairs(places, access, window);
  std::vector<Value*> parts;
  for (const Irregular& at : places) {
    if (access.bytes <= 8) {
      auto* wide = llvm::FixedVectorType::get(access.element, w_.width * access.count);
      for (Value* part : Deinterleave(b_, b_.CreateBitCast(GatherWhole(at, access, window), wide), access.count))
        parts.push_back(part);
      continue;
    }
    Value* pointers = places_.HostPointers(at, access, window);
    for (unsigned part = 0; part < access.count; ++part) {
      Value* from =
          part == 0 ? pointers : b_.CreateGEP(b_.getInt8Ty(), pointers, b_.getInt64(part * access.element_bytes));
      parts.push_back(b_.CreateMaskedGather(w_.LanesType(access.element), from, llvm::Align(access.element_bytes),
                                            w_.ActiveLanes()));
    }
  }
  return parts;
}

/// A checked load of any addresses: vector or scalar loads where the halves turn out to be rows or the same, else a
/// gather. A half without active lanes passes these tests with any address; its load touches nothing. `whole` is what
/// each lane loads, `row` the access at whose distance lanes count as consecutive. Places have an index in common, so
/// what holds for one holds for all.
std::vector<Value*> IrregularAccess::LoadIrregularGroup(llvm::ArrayRef<Irregular> places, const Access& whole,
                                                        const Access& row, const Window& window,
                                                        llvm::AllocaInst* in_rows) {
  if (w_.half_warp()) return Gather(places, whole, window);
  const RowBlocks split = rows_.SplitByRows(places.front(), row, true);
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
        Value* starts[2] = {rows_.HalfAddress(at, 0, window), rows_.HalfAddress(at, 1, window)};
        for (unsigned offset = 0; offset < whole.bytes; offset += row.bytes) {
          Value* low = halves_.LoadHalf(starts[0], offset, kind, 0, row);
          Value* high = halves_.LoadHalf(starts[1], offset, kind, 1, row);
          for (Value* part :
               Deinterleave(b_, b_.CreateShuffleVector(low, high, Range(0, kWarpSize * row.count)), row.count))
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

/// Words and double words have a scatter instruction in AVX-512. Other pieces, and all where there is none, are stored
/// lane after lane by a loop over the active ones: LLVM would test and branch for each of the 32 lanes instead, a coin
/// toss each (Zen 3: 31 cycles for a pair of bitonic sort, where the loop takes 11).
void IrregularAccess::Scatter(const Irregular& at, const Access& access, const Window& window,
                              const std::vector<Value*>& values) {
  Value* data = Interleave(b_, values);
  if (w_.half_warp() && at.index && access.bytes == 4) {
    b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scatter_dpi_512, {},
                       {places_.HostBase(at, window), w_.MaskLanes(), places_.ScaledIndex(at),
                        b_.CreateBitCast(data, w_.LanesType(b_.getInt32Ty())), b_.getInt32(1u << at.shift)});
    return;
  }
  if (module_.avx512 && (access.bytes == 4 || access.bytes == 8)) {
    b_.CreateMaskedScatter(b_.CreateBitCast(data, w_.LanesType(b_.getIntNTy(access.bytes * 8))),
                           places_.HostPointers(at, access, window), llvm::Align(access.align), w_.ActiveLanes());
    return;
  }
  llvm::Type* piece = access.bytes <= 8 ? static_cast<llvm::Type*>(b_.getIntNTy(access.bytes * 8))
                                        : llvm::FixedVectorType::get(b_.getInt32Ty(), access.bytes / 4);
  Value* pointers = places_.SpillPointers(at, access, window);
  Value* pieces = w_.SpillLanes(2, data);
  ForEachActiveLane(w_, [&](Value* lane) {
    Value* value = b_.CreateAlignedLoad(piece, b_.CreateGEP(piece, pieces, lane), llvm::Align(access.bytes));
    b_.CreateAlignedStore(value, places_.LanePointer(at, pointers, window, lane), llvm::Align(access.align));
  });
}

/// A checked store to any addresses, as LoadIrregularGroup. `rows` (i1 or null): they are known to be rows, or not to.
void IrregularAccess::StoreIrregular(const Irregular& at, const Access& access, const Window& window,
                                     const std::vector<Value*>& values, Value* rows) {
  if (w_.half_warp()) return Scatter(at, access, window, values);
  RowBlocks split{};
  if (rows) {
    if (w_.divergent) w_.MaskLanes();
    split = {w_.NewBlock("rows"), nullptr, w_.NewBlock("others"), w_.NewBlock("joined")};
    b_.CreateCondBr(rows, split.rows, split.others);
  } else {
    split = rows_.SplitByRows(at, access, false);
  }
  if (split.rows) {
    b_.SetInsertPoint(split.rows);
    for (unsigned half = 0; half < 2; ++half)
      halves_.StoreHalf(rows_.HalfAddress(at, half, window), half, access, values);
    b_.CreateBr(split.joined);
  }
  b_.SetInsertPoint(split.others);
  Scatter(at, access, window, values);
  b_.CreateBr(split.joined);
  b_.SetInsertPoint(split.joined);
}

}  // namespace gridloom::exec
