// Stands for NVIDIA's libcublas where it is not installed: handles are real, products are refused, since
// Gridloom is to answer them. So a program that gets a right result has it from Gridloom.
#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Handle {
  void* stream = nullptr;
  int pointer_mode = 0;
};

constexpr int kSuccess = 0, kNotSupported = 15;

}  // namespace

EXPORT int cublasCreate_v2(Handle** handle) { return *handle = new Handle, kSuccess; }
EXPORT int cublasDestroy_v2(Handle* handle) { return delete handle, kSuccess; }
EXPORT int cublasSetStream_v2(Handle* handle, void* stream) { return handle->stream = stream, kSuccess; }
EXPORT int cublasGetStream_v2(Handle* handle, void** stream) { return *stream = handle->stream, kSuccess; }
EXPORT int cublasSetPointerMode_v2(Handle* handle, int mode) { return handle->pointer_mode = mode, kSuccess; }
EXPORT int cublasGetPointerMode_v2(Handle* handle, int* mode) { return *mode = handle->pointer_mode, kSuccess; }
EXPORT int cublasInit() { return kSuccess; }

// The products: to be found at link time, never to be reached.
#define REFUSED(name) \
  EXPORT int name() { return kNotSupported; }
REFUSED(cublasSgemm_v2)
REFUSED(cublasSgemm_v2_64)
REFUSED(cublasDgemm_v2)
REFUSED(cublasCgemm_v2)
REFUSED(cublasZgemm_v2)
REFUSED(cublasHgemm)
REFUSED(cublasGemmEx)
REFUSED(cublasGemmStridedBatchedEx)
REFUSED(cublasDgemmBatched)
REFUSED(cublasSgemmGroupedBatched)
REFUSED(cublasSgemv_v2)
REFUSED(cublasZgemv_v2)
REFUSED(cublasHSSgemvStridedBatched)
REFUSED(cublasSsyrk_v2)
REFUSED(cublasCherk_v2)
REFUSED(cublasDsyr2k_v2)
REFUSED(cublasZher2k_v2)
REFUSED(cublasSsyrkx)
REFUSED(cublasSsymm_v2)
REFUSED(cublasZhemm_v2)
REFUSED(cublasDtrmm_v2)
REFUSED(cublasStrsm_v2)
REFUSED(cublasDtrsm_v2)
REFUSED(cublasZtrsm_v2)
REFUSED(cublasSgemm)
REFUSED(cublasCgemm)
REFUSED(cublasZgemm)
REFUSED(cublasDtrmm)
