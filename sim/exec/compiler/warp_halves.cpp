// Consecutive lanes become vector accesses per 16-lane half.
#include "sim/exec/compiler/warp_halves.h"

#include <algorithm>

#include "sim/exec/compiler/warp_values.h"
#include "sim/exec/compiler/warp_window.h"

namespace gridloom::exec {

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

/// <n*count x T>, elements of a lane together -> count values of <n x T>.
std::vector<Value*> Deinterleave(llvm::IRBuilder<>& b, Value* wide, unsigned count) {
  if (count == 1) return {wide};
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(wide->getType())->getNumElements() / count;
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

/// Stores the lanes of a half to consecutive places from the host address `at`.
void HalfAccess::StoreHalf(Value* at, unsigned half, const Access& access, const std::vector<Value*>& values) {
  llvm::SmallVector<int, 16> pick;
  for (unsigned lane = 0; lane < kHalfWarp; ++lane) pick.push_back(static_cast<int>(half * kHalfWarp + lane));
  std::vector<Value*> parts;
  for (Value* value : values) parts.push_back(b_.CreateShuffleVector(value, pick));
  Value* wide = Interleave(b_, parts);
  at = b_.CreateIntToPtr(at, b_.getPtrTy());
  if (w_.divergent) {
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
