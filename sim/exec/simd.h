// Native helpers that are worth it are compiled for several instruction sets; the best one the processor has is chosen
// at run time. All variants give the same bits: build such files with -ffp-contract=off.
#pragma once

#include <cstdint>

namespace gridloom::exec {

enum class SimdLevel : std::uint8_t { kBaseline, kAvx2, kAvx512 };

/// What the processor has, but no more than the limit. Cheap.
SimdLevel UsableSimd();
/// Forces fewer features than the processor has (Engine::Options::cpu_features, tests).
void LimitSimd(SimdLevel most);

}  // namespace gridloom::exec

#define GL_INLINE [[gnu::always_inline]] inline

// GL_SIMD_FUNCTION(Name, Body, (int a, int* b), (a, b)) defines `void Name(int a, int* b)`, which runs the
// always-inline function Body, compiled once per instruction set. GL_SIMD_FUNCTION_OF_TWO takes another body for
// AVX-512.
#if defined(__x86_64__)
#define GL_SIMD_FUNCTION_OF_TWO(name, body_avx512, body, params, args)                                               \
  namespace {                                                                                                        \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")]] void name##Avx512 params { body_avx512 args; } \
  [[gnu::target("avx2,fma,bmi2")]] void name##Avx2 params { body args; }                                             \
  void name##Baseline params { body args; }                                                                          \
  }                                                                                                                  \
  void name params {                                                                                                 \
    switch (UsableSimd()) {                                                                                          \
      case SimdLevel::kAvx512: return name##Avx512 args;                                                             \
      case SimdLevel::kAvx2: return name##Avx2 args;                                                                 \
      case SimdLevel::kBaseline: return name##Baseline args;                                                         \
    }                                                                                                                \
  }
#else
#define GL_SIMD_FUNCTION_OF_TWO(name, body_avx512, body, params, args) \
  void name params { body args; }
#endif
#define GL_SIMD_FUNCTION(name, body, params, args) GL_SIMD_FUNCTION_OF_TWO(name, body, body, params, args)
