// Fills. The host does not wait for them, unless they go to pinned host memory (CUDA driver API, "API synchronization
// behavior") or to memory that the program said so of (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS); one that can start at once
// runs on the calling thread.
#include "hooks/support.h"
#include "interpose/launch/copy.h"
#include "interpose/launch/submit.h"
#include "sim/exec/extent.h"

namespace gridloom::hooks {

namespace {

/// The program wants the host to wait for what is done with the memory.
bool IsSynchronous(Context& context, CUdeviceptr pointer) {
  const auto allocation = context.device().memory().Find(pointer);
  return allocation && context.device().notes().Of(*allocation).sync_memops;
}

CUresult Fill(CUdeviceptr dst, std::size_t pitch, unsigned value, unsigned element, std::size_t width,
              std::size_t height, CUstream handle, bool host_waits) {
  session::StreamPtr stream;
  GL_CU_TRY(FindStream(handle, &stream));
  session::FillOp op;
  GL_CU_TRY(session::MakeFill(stream->context(), {dst, pitch, value, element, width, height}, &op));
  constexpr std::size_t kInlineBytes = 256u << 10;
  const exec::Extent bytes = exec::Extent(width) * height * element;
  session::Waiting waiting = bytes <= kInlineBytes || host_waits ? session::Waiting::kIfIdle : session::Waiting::kNo;
  if (host_waits && (session::IsPinned(stream->context(), dst) || IsSynchronous(stream->context(), dst)))
    waiting = session::Waiting::kYes;
  return session::Submit(*stream, op, waiting);
}

}  // namespace

#define GL_MEMSET(bits, type)                                                                                          \
  CUresult cuMemsetD##bits##_v2(Process& process, CUdeviceptr dst, type value, std::size_t count) {                    \
    return Fill(dst, 0, value, bits / 8, count, 1, nullptr, true);                                                     \
  }                                                                                                                    \
  CUresult cuMemsetD##bits##Async(Process& process, CUdeviceptr dst, type value, std::size_t count, CUstream stream) { \
    return Fill(dst, 0, value, bits / 8, count, 1, stream, false);                                                     \
  }                                                                                                                    \
  CUresult cuMemsetD2D##bits##_v2(Process& process, CUdeviceptr dst, std::size_t pitch, type value, std::size_t width, \
                                  std::size_t height) {                                                                \
    return Fill(dst, pitch, value, bits / 8, width, height, nullptr, true);                                            \
  }                                                                                                                    \
  CUresult cuMemsetD2D##bits##Async(Process& process, CUdeviceptr dst, std::size_t pitch, type value,                  \
                                    std::size_t width, std::size_t height, CUstream stream) {                          \
    return Fill(dst, pitch, value, bits / 8, width, height, stream, false);                                            \
  }

GL_MEMSET(8, unsigned char)
GL_MEMSET(16, unsigned short)
GL_MEMSET(32, unsigned)
#undef GL_MEMSET

}  // namespace gridloom::hooks
