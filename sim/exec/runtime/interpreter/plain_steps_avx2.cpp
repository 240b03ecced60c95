#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "sim/exec/runtime/half.h"
#include "sim/exec/runtime/interpreter/frame.h"
#if defined(__x86_64__) && defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi,bmi2,lzcnt,popcnt"))), apply_to = function)
#elif defined(__x86_64__)
#pragma GCC target("avx2,fma,bmi,bmi2,lzcnt,popcnt")
#endif

#include "sim/exec/runtime/interpreter/plain_steps.h"

namespace gridloom::exec {

StepFn PlainStepAvx2(const ByteStep& step) { return PlainSteps<1>::Find(step); }

}  // namespace gridloom::exec

#if defined(__x86_64__) && defined(__clang__)
#pragma clang attribute pop
#endif
