// Code that memcheck adds (docs/memcheck.md). A global access has a number and, in the unit's memory, the bounds of what it
// touched last: inside of them it needs nobody. Every access to shared memory is told to the runtime, which answers whether
// the code may go ahead or has to go lane by lane.
#include <llvm/IR/Intrinsics.h>

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

/// i1: the runtime has nothing against the access and has noted it.
Value* WarpFunction::SharedChecked(Value* address, const Access& access, AccessKind kind) {
  SharedAccessImm imm;
  imm.bytes = static_cast<std::uint8_t>(access.bytes);
  imm.kind = kind;
  imm.strong = access.strong && kind != AccessKind::kAtomic ? 1 : 0;
  const std::optional<Linear> linear = AsLinear(address);
  if (linear && !linear->valid) {
    bool uniform = true, consecutive = true;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const std::int64_t offset = linear->pattern[lane] - linear->pattern[0];
      uniform &= offset == 0;
      consecutive &= offset == static_cast<std::int64_t>(lane) * access.bytes;
    }
    if (uniform) imm.pattern = SharedAccessImm::kUniform;
    else if (consecutive) imm.pattern = SharedAccessImm::kConsecutive;
  }
  const bool any = imm.pattern == SharedAccessImm::kAny;
  Value* offsets = nullptr;
  if (any) offsets = Lanes(address);
  else offsets = b_.CreateAdd(linear->base, b_.getInt64(static_cast<std::uint64_t>(linear->pattern[0])));
  Value* answer = b_.CreateCall(SharedCheckFunction(any), {warp_, mask_, access.line, b_.getInt64(PackImm(imm)), offsets});
  return b_.CreateICmpNE(answer, b_.getInt32(0));
}

/// i32 @gl.check_shared(ptr warp, i32 mask, i32 line, i64 imm, offsets): of 32 lanes, or of lane 0 for the other patterns.
llvm::Function* WarpFunction::SharedCheckFunction(bool any) {
  const char* const name = any ? "gl.check_shared.any" : "gl.check_shared";
  if (llvm::Function* existing = target_->getParent()->getFunction(name)) return existing;
  llvm::Function* function = OutOfLine(name, b_.getInt32Ty(), {}, any ? WarpType(b_.getInt64Ty()) : b_.getInt64Ty());
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
