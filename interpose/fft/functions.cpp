// cuFFT's functions: parameters are checked as its manual says, and as the library answers where the manual does not.
#include "interpose/fft/functions.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "interpose/base/log.h"
#include "interpose/fft/plan.h"
#include "interpose/hooks/own_kernels.h"

namespace gridloom::fft {
namespace {

/// What a cufftType or three cudaDataTypes say.
struct Kind {
  Number in, out;
  bool real_in, real_out;
};

std::optional<Kind> KindOf(int type) {
  switch (type) {
    case 0x2a: return Kind{Number::kF32, Number::kF32, true, false};   // CUFFT_R2C
    case 0x2c: return Kind{Number::kF32, Number::kF32, false, true};   // CUFFT_C2R
    case 0x29: return Kind{Number::kF32, Number::kF32, false, false};  // CUFFT_C2C
    case 0x6a: return Kind{Number::kF64, Number::kF64, true, false};   // CUFFT_D2Z
    case 0x6c: return Kind{Number::kF64, Number::kF64, false, true};   // CUFFT_Z2D
    case 0x69: return Kind{Number::kF64, Number::kF64, false, false};  // CUFFT_Z2Z
    default: return std::nullopt;
  }
}

struct DataType {
  Number number;
  bool complex;
};
std::optional<DataType> DataTypeOf(int type) {
  switch (type) {
    case 0: return DataType{Number::kF32, false};    // CUDA_R_32F
    case 1: return DataType{Number::kF64, false};    // CUDA_R_64F
    case 2: return DataType{Number::kF16, false};    // CUDA_R_16F
    case 4: return DataType{Number::kF32, true};     // CUDA_C_32F
    case 5: return DataType{Number::kF64, true};     // CUDA_C_64F
    case 6: return DataType{Number::kF16, true};     // CUDA_C_16F
    case 14: return DataType{Number::kBf16, false};  // CUDA_R_16BF
    case 15: return DataType{Number::kBf16, true};   // CUDA_C_16BF
    default: return std::nullopt;
  }
}
/// All three of one precision, and not both sides real. The manual lists complex execution types; a real one names the
/// precision as well.
std::optional<Kind> KindOf(int in_type, int out_type, int execution_type) {
  const auto in = DataTypeOf(in_type), out = DataTypeOf(out_type), execution = DataTypeOf(execution_type);
  if (!in || !out || !execution || in->number != out->number || in->number != execution->number) return std::nullopt;
  if (!in->complex && !out->complex) return std::nullopt;
  return Kind{in->number, out->number, !in->complex, !out->complex};
}

/// The advanced layout; embeddings are arrays of int or of long long.
struct Many {
  int rank;
  const void* n;
  const void* in_embed;
  Index in_stride, in_dist;
  const void* out_embed;
  Index out_stride, out_dist;
  Index batch;
  bool wide;
};
Index At(const Many& many, const void* array, int i) {
  return many.wide ? static_cast<const long long*>(array)[i] : static_cast<const int*>(array)[i];
}

Status Parse(std::optional<Kind> kind, const Many& many, Request* request) {
  if (!kind) return kInvalidType;
  if (many.rank < 1 || many.rank > 3 || many.n == nullptr) return kInvalidValue;
  *request = {};
  request->rank = many.rank;
  request->batch = many.batch;
  request->in_number = kind->in, request->out_number = kind->out;
  request->real_in = kind->real_in, request->real_out = kind->real_out;
  Index all = many.batch;
  for (int d = 0; d < many.rank; ++d) {
    request->n[d] = At(many, many.n, d);
    if (request->n[d] < 1 || request->n[d] > 0x7fffffff) return kInvalidSize;
    if (__builtin_mul_overflow(all, request->n[d], &all)) return kInvalidSize;
  }
  if (many.batch < 1) return kInvalidSize;
  if (many.in_embed == nullptr && many.out_embed == nullptr) return kSuccess;
  if (many.in_embed == nullptr || many.out_embed == nullptr || many.in_stride < 1 || many.out_stride < 1 ||
      many.in_dist < 1 || many.out_dist < 1)
    return kInvalidValue;
  request->in = Layout{{1, 1, 1}, many.in_stride, many.in_dist};
  request->out = Layout{{1, 1, 1}, many.out_stride, many.out_dist};
  for (int d = 1; d < many.rank; ++d) {  // the first of an embedding has no use
    request->in->embed[d] = At(many, many.in_embed, d);
    request->out->embed[d] = At(many, many.out_embed, d);
    if (request->in->embed[d] < 1 || request->out->embed[d] < 1) return kInvalidSize;
  }
  return kSuccess;
}

Many Packed(int rank, const int* n, Index batch) { return {rank, n, nullptr, 1, 0, nullptr, 1, 0, batch, false}; }

Status Make(int handle, std::optional<Kind> kind, const Many& many, void* size) {
  const auto plan = FindPlan(handle);
  if (plan == nullptr || plan->made()) return kInvalidPlan;
  if (size == nullptr) return kInvalidValue;
  Request request{};
  if (const Status status = Parse(kind, many, &request); status != kSuccess) return status;
  if (const Status status = plan->Make(request); status != kSuccess) return status;
  *static_cast<std::size_t*>(size) = plan->work_size();
  return kSuccess;
}

Status CreateAndMake(void* handle, std::optional<Kind> kind, const Many& many) {
  if (const Status status = Create(handle); status != kSuccess) return status;
  int& created = *static_cast<int*>(handle);
  std::size_t size = 0;
  const Status status = Make(created, kind, many, &size);
  if (status != kSuccess) {
    DestroyPlan(created);
    created = 0;
  }
  return status;
}

Status Estimate(std::optional<Kind> kind, const Many& many, void* size) {
  if (size == nullptr) return kInvalidValue;
  Request request{};
  if (const Status status = Parse(kind, many, &request); status != kSuccess) return status;
  return WorkSize(request, static_cast<std::size_t*>(size));
}

Status EstimateFor(int handle, std::optional<Kind> kind, const Many& many, void* size) {
  return FindPlan(handle) == nullptr ? kInvalidPlan : Estimate(kind, many, size);
}

std::uint64_t AddressOf(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

Status Create(void* handle) {
  if (handle == nullptr) return kInvalidValue;
  return hooks::BindContext() == cuda::CUDA_SUCCESS ? CreatePlan(static_cast<int*>(handle)) : kSetupFailed;
}

Status Destroy(int handle) {
  constexpr int kNull = -1;  // CUFFT_PLAN_NULL
  return handle == kNull ? kSuccess : DestroyPlan(handle);
}

Status Plan1d(void* handle, int n, int type, int batch) {
  return CreateAndMake(handle, KindOf(type), Packed(1, &n, batch));
}
Status Plan2d(void* handle, int n0, int n1, int type) {
  const int n[] = {n0, n1};
  return CreateAndMake(handle, KindOf(type), Packed(2, n, 1));
}
Status Plan3d(void* handle, int n0, int n1, int n2, int type) {
  const int n[] = {n0, n1, n2};
  return CreateAndMake(handle, KindOf(type), Packed(3, n, 1));
}
Status PlanMany(void* handle, int rank, void* n, void* in_embed, int in_stride, int in_dist, void* out_embed,
                int out_stride, int out_dist, int type, int batch) {
  return CreateAndMake(handle, KindOf(type),
                       {rank, n, in_embed, in_stride, in_dist, out_embed, out_stride, out_dist, batch, false});
}

Status MakePlan1d(int handle, int n, int type, int batch, void* size) {
  return Make(handle, KindOf(type), Packed(1, &n, batch), size);
}
Status MakePlan2d(int handle, int n0, int n1, int type, void* size) {
  const int n[] = {n0, n1};
  return Make(handle, KindOf(type), Packed(2, n, 1), size);
}
Status MakePlan3d(int handle, int n0, int n1, int n2, int type, void* size) {
  const int n[] = {n0, n1, n2};
  return Make(handle, KindOf(type), Packed(3, n, 1), size);
}
Status MakePlanMany(int handle, int rank, void* n, void* in_embed, int in_stride, int in_dist, void* out_embed,
                    int out_stride, int out_dist, int type, int batch, void* size) {
  return Make(handle, KindOf(type),
              {rank, n, in_embed, in_stride, in_dist, out_embed, out_stride, out_dist, batch, false}, size);
}
Status MakePlanMany64(int handle, int rank, void* n, void* in_embed, long long in_stride, long long in_dist,
                      void* out_embed, long long out_stride, long long out_dist, int type, long long batch,
                      void* size) {
  return Make(handle, KindOf(type),
              {rank, n, in_embed, in_stride, in_dist, out_embed, out_stride, out_dist, batch, true}, size);
}
Status XtMakePlanMany(int handle, int rank, void* n, void* in_embed, long long in_stride, long long in_dist,
                      int in_type, void* out_embed, long long out_stride, long long out_dist, int out_type,
                      long long batch, void* size, int execution_type) {
  return Make(handle, KindOf(in_type, out_type, execution_type),
              {rank, n, in_embed, in_stride, in_dist, out_embed, out_stride, out_dist, batch, true}, size);
}

Status Estimate1d(int n, int type, int batch, void* size) { return Estimate(KindOf(type), Packed(1, &n, batch), size); }
Status Estimate2d(int n0, int n1, int type, void* size) {
  const int n[] = {n0, n1};
  return Estimate(KindOf(type), Packed(2, n, 1), size);
}
Status Estimate3d(int n0, int n1, int n2, int type, void* size) {
  const int n[] = {n0, n1, n2};
  return Estimate(KindOf(type), Packed(3, n, 1), size);
}
Status EstimateMany(int rank, void* n, void* in_embed, int in_stride, int in_dist, void* out_embed, int out_stride,
                    int out_dist, int type, int batch, void* size) {
  return Estimate(KindOf(type), {rank, n, in_embed, in_stride, in_dist, out_embed, out_stride, out_dist, batch, false},
                  size);
}
Status GetSize1d(int handle, int n, int type, int batch, void* size) {
  return EstimateFor(handle, KindOf(type), Packed(1, &n, batch), size);
}
Status GetSize2d(int handle, int n0, int n1, int type, void* size) {
  const int n[] = {n0, n1};
  return EstimateFor(handle, KindOf(type), Packed(2, n, 1), size);
}
Status GetSize3d(int handle, int n0, int n1, int n2, int type, void* size) {
  const int n[] = {n0, n1, n2};
  return EstimateFor(handle, KindOf(type), Packed(3, n, 1), size);
}
Status GetSizeMany(int handle, int rank, void* n, void* in_embed, int in_stride, int in_dist, void* out_embed,
                   int out_stride, int out_dist, int type, int batch, void* size) {
  return EstimateFor(handle, KindOf(type),
                     {rank, n, in_embed, in_stride, in_dist, out_embed, out_stride, out_dist, batch, false}, size);
}
Status GetSizeMany64(int handle, int rank, void* n, void* in_embed, long long in_stride, long long in_dist,
                     void* out_embed, long long out_stride, long long out_dist, int type, long long batch, void* size) {
  return EstimateFor(handle, KindOf(type),
                     {rank, n, in_embed, in_stride, in_dist, out_embed, out_stride, out_dist, batch, true}, size);
}
Status XtGetSizeMany(int handle, int rank, void* n, void* in_embed, long long in_stride, long long in_dist, int in_type,
                     void* out_embed, long long out_stride, long long out_dist, int out_type, long long batch,
                     void* size, int execution_type) {
  return EstimateFor(handle, KindOf(in_type, out_type, execution_type),
                     {rank, n, in_embed, in_stride, in_dist, out_embed, out_stride, out_dist, batch, true}, size);
}

Status GetSize(int handle, void* size) {
  if (size == nullptr) return kInvalidValue;
  const auto plan = FindPlan(handle);
  if (plan == nullptr || !plan->made()) return kInvalidPlan;
  *static_cast<std::size_t*>(size) = plan->work_size();
  return kSuccess;
}

Status SetWorkArea(int handle, void* area) {
  const auto plan = FindPlan(handle);
  return plan == nullptr ? kInvalidPlan : plan->SetWorkArea(AddressOf(area));
}

/// An area for each GPU, of which there is one.
Status XtSetWorkArea(int handle, void* areas) {
  if (areas == nullptr) return kInvalidValue;
  return SetWorkArea(handle, *static_cast<void**>(areas));
}

Status SetAutoAllocation(int handle, int on) {
  const auto plan = FindPlan(handle);
  if (plan == nullptr) return kInvalidPlan;
  plan->SetAutoAllocation(on != 0);
  return kSuccess;
}

/// A policy is a wish: the work memory stays what it is, and is told.
Status SetWorkAreaPolicy(int handle, int policy, void* size) {
  constexpr int kUser = 1, kPolicies = 3;
  const auto plan = FindPlan(handle);
  if (plan == nullptr || !plan->made()) return kInvalidPlan;
  if (policy < 0 || policy >= kPolicies || size == nullptr) return kInvalidValue;
  auto& bytes = *static_cast<std::size_t*>(size);
  if (policy == kUser && bytes < plan->work_size()) return kInvalidSize;
  bytes = plan->work_size();
  return kSuccess;
}

Status SetStream(int handle, void* stream) {
  const auto plan = FindPlan(handle);
  if (plan == nullptr) return kInvalidPlan;
  plan->SetStream(static_cast<cuda::CUstream>(stream));
  return kSuccess;
}

/// The plan knows its types: as in cuFFT, every function of this kind executes every plan that goes its way.
Status Execute(int handle, void* in, void* out, int direction) {
  const auto plan = FindPlan(handle);
  return plan == nullptr ? kInvalidPlan : plan->Execute(AddressOf(in), AddressOf(out), direction);
}
Status ExecuteForward(int handle, void* in, void* out) { return Execute(handle, in, out, kForward); }
Status ExecuteInverse(int handle, void* in, void* out) { return Execute(handle, in, out, kInverse); }

namespace {

constexpr int kPatientJit = 1, kHostThreads = 2;  // cufftProperty: both about how cuFFT compiles kernels

Status CheckProperty(int handle, int property) {
  if (FindPlan(handle) == nullptr) return kInvalidPlan;
  return property == kPatientJit || property == kHostThreads ? kSuccess : kInvalidValue;
}

}  // namespace

Status SetProperty(int handle, int property, long long) { return CheckProperty(handle, property); }
Status GetProperty(int handle, int property, void* value) {
  if (value == nullptr) return kInvalidValue;
  const Status status = CheckProperty(handle, property);
  if (status == kSuccess) *static_cast<long long*>(value) = 0;
  return status;
}
Status ResetProperty(int handle, int property) { return CheckProperty(handle, property); }

Status Refuse(const char* name, Status status) {
  static std::mutex mutex;
  static auto* const named = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (named->insert(name).second) GL_LOG(kError, "%s is not supported (status %d)", name, status);
  return status;
}

}  // namespace gridloom::fft
