// Code that memcheck adds (docs/memcheck.md). A global access has a number and, in the unit's memory, the bounds of what it
// touched last: inside of them it needs nobody. Every access to shared memory is told to the runtime, which answers whether
// the code may go ahead or has to go lane by lane.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cstddef>

#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

WarpFunction::Window WarpFunction::SiteWindow(const llvm::CallInst& call, Access& access) {
  const auto [it, inserted] = module_.site_of.try_emplace(&call, module_.check_sites);
  if (inserted) ++module_.check_sites;
  access.site = it->second;
  Value* sites = WarpField(offsetof(WarpCtx, check_sites), b_.getPtrTy());
  const auto word = [&](std::uint64_t n) {
    return b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), sites, access.site * 2ull + n));
  };
  Window window{word(0), word(1), nullptr, 0};
  window.changes = true;
  return window;
}

namespace {

/// Sets the pattern of rows of `lanes` lanes when the lanes stand so.
bool StandInRows(const LanePattern& pattern, unsigned lanes, SharedAccessImm& imm) {
  bool uniform = true, consecutive = true;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const std::int64_t offset = pattern[lane] - pattern[lane / lanes * lanes];
    uniform &= offset == 0;
    consecutive &= offset == static_cast<std::int64_t>(lane % lanes) * imm.bytes;
  }
  if (!uniform && !consecutive) return false;
  imm.pattern = uniform ? SharedAccessImm::kUniform : SharedAccessImm::kConsecutive;
  imm.row_lanes = static_cast<std::uint8_t>(lanes);
  return true;
}

}  // namespace

/// i1: the runtime has nothing against the access and has noted it.
Value* WarpFunction::SharedChecked(Value* address, const Access& access, AccessKind kind) {
  SharedAccessImm imm;
  imm.bytes = static_cast<std::uint8_t>(access.bytes);
  imm.kind = kind;
  imm.strong = access.strong && kind != AccessKind::kAtomic ? 1 : 0;
  const std::optional<Linear> linear = AsLinear(address);
  const unsigned lengths[] = {kWarpSize, kWarpSize / 2, kWarpSize / 4};
  const bool in_rows =
      linear && !linear->valid && std::ranges::any_of(lengths, [&](unsigned lanes) { return StandInRows(linear->pattern, lanes, imm); });
  Value* offsets = nullptr;
  if (!in_rows) {
    offsets = Lanes(address);
  } else {
    offsets = llvm::PoisonValue::get(llvm::FixedVectorType::get(b_.getInt64Ty(), kWarpSize / imm.row_lanes));
    for (unsigned row = 0; row < kWarpSize / imm.row_lanes; ++row) {
      Value* first = b_.CreateAdd(linear->base, b_.getInt64(static_cast<std::uint64_t>(linear->pattern[row * imm.row_lanes])));
      offsets = b_.CreateInsertElement(offsets, first, row);
    }
  }
  Value* answer = b_.CreateCall(SharedCheckFunction(offsets->getType()), {warp_, mask_, access.line, b_.getInt64(PackImm(imm)), offsets});
  return b_.CreateICmpNE(answer, b_.getInt32(0));
}

/// i32 @gl.check_shared.N(ptr warp, i32 mask, i32 line, i64 imm, <N x i64> offsets): of 32 lanes, or of the first lane of each row.
llvm::Function* WarpFunction::SharedCheckFunction(llvm::Type* offsets_type) {
  const std::string name = "gl.check_shared." + std::to_string(llvm::cast<llvm::FixedVectorType>(offsets_type)->getNumElements());
  if (llvm::Function* existing = target_->getParent()->getFunction(name)) return existing;
  llvm::Function* function = OutOfLine(name, b_.getInt32Ty(), {}, offsets_type);
  function->removeFnAttr(llvm::Attribute::Cold);
  llvm::IRBuilder<> b(BasicBlock::Create(context_, "entry", function));
  Value* out = b.CreateAlloca(b.getInt32Ty());
  Value* offsets = AlignedAlloca(b, function->getArg(4)->getType());
  b.CreateStore(function->getArg(4), offsets);
  CallHelperFrom(b, function, Helper::kCheckShared, {out, offsets});
  b.CreateRet(b.CreateLoad(b.getInt32Ty(), out));
  return function;
}

void WarpFunction::CheckOrder(std::uint64_t among) { CallHelper(Helper::kCheckOrder, mask_, b_.getInt32(0), among, {}); }

}  // namespace gridloom::exec
