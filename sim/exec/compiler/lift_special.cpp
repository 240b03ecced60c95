// Special registers (PTX ISA, chapter 10) and ranges of thread coordinates.
#include <llvm/IR/MDBuilder.h>

#include <algorithm>

#include "rewriter/ptx/special.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {
namespace {

constexpr std::uint64_t kMaxBlock[3] = {1024, 1024, 64};
constexpr std::uint64_t kMaxGrid[3] = {0x7fffffff, 65535, 65535};
constexpr std::uint64_t kSmallGrid = std::uint64_t{1} << 31;

unsigned Axis(char component) { return component == 'y' ? 1 : component == 'z' ? 2 : 0; }

Special At(Special x, unsigned axis) { return static_cast<Special>(static_cast<unsigned>(x) + axis); }

}  // namespace

// Value in [low, high), told to LLVM.
Value* FunctionLifter::RangedSpecial(Special special, std::uint64_t low, std::uint64_t high) {
  auto* call = llvm::cast<llvm::CallInst>(b_.SpecialReg(special));
  llvm::MDBuilder metadata(b_.getContext());
  call->setMetadata(llvm::LLVMContext::MD_range, metadata.createRange(llvm::APInt(32, low), llvm::APInt(32, high)));
  return call;
}

/// How many threads a block has at least along an axis.
std::uint64_t FunctionLifter::LeastDimension(unsigned axis) {
  const std::uint32_t known = module_.options().block[axis];
  return known != 0 ? known : IsRowOfWarps(module_.options().block) ? kWarpSize : 1;
}

Value* FunctionLifter::Dimension(unsigned axis) {
  const std::uint32_t known = module_.options().block[axis];
  return known != 0 ? b_.getInt32(known)
                    : RangedSpecial(At(Special::kNtidX, axis), LeastDimension(axis), kMaxBlock[axis] + 1);
}

/// What the kernel itself has of shared memory, static and dynamic.
Value* FunctionLifter::OwnSharedBytes() {
  Value* const total = b_.SpecialReg(Special::kTotalSharedBytes);
  const std::uint32_t reserved = module_.shared().reserved_bytes;
  return reserved == 0 ? total : b_.CreateSub(total, b_.getInt32(reserved));
}

Value* FunctionLifter::ReadSpecial(std::string_view text) {
  const auto ref = ptx::SpecialFromText(text);
  if (!ref) Refuse("unknown special register '" + std::string(text) + "'");
  const CompileOptions& options = module_.options();
  const unsigned axis = Axis(ref->component);
  const bool is_w = ref->component == 'w' || ref->component == 'a';
  const std::uint64_t ntid = options.block[axis];
  const std::uint64_t max_grid =
      options.small_grid ? std::min(kMaxGrid[axis], (kSmallGrid - 1) / LeastDimension(axis)) : kMaxGrid[axis];
  auto lane_bit = [&] { return b_.CreateShl(b_.getInt32(1), RangedSpecial(Special::kLaneId, 0, kWarpSize)); };
  auto clock = [&](std::uint64_t which) { return b_.CallHelper(Helper::kClock, {b_.getInt64Ty()}, {}, which); };
  auto high = [&](Value* value) { return b_.CreateTrunc(b_.CreateLShr(value, 32), b_.getInt32Ty()); };
  auto ceil_div = [&](Value* a, Value* b) {
    return b_.CreateUDiv(b_.CreateAdd(a, b_.CreateSub(b, b_.getInt32(1))), b);
  };
  auto cluster_dim = [&](unsigned a) { return RangedSpecial(At(Special::kClusterDimX, a), 1, 1025); };
  using S = ptx::Special;
  switch (ref->special) {
    case S::kTid:
      if (is_w || ntid == 1) return b_.getInt32(0);
      return RangedSpecial(At(Special::kTidX, axis), 0, ntid != 0 ? ntid : kMaxBlock[axis]);
    case S::kNtid: return is_w ? b_.getInt32(0) : Dimension(axis);
    case S::kCtaid: return is_w ? b_.getInt32(0) : RangedSpecial(At(Special::kCtaidX, axis), 0, max_grid);
    case S::kNctaid: return is_w ? b_.getInt32(0) : RangedSpecial(At(Special::kNctaidX, axis), 1, max_grid + 1);
    case S::kLaneid: return RangedSpecial(Special::kLaneId, 0, kWarpSize);
    case S::kWarpid: return RangedSpecial(Special::kWarpId, 0, 64);
    case S::kNwarpid: return RangedSpecial(Special::kNwarpId, 1, 65);
    case S::kSmid: return b_.SpecialReg(Special::kSmId);
    case S::kNsmid: return b_.SpecialReg(Special::kNsmId);
    case S::kGridid: return b_.SpecialReg(Special::kGridId);
    case S::kLanemaskEq: return lane_bit();
    case S::kLanemaskLt: return b_.CreateSub(lane_bit(), b_.getInt32(1));
    case S::kLanemaskLe: return b_.CreateSub(b_.CreateShl(lane_bit(), 1), b_.getInt32(1));
    case S::kLanemaskGe: return b_.CreateNeg(lane_bit());
    case S::kLanemaskGt: return b_.CreateNeg(b_.CreateShl(lane_bit(), 1));
    case S::kClock: return b_.CreateTrunc(clock(0), b_.getInt32Ty());
    case S::kClockHi: return high(clock(0));
    case S::kClock64: return clock(0);
    case S::kGlobaltimer: return clock(1);
    case S::kGlobaltimerLo: return b_.CreateTrunc(clock(1), b_.getInt32Ty());
    case S::kGlobaltimerHi: return high(clock(1));
    case S::kTotalSmemSize: return OwnSharedBytes();
    case S::kAggrSmemSize: return b_.CreateAdd(OwnSharedBytes(), b_.getInt32(kReservedSharedBytes));
    case S::kDynamicSmemSize: return b_.SpecialReg(Special::kDynamicSharedBytes);
    case S::kWarpSz: return b_.getInt32(kWarpSize);
    case S::kIsExplicitCluster: return b_.getInt1(options.clusters);
    case S::kClusterNctaid: return is_w ? b_.getInt32(0) : options.clusters ? cluster_dim(axis) : b_.getInt32(1);
    case S::kClusterNctarank:
      if (!options.clusters) return b_.getInt32(1);
      return b_.CreateMul(b_.CreateMul(cluster_dim(0), cluster_dim(1)), cluster_dim(2));
    case S::kClusterCtarank: return options.clusters ? b_.SpecialReg(Special::kClusterRank) : b_.getInt32(0);
    case S::kClusterCtaid:
      if (is_w || !options.clusters) return b_.getInt32(0);
      return b_.CreateURem(b_.SpecialReg(At(Special::kCtaidX, axis)), cluster_dim(axis));
    case S::kClusterid:
      if (is_w) return b_.getInt32(0);
      if (!options.clusters) return b_.SpecialReg(At(Special::kCtaidX, axis));
      return b_.CreateUDiv(b_.SpecialReg(At(Special::kCtaidX, axis)), cluster_dim(axis));
    case S::kNclusterid:
      if (is_w) return b_.getInt32(0);
      if (!options.clusters) return b_.SpecialReg(At(Special::kNctaidX, axis));
      return ceil_div(b_.SpecialReg(At(Special::kNctaidX, axis)), cluster_dim(axis));
    // Of the driver's private registers, cooperative groups read two: the address of the grid barrier's memory.
    case S::kEnvreg:
      if (ref->index == 1) return b_.SpecialReg(Special::kGridWorkspaceHigh);
      if (ref->index == 2) return b_.SpecialReg(Special::kGridWorkspaceLow);
      return b_.getInt32(0);
    case S::kReservedSmemOffset: return b_.getInt32(kReservedSharedOffsets[ref->index]);
    case S::kReservedSmemOffsetEnd:
    case S::kReservedSmemOffsetCap: return b_.getInt32(kReservedSharedBytes);
    case S::kReservedSmemOffsetBegin:
    // Performance monitors read as zero: nothing counts.
    case S::kPm: return b_.getInt32(0);
    // All SMs are in one domain of memory, and none is an additional one of it.
    case S::kLocalityDomainId:
    case S::kLocalityDomainSupplementalSm: return b_.getInt32(0);
    case S::kPm0_64:
    case S::kPm1_64:
    case S::kPm2_64:
    case S::kPm3_64:
    case S::kPm4_64:
    case S::kPm5_64:
    case S::kPm6_64:
    case S::kPm7_64:
    case S::kCurrentGraphExec: return b_.getInt64(0);
  }
  Refuse("special register '" + std::string(text) + "' is not supported");
}

// One component of a vector one read as a whole: `mov.v4.u32 %v, %tid`.
Value* FunctionLifter::ReadSpecialComponent(std::string_view text, std::size_t component) {
  return ReadSpecial(std::string(text) + '.' + "xyzw"[component & 3]);
}

}  // namespace gridloom::exec
