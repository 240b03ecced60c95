#include "interpose/fft/plan.h"

#include <map>

#include "api_exports.h"
#include "interpose/fft/host_transform.h"
#include "interpose/hooks/own_kernels.h"
#include "interpose/objects/context.h"
#include "interpose/objects/current_context.h"
#include "interpose/objects/device.h"

namespace gridloom::fft {
namespace {

bool IsReal(const Request& request) { return request.real_in || request.real_out; }
Number Native(const Request& request) { return request.in_number == Number::kF64 ? Number::kF64 : Number::kF32; }
Index ComplexBytes(Number number) { return number == Number::kF64 ? 16 : number == Number::kF32 ? 8 : 4; }

/// The numbers of a side along a dimension: of a half spectrum n/2 + 1 along the last.
Index CountAt(const Request& request, int dimension, bool spectrum) {
  const Index n = request.n[dimension];
  return spectrum && IsReal(request) && dimension == request.rank - 1 ? n / 2 + 1 : n;
}

/// Packed; real numbers in place in rows of n/2 + 1 complex ones, as the manual's basic layout has them.
Layout Basic(const Request& request, bool spectrum, bool padded) {
  Layout layout{{1, 1, 1}, 1, 1};
  for (int d = 0; d < request.rank; ++d) {
    layout.embed[d] = CountAt(request, d, spectrum);
    if (padded && d == request.rank - 1) layout.embed[d] = 2 * (request.n[d] / 2 + 1);
    layout.dist *= layout.embed[d];
  }
  return layout;
}

struct Sides {
  Layout in, out;
};
Sides LayoutsOf(const Request& request, bool in_place) {
  return {request.in.value_or(Basic(request, !request.real_in, in_place && request.real_in)),
          request.out.value_or(Basic(request, !request.real_out, in_place && request.real_out))};
}

/// Elements between neighbours along a dimension.
Index StrideOf(const Layout& layout, int rank, int dimension) {
  Index stride = layout.stride;
  for (int d = rank - 1; d > dimension; --d) stride *= layout.embed[d];
  return stride;
}

/// Axes of all lines along `dimension`, whose neighbours lie as two layouts say.
std::vector<Axis> AxesOf(const Request& request, int dimension, const Layout& in, const Layout& out) {
  std::vector<Axis> axes;
  for (int d = request.rank - 1; d >= 0; --d) {
    if (d == dimension) continue;
    axes.push_back({CountAt(request, d, true), StrideOf(in, request.rank, d), StrideOf(out, request.rank, d), 0, 0, 0});
  }
  axes.push_back({request.batch, in.dist, out.dist, 0, 0, 0});
  return axes;
}

/// Whether in place each line of the first dimension is written where it was read.
bool SamePlaces(const Request& request, const Sides& sides) {
  if (request.real_out && request.rank > 1) return true;  // by way of work memory
  const auto scale = [](bool real) { return Index{real ? 1 : 2}; };
  const Index in = scale(request.real_in) * ComplexBytes(request.in_number),
              out = scale(request.real_out) * ComplexBytes(request.out_number);
  if (IsReal(request) ? sides.in.stride != 1 || sides.out.stride != 1 : sides.in.stride * in != sides.out.stride * out)
    return false;
  for (int d = 0; d < request.rank - 1; ++d) {
    if (request.n[d] > 1 && StrideOf(sides.in, request.rank, d) * in != StrideOf(sides.out, request.rank, d) * out)
      return false;
  }
  return request.batch == 1 || sides.in.dist * in == sides.out.dist * out;
}

/// Bytes from a layout's first element to behind its last.
Index Extent(const Request& request, const Layout& layout, bool real, Number number) {
  Index last = (request.batch - 1) * layout.dist;
  for (int d = 0; d < request.rank; ++d) last += (CountAt(request, d, !real) - 1) * StrideOf(layout, request.rank, d);
  return (last + 1) * ComplexBytes(number) / (real ? 2 : 1);
}

/// Whether the host's library makes a plan's transforms: it has no halves.
bool IsHosts(const Request& request) {
  const bool wide = request.in_number == Number::kF64;
  return (wide || request.in_number == Number::kF32) && HostTransforms(wide);
}

Status StatusOf(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS: return kSuccess;
    case CUDA_ERROR_OUT_OF_MEMORY: return kAllocFailed;
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_INVALID_CONTEXT: return kSetupFailed;
    default: return kInternalError;
  }
}

}  // namespace

/// One dimension after the other: real numbers become a spectrum first, and are made from it last, by way of a copy,
/// which leaves the input as it was.
Plan::Variant Plan::Build(const Request& request, bool in_place, Tables* tables) {
  const auto [in, out] = LayoutsOf(request, in_place);
  const Number native = Native(request);
  const int rank = request.rank, last = rank - 1;
  const Index n = request.n[last];
  LineSteps lines(native, tables);
  Index data = 0;
  if (!request.real_out) {
    const RealForms forms = FormsOf(n, true);
    const Form from = request.real_in ? forms.real : Form::kComplex,
               to = request.real_in ? forms.spectrum : Form::kComplex;
    bool others = false;
    for (int d = 0; d < last; ++d) others = others || request.n[d] > 1;
    lines.Add({n,
               {Buffer::kIn, from, request.in_number, in.stride},
               {Buffer::kOut, to, request.out_number, out.stride},
               AxesOf(request, last, in, out),
               true,
               !others});
    for (int d = last - 1; d >= 0; --d) {
      if (request.n[d] == 1) continue;
      bool more = false;
      for (int e = 0; e < d; ++e) more = more || request.n[e] > 1;
      const Lines::End end{Buffer::kOut, Form::kComplex, request.out_number, StrideOf(out, rank, d)};
      lines.Add({request.n[d], end, end, AxesOf(request, d, out, out), false, !more});
    }
  } else {
    const Layout packed = Basic(request, true, false);
    Lines::End from{Buffer::kIn, Form::kComplex, request.in_number, 0};
    Layout place = in;
    for (int d = 0; d < last; ++d) {
      const Lines::End to{Buffer::kData, Form::kComplex, native, StrideOf(packed, rank, d)};
      from.step = StrideOf(place, rank, d);
      lines.Add({request.n[d], from, to, AxesOf(request, d, place, packed), true, true});
      from = to;
      place = packed;
      data = packed.dist * request.batch;
    }
    const RealForms forms = FormsOf(n, false);
    from.form = forms.spectrum;
    from.step = place.stride;
    lines.Add({n,
               from,
               {Buffer::kOut, forms.real, request.out_number, out.stride},
               AxesOf(request, last, place, out),
               true,
               true});
  }
  const Index bytes = ComplexBytes(native);
  Variant variant{std::move(lines.steps()), data * bytes, (data + lines.first_size()) * bytes, 0};
  variant.size = variant.second_at + lines.second_size() * bytes;
  return variant;
}

Status WorkSize(const Request& request, std::size_t* bytes) {
  Tables none(false);
  *bytes = static_cast<std::size_t>(Plan::Build(request, false, &none).size);
  return kSuccess;
}

Status Plan::Make(const Request& request) {
  if (const CUresult result = hooks::BindContext(); result != CUDA_SUCCESS) return StatusOf(result);
  if (const CUresult result = cuCtxGetCurrent(&context_); result != CUDA_SUCCESS) return StatusOf(result);
  request_ = request;
  inside_is_safe_ = SamePlaces(request, LayoutsOf(request, true));
  if (IsHosts(request)) {
    Tables none(false);
    outside_ = Build(request, false, &none);
    inside_ = Build(request, true, &none);
  } else if (const Status status = MakeTables(); status != kSuccess) {
    return status;
  }
  work_size_ = static_cast<std::size_t>(std::max(outside_.size, inside_.size));
  if (auto_allocation_ && work_size_ != 0 && work_ == 0) {
    if (const CUresult result = cuMemAlloc_v2(&own_work_, work_size_); result != CUDA_SUCCESS) {
      Free();
      return StatusOf(result);
    }
    work_ = own_work_;
  }
  made_ = true;
  return kSuccess;
}

Status Plan::MakeTables() {
  Tables tables(true);
  outside_ = Build(request_, false, &tables);
  inside_ = Build(request_, true, &tables);
  return Upload(tables);
}

Status Plan::MakeTablesLate() {
  const std::lock_guard lock(late_);
  if (tables_ != 0) return kSuccess;
  // The stream may be captured just now; these tables are the plan's, whatever becomes of the graph.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS) return kExecFailed;
  const Status status = MakeTables();
  return cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS ? status : kExecFailed;
}

/// Puts the tables into the context's memory, and addresses in place of places.
Status Plan::Upload(const Tables& tables) {
  const bool wide = Native(request_) == Number::kF64;
  const std::vector<float> narrow(tables.values().begin(), wide ? tables.values().begin() : tables.values().end());
  const std::size_t size = wide ? sizeof(double) : sizeof(float),
                    bytes = static_cast<std::size_t>(tables.size()) * size;
  if (const CUresult result = cuMemAlloc_v2(&tables_, bytes); result != CUDA_SUCCESS) return StatusOf(result);
  const void* const host = wide ? static_cast<const void*>(tables.values().data()) : narrow.data();
  if (const CUresult result = cuMemcpyHtoD_v2(tables_, host, bytes); result != CUDA_SUCCESS) {
    Free();
    return StatusOf(result);
  }
  const auto place = [&](unsigned long long& at) {
    if (at != 0) at = tables_ + at * size;
  };
  for (Variant* const variant : {&outside_, &inside_}) {
    for (PlannedStep& planned : variant->steps) {
      Step& step = planned.step;
      step.tables = tables_;
      for (unsigned long long* const at : {&step.in.factors, &step.out.factors, &step.turns.coarse, &step.turns.fine,
                                           &step.halves.coarse, &step.halves.fine})
        place(*at);
    }
  }
  return kSuccess;
}

void Plan::Free() {
  if (tables_ == 0 && own_work_ == 0) return;
  const bool there = cuCtxPushCurrent_v2(context_) == CUDA_SUCCESS;  // if the context has ended, so has its memory
  if (there) {
    if (tables_ != 0) cuMemFree_v2(tables_);
    if (own_work_ != 0) cuMemFree_v2(own_work_);
    cuCtxPopCurrent_v2(nullptr);
  }
  if (work_ == own_work_) work_ = 0;
  tables_ = own_work_ = 0;
}

Plan::~Plan() { Free(); }

Status Plan::SetWorkArea(std::uint64_t address) {
  if (own_work_ != 0) {
    if (cuCtxPushCurrent_v2(context_) == CUDA_SUCCESS) {
      cuMemFree_v2(own_work_);
      cuCtxPopCurrent_v2(nullptr);
    }
    own_work_ = 0;
  }
  work_ = address;
  return kSuccess;
}

Status Plan::Execute(std::uint64_t in, std::uint64_t out, int direction) {
  if (direction != kForward && direction != kInverse) return kInvalidValue;
  if (!made_) return kInvalidPlan;
  if ((request_.real_in && direction != kForward) || (request_.real_out && direction != kInverse)) return kInvalidValue;
  if (in == 0 || out == 0) return kInvalidValue;
  if (work_size_ != 0 && work_ == 0) return kNoWorkspace;
  if (hooks::BindContext() != CUDA_SUCCESS) return kExecFailed;
  const Addresses at{in, out, work_};
  if (const auto status = RunOnHost(at, direction)) return *status;
  if (const Status status = MakeTablesLate(); status != kSuccess) return status;
  if (in != out) return Run(outside_, at, direction);
  return inside_is_safe_ ? Run(inside_, at, direction) : RunFromCopy(at, direction);
}

/// What the library writes in place without a copy: what its manual describes, and no other layouts.
bool LiesAlike(const Request& request, const Sides& sides) {
  if (IsReal(request)) return !request.in;
  for (int d = 0; d < request.rank; ++d) {
    if (StrideOf(sides.in, request.rank, d) != StrideOf(sides.out, request.rank, d)) return false;
  }
  return request.batch == 1 || sides.in.dist == sides.out.dist;
}

std::optional<Status> Plan::RunOnHost(Addresses at, int direction) const {
  if (!IsHosts(request_)) return std::nullopt;
  const Sides sides = LayoutsOf(request_, at.in == at.out);
  const auto bytes = [this](const Layout& layout, bool real) {
    return static_cast<unsigned long long>(Extent(request_, layout, real, request_.in_number));
  };
  Whole whole{};
  whole.in = at.in, whole.in_bytes = bytes(sides.in, request_.real_in);
  whole.out = at.out, whole.out_bytes = bytes(sides.out, request_.real_out);
  session::Context* const context = session::CurrentContext();
  if (context == nullptr || !IsThere(whole, context->device().memory())) return std::nullopt;
  for (int d = 0; d < request_.rank; ++d) {
    whole.n[d] = request_.n[d];
    whole.in_strides[d] = StrideOf(sides.in, request_.rank, d);
    whole.out_strides[d] = StrideOf(sides.out, request_.rank, d);
  }
  whole.batch = request_.batch, whole.in_distance = sides.in.dist, whole.out_distance = sides.out.dist;
  whole.rank = request_.rank, whole.direction = direction;
  whole.real_in = request_.real_in, whole.real_out = request_.real_out;
  whole.wide = request_.in_number == Number::kF64;
  whole.same_places = LiesAlike(request_, sides);
  return LaunchWhole(whole, stream_);
}

Status Plan::RunFromCopy(Addresses at, int direction) const {
  const auto bytes =
      static_cast<std::size_t>(Extent(request_, LayoutsOf(request_, true).in, request_.real_in, request_.in_number));
  CUdeviceptr copy = 0;
  if (cuMemAllocAsync(&copy, bytes, stream_) != CUDA_SUCCESS) return kAllocFailed;
  Status status = cuMemcpyDtoDAsync_v2(copy, at.in, bytes, stream_) == CUDA_SUCCESS ? kSuccess : kExecFailed;
  at.in = copy;
  if (status == kSuccess) status = Run(inside_, at, direction);
  return cuMemFreeAsync(copy, stream_) == CUDA_SUCCESS ? status : kExecFailed;
}

namespace {

struct Handles {
  std::mutex mutex;
  std::map<int, std::shared_ptr<Plan>> plans;
  int last = 0;
};
/// Never destroyed: programs destroy plans when they exit, too.
Handles& TheHandles() {
  static auto* const handles = new Handles;
  return *handles;
}

}  // namespace

Status CreatePlan(int* handle) {
  Handles& handles = TheHandles();
  const std::lock_guard lock(handles.mutex);
  *handle = ++handles.last;
  handles.plans[*handle] = std::make_shared<Plan>();
  return kSuccess;
}

std::shared_ptr<Plan> FindPlan(int handle) {
  Handles& handles = TheHandles();
  const std::lock_guard lock(handles.mutex);
  const auto found = handles.plans.find(handle);
  return found == handles.plans.end() ? nullptr : found->second;
}

Status DestroyPlan(int handle) {
  Handles& handles = TheHandles();
  std::shared_ptr<Plan> plan;  // ends without the lock
  const std::lock_guard lock(handles.mutex);
  const auto found = handles.plans.find(handle);
  if (found == handles.plans.end()) return kInvalidPlan;
  plan = std::move(found->second);
  handles.plans.erase(found);
  return kSuccess;
}

}  // namespace gridloom::fft
