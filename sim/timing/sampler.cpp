#include "sim/timing/sampler.h"

#include <algorithm>
#include <tuple>

#include "sim/timing/engine.h"

namespace gridloom::timing {
namespace {

/// Joins residencies of one kernel on one SM with pauses of at most `resolution`. Sorted by SM, kernel and begin.
void Join(std::vector<Residency>& all, const std::vector<WorkResult>& works, Cycle resolution) {
  std::vector<Residency> joined;
  for (const Residency& next : all) {
    Residency* last = joined.empty() ? nullptr : &joined.back();
    const bool same =
        last != nullptr && last->sm == next.sm && works[last->first_launch].name == works[next.first_launch].name;
    if (!same || next.begin > last->end + resolution) {
      joined.push_back(next);
      continue;
    }
    last->end = std::max(last->end, next.end);
    last->busy = std::min(last->busy + next.busy, last->end - last->begin);  // launches that ran at the same time
    last->first_launch = std::min(last->first_launch, next.first_launch);
    last->last_launch = std::max(last->last_launch, next.last_launch);
  }
  all = std::move(joined);
}

}  // namespace

void Sampler::OnCtaStart(Cycle at, const CtaPlace& place) {
  cta_begin_[{place.sm, place.slot}] = at;
  const auto [it, first_on_sm] = open_.try_emplace({place.launch, place.sm});
  Open& open = it->second;
  if (!running_.contains(place.launch) && std::ranges::find(began_, place.launch) == began_.end())
    began_.push_back(place.launch);
  if (!first_on_sm && open.ctas == 0 && at > open.residency.end + resolution_) Close(open);
  if (open.residency.end == 0)
    open.residency = {
        .sm = place.sm, .first_launch = place.launch, .last_launch = place.launch, .begin = at, .end = at};
  if (open.ctas++ == 0) open.busy_since = std::max(at, open.residency.end);
}

void Sampler::OnCtaEnd(Cycle at, const CtaPlace& place) {
  if (options_.ended_ctas != nullptr) options_.ended_ctas->fetch_add(1, std::memory_order_relaxed);
  const Cycle begin = cta_begin_[{place.sm, place.slot}];
  if (ctas_.size() < options_.max_ctas) ctas_.push_back({place, begin, at});
  else ++ctas_left_out_;
  Open& open = open_.at({place.launch, place.sm});
  // A CTA that was placed and has not begun counts as there: the pause is shorter than launch.cta_cycles.
  open.residency.end = at;
  if (--open.ctas == 0) open.residency.busy += at - std::min(at, open.busy_since);
}

void Sampler::OnKernelEnd(Cycle at, std::uint32_t launch) {
  static_cast<void>(at);
  ended_.push_back(launch);
  const auto first = open_.lower_bound({launch, 0}), last = open_.lower_bound({launch + 1, 0});
  for (auto it = first; it != last; ++it) Close(it->second);
  open_.erase(first, last);
}

void Sampler::Close(Open& open) {
  if (residencies_.size() < 2 * options_.max_residencies) residencies_.push_back(open.residency);
  else ++residencies_left_out_;
  open.residency = {};
}

void Sampler::OnWindow(const Engine& engine, Cycle begin) {
  if (!began_.empty() || !ended_.empty()) SnapKernels(engine);
  const Cycle last = samples_.empty() ? 0 : samples_.back().at;
  const bool pause = begin >= engine.now() + interval_;  // so that it is not mixed with what was before and after
  if (engine.now() >= last + interval_ || (pause && engine.now() > last)) Take(engine, engine.now());
  if (pause) Take(engine, begin);
  if (residencies_.size() > options_.max_residencies) Coarsen(engine);
}

/// Up to the next sample; but each pause has its own, and there may be some in a long period.
Cycle Sampler::WantsWindows(const Engine&, Cycle period) const {
  if (!began_.empty() || !ended_.empty() || samples_.empty() || period >= interval_) return 0;
  return samples_.back().at + interval_ - 1;
}

void Sampler::SnapKernels(const Engine& engine) {
  const Counters sums = engine.counters_now();
  for (const std::uint32_t launch : ended_) {
    const auto began = running_.find(launch);
    Counters during = sums;
    during -= began->second;
    kernels_[engine.result(launch).name] += during;
    running_.erase(began);
  }
  for (const std::uint32_t launch : began_) running_.emplace(launch, sums);
  began_.clear();
  ended_.clear();
}

void Sampler::Take(const Engine& engine, Cycle at) {
  samples_.push_back({at, engine.counters_now()});
  if (samples_.size() <= options_.max_samples) return;
  // Every second one, the last included.
  std::size_t kept = 0;
  for (std::size_t i = 1 - samples_.size() % 2; i < samples_.size(); i += 2) samples_[kept++] = samples_[i];
  samples_.resize(kept);
  interval_ *= 2;
}

void Sampler::Coarsen(const Engine& engine) {
  const std::vector<WorkResult> works = engine.results();
  std::ranges::sort(residencies_, {},
                    [&](const Residency& r) { return std::tie(r.sm, works[r.first_launch].name, r.begin); });
  while (residencies_.size() > options_.max_residencies / 2 && resolution_ <= engine.now()) {
    resolution_ *= 2;
    Join(residencies_, works, resolution_);
  }
}

void Sampler::Finish(const Engine& engine) {
  SnapKernels(engine);
  if (samples_.empty() || samples_.back().at < engine.now()) Take(engine, engine.now());
  for (auto& [key, open] : open_) Close(open);
  open_.clear();
  if (residencies_.size() > options_.max_residencies) Coarsen(engine);
  std::ranges::sort(residencies_, {}, [](const Residency& r) { return std::tie(r.sm, r.begin, r.first_launch); });
}

}  // namespace gridloom::timing
