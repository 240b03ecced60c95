#include "sim/exec/simd.h"

#include <algorithm>
#include <atomic>

namespace gridloom::exec {
namespace {

SimdLevel Detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2")) {
    return SimdLevel::kAvx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
      __builtin_cpu_supports("bmi2"))
    return SimdLevel::kAvx2;
#endif
  return SimdLevel::kBaseline;
}

constexpr std::uint8_t kUnknown = 0xff;
constinit std::atomic<std::uint8_t> usable{kUnknown};

}  // namespace

SimdLevel UsableSimd() {
  const std::uint8_t level = usable.load(std::memory_order_relaxed);
  if (level != kUnknown) return static_cast<SimdLevel>(level);
  LimitSimd(SimdLevel::kAvx512);
  return UsableSimd();
}

void LimitSimd(SimdLevel most) {
  usable.store(static_cast<std::uint8_t>(std::min(most, Detect())), std::memory_order_relaxed);
}

}  // namespace gridloom::exec
