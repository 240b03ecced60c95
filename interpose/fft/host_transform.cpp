#include "interpose/fft/host_transform.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <new>

#include "interpose/base/settings.h"
#include "interpose/fft/host_library.h"
#include "interpose/fft/status.h"
#include "interpose/settings/features.h"

namespace gridloom::fft {
namespace {

// fftw3.h
constexpr unsigned kPreserveInput = 1u << 4, kDestroyInput = 1u << 0, kUnaligned = 1u << 1, kEstimate = 1u << 6;

/// Another thread is worth waking for so many numbers.
constexpr Index kNumbersOfAThread = Index{1} << 15;

/// How FFTW is to make a transform: all that a plan depends on.
struct Way {
  bool in_place, aligned;
  Index threads;
};

using Key = std::array<Index, 20>;
Key KeyOf(const Whole& whole, const Way& way) {
  Key key{};
  std::size_t at = 0;
  for (const auto* const numbers : {whole.n, whole.in_strides, whole.out_strides}) {
    for (int d = 0; d < whole.rank; ++d) key[at++] = numbers[d];
    at = (at + 2) / 3 * 3;
  }
  const bool kinds[] = {whole.real_in, whole.real_out, whole.wide, way.in_place, way.aligned};
  Index bits = 0;
  for (const bool kind : kinds) bits = 2 * bits + (kind ? 1 : 0);
  at = 9;
  for (const Index number : {whole.batch, whole.in_distance, whole.out_distance, Index{whole.rank},
                             Index{whole.direction}, bits, way.threads})
    key[at++] = number;
  return key;
}

/// A plan of FFTW's, which several threads may execute at once.
class HostPlan {
 public:
  HostPlan(const HostFunctions& functions, void* plan) : functions_(functions), plan_(plan) {}
  HostPlan(const HostPlan&) = delete;
  ~HostPlan() {
    if (plan_ == nullptr) return;
    const std::lock_guard lock(PlannerLock());
    functions_.destroy(plan_);
  }
  bool made() const { return plan_ != nullptr; }
  void Execute(const Whole& whole, void* in, void* out) const {
    if (whole.real_in) return functions_.execute_to_spectrum(plan_, in, out);
    if (whole.real_out) return functions_.execute_to_real(plan_, in, out);
    functions_.execute_complex(plan_, in, out);
  }

 private:
  const HostFunctions& functions_;
  void* const plan_;
};

/// FFTW's number of threads for the plans of a scope. It is the process' only one, and the program may have set it.
class PlannedThreads {
 public:
  PlannedThreads(const HostFunctions& functions, Index threads)
      : functions_(functions), before_(functions.planned_threads != nullptr ? functions.planned_threads() : 1) {
    functions.plan_with_threads(static_cast<int>(threads));
  }
  PlannedThreads(const PlannedThreads&) = delete;
  ~PlannedThreads() { functions_.plan_with_threads(before_); }

 private:
  const HostFunctions& functions_;
  const int before_;
};

/// What FFTW is asked for. It estimates: measuring would take seconds for a million numbers, and each run of a program
/// would get another algorithm, with other roundings. Estimating reads and writes no data.
void* MakePlan(const HostFunctions& functions, const Whole& whole, const Way& way, void* in, void* out) {
  HostDimension dims[3];
  for (int d = 0; d < whole.rank; ++d) dims[d] = {whole.n[d], whole.in_strides[d], whole.out_strides[d]};
  const HostDimension batch{whole.batch, whole.in_distance, whole.out_distance};
  unsigned flags = kEstimate;
  if (!way.aligned) flags |= kUnaligned;
  if (!way.in_place) flags |= whole.real_out && whole.rank > 1 ? kDestroyInput : kPreserveInput;
  const std::lock_guard lock(PlannerLock());
  const PlannedThreads threads(functions, way.threads);
  if (whole.real_in) return functions.plan_to_spectrum(whole.rank, dims, 1, &batch, in, out, flags);
  if (whole.real_out) return functions.plan_to_real(whole.rank, dims, 1, &batch, in, out, flags);
  return functions.plan_complex(whole.rank, dims, 1, &batch, in, out, whole.direction, flags);
}

/// The plans that were used last. A plan is made anew, and alike, when it is asked for after it was dropped, so nobody
/// has to know how long a stream or a graph may need one.
class HostPlans {
 public:
  std::shared_ptr<const HostPlan> Find(const HostFunctions& functions, const Whole& whole, const Way& way, void* in,
                                       void* out) {
    const Key key = KeyOf(whole, way);
    std::shared_ptr<const HostPlan> dropped;  // ends without the lock
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(plans_, key, &Entry::key);
    if (found != plans_.end()) {
      plans_.splice(plans_.begin(), plans_, found);
      return plans_.front().plan;
    }
    plans_.push_front({key, std::make_shared<HostPlan>(functions, MakePlan(functions, whole, way, in, out))});
    if (plans_.size() > kMost) {
      dropped = std::move(plans_.back().plan);
      plans_.pop_back();
    }
    return plans_.front().plan;
  }

 private:
  static constexpr std::size_t kMost = 64;
  struct Entry {
    Key key;
    std::shared_ptr<const HostPlan> plan;
  };
  std::mutex mutex_;
  std::list<Entry> plans_;
};
/// Never destroyed: kernels may run while the process ends.
HostPlans& ThePlans() {
  static auto* const plans = new HostPlans;
  return *plans;
}

using Copy = std::unique_ptr<void, decltype(&std::free)>;
Copy CopyOf(const void* data, std::size_t bytes) {
  constexpr std::size_t kAlignment = 64;
  void* const copy = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, data, bytes);
  return {copy, &std::free};
}

}  // namespace

bool HostTransforms(bool wide) {
  static const bool unseen = settings::Runs(settings::Feature::kHostForms, session::AskedFeatures());
  return unseen && FindHostFunctions(wide) != nullptr;
}

bool IsThere(const Whole& whole, const exec::DeviceMemory& memory) {
  return memory.Accessible(whole.in, whole.in_bytes, false) && memory.Accessible(whole.out, whole.out_bytes, true);
}

bool TransformOnHost(std::span<const std::byte> params, const exec::DeviceMemory& memory, unsigned threads) {
  Whole whole;
  if (params.size() < sizeof whole) return false;
  std::memcpy(&whole, params.data(), sizeof whole);
  const HostFunctions* const functions = FindHostFunctions(whole.wide);
  if (functions == nullptr || !IsThere(whole, memory)) return false;
  auto* in = reinterpret_cast<void*>(whole.in);
  auto* const out = reinterpret_cast<void*>(whole.out);
  // FFTW makes real numbers of several dimensions from a spectrum that it writes to; cuFFT leaves it as it was.
  const bool destroys = whole.real_out && whole.rank > 1 && in != out;
  Copy copy(nullptr, &std::free);
  if (destroys || (in == out && !whole.same_places)) copy = CopyOf(in, whole.in_bytes), in = copy.get();
  Index numbers = whole.batch;
  for (int d = 0; d < whole.rank; ++d) numbers *= whole.n[d];
  const Way way{in == out, functions->alignment_of(in) == 0 && functions->alignment_of(out) == 0,
                std::clamp<Index>(numbers / kNumbersOfAThread, 1, threads)};
  const auto plan = ThePlans().Find(*functions, whole, way, in, out);
  if (!plan->made()) throw std::bad_alloc();  // FFTW has a plan for all else
  plan->Execute(whole, in, out);
  return true;
}

}  // namespace gridloom::fft
