// Traces whose repeats are written out.
#pragma once

#include "sim/trace/kernel_trace.h"

namespace gridloom::test {

/// The same CTA without repeats; it has no events.
inline trace::CtaTrace Unrolled(const trace::CtaTrace& cta) {
  trace::CtaTrace out;
  out.lanes = cta.lanes;
  out.patterns = cta.patterns;
  for (std::uint32_t w = 0; w < cta.warps.size(); ++w) {
    const trace::WarpTrace& warp = cta.warps[w];
    trace::WarpTrace made{.first_visit = static_cast<std::uint32_t>(out.visits.size()),
                          .first_access = static_cast<std::uint32_t>(out.accesses.size())};
    const std::vector<trace::PathPiece> pieces = trace::PiecesOf(cta, w);
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      const std::uint32_t end =
          p + 1 < pieces.size() ? pieces[p + 1].first_access : warp.first_access + warp.access_count;
      for (std::uint64_t turn = 0; turn < pieces[p].times; ++turn) {
        for (std::uint32_t v = 0; v < pieces[p].visit_count; ++v)
          out.visits.push_back(cta.visits[pieces[p].first_visit + v]);
        for (std::uint32_t a = pieces[p].first_access; a < end; ++a) out.accesses.push_back(cta.accesses[a]);
      }
    }
    made.visit_count = static_cast<std::uint32_t>(out.visits.size()) - made.first_visit;
    made.access_count = static_cast<std::uint32_t>(out.accesses.size()) - made.first_access;
    out.warps.push_back(made);
  }
  return out;
}

}  // namespace gridloom::test
