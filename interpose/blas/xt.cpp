// cublasXt*gemm: products of matrices that lie on the host or on the device, done when the call returns. One device, so
// nothing is divided: what lies on the host is copied whole.
#include <algorithm>

#include "api_exports.h"
#include "interpose/blas/functions.h"
#include "interpose/blas/matrices.h"

namespace gridloom::blas {
namespace {

/// A matrix as the device sees it: itself, or a copy for as long as this lives.
class OnDevice {
 public:
  OnDevice() = default;
  OnDevice(const OnDevice&) = delete;
  ~OnDevice() {
    if (copy_ != 0) cuMemFree_v2(copy_);
  }
  Status Take(const void* matrix, Index bytes) {
    host_ = const_cast<void*>(matrix);
    bytes_ = static_cast<std::size_t>(bytes);
    unsigned kind = 0;
    const CUdeviceptr address = reinterpret_cast<CUdeviceptr>(matrix);
    if (cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS) {
      address_ = address;
      return kSuccess;
    }
    if (cuMemAlloc_v2(&copy_, std::max<std::size_t>(bytes_, 1)) != CUDA_SUCCESS) return kAllocFailed;
    address_ = copy_;
    return cuMemcpyHtoD_v2(copy_, host_, bytes_) == CUDA_SUCCESS ? kSuccess : kExecutionFailed;
  }
  Status GiveBack() const {
    return copy_ == 0 || cuMemcpyDtoH_v2(host_, copy_, bytes_) == CUDA_SUCCESS ? kSuccess : kExecutionFailed;
  }
  const void* get() const { return reinterpret_cast<const void*>(address_); }

 private:
  void* host_ = nullptr;
  std::size_t bytes_ = 0;
  CUdeviceptr address_ = 0, copy_ = 0;
};

}  // namespace

Status XtGemm(const Call& call, Types t, int op_a, int op_b, Index m, Index n, Index k, In alpha, In a, Index lda, In b,
              Index ldb, In beta, Out c, Index ldc) {
  if (call.handle == nullptr) return kNotInitialized;
  if (!KnownOp(op_a) || !KnownOp(op_b) || m < 0 || n < 0 || k < 0 || !GoodLd(op_a, m, k, lda) ||
      !GoodLd(op_b, k, n, ldb) || ldc < std::max<Index>(1, m))
    return kInvalidValue;
  if (m == 0 || n == 0) return kSuccess;
  if (alpha == nullptr || beta == nullptr || c == nullptr) return kInvalidValue;
  const Index size = SizeOf(t.matrix);
  OnDevice device_a, device_b, device_c;
  for (const Status status :
       {device_a.Take(a, size * lda * (op_a == kOpN ? k : m)), device_b.Take(b, size * ldb * (op_b == kOpN ? n : k)),
        device_c.Take(c, size * ldc * n)}) {
    if (status != kSuccess) return status;
  }
  Product product = Of(UnderOp(device_a.get(), t.matrix, op_a, lda), UnderOp(device_b.get(), t.matrix, op_b, ldb),
                       UnderOp(device_c.get(), t.result, kOpN, ldc), m, n, k);
  product.alpha = FactorAt(alpha, t.factor, false);
  product.beta = FactorAt(beta, t.factor, false);
  if (const Status status = Launch(call.name, product, nullptr); status != kSuccess) return status;
  if (cuStreamSynchronize(nullptr) != CUDA_SUCCESS) return kExecutionFailed;
  return device_c.GiveBack();
}

}  // namespace gridloom::blas
