// What kernels tell of their accesses: records of each one, and ranges of global memory before and after.
#include "sim/exec/contract/records.h"
#include "sim/exec/ranges/access_observer.h"
#include "sim/exec/ranges/range_pieces.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/observe.h"

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

std::uint64_t LocalWindow(const Warp& warp, std::uint64_t cta) {
  constexpr std::uint64_t kBegin = std::uint64_t{1} << 46, kWindows = 8192;
  const std::uint64_t first = cta * LaunchOf(warp).ctx.warps_per_cta;
  return kBegin + first % kWindows * warp.ctx.local_stride * kWarpSize;
}

void PutPlace(const Warp& warp, RecordPlace& place) {
  const CtaCtx& cta = warp.cta->ctx;
  const WarpCtx &first = warp.cta->warps[0].ctx, &last = warp.cta->warps[LaunchOf(warp).ctx.warps_per_cta - 1].ctx;
  place.cta_index = CtaNumber(warp);
  place.buffer = warp.records_of;
  place.shared_base = cta.shared_base;
  place.shared_bytes = cta.shared_bytes;
  place.generic_local = first.local_base;
  place.generic_local_bytes = last.local_base - first.local_base + std::uint64_t{first.local_stride} * kWarpSize;
  place.local_base = LocalWindow(warp, place.cta_index);
  place.local_stride = warp.ctx.local_stride;
}

std::uint32_t TellObserver(const Warp* warp, std::span<const std::uint64_t> words, RecordLoops& loops) {
  const Launch& launch = LaunchOf(*warp);
  const std::uint64_t cta_index = CtaNumber(*warp);
  const Dim3 cta = PlaceInGrid(*warp->cta);
  std::uint32_t ends = 0;
  RecordReader reader(words, &loops);
  while (reader.Next()) {
    const RecordHeader& header = reader.header();
    if (header.kind == RecordKind::kWarpEnd) ++ends;
    if (header.kind == RecordKind::kBlock || header.kind == RecordKind::kWarpEnd ||
        (header.space != Space::kGlobal && header.space != Space::kGeneric))
      continue;
    const std::uint64_t* const addresses = reader.addresses();
    const std::uint32_t mask =
        header.space == Space::kGeneric ? GlobalLanes(warp[ends], header.mask, addresses) : header.mask;
    if (mask == 0) continue;
    launch.observer->OnAccess({.cta = cta,
                               .cta_index = cta_index,
                               .warp = warp[ends].ctx.warp_id,
                               .mask = mask,
                               .line = launch.kernel->instruction_lines[header.instruction],
                               .kind = header.access,
                               .bytes = header.bytes,
                               .addresses = addresses});
  }
  return ends;
}

void Helper_kLearnRecord(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  RecordPatterns& patterns = WarpOf(ctx).cta->unit->record_patterns();
  ctx->record_cursor = patterns.Learn(patterns.sites()[imm], mask, ctx->record_cursor - RecordSlot::kMaxWords);
}

void Helper_kFlushRecords(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  warp.cta->unit->FlushRecords(warp, 0);
}

void RecordEvent(Warp& warp, std::uint32_t lane, std::uint64_t imm, const RecordedEvent& event) {
  if (LaunchOf(warp).records == nullptr) return;
  if (warp.ctx.record_cursor > warp.ctx.record_limit) warp.cta->unit->FlushRecords(warp, 0);
  event.Put(1u << lane, static_cast<std::uint32_t>(imm >> kEventInstructionShift), warp.ctx.record_cursor);
  warp.ctx.record_cursor += RecordedEvent::kWords;
}

namespace {

/// Ranges that have nothing in common with their allocation are no events.
void RecordRange(Warp& warp, std::uint64_t imm, const RangeCall& call) {
  if (LaunchOf(warp).records == nullptr) return;
  const auto allocation = ServicesOf(warp).memory->Find(call.array);
  if (!allocation) return;
  for (const RangePieces& pieces : CutRange(call, allocation->base, allocation->base + allocation->bytes)) {
    if (pieces.count == 0) continue;
    RecordEvent(warp, call.lane, imm,
                {.kind = call.op == RangeOp::kSet ? RecordedEvent::kSetRange : RecordedEvent::kReleaseRange,
                 .flags = static_cast<std::uint8_t>(call.flags & (kRangeRead | kRangeWrite)),
                 .data = {pieces.base, pieces.width, pieces.stride, pieces.count}});
  }
}

}  // namespace

void Helper_kRange(WarpCtx* ctx, std::uint32_t mask, std::uint32_t, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  const Launch& launch = LaunchOf(warp);
  if (launch.ranges == nullptr && launch.records == nullptr) return;
  const auto range = UnpackImm<RangeImm>(imm);
  ForEachLane(mask, [&](std::uint32_t lane) {
    const auto word = [&](int i) { return static_cast<const std::uint64_t*>(args[i])[lane]; };
    const auto flags = [&](int i) { return static_cast<const std::uint32_t*>(args[i])[lane]; };
    RangeCall call{.op = range.op,
                   .cta_index = CtaNumber(warp),
                   .warp = warp.ctx.warp_id,
                   .lane = lane,
                   .array = word(0),
                   .base = word(1)};
    if (range.strided) {
      call.stride = word(2);
      call.count = word(3);
      call.width = word(4);
      call.flags = flags(5);
    } else {
      call.width = word(2) > call.base ? word(2) - call.base : 0;
      call.flags = flags(3);
    }
    if (launch.ranges != nullptr) launch.ranges->OnRange(call);
    RecordRange(warp, imm, call);
  });
}

}  // namespace gridloom::exec
