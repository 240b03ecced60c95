// The buffers that a unit's warps write records into (sim/exec/records.h).
#include <utility>

#include "sim/exec/runtime/observe.h"
#include "sim/exec/runtime/unit.h"

namespace gridloom::exec {
namespace {

/// A buffer holds some hundred records: enough to make passing them on cheap, few enough to stay in the cache.
constexpr std::size_t kWords = 1024;
constexpr std::size_t kLimit = kWords - kMaxGroupWords - 1;

constexpr std::uint64_t kWarpEndWord = RecordHeader{.kind = RecordKind::kWarpEnd}.Pack();

}  // namespace

void Unit::PrepareRecords(std::size_t buffers) {
  records_.clear();
  records_ended_ = 0;
  for (Cta& cta : ctas) cta.records = launch->records ? &launch->records->Open() : nullptr;
  if (!launch->observer && !launch->records) return;
  records_.resize(buffers * kWords);
  record_patterns_.Reset();
  for (std::uint32_t i = 0; i < warp_count; ++i) {
    const bool shared = buffers == 1;
    std::uint64_t* const buffer = records_.data() + (shared ? 0 : i * kWords);
    warps[i].ctx.record_cursor = warps[i].records = buffer;
    warps[i].records_of = shared ? 0 : warps[i].ctx.warp_id;
    warps[i].ctx.record_limit = buffer + kLimit;
    warps[i].ctx.record_sites = record_patterns_.sites();
  }
}

void Unit::FlushRecords(Warp& warp, std::uint32_t ended) {
  const std::span<const std::uint64_t> words(warp.records, warp.ctx.record_cursor);
  if (launch->observer) TellObserver(warp, words);
  if (warp.cta->records) warp.cta->records->OnRecords(PlaceOf(warp), words, ended + std::exchange(records_ended_, 0));
  warp.ctx.record_cursor = warp.records;
}

void Unit::EndRecords(Warp& warp) {
  *warp.ctx.record_cursor++ = kWarpEndWord;
  FlushRecords(warp, 1);
}

void Unit::EndSharedRecords(Warp& warp) {
  *warp.ctx.record_cursor++ = kWarpEndWord;
  const bool cta_ends = warp.ctx.warp_id + 1 == launch->ctx.warps_per_cta;
  ++records_ended_;
  if (cta_ends || launch->observer || warp.ctx.record_cursor > warp.ctx.record_limit) FlushRecords(warp, 0);
  Warp& next = &warp + 1 == warps + warp_count ? warps[0] : (&warp)[1];
  next.ctx.record_cursor = warp.ctx.record_cursor;
}

}  // namespace gridloom::exec
