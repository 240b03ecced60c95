// How a CTA of a kernel starts: its trace is loaded, it gets its place, and parts are told.
#pragma once

#include <cstdint>
#include <functional>

#include "rewriter/support/result.h"
#include "sim/timing/dispatch/cta_placement.h"
#include "sim/timing/dispatch/stream_order.h"
#include "sim/timing/dispatch/work_reports.h"

namespace gridloom::timing {

using StartCta = std::function<void(std::uint32_t sm, CtaStart start)>;

class CtaStarts {
 public:
  /// `observer` may be null.
  CtaStarts(StreamOrder& works, const Ports& ports, Observer* observer, CtaPlacement& placement, WorkReports& reports)
      : works_(works), ports_(ports), observer_(observer), placement_(placement), reports_(reports) {}

  enum class Placed : std::uint8_t {
    kYes,
    kNoRoom,
    kLimited,  ///< an SM would have room but for a limit of a part
    kNoMore,   ///< the kernel has no CTA that could start, though its grid says so
  };
  /// Starts the next CTA of a slice. Fails when its trace cannot be read.
  Result<Placed> Place(Cycle now, policy::KernelView& kernel, const policy::Slice& slice, const StartCta& start);
  /// A CTA has ended: it frees its place.
  void Release(const CtaEnd& end);

 private:
  StreamOrder& works_;
  const Ports& ports_;
  Observer* const observer_;
  CtaPlacement& placement_;
  WorkReports& reports_;
};

}  // namespace gridloom::timing
