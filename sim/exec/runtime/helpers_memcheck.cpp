// What code compiled for memcheck calls besides the accesses themselves.
#include "sim/exec/contract/async_copy_immediates.h"
#include "sim/exec/contract/read_group.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/memcheck/checker.h"

namespace gridloom::exec {

void Helper_kCheckShared(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  auto* const go_ahead = static_cast<std::uint32_t*>(args[0]);
  const auto* const offsets = static_cast<const std::uint64_t*>(args[1]);
  const auto what = UnpackImm<SharedAccessImm>(imm);
  const Unit& unit = *warp.cta->unit;
  UnitCheck& check = *unit.check;
  if (mask == ~0u && what.pattern != SharedAccessImm::kAny && what.kind == AccessKind::kRead && what.strong == 0 &&
      unit.ctas.size() == 1 && check.copies.empty() &&
      check.shadow.TryUsualRead(static_cast<std::uint32_t>(&warp - unit.warps), line, what, offsets)) {
    *go_ahead = 1;
    return;
  }
  *go_ahead = ServicesOf(warp).memcheck->CheckShared(warp, mask, line, what, offsets) ? 1 : 0;
}

void Helper_kCheckReads(WarpCtx* ctx, std::uint32_t mask, std::uint32_t, std::uint64_t, void* const* args) {
  Warp& warp = WarpOf(ctx);
  const Unit& unit = *warp.cta->unit;
  UnitCheck& check = *unit.check;
  const bool good =
      mask == ~0u && unit.ctas.size() == 1 && check.copies.empty() &&
      check.shadow.TryReads(static_cast<std::uint32_t>(&warp - unit.warps), *static_cast<const ReadGroup*>(args[2]),
                            static_cast<const std::uint64_t*>(args[1]));
  *static_cast<std::uint32_t*>(args[0]) = good ? 1 : 0;
}

void Helper_kCheckOrder(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  Memcheck& memcheck = *ServicesOf(warp).memcheck;
  if (imm == kCheckOrderCta) {
    warp.looks_elsewhere = true;
    memcheck.OrderCta(warp);
    if (UseOrder* const order = LaunchOf(warp).use_order) order->Fence();
  } else if (imm == kCheckOrderWarp) {
    memcheck.OrderWarp(warp);
  } else if (imm == kCopyBegins) {
    memcheck.BeginCopies(warp, mask, line, args);
  } else {
    memcheck.OrderCopies(warp, mask, imm, args);
  }
}

void Helper_kLoadedBits(WarpCtx* ctx, std::uint32_t mask, std::uint32_t, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  ServicesOf(warp).memcheck->LoadedBits(warp, mask, UnpackImm<ShadowImm>(imm),
                                        static_cast<const std::uint64_t*>(args[1]),
                                        static_cast<std::uint8_t*>(args[0]));
}

void Helper_kStoredBits(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  ServicesOf(warp).memcheck->StoredBits(warp, mask, line, UnpackImm<ShadowImm>(imm),
                                        static_cast<const std::uint64_t*>(args[0]),
                                        reinterpret_cast<const std::uint8_t* const*>(args + 1));
}

void Helper_kUseInvalid(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const*) {
  Warp& warp = WarpOf(ctx);
  ServicesOf(warp).memcheck->UseInvalid(warp, mask, line, static_cast<InvalidUse>(imm));
}

void Helper_kEnterSync(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  ServicesOf(warp).memcheck->EnterSync(warp, mask, line, UnpackImm<SyncCheckImm>(imm),
                                       static_cast<const std::uint32_t*>(args[0]));
}

void Helper_kLeaveSync(WarpCtx* ctx, std::uint32_t mask, std::uint32_t, std::uint64_t, void* const*) {
  Warp& warp = WarpOf(ctx);
  ServicesOf(warp).memcheck->LeaveSync(warp, mask);
}

void Helper_kPassSync(WarpCtx* ctx, std::uint32_t mask, std::uint32_t, std::uint64_t imm, void* const*) {
  Warp& warp = WarpOf(ctx);
  ServicesOf(warp).memcheck->PassSync(warp, mask, UnpackImm<PassSyncImm>(imm));
}

void OrderLanes(Warp& warp) {
  if (Memcheck* const memcheck = ServicesOf(warp).memcheck) memcheck->OrderWarp(warp);
}

}  // namespace gridloom::exec
