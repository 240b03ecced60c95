#include "sim/exec/reorder/page_owners.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "rewriter/support/check.h"

namespace gridloom::exec {
namespace {

/// Where the ranges of all CTAs begin and end.
std::vector<std::uint64_t> CutsOf(std::span<const PageOwners::Kernel> kernels) {
  std::vector<std::uint64_t> cuts;
  for (const PageOwners::Kernel& kernel : kernels) {
    for (const CtaPages& cta : kernel.pages) {
      for (const PageSet::Range& range : cta.pages.ranges()) {
        cuts.push_back(range.first);
        cuts.push_back(range.last + 1);
      }
    }
    std::ranges::sort(cuts);
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  }
  return cuts;
}

std::uint32_t PlaceOf(std::uint64_t page, const std::vector<std::uint64_t>& cuts) {
  return static_cast<std::uint32_t>(std::ranges::lower_bound(cuts, page) - cuts.begin());
}

}  // namespace

PageOwners::PageOwners(std::span<const Kernel> kernels) {
  GL_CHECK(kernels.size() <= kMostKernels, "more kernels than a page's users have bits");
  const std::vector<std::uint64_t> cuts = CutsOf(kernels);
  users_.assign(cuts.size(), 0);
  parked_first_.assign(cuts.size(), {kNone, kNone});
  kernels_.reserve(kernels.size());
  for (const Kernel& kernel : kernels) Add(static_cast<std::uint32_t>(kernels_.size()), kernel, cuts);
  for (std::uint32_t k = 0; k < kernels_.size(); ++k) {
    for (std::uint32_t cta = 0; cta < kernels[k].ctas; ++cta) Advance({k, cta});
  }
}

void PageOwners::Add(std::uint32_t number, const Kernel& kernel, const std::vector<std::uint64_t>& cuts) {
  State& state = kernels_.emplace_back();
  state.first_cta = static_cast<std::uint32_t>(parked_next_.size());
  state.left.assign(cuts.size(), 0);
  state.ctas.resize(kernel.ctas);
  parked_next_.resize(parked_next_.size() + kernel.ctas, {kNone, kNone});
  for (const CtaPages& pages : kernel.pages) {
    Cta& cta = state.ctas[pages.cta];
    cta.first_span = cta.span = state.spans.size();
    for (const PageSet::Range& range : pages.pages.ranges()) {
      const Span span{PlaceOf(range.first, cuts), PlaceOf(range.last + 1, cuts)};
      for (Segment segment = span.first; segment < span.end; ++segment) {
        ++state.left[segment];
        users_[segment] |= std::uint64_t{1} << number;
      }
      if (state.spans.size() != cta.first_span && state.spans.back().end == span.first)
        state.spans.back().end = span.end;
      else state.spans.push_back(span);
    }
    cta.end_span = state.spans.size();
    if (cta.first_span != cta.end_span) cta.segment = state.spans[cta.first_span].first;
  }
}

std::vector<KernelCta> PageOwners::TakeReady() { return std::exchange(ready_, {}); }

std::uint32_t PageOwners::OwnerOf(Segment segment) const {
  return static_cast<std::uint32_t>(std::countr_zero(users_[segment]));
}

/// Goes on to the next segment that the CTA's kernel does not own. Those before it stay owned until the CTA has ended:
/// it names them itself.
void PageOwners::Advance(const KernelCta& cta) {
  const State& state = kernels_[cta.kernel];
  Cta& self = kernels_[cta.kernel].ctas[cta.cta];
  while (self.span != self.end_span) {
    const Span& span = state.spans[self.span];
    while (self.segment != span.end && OwnerOf(self.segment) == cta.kernel) ++self.segment;
    if (self.segment != span.end) {
      parked_next_[state.first_cta + cta.cta] = std::exchange(parked_first_[self.segment], cta);
      return;
    }
    if (++self.span != self.end_span) self.segment = state.spans[self.span].first;
  }
  ready_.push_back(cta);
}

/// The segment has a new owner.
void PageOwners::WakeAt(Segment segment) {
  const std::uint32_t owner = OwnerOf(segment);
  KernelCta waiting = std::exchange(parked_first_[segment], {kNone, kNone});
  while (waiting.kernel != kNone) {
    const State& state = kernels_[waiting.kernel];
    const KernelCta next = parked_next_[state.first_cta + waiting.cta];
    if (waiting.kernel == owner) Advance(waiting);
    else parked_next_[state.first_cta + waiting.cta] = std::exchange(parked_first_[segment], waiting);
    waiting = next;
  }
}

void PageOwners::Release(const KernelCta& cta) {
  State& state = kernels_[cta.kernel];
  const Cta& self = state.ctas[cta.cta];
  for (std::size_t span = self.first_span; span != self.end_span; ++span) {
    for (Segment segment = state.spans[span].first; segment != state.spans[span].end; ++segment) {
      if (--state.left[segment] != 0) continue;
      users_[segment] &= ~(std::uint64_t{1} << cta.kernel);
      if (users_[segment] != 0) WakeAt(segment);
    }
  }
}

}  // namespace gridloom::exec
