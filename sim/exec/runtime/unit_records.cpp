// The buffers that a unit's warps write records into (sim/exec/contract/records.h).
#include <utility>

#include "sim/exec/runtime/observe.h"
#include "sim/exec/runtime/unit.h"

namespace gridloom::exec {
namespace {

/// A buffer holds some hundred records: enough to make passing them on cheap, few enough to stay in the cache.
constexpr std::size_t kWords = 1024;
constexpr std::size_t kLimit = kWords - kMaxGroupWords - 1;
/// CTAs that have ended are passed on from so many words on: later, they push what the kernel needs out of the cache.
constexpr std::ptrdiff_t kEndedWords = 256;

constexpr std::uint64_t kWarpEndWord = RecordHeader{.kind = RecordKind::kWarpEnd}.Pack();

}  // namespace

void Unit::PrepareRecords(std::size_t buffers) {
  records_.clear();
  ended_warps_ = observed_warps_ = 0;
  ended_ctas_.clear();
  passed_on_part_ = false;
  shared_records_ = buffers == 1;
  for (Cta& cta : ctas) {
    cta.records = launch->records ? &launch->records->Open() : nullptr;
    cta.warps_with_records = 0;
  }
  if (!launch->observer && !launch->records) return;
  records_.resize(buffers * kWords);
  cta_records_ = records_.data();
  observed_loops_.clear();
  observed_loops_.resize(launch->observer ? buffers : 0);
  record_patterns_.Reset(launch->kernel->instruction_lines.size());
  for (std::uint32_t i = 0; i < warp_count; ++i) {
    std::uint64_t* const buffer = records_.data() + (shared_records_ ? 0 : i * kWords);
    warps[i].ctx.record_cursor = warps[i].records = buffer;
    warps[i].records_of = shared_records_ ? 0 : warps[i].ctx.warp_id;
    warps[i].ctx.record_limit = buffer + kLimit;
    warps[i].ctx.record_sites = record_patterns_.sites();
  }
}

void Unit::FlushRecords(Warp& warp, std::uint32_t ended) {
  if (!ended_ctas_.empty()) PassOnEndedCtas();
  const std::span<const std::uint64_t> words(shared_records_ ? cta_records_ : warp.records, warp.ctx.record_cursor);
  if (launch->observer && !words.empty())
    observed_warps_ += TellObserver(shared_records_ ? warp.cta->warps + observed_warps_ : &warp, words,
                                    observed_loops_[static_cast<std::size_t>(warp.records - records_.data()) / kWords]);
  if (shared_records_) {
    const std::uint32_t before = std::exchange(ended_warps_, warp.ctx.warp_id + ended);
    ended = ended_warps_ - before;
    passed_on_part_ = ended_warps_ != launch->ctx.warps_per_cta;
    if (!passed_on_part_) ended_warps_ = observed_warps_ = 0;
    cta_records_ = warp.records;
  }
  if (warp.cta->records) {
    RecordPlace place;
    PutPlace(warp, place);
    warp.cta->records->OnRecords(place, words, ended);
  }
  warp.ctx.record_cursor = warp.records;
}

void Unit::EndRecords(Warp& warp) {
  Cta& cta = *warp.cta;
  if (launch->observer || !cta.records) {
    *warp.ctx.record_cursor++ = kWarpEndWord;
    return FlushRecords(warp, 1);
  }
  // The last one out of a ring that does not count its warps ends for all.
  if (++cta.warps_with_records < launch->ctx.warps_per_cta && live_warps != 0) return;
  cta.warps_with_records = 0;
  ended_warps_records_.clear();
  for (Warp& ended : std::span(cta.warps, launch->ctx.warps_per_cta)) {
    *ended.ctx.record_cursor++ = kWarpEndWord;
    ended_warps_records_.emplace_back(ended.records, ended.ctx.record_cursor);
    ended.ctx.record_cursor = ended.records;
  }
  RecordPlace place;
  PutPlace(warp, place);
  cta.records->OnCta(place, ended_warps_records_);
}

void Unit::EndCtaRecords() {
  Warp& last = warps[warp_count - 1];
  last.ctx.record_cursor = warps[0].ctx.record_cursor;
  EndSharedCta(last);
  warps[0].ctx.record_cursor = last.ctx.record_cursor;
}

void Unit::EndSharedRecords(Warp& warp) {
  *warp.ctx.record_cursor++ = kWarpEndWord;
  const bool cta_ends = warp.ctx.warp_id + 1 == launch->ctx.warps_per_cta;
  if (cta_ends) EndSharedCta(warp);
  else if (warp.ctx.record_cursor > warp.ctx.record_limit) FlushRecords(warp, 1);
  Warp& next = &warp + 1 == warps + warp_count ? warps[0] : (&warp)[1];
  next.ctx.record_cursor = warp.ctx.record_cursor;
}

/// CTAs are passed on several at a time, when their words are no longer being written. Those of a cluster have
/// different places.
void Unit::EndSharedCta(Warp& last) {
  if (launch->observer || !last.cta->records || ctas.size() != 1 || passed_on_part_) return FlushRecords(last, 1);
  const std::uint64_t number = CtaNumber(*last.cta);
  RecordedCta& ended = ended_ctas_.emplace_back();
  ended.cta_index = number;
  ended.local_base = LocalWindow(last, number);
  ended.words = {cta_records_, last.ctx.record_cursor};
  cta_records_ = last.ctx.record_cursor;
  if (last.ctx.record_cursor - last.records < kEndedWords) return;
  PassOnEndedCtas();
  last.ctx.record_cursor = cta_records_ = last.records;
}

void Unit::PassOnEndedCtas() {
  if (ended_ctas_.empty()) return;
  RecordPlace place;
  PutPlace(*warps->cta->warps, place);
  warps->cta->records->OnCtas(place, ended_ctas_, launch->ctx.warps_per_cta);
  ended_ctas_.clear();
}

}  // namespace gridloom::exec
