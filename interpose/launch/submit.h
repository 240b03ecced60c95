// Operations on their way: into a stream, or into the graph that it is being captured to, and then run.
#pragma once

#include <cstdint>

#include "interpose/api/cuda_types.h"
#include "interpose/objects/operation.h"

namespace gridloom::session {

/// Runs the operation on the calling thread. A kernel's fault becomes the context's error; after one, only host
/// callbacks still run (they are told). Event, child and conditional operations are expressed as dependencies and do
/// nothing here. `origin`: where it comes from; null where nobody asks, or where a kernel knows it.
void Run(Context& context, const Operation& operation, const WorkOriginPtr& origin = {});

/// How the host waits for an operation it submits.
enum class Waiting : std::uint8_t {
  kNo,      ///< returns at once
  kIfIdle,  ///< runs here when nothing is in the way, else returns at once: for small copies and fills
  kYes,
};

/// Puts an operation into a stream, or into the graph the stream is being captured to. Answers the error of the context
/// when the host waited for the end.
cuda::CUresult Submit(Stream& stream, Operation operation, Waiting waiting = Waiting::kNo);

}  // namespace gridloom::session
