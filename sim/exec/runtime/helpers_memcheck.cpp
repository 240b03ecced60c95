// What code compiled for memcheck calls besides the accesses themselves.
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/memcheck/checker.h"

namespace gridloom::exec {

void Helper_kCheckShared(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  auto* const go_ahead = static_cast<std::uint32_t*>(args[0]);
  *go_ahead =
      ServicesOf(warp).memcheck->CheckShared(warp, mask, line, UnpackImm<SharedAccessImm>(imm), static_cast<const std::uint64_t*>(args[1]))
          ? 1
          : 0;
}

void Helper_kCheckOrder(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  if (imm == kCheckOrderCta) ServicesOf(warp).memcheck->OrderCta(warp);
  else ServicesOf(warp).memcheck->OrderWarp(warp);
}

void Helper_kLoadedBits(WarpCtx* ctx, std::uint32_t mask, std::uint32_t, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  ServicesOf(warp).memcheck->LoadedBits(warp, mask, UnpackImm<ShadowImm>(imm), static_cast<const std::uint64_t*>(args[1]),
                                        static_cast<std::uint8_t*>(args[0]));
}

void Helper_kStoredBits(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  ServicesOf(warp).memcheck->StoredBits(warp, mask, line, UnpackImm<ShadowImm>(imm), static_cast<const std::uint64_t*>(args[0]),
                                        reinterpret_cast<const std::uint8_t* const*>(args + 1));
}

void Helper_kUseInvalid(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const*) {
  Warp& warp = WarpOf(ctx);
  ServicesOf(warp).memcheck->UseInvalid(warp, mask, line, static_cast<InvalidUse>(imm));
}

void OrderLanes(Warp& warp) {
  if (Memcheck* const memcheck = ServicesOf(warp).memcheck) memcheck->OrderWarp(warp);
}

}  // namespace gridloom::exec
