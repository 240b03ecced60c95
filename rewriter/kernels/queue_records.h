// The queue of tasks in global memory that GeMTC's SuperKernel (super.cu) and the host share. For C++ and CUDA.
#pragma once

#include <cstdint>

namespace gridloom::hardware::gemtc {

struct QueuedTask {
  std::uint32_t kernel, threads;
  std::uint32_t unused[14];
};

/// The tasks follow it.
struct Queue {
  std::uint32_t lock;
  std::uint32_t head;   ///< number of the next task
  std::uint32_t count;  ///< how many there are
  std::uint32_t unused[13];
};
static_assert(sizeof(Queue) == 64 && sizeof(QueuedTask) == 64);

}  // namespace gridloom::hardware::gemtc
