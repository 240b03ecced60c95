// Tasks that a program spawns by name (interpose/include/gridloom/pagoda.h): in no stream, in no order, waited for by
// their numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "interpose/launch/make_kernel.h"

namespace gridloom::session {

class Context;

/// Runs a launch as a task of the MasterKernel's, or as a grid where it cannot be one. NOT_SUPPORTED when no policy
/// asks for tasks.
cuda::CUresult SpawnTask(Context& context, LaunchRequest request, std::uint64_t* number);
/// INVALID_VALUE for a number that no task has had. A task that is over is success, or the error that its context has.
cuda::CUresult WaitForTask(Context& context, std::uint64_t number);
/// The same, or NOT_READY.
cuda::CUresult CheckTask(Context& context, std::uint64_t number);
/// Waits for all tasks that were spawned in the context so far.
void WaitForSpawnedTasks(Context& context);
/// The spawned tasks of the context that are not over.
std::vector<TaskPtr> SpawnedTasksOf(const Context& context);

}  // namespace gridloom::session
