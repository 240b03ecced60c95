// Who feeds a grid that stays: a kernel whose warps wait for what the host writes into memory, a MasterKernel for one.
// The worker that has the grid's CTAs asks between its rounds over their warps, so that giving work and taking results
// costs no other thread, and sleeps while there is none. For kernels whose CTAs may wait for each other; their grids
// have one CTA.
#pragma once

namespace gridloom::exec {

class GridFeed {
 public:
  virtual ~GridFeed() = default;

  /// Called between two rounds, on the worker's thread. False: the warps have nothing to do until Wait has returned.
  virtual bool Feed() = 0;
  /// Returns when there may be something to do.
  virtual void Wait() = 0;
};

}  // namespace gridloom::exec
