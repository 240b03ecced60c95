// What interpose/include/gridloom/pagoda.h asks the shim for; CUresult as numbers. NOT_SUPPORTED: the header launches
// itself.
#include "interpose/entry/entry.h"
#include "interpose/launch/spawned_tasks.h"
#include "interpose/objects/context.h"
#include "interpose/objects/current_context.h"
#include "interpose/objects/process.h"

using namespace gridloom;
using namespace gridloom::cuda;

namespace {

template <typename Body>
int AnswerWith(api::Need need, Body body) noexcept {
  if (api::CurrentMode() == api::Mode::kReal) return CUDA_ERROR_NOT_SUPPORTED;
  if (const CUresult status = api::CheckNeed(session::Process::Get(), need); status != CUDA_SUCCESS) return status;
  try {
    return body(session::ThisContext());
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int gridloomTaskSpawn(void* function, const unsigned* grid,
                                                             const unsigned* block, unsigned shared_bytes,
                                                             void** params, unsigned long long* task) {
  return AnswerWith(api::Need::kLaunch, [&](session::Context& context) {
    session::LaunchRequest request;
    request.function = static_cast<CUfunction>(function);
    request.grid = {grid[0], grid[1], grid[2]};
    request.block = {block[0], block[1], block[2]};
    request.dynamic_shared_bytes = shared_bytes;
    request.kernel_params = params;
    std::uint64_t number = 0;
    const CUresult status = session::SpawnTask(context, request, &number);
    if (status == CUDA_SUCCESS) *task = number;
    return status;
  });
}

__attribute__((visibility("default"))) int gridloomTaskWait(unsigned long long task) {
  return AnswerWith(api::Need::kContext,
                    [&](session::Context& context) { return session::WaitForTask(context, task); });
}

__attribute__((visibility("default"))) int gridloomTaskCheck(unsigned long long task) {
  return AnswerWith(api::Need::kContext, [&](session::Context& context) { return session::CheckTask(context, task); });
}

__attribute__((visibility("default"))) int gridloomTaskWaitAll() {
  return AnswerWith(api::Need::kContext, [&](session::Context& context) {
    session::WaitForSpawnedTasks(context);
    return context.status();
  });
}

}  // extern "C"
