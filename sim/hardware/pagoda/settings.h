// What the part `pagoda` is told.
#pragma once

#include <cstdint>

#include "sim/timing/cycle.h"

namespace gridloom::hardware::pagoda {

struct Settings {
  std::uint64_t threads = 512;       ///< kernels of fewer are tasks
  std::uint32_t warps = 32;          ///< of a master block
  std::uint32_t blocks = 0;          ///< master blocks of an SM; 0: as many as fit
  std::uint32_t rows = 32;           ///< of a column of the TaskTable
  std::uint32_t pool_bytes = 32768;  ///< of shared memory for the tasks of a master block
  std::uint32_t batch = 0;           ///< tasks that must all have ended before the next are spawned; 0: none
  timing::Cycle spawn = 0;           ///< what a spawn takes of the host's time
  timing::Cycle flush = 0;           ///< without a new task, until the host lets the last one begin
  timing::Cycle timeout = 0;         ///< from one look at the device's table to the next, while somebody waits
  timing::Cycle linger = 0;          ///< how long the MasterKernel stays without tasks
  timing::Cycle sync = 0;            ///< from the end of a copy to the host that waits for it
};

}  // namespace gridloom::hardware::pagoda
