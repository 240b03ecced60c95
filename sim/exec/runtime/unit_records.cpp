// The buffers that a unit's warps write records into (sim/exec/records.h).
#include "sim/exec/runtime/observe.h"
#include "sim/exec/runtime/unit.h"

namespace gridloom::exec {

/// A warp's buffer holds some hundred records: enough to make passing them on cheap, few enough to stay in the cache.
void Unit::PrepareRecords(std::size_t buffers) {
  constexpr std::size_t kWords = 1024;
  records_.clear();
  if (!launch->observer && !launch->records) return;
  records_.resize(buffers * kWords);
  for (std::uint32_t i = 0; i < warp_count; ++i) {
    std::uint64_t* const buffer = records_.data() + (buffers == 1 ? 0 : i * kWords);
    warps[i].ctx.record_cursor = warps[i].records = buffer;
    warps[i].ctx.record_limit = buffer + kWords - kMaxRecordWords;
  }
}

void Unit::FlushRecords(Warp& warp, bool ended) {
  const std::span<const std::uint64_t> words(warp.records, warp.ctx.record_cursor);
  if (launch->observer) TellObserver(warp, words);
  if (launch->records) launch->records->OnRecords(PlaceOf(warp), words, ended);
  warp.ctx.record_cursor = warp.records;
}

}  // namespace gridloom::exec
