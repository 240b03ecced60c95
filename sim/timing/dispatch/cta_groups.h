// Thread blocks that become part of a kernel which has not ended, and kernels that end before all of their grid has
// run.
#pragma once

#include <memory>
#include <vector>

#include "sim/timing/dispatch/code_table.h"
#include "sim/timing/dispatch/ready_kernels.h"

namespace gridloom::timing {

class CtaGroups {
 public:
  CtaGroups(const Parameters& parameters, StreamOrder& works, ReadyKernels& ready, CodeTable& codes)
      : parameters_(parameters), works_(works), ready_(ready), codes_(codes) {}

  /// DeviceInput::Extend and Join.
  Status Extend(WorkId kernel, std::shared_ptr<trace::CtaSource> group);
  Status Join(WorkId kernel, WorkId launch);
  /// The kernel ended before it had run all of its grid: what has not started is not there. The launches that joined it
  /// and have nothing left.
  std::vector<WorkId> Cut(policy::KernelView& kernel, Cycle now);

 private:
  Status CheckLike(WorkId kernel, const trace::CtaSource& group, const DecodedCode& code) const;
  void Append(WorkId kernel, KernelState::Group group);

  const Parameters& parameters_;
  StreamOrder& works_;
  ReadyKernels& ready_;
  CodeTable& codes_;
};

}  // namespace gridloom::timing
