// GeMTC's SuperKernel (sim/hardware/gemtc/super_kernel.h): the first thread of a block takes a task, all threads of the
// block do it.
#include "rewriter/kernels/device.h"
#include "rewriter/kernels/queue_records.h"

namespace gridloom::hardware::gemtc {

using namespace kernels;

extern "C" {
__shared__ Word gl_super_task;
/// As master.cu has it.
__device__ void gl_run_task(Word number, Word task);
}

namespace {

constexpr Word kNone = 0xFFFFFFFF;

__device__ Word Take(Queue* queue) {
  volatile Queue& shown = *queue;
  while (Exchange(queue->lock, 0, 1) != 0) {
  }
  DeviceFence();
  Word task = shown.head;
  if (task < shown.count) shown.head = task + 1;
  else task = kNone;
  DeviceFence();
  shown.lock = 0;
  return task;
}

}  // namespace

extern "C" __global__ void gl_super(Queue* queue) {
  volatile Word& shown = gl_super_task;
  for (;;) {
    if (ThreadNumber() == 0) shown = Take(queue);
    WaitForBlock();
    const Word number = shown;
    if (number == kNone) return;
    const QueuedTask& task = reinterpret_cast<const QueuedTask*>(queue + 1)[number];
    const Word kernel = task.kernel;
    if (ThreadNumber() < task.threads) gl_run_task(kernel, SharedAddress(&shown));
    WaitForWarp();
    DeviceFence();
    WaitForBlock();
  }
}

}  // namespace gridloom::hardware::gemtc
