// Copies.
#include "interpose/launch/copy.h"

#include "hooks/support.h"
#include "interpose/launch/capture.h"
#include "interpose/launch/submit.h"

namespace gridloom::hooks {

using session::CopyOp;
using session::End;
using session::Waiting;

namespace {

std::uint64_t Number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

/// A copy on the default stream that the host waits for.
CUresult RunNow(CopyOp op) {
  GL_CU_TRY(session::RefuseUnsafeCall());
  session::StreamPtr stream;
  GL_CU_TRY(FindStream(nullptr, &stream));
  return session::Submit(*stream, std::move(op), Waiting::kYes);
}
CUresult RunLater(CopyOp op, CUstream handle) {
  session::StreamPtr stream;
  GL_CU_TRY(FindStream(handle, &stream));
  return session::SubmitCopyAsync(*stream, std::move(op));
}

CUresult CopyNow(End dst_end, std::uint64_t dst, End src_end, std::uint64_t src, std::size_t bytes) {
  CopyOp op;
  GL_CU_TRY(session::MakeCopy(ThisContext(), dst_end, dst, src_end, src, bytes, &op));
  return RunNow(std::move(op));
}
CUresult CopyLater(End dst_end, std::uint64_t dst, End src_end, std::uint64_t src, std::size_t bytes, CUstream stream) {
  CopyOp op;
  GL_CU_TRY(session::MakeCopy(ThisContext(), dst_end, dst, src_end, src, bytes, &op));
  return RunLater(std::move(op), stream);
}
CUresult ArrayNow(CUarray dst, std::size_t dst_offset, CUarray src, std::size_t src_offset, End end,
                  std::uint64_t linear, std::size_t bytes) {
  CopyOp op;
  GL_CU_TRY(session::MakeArrayCopy(ThisContext(), dst, dst_offset, src, src_offset, end, linear, bytes, &op));
  return RunNow(std::move(op));
}
CUresult ArrayLater(CUarray dst, std::size_t dst_offset, CUarray src, std::size_t src_offset, End end,
                    std::uint64_t linear, std::size_t bytes, CUstream stream) {
  CopyOp op;
  GL_CU_TRY(session::MakeArrayCopy(ThisContext(), dst, dst_offset, src, src_offset, end, linear, bytes, &op));
  return RunLater(std::move(op), stream);
}

CUresult CheckContexts(Process& process, CUcontext a, CUcontext b) {
  Context* context = nullptr;
  GL_CU_TRY(FindContext(process, a, &context));
  return FindContext(process, b, &context);
}

/// Distances between operands of a batch count in elements of one byte; zero means tightly packed.
CUDA_MEMCPY3D Describe(const CUDA_MEMCPY3D_BATCH_OP& op) {
  CUDA_MEMCPY3D c{};
  c.width_bytes = op.width;
  c.height = op.height;
  c.depth = op.depth;
  if (op.src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    c.src_type = CU_MEMORYTYPE_ARRAY;
    c.src_array = op.src.array.array;
    c.src_x_bytes = op.src.array.x;
    c.src_y = op.src.array.y;
    c.src_z = op.src.array.z;
  } else {
    c.src_type = CU_MEMORYTYPE_UNIFIED;
    c.src_device = op.src.pointer.pointer;
    c.src_pitch = op.src.pointer.row_length != 0 ? op.src.pointer.row_length : op.width;
    c.src_height = op.src.pointer.layer_height != 0 ? op.src.pointer.layer_height : op.height;
  }
  if (op.dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    c.dst_type = CU_MEMORYTYPE_ARRAY;
    c.dst_array = op.dst.array.array;
    c.dst_x_bytes = op.dst.array.x;
    c.dst_y = op.dst.array.y;
    c.dst_z = op.dst.array.z;
  } else {
    c.dst_type = CU_MEMORYTYPE_UNIFIED;
    c.dst_device = op.dst.pointer.pointer;
    c.dst_pitch = op.dst.pointer.row_length != 0 ? op.dst.pointer.row_length : op.width;
    c.dst_height = op.dst.pointer.layer_height != 0 ? op.dst.pointer.layer_height : op.height;
  }
  return c;
}

}  // namespace

CUresult cuMemcpy(Process& process, CUdeviceptr dst, CUdeviceptr src, std::size_t bytes) {
  return CopyNow(End::kAny, dst, End::kAny, src, bytes);
}
CUresult cuMemcpyAsync(Process& process, CUdeviceptr dst, CUdeviceptr src, std::size_t bytes, CUstream stream) {
  return CopyLater(End::kAny, dst, End::kAny, src, bytes, stream);
}
CUresult cuMemcpyHtoD_v2(Process& process, CUdeviceptr dst, const void* src, std::size_t bytes) {
  return CopyNow(End::kDevice, dst, End::kHost, Number(src), bytes);
}
CUresult cuMemcpyDtoH_v2(Process& process, void* dst, CUdeviceptr src, std::size_t bytes) {
  return CopyNow(End::kHost, Number(dst), End::kDevice, src, bytes);
}
CUresult cuMemcpyDtoD_v2(Process& process, CUdeviceptr dst, CUdeviceptr src, std::size_t bytes) {
  return CopyNow(End::kDevice, dst, End::kDevice, src, bytes);
}
CUresult cuMemcpyHtoDAsync_v2(Process& process, CUdeviceptr dst, const void* src, std::size_t bytes, CUstream stream) {
  return CopyLater(End::kDevice, dst, End::kHost, Number(src), bytes, stream);
}
CUresult cuMemcpyDtoHAsync_v2(Process& process, void* dst, CUdeviceptr src, std::size_t bytes, CUstream stream) {
  return CopyLater(End::kHost, Number(dst), End::kDevice, src, bytes, stream);
}
CUresult cuMemcpyDtoDAsync_v2(Process& process, CUdeviceptr dst, CUdeviceptr src, std::size_t bytes, CUstream stream) {
  return CopyLater(End::kDevice, dst, End::kDevice, src, bytes, stream);
}

CUresult cuMemcpyPeer(Process& process, CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                      std::size_t bytes) {
  GL_CU_TRY(CheckContexts(process, dst_context, src_context));
  return CopyNow(End::kAny, dst, End::kAny, src, bytes);
}
CUresult cuMemcpyPeerAsync(Process& process, CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                           CUcontext src_context, std::size_t bytes, CUstream stream) {
  GL_CU_TRY(CheckContexts(process, dst_context, src_context));
  return CopyLater(End::kAny, dst, End::kAny, src, bytes, stream);
}

// ---- arrays

CUresult cuMemcpyDtoA_v2(Process& process, CUarray dst, std::size_t offset, CUdeviceptr src, std::size_t bytes) {
  return ArrayNow(dst, offset, nullptr, 0, End::kDevice, src, bytes);
}
CUresult cuMemcpyAtoD_v2(Process& process, CUdeviceptr dst, CUarray src, std::size_t offset, std::size_t bytes) {
  return ArrayNow(nullptr, 0, src, offset, End::kDevice, dst, bytes);
}
CUresult cuMemcpyHtoA_v2(Process& process, CUarray dst, std::size_t offset, const void* src, std::size_t bytes) {
  return ArrayNow(dst, offset, nullptr, 0, End::kHost, Number(src), bytes);
}
CUresult cuMemcpyAtoH_v2(Process& process, void* dst, CUarray src, std::size_t offset, std::size_t bytes) {
  return ArrayNow(nullptr, 0, src, offset, End::kHost, Number(dst), bytes);
}
CUresult cuMemcpyAtoA_v2(Process& process, CUarray dst, std::size_t dst_offset, CUarray src, std::size_t src_offset,
                         std::size_t bytes) {
  GL_CU_REQUIRE(dst != nullptr && src != nullptr);
  return ArrayNow(dst, dst_offset, src, src_offset, End::kDevice, 0, bytes);
}
CUresult cuMemcpyHtoAAsync_v2(Process& process, CUarray dst, std::size_t offset, const void* src, std::size_t bytes,
                              CUstream stream) {
  return ArrayLater(dst, offset, nullptr, 0, End::kHost, Number(src), bytes, stream);
}
CUresult cuMemcpyAtoHAsync_v2(Process& process, void* dst, CUarray src, std::size_t offset, std::size_t bytes,
                              CUstream stream) {
  return ArrayLater(nullptr, 0, src, offset, End::kHost, Number(dst), bytes, stream);
}

// ---- two and three dimensions

CUresult cuMemcpy3D_v2(Process& process, const CUDA_MEMCPY3D* copy) {
  GL_CU_REQUIRE(copy != nullptr);
  CopyOp op;
  GL_CU_TRY(session::MakeCopy(ThisContext(), *copy, &op));
  return RunNow(std::move(op));
}
CUresult cuMemcpy3DAsync_v2(Process& process, const CUDA_MEMCPY3D* copy, CUstream stream) {
  GL_CU_REQUIRE(copy != nullptr);
  CopyOp op;
  GL_CU_TRY(session::MakeCopy(ThisContext(), *copy, &op));
  return RunLater(std::move(op), stream);
}
CUresult cuMemcpy2DUnaligned_v2(Process& process, const CUDA_MEMCPY2D* copy) {
  GL_CU_REQUIRE(copy != nullptr);
  const CUDA_MEMCPY3D wide = session::Widen(*copy);
  return cuMemcpy3D_v2(process, &wide);
}
CUresult cuMemcpy2D_v2(Process& process, const CUDA_MEMCPY2D* copy) { return cuMemcpy2DUnaligned_v2(process, copy); }
CUresult cuMemcpy2DAsync_v2(Process& process, const CUDA_MEMCPY2D* copy, CUstream stream) {
  GL_CU_REQUIRE(copy != nullptr);
  const CUDA_MEMCPY3D wide = session::Widen(*copy);
  return cuMemcpy3DAsync_v2(process, &wide, stream);
}
CUresult cuMemcpy3DPeer(Process& process, const CUDA_MEMCPY3D_PEER* copy) {
  GL_CU_REQUIRE(copy != nullptr);
  GL_CU_TRY(CheckContexts(process, copy->dst_context, copy->src_context));
  return cuMemcpy3D_v2(process, copy);
}
CUresult cuMemcpy3DPeerAsync(Process& process, const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  GL_CU_REQUIRE(copy != nullptr);
  GL_CU_TRY(CheckContexts(process, copy->dst_context, copy->src_context));
  return cuMemcpy3DAsync_v2(process, copy, stream);
}

// ---- batches: in order, which is one of the orders the interface allows

CUresult cuMemcpyBatchAsync(Process& process, CUdeviceptr* dsts, CUdeviceptr* srcs, std::size_t* sizes,
                            std::size_t count, CUmemcpyAttributes* attrs, std::size_t* indices, std::size_t attr_count,
                            std::size_t* fail_index, CUstream stream) {
  GL_CU_REQUIRE(dsts != nullptr && srcs != nullptr && sizes != nullptr && count != 0 && attrs != nullptr &&
                indices != nullptr && attr_count != 0);
  Store(fail_index, ~std::size_t{0});
  for (std::size_t i = 0; i < count; ++i) {
    if (const auto status = cuMemcpyAsync(process, dsts[i], srcs[i], sizes[i], stream); status != CUDA_SUCCESS) {
      Store(fail_index, i);
      return status;
    }
  }
  return CUDA_SUCCESS;
}
CUresult cuMemcpyBatchAsync_v2(Process& process, CUdeviceptr* dsts, CUdeviceptr* srcs, std::size_t* sizes,
                               std::size_t count, CUmemcpyAttributes* attrs, std::size_t* indices,
                               std::size_t attr_count, CUstream stream) {
  return cuMemcpyBatchAsync(process, dsts, srcs, sizes, count, attrs, indices, attr_count, nullptr, stream);
}
CUresult cuMemcpy3DBatchAsync(Process& process, std::size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, std::size_t* fail_index,
                              std::uint64_t flags, CUstream stream) {
  GL_CU_REQUIRE(ops != nullptr && count != 0 && flags == 0);
  Store(fail_index, ~std::size_t{0});
  for (std::size_t i = 0; i < count; ++i) {
    const CUDA_MEMCPY3D copy = Describe(ops[i]);
    if (const auto status = cuMemcpy3DAsync_v2(process, &copy, stream); status != CUDA_SUCCESS) {
      Store(fail_index, i);
      return status;
    }
  }
  return CUDA_SUCCESS;
}
CUresult cuMemcpy3DBatchAsync_v2(Process& process, std::size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, std::uint64_t flags,
                                 CUstream stream) {
  return cuMemcpy3DBatchAsync(process, count, ops, nullptr, flags, stream);
}

// ---- single copies with attributes: the order that every copy has is the strictest that they can ask for

CUresult cuMemcpyWithAttributesAsync(Process& process, CUdeviceptr dst, CUdeviceptr src, std::size_t size,
                                     CUmemcpyAttributes* attributes, CUstream stream) {
  GL_CU_REQUIRE(attributes != nullptr);
  return cuMemcpyAsync(process, dst, src, size, stream);
}
CUresult cuMemcpy3DWithAttributesAsync(Process& process, CUDA_MEMCPY3D_BATCH_OP* op, std::uint64_t flags,
                                       CUstream stream) {
  return cuMemcpy3DBatchAsync(process, 1, op, nullptr, flags, stream);
}

}  // namespace gridloom::hooks
