// What memcheck asks about memory that is there for part of the work alone: memory of cudaMallocAsync and of graphs.
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
};

}  // namespace gridloom::exec
