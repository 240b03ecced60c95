// Consecutive lanes become vector accesses per 16-lane half.
#include "sim/exec/compiler/warp_halves.h"

#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>
#include <array>

#include "sim/exec/compiler/warp_blocks.h"
#include "sim/exec/compiler/warp_values.h"
#include "sim/exec/compiler/warp_window.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// True for an access of a half warp that the whole one can make in rows.
bool HalfAccess::InRowsOfWhole(Value* address, const Access& access, bool store) {
  return w_.half_warp() && InRows(address, access, store);
}

/// True where the lanes of each half are known to be neighbours, or all the same.
bool HalfAccess::InRows(Value* address, const Access& access, bool store) {
  if (access.space == Space::kLocal || LeftToHelper(access) || values_.ShapeOf(address).uniform()) return false;
  const std::optional<LanePattern> pattern = values_.PatternOf(address);
  const auto fits = [&](unsigned half) {
    const HalfKind kind = Classify(*pattern, half, access.bytes);
    return kind == HalfKind::kConsecutive || (kind == HalfKind::kSame && !store);
  };
  return pattern && fits(0) && fits(1);
}

HalfKind Classify(const LanePattern& pattern, unsigned half, unsigned bytes) {
  bool consecutive = true, same = true;
  for (unsigned lane = 0; lane < kHalfWarp; ++lane) {
    const std::int64_t offset = pattern[half * kHalfWarp + lane] - pattern[half * kHalfWarp];
    consecutive &= offset == static_cast<std::int64_t>(lane) * bytes;
    same &= offset == 0;
  }
  return same ? HalfKind::kSame : consecutive ? HalfKind::kConsecutive : HalfKind::kOther;
}

/// <16*count x i1>: the active lanes of a half, each repeated `count` times.
Value* HalfAccess::HalfMask(unsigned half, unsigned count) {
  llvm::SmallVector<int, 128> pick;
  for (unsigned i = 0; i < kHalfWarp * count; ++i) pick.push_back(static_cast<int>(half * kHalfWarp + i / count));
  return b_.CreateShuffleVector(w_.MaskLanes(), pick);
}

// ---------------------------------------------------------------------------------------------------------------------
// Layout changes
// ---------------------------------------------------------------------------------------------------------------------

namespace {

/// Four words a lane are transposed eight lanes at a time where vectors have eight words. LLVM finds a way of its own
/// for permutations of 64 and 128 words, but it takes 10 ms for each, and three times the instructions.
bool TransposesByEights(llvm::IRBuilder<>& b, llvm::Type* vector, unsigned lanes, unsigned count) {
  const llvm::Function* function = b.GetInsertBlock()->getParent();
  const bool avx512 = function->getFnAttribute("target-features").getValueAsString().contains("+avx512f");
  return !avx512 && count == 4 && lanes % 8 == 0 && vector->getScalarSizeInBits() == 32;
}

/// Words of two vectors of eight in turn, within each half: those from the middle on, or those before it.
Value* UnpackWords(llvm::IRBuilder<>& b, Value* one, Value* other, bool high) {
  return high ? b.CreateShuffleVector(one, other, {2, 10, 3, 11, 6, 14, 7, 15})
              : b.CreateShuffleVector(one, other, {0, 8, 1, 9, 4, 12, 5, 13});
}

/// The same of pairs of words.
Value* UnpackPairs(llvm::IRBuilder<>& b, Value* one, Value* other, bool high) {
  return high ? b.CreateShuffleVector(one, other, {2, 3, 10, 11, 6, 7, 14, 15})
              : b.CreateShuffleVector(one, other, {0, 1, 8, 9, 4, 5, 12, 13});
}

/// Two 4 x 4 matrices side by side, by rows, to columns.
std::array<Value*, 4> TransposeHalves(llvm::IRBuilder<>& b, const std::array<Value*, 4>& rows) {
  Value* low01 = UnpackWords(b, rows[0], rows[1], false);
  Value* high01 = UnpackWords(b, rows[0], rows[1], true);
  Value* low23 = UnpackWords(b, rows[2], rows[3], false);
  Value* high23 = UnpackWords(b, rows[2], rows[3], true);
  return {UnpackPairs(b, low01, low23, false), UnpackPairs(b, low01, low23, true),
          UnpackPairs(b, high01, high23, false), UnpackPairs(b, high01, high23, true)};
}

/// Vectors of one length behind each other; as many as a power of two.
Value* Concatenated(llvm::IRBuilder<>& b, std::vector<Value*> parts) {
  for (; parts.size() > 1; parts.resize(parts.size() / 2)) {
    for (std::size_t i = 0; i < parts.size() / 2; ++i)
      parts[i] = llvm::concatenateVectors(b, {parts[2 * i], parts[2 * i + 1]});
  }
  return parts.front();
}

llvm::SmallVector<int, 8> FourAndFour(unsigned first, unsigned second) {
  llvm::SmallVector<int, 8> pick;
  for (const unsigned start : {first, second})
    for (unsigned i = 0; i < 4; ++i) pick.push_back(static_cast<int>(start + i));
  return pick;
}

std::vector<Value*> DeinterleaveByEights(llvm::IRBuilder<>& b, Value* wide, unsigned lanes) {
  std::array<std::vector<Value*>, 4> parts;
  for (unsigned first = 0; first < lanes; first += 8) {
    std::array<Value*, 4> rows;  // lane i beside lane i + 4
    for (unsigned i = 0; i < 4; ++i)
      rows[i] = b.CreateShuffleVector(wide, FourAndFour((first + i) * 4, (first + i + 4) * 4));
    const std::array<Value*, 4> columns = TransposeHalves(b, rows);
    for (unsigned part = 0; part < 4; ++part) parts[part].push_back(columns[part]);
  }
  std::vector<Value*> all;
  for (const std::vector<Value*>& part : parts) all.push_back(Concatenated(b, part));
  return all;
}

Value* InterleaveByEights(llvm::IRBuilder<>& b, const std::vector<Value*>& parts, unsigned lanes) {
  std::vector<Value*> all;
  for (unsigned first = 0; first < lanes; first += 8) {
    llvm::SmallVector<int, 8> pick;
    for (unsigned i = 0; i < 8; ++i) pick.push_back(static_cast<int>(first + i));
    std::array<Value*, 4> columns;
    for (unsigned part = 0; part < 4; ++part) columns[part] = b.CreateShuffleVector(parts[part], pick);
    const std::array<Value*, 4> rows = TransposeHalves(b, columns);
    for (const unsigned half : {0u, 4u}) {
      all.push_back(b.CreateShuffleVector(rows[0], rows[1], FourAndFour(half, 8 + half)));
      all.push_back(b.CreateShuffleVector(rows[2], rows[3], FourAndFour(half, 8 + half)));
    }
  }
  return Concatenated(b, std::move(all));
}

}  // namespace

/// <n*count x T>, elements of a lane together -> count values of <n x T>.
std::vector<Value*> Deinterleave(llvm::IRBuilder<>& b, Value* wide, unsigned count) {
  if (count == 1) return {wide};
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(wide->getType())->getNumElements() / count;
  if (TransposesByEights(b, wide->getType(), lanes, count)) return DeinterleaveByEights(b, wide, lanes);
  std::vector<Value*> parts;
  for (unsigned part = 0; part < count; ++part) {
    llvm::SmallVector<int, 32> pick;
    for (unsigned lane = 0; lane < lanes; ++lane) pick.push_back(static_cast<int>(lane * count + part));
    parts.push_back(b.CreateShuffleVector(wide, pick));
  }
  return parts;
}

Value* Interleave(llvm::IRBuilder<>& b, const std::vector<Value*>& parts) {
  if (parts.size() == 1) return parts[0];
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(parts[0]->getType())->getNumElements();
  const unsigned count = static_cast<unsigned>(parts.size());
  if (TransposesByEights(b, parts[0]->getType(), lanes, count)) return InterleaveByEights(b, parts, lanes);
  // Concatenate pairwise, then permute: all parts have one length, counts are powers of two.
  std::vector<Value*> level(parts);
  while (level.size() > 1) {
    std::vector<Value*> next;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      const unsigned n = llvm::cast<llvm::FixedVectorType>(level[i]->getType())->getNumElements();
      llvm::SmallVector<int, 128> both;
      for (unsigned k = 0; k < 2 * n; ++k) both.push_back(static_cast<int>(k));
      next.push_back(b.CreateShuffleVector(level[i], level[i + 1], both));
    }
    level = std::move(next);
  }
  llvm::SmallVector<int, 256> pick;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    for (unsigned part = 0; part < count; ++part) pick.push_back(static_cast<int>(part * lanes + lane));
  }
  return b.CreateShuffleVector(level[0], pick);
}

/// <16*count x T> from a half whose lanes are consecutive or all the same, at base + offset.
Value* HalfAccess::LoadHalf(Value* base, std::int64_t offset, HalfKind kind, unsigned half, const Access& access) {
  Value* at = b_.CreateIntToPtr(b_.CreateAdd(base, b_.getInt64(static_cast<std::uint64_t>(offset))), b_.getPtrTy());
  auto* wide = llvm::FixedVectorType::get(access.element, kHalfWarp * access.count);
  if (kind == HalfKind::kConsecutive) {
    if (!w_.divergent) return b_.CreateAlignedLoad(wide, at, llvm::Align(std::min(access.align, 16u)), access.strong);
    return b_.CreateMaskedLoad(wide, at, llvm::Align(access.element_bytes), HalfMask(half, access.count),
                               llvm::Constant::getNullValue(wide));
  }
  if (w_.divergent) {
    // A half without active lanes may point anywhere in the window, mapped or not.
    Value* active =
        b_.CreateICmpNE(b_.CreateAnd(w_.mask, b_.getInt32(half == 0 ? 0xFFFF : 0xFFFF0000u)), b_.getInt32(0));
    at = b_.CreateSelect(active, at, w_.warp);
  }
  std::vector<Value*> parts;
  for (unsigned part = 0; part < access.count; ++part) {
    Value* element =
        b_.CreateAlignedLoad(access.element, b_.CreateConstGEP1_64(b_.getInt8Ty(), at, part * access.element_bytes),
                             llvm::Align(1), access.strong);
    parts.push_back(b_.CreateVectorSplat(kHalfWarp, element));
  }
  return Interleave(b_, parts);
}

/// A checked linear load whose halves are consecutive or all the same.
std::vector<Value*> HalfAccess::LoadHalves(const Linear& linear, const Access& access, const Window& window) {
  Value* base = window.host ? b_.CreateAdd(linear.base, window.host) : linear.base;
  Value* halves[2];
  for (unsigned half = 0; half < 2; ++half) {
    halves[half] =
        LoadHalf(base, linear.pattern[half * kHalfWarp], Classify(linear.pattern, half, access.bytes), half, access);
  }
  llvm::SmallVector<int, 128> both;
  for (unsigned i = 0; i < kWarpSize * access.count; ++i) both.push_back(static_cast<int>(i));
  return Deinterleave(b_, b_.CreateShuffleVector(halves[0], halves[1], both), access.count);
}

/// Stores what is active of a half (<16*count x T>). Without AVX-512 a masked store takes 12 cycles, as long as eight
/// lanes alone, and of bytes and halfwords it is a branch for each lane: so eight lanes that are all on are stored
/// together, others one by one.
void HalfAccess::StorePart(Value* wide, Value* at, unsigned half, const Access& access) {
  constexpr unsigned kTogether = 8, kScratch = 7;
  llvm::Type* together = llvm::FixedVectorType::get(access.element, kTogether * access.count);
  llvm::Type* one = access.count == 1
                        ? access.element
                        : static_cast<llvm::Type*>(llvm::FixedVectorType::get(access.element, access.count));
  const llvm::Align align(access.element_bytes);
  Value* buffer = w_.SpillLanes(kScratch, wide);
  Value* const mask = w_.mask;
  Value* own = half == 0 ? mask : b_.CreateLShr(mask, kHalfWarp);
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock *group = w_.NewBlock("store_group"), *all = w_.NewBlock("store_all"), *part = w_.NewBlock("store_part"),
             *lanes = w_.NewBlock("store_lanes"), *next = w_.NewBlock("store_next"), *done = w_.NewBlock("store_done");
  b_.CreateBr(group);
  b_.SetInsertPoint(group);
  auto* first = b_.CreatePHI(b_.getInt32Ty(), 2);
  first->addIncoming(b_.getInt32(0), before);
  Value* active = b_.CreateAnd(b_.CreateLShr(own, first), b_.getInt32((1u << kTogether) - 1));
  const auto copy = [&](llvm::Type* type, Value* lane) {
    Value* index = b_.CreateZExt(lane, b_.getInt64Ty());
    b_.CreateAlignedStore(b_.CreateAlignedLoad(type, b_.CreateGEP(one, buffer, index), align),
                          b_.CreateGEP(one, at, index), align);
  };
  b_.CreateCondBr(b_.CreateICmpEQ(active, b_.getInt32((1u << kTogether) - 1)), all, part);
  b_.SetInsertPoint(all);
  copy(together, first);
  b_.CreateBr(next);
  b_.SetInsertPoint(part);
  b_.CreateCondBr(b_.CreateICmpEQ(active, b_.getInt32(0)), next, lanes);
  b_.SetInsertPoint(lanes);
  w_.mask = active;
  ForEachActiveLane(w_, [&](Value* lane) { copy(one, b_.CreateAdd(first, b_.CreateTrunc(lane, b_.getInt32Ty()))); });
  w_.mask = mask;
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
  Value* following = b_.CreateAdd(first, b_.getInt32(kTogether));
  first->addIncoming(following, next);
  b_.CreateCondBr(b_.CreateICmpEQ(following, b_.getInt32(kHalfWarp)), done, group);
  b_.SetInsertPoint(done);
}

/// Stores the lanes of a half to consecutive places from the host address `at`.
void HalfAccess::StoreHalf(Value* at, unsigned half, const Access& access, const std::vector<Value*>& values) {
  llvm::SmallVector<int, 16> pick;
  for (unsigned lane = 0; lane < kHalfWarp; ++lane) pick.push_back(static_cast<int>(half * kHalfWarp + lane));
  std::vector<Value*> parts;
  for (Value* value : values) parts.push_back(b_.CreateShuffleVector(value, pick));
  Value* wide = Interleave(b_, parts);
  at = b_.CreateIntToPtr(at, b_.getPtrTy());
  if (w_.divergent && !module_.avx512) {
    StorePart(wide, at, half, access);
  } else if (w_.divergent) {
    b_.CreateMaskedStore(wide, at, llvm::Align(access.element_bytes), HalfMask(half, access.count));
  } else {
    b_.CreateAlignedStore(wide, at, llvm::Align(std::min(access.align, 16u)), access.strong);
  }
}

void HalfAccess::StoreHalves(const Linear& linear, const Access& access, const Window& window,
                             const std::vector<Value*>& values) {
  Value* base = window.host ? b_.CreateAdd(linear.base, window.host) : linear.base;
  for (unsigned half = 0; half < 2; ++half) {
    StoreHalf(b_.CreateAdd(base, b_.getInt64(static_cast<std::uint64_t>(linear.pattern[half * kHalfWarp]))), half,
              access, values);
  }
}

}  // namespace gridloom::exec
