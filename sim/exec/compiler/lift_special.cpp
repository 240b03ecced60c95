// Special registers (PTX ISA, chapter 10) and ranges of thread coordinates.
#include <llvm/IR/MDBuilder.h>

#include <algorithm>

#include "rewriter/ptx/special.h"
#include "sim/exec/compiler/lift_parts.h"
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
Value* RangedSpecial(Lifter& l, Special special, std::uint64_t low, std::uint64_t high) {
  auto* call = llvm::cast<llvm::CallInst>(l.b.SpecialReg(special));
  llvm::MDBuilder metadata(l.b.getContext());
  call->setMetadata(llvm::LLVMContext::MD_range, metadata.createRange(llvm::APInt(32, low), llvm::APInt(32, high)));
  return call;
}

namespace {

/// How many threads a block has at least along an axis.
std::uint64_t LeastDimension(Lifter& l, unsigned axis) {
  const std::uint32_t known = l.module.options().block[axis];
  return known != 0 ? known : IsRowOfWarps(l.module.options().block) ? kWarpSize : 1;
}

Value* Dimension(Lifter& l, unsigned axis) {
  const std::uint32_t known = l.module.options().block[axis];
  return known != 0 ? l.b.getInt32(known)
                    : RangedSpecial(l, At(Special::kNtidX, axis), LeastDimension(l, axis), kMaxBlock[axis] + 1);
}

/// Bytes of global memory that each CTA of the kernel has for itself. Refuses where the kernel has not asked for any.
std::uint32_t OwnMemory(Lifter& l, std::string_view text) {
  const std::uint32_t bytes = l.function.is_entry ? OwnMemoryBytes(l.function) : 0;
  if (bytes == 0) l.Refuse("'" + std::string(text) + "' needs a kernel with .minperctamemory");
  return bytes;
}

/// What the kernel itself has of shared memory, static and dynamic.
Value* OwnSharedBytes(Lifter& l) {
  Value* const total = l.b.SpecialReg(Special::kTotalSharedBytes);
  const std::uint32_t reserved = l.module.shared().reserved_bytes;
  return reserved == 0 ? total : l.b.CreateSub(total, l.b.getInt32(reserved));
}

}  // namespace

Value* ReadSpecial(Lifter& l, std::string_view text) {
  const auto ref = ptx::SpecialFromText(text);
  if (!ref) l.Refuse("unknown special register '" + std::string(text) + "'");
  const CompileOptions& options = l.module.options();
  const unsigned axis = Axis(ref->component);
  const bool is_w = ref->component == 'w' || ref->component == 'a';
  const std::uint64_t ntid = options.block[axis];
  const std::uint64_t max_grid =
      options.small_grid ? std::min(kMaxGrid[axis], (kSmallGrid - 1) / LeastDimension(l, axis)) : kMaxGrid[axis];
  auto lane_bit = [&] { return l.b.CreateShl(l.b.getInt32(1), RangedSpecial(l, Special::kLaneId, 0, kWarpSize)); };
  auto clock = [&](std::uint64_t which) { return l.b.CallHelper(Helper::kClock, {l.b.getInt64Ty()}, {}, which); };
  auto high = [&](Value* value) { return l.b.CreateTrunc(l.b.CreateLShr(value, 32), l.b.getInt32Ty()); };
  auto ceil_div = [&](Value* a, Value* b) {
    return l.b.CreateUDiv(l.b.CreateAdd(a, l.b.CreateSub(b, l.b.getInt32(1))), b);
  };
  auto cluster_dim = [&](unsigned a) { return RangedSpecial(l, At(Special::kClusterDimX, a), 1, 1025); };
  using S = ptx::Special;
  switch (ref->special) {
    case S::kTid:
      if (is_w || ntid == 1) return l.b.getInt32(0);
      return RangedSpecial(l, At(Special::kTidX, axis), 0, ntid != 0 ? ntid : kMaxBlock[axis]);
    case S::kNtid: return is_w ? l.b.getInt32(0) : Dimension(l, axis);
    case S::kCtaid: return is_w ? l.b.getInt32(0) : RangedSpecial(l, At(Special::kCtaidX, axis), 0, max_grid);
    case S::kNctaid: return is_w ? l.b.getInt32(0) : RangedSpecial(l, At(Special::kNctaidX, axis), 1, max_grid + 1);
    case S::kLaneid: return RangedSpecial(l, Special::kLaneId, 0, kWarpSize);
    case S::kWarpid: return RangedSpecial(l, Special::kWarpId, 0, 64);
    case S::kNwarpid: return RangedSpecial(l, Special::kNwarpId, 1, 65);
    case S::kSmid: return l.b.SpecialReg(Special::kSmId);
    case S::kNsmid: return l.b.SpecialReg(Special::kNsmId);
    case S::kGridid: return l.b.SpecialReg(Special::kGridId);
    case S::kLanemaskEq: return lane_bit();
    case S::kLanemaskLt: return l.b.CreateSub(lane_bit(), l.b.getInt32(1));
    case S::kLanemaskLe: return l.b.CreateSub(l.b.CreateShl(lane_bit(), 1), l.b.getInt32(1));
    case S::kLanemaskGe: return l.b.CreateNeg(lane_bit());
    case S::kLanemaskGt: return l.b.CreateNeg(l.b.CreateShl(lane_bit(), 1));
    case S::kClock: return l.b.CreateTrunc(clock(0), l.b.getInt32Ty());
    case S::kClockHi: return high(clock(0));
    case S::kClock64: return clock(0);
    case S::kGlobaltimer: return clock(1);
    case S::kGlobaltimerLo: return l.b.CreateTrunc(clock(1), l.b.getInt32Ty());
    case S::kGlobaltimerHi: return high(clock(1));
    case S::kPerctamemorysize: return l.b.getInt32(OwnMemory(l, text));
    case S::kPerctamemoryoffset: {
      static_cast<void>(OwnMemory(l, text));
      const auto word = [&](Special special) { return l.b.CreateZExt(l.b.SpecialReg(special), l.b.getInt64Ty()); };
      Value* const low = word(Special::kOwnMemoryLow);
      return l.b.CreateOr(low, l.b.CreateShl(word(Special::kOwnMemoryHigh), 32));
    }
    case S::kTotalSmemSize: return OwnSharedBytes(l);
    case S::kAggrSmemSize: return l.b.CreateAdd(OwnSharedBytes(l), l.b.getInt32(kReservedSharedBytes));
    case S::kDynamicSmemSize: return l.b.SpecialReg(Special::kDynamicSharedBytes);
    case S::kWarpSz: return l.b.getInt32(kWarpSize);
    case S::kIsExplicitCluster: return l.b.getInt1(options.clusters);
    case S::kClusterNctaid: return is_w ? l.b.getInt32(0) : options.clusters ? cluster_dim(axis) : l.b.getInt32(1);
    case S::kClusterNctarank:
      if (!options.clusters) return l.b.getInt32(1);
      return l.b.CreateMul(l.b.CreateMul(cluster_dim(0), cluster_dim(1)), cluster_dim(2));
    case S::kClusterCtarank: return options.clusters ? l.b.SpecialReg(Special::kClusterRank) : l.b.getInt32(0);
    case S::kClusterCtaid:
      if (is_w || !options.clusters) return l.b.getInt32(0);
      return l.b.CreateURem(l.b.SpecialReg(At(Special::kCtaidX, axis)), cluster_dim(axis));
    case S::kClusterid:
      if (is_w) return l.b.getInt32(0);
      if (!options.clusters) return l.b.SpecialReg(At(Special::kCtaidX, axis));
      return l.b.CreateUDiv(l.b.SpecialReg(At(Special::kCtaidX, axis)), cluster_dim(axis));
    case S::kNclusterid:
      if (is_w) return l.b.getInt32(0);
      if (!options.clusters) return l.b.SpecialReg(At(Special::kNctaidX, axis));
      return ceil_div(l.b.SpecialReg(At(Special::kNctaidX, axis)), cluster_dim(axis));
    // Of the driver's private registers, cooperative groups read two: the address of the grid barrier's memory.
    case S::kEnvreg:
      if (ref->index == 1) return l.b.SpecialReg(Special::kGridWorkspaceHigh);
      if (ref->index == 2) return l.b.SpecialReg(Special::kGridWorkspaceLow);
      return l.b.getInt32(0);
    case S::kReservedSmemOffset: return l.b.getInt32(kReservedSharedOffsets[ref->index]);
    case S::kReservedSmemOffsetEnd:
    case S::kReservedSmemOffsetCap: return l.b.getInt32(kReservedSharedBytes);
    case S::kReservedSmemOffsetBegin:
    // Performance monitors read as zero: nothing counts.
    case S::kPm: return l.b.getInt32(0);
    // All SMs are in one domain of memory, and none is an additional one of it.
    case S::kLocalityDomainId:
    case S::kLocalityDomainSupplementalSm: return l.b.getInt32(0);
    case S::kPm0_64:
    case S::kPm1_64:
    case S::kPm2_64:
    case S::kPm3_64:
    case S::kPm4_64:
    case S::kPm5_64:
    case S::kPm6_64:
    case S::kPm7_64:
    case S::kCurrentGraphExec: return l.b.getInt64(0);
  }
  l.Refuse("special register '" + std::string(text) + "' is not supported");
}

// One component of a vector one read as a whole: `mov.v4.u32 %v, %tid`.
Value* ReadSpecialComponent(Lifter& l, std::string_view text, std::size_t component) {
  return ReadSpecial(l, std::string(text) + '.' + "xyzw"[component & 3]);
}

}  // namespace gridloom::exec
