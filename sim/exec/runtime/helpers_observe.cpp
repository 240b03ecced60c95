// What kernels tell of their accesses to global memory: each one as it happens, and ranges of them before and after.
#include "sim/exec/access_observer.h"
#include "sim/exec/range_sink.h"
#include "sim/exec/runtime/helpers.h"

namespace gridloom::exec {
namespace {

/// Generic addresses may lie in the CTA's shared window or in local memory.
std::uint32_t GlobalLanes(const Warp& warp, std::uint32_t mask, const std::uint64_t* addresses) {
  const CtaCtx& cta = warp.cta->ctx;
  const std::uint64_t local_bytes = std::uint64_t{warp.ctx.local_stride} * kWarpSize;
  std::uint32_t global = 0;
  ForEachLane(mask, [&](std::uint32_t lane) {
    const bool shared = addresses[lane] - cta.shared_base < cta.shared_bytes;
    const bool local = addresses[lane] - warp.ctx.local_base < local_bytes;
    if (!shared && !local) global |= 1u << lane;
  });
  return global;
}

}  // namespace

void TellObserver(Warp& warp, std::uint32_t mask, std::uint32_t line, const RecordImm& imm, const std::uint64_t* addresses) {
  AccessObserver* const observer = LaunchOf(warp).observer;
  if (!observer || imm.space == Space::kShared || imm.space == Space::kLocal) return;
  if (imm.space == Space::kGeneric) mask = GlobalLanes(warp, mask, addresses);
  if (mask == 0) return;
  const std::uint32_t* const cta = warp.cta->ctx.ctaid;
  observer->OnAccess({.cta = {cta[0], cta[1], cta[2]},
                      .cta_index = CtaNumber(warp),
                      .warp = warp.ctx.warp_id,
                      .mask = mask,
                      .line = line,
                      .kind = imm.kind,
                      .bytes = imm.bytes,
                      .addresses = addresses});
}

void Helper_kRecordAccess(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  TellObserver(WarpOf(ctx), mask, line, UnpackImm<RecordImm>(imm), static_cast<const std::uint64_t*>(args[0]));
}

void Helper_kRange(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  RangeSink* const sink = LaunchOf(warp).ranges;
  if (!sink) return;
  const auto range = UnpackImm<RangeImm>(imm);
  ForEachLane(mask, [&](std::uint32_t lane) {
    const auto word = [&](int i) { return static_cast<const std::uint64_t*>(args[i])[lane]; };
    const auto flags = [&](int i) { return static_cast<const std::uint32_t*>(args[i])[lane]; };
    RangeCall call{.op = range.op, .cta_index = CtaNumber(warp), .array = word(0), .base = word(1)};
    if (range.strided) {
      call.stride = word(2);
      call.count = word(3);
      call.width = word(4);
      call.flags = flags(5);
    } else {
      call.width = word(2) > call.base ? word(2) - call.base : 0;
      call.flags = flags(3);
    }
    sink->OnRange(call);
  });
}

}  // namespace gridloom::exec
