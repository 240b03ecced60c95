// What memcheck asks about memory that is there for part of the work alone: memory of cudaMallocAsync and of graphs.
// And what it tells of the order that a launch and the host may make by flags in memory.
#pragma once

#include <string>

#include "sim/exec/device_memory.h"

namespace gridloom::exec {

class UseOrder {
 public:
  virtual ~UseOrder() = default;
  /// The launch uses the allocation. What is wrong with that, as the end of a sentence that names it ("which is freed
  /// in …"); empty: nothing. Any worker's thread.
  virtual std::string Use(const Allocation& allocation) = 0;
  /// The launch accesses memory that the host can access as well. Told of once for most instructions. Any worker's
  /// thread.
  virtual void ShareWithHost(bool reads, bool writes) = 0;
  /// It makes a fence, or a strong or atomic access to any memory: what it shares with the host may be flags.
  virtual void Fence() = 0;
};

}  // namespace gridloom::exec
