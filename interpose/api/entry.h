// What every generated entry point does: forward to a real driver if there is one, else check that the call is allowed
// now, run the hook, and let no exception cross the C interface.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <new>

#include "interpose/api/cuda_types.h"
#include "interpose/api/driver_api.h"
#include "interpose/base/large_stack.h"
#include "interpose/base/thread_state.h"
#include "interpose/real/code.h"
#include "interpose/real/launch.h"
#include "interpose/real/memory.h"

namespace gridloom::api {

/// What must be true before a hook runs.
enum class Need : std::uint8_t {
  kNone,
  kInit,     ///< cuInit was called, and not in a parent process
  kContext,  ///< the thread has a current context, and no kernel of it has failed
  kLaunch,   ///< as kContext; the call starts kernels
};

enum class Mode : std::uint8_t { kUndecided, kVirtual, kReal };
extern std::atomic<Mode> g_mode;
/// Addresses in the real driver, [function][twin]; filled before g_mode becomes kReal.
extern void* g_real[kFunctionCount][2];

/// Reads the settings once and decides who answers: our virtual GPU or a real driver.
Mode DecideMode();
inline Mode CurrentMode() {
  const Mode mode = g_mode.load(std::memory_order_acquire);  // pairs with the release in DecideMode
  return mode != Mode::kUndecided ? mode : DecideMode();
}

/// Calls of the virtual GPU are looked at when they have been answered: GRIDLOOM_LOG=trace has a line for each, and
/// memcheck counts those that fail where GRIDLOOM_REPORT_API_ERRORS asks for it.
extern std::atomic<bool> g_looks_at_calls;
void LookAtCall(Fn fn, cuda::CUresult status);

/// Success, NOT_INITIALIZED, INVALID_CONTEXT, CONTEXT_IS_DESTROYED, or the error a kernel left behind.
cuda::CUresult CheckNeed(Need need);
/// One log line per name and process. `why` may be empty.
cuda::CUresult AnswerUnsupported(Fn fn, const char* why);
cuda::CUresult AnswerException(Fn fn, const std::exception* error);
cuda::CUresult MissingInRealDriver(Fn fn);
void CountRealLaunch(Fn fn);
/// cuGetProcAddress on a real GPU: the real answer, except that launching functions lead through us.
cuda::CUresult RealGetProcAddress(const char* symbol, void** pfn, int version, std::uint64_t flags,
                                  cuda::CUdriverProcAddressQueryResult* status);

template <Fn F, bool kTwin, typename... Args>
cuda::CUresult CallReal(Args... args) {
  if constexpr (F == Fn::cuGetProcAddress) return RealGetProcAddress(args..., nullptr);
  else if constexpr (F == Fn::cuGetProcAddress_v2) return RealGetProcAddress(args...);
  else {
    void* const real = g_real[static_cast<std::size_t>(F)][kTwin];
    if (real == nullptr) return MissingInRealDriver(F);
    return reinterpret_cast<cuda::CUresult (*)(Args...)>(real)(args...);
  }
}

template <Fn F, bool kTwin, Need kNeed, typename... Args>
cuda::CUresult Enter(cuda::CUresult (*hook)(Args...), Args... args) noexcept {
  if (CurrentMode() == Mode::kReal) [[unlikely]] {
    if constexpr (kNeed == Need::kLaunch) {
      CountRealLaunch(F);
      if (RealGate* const gate = RealGate::Get()) {
        return gate->Launch(DescribeLaunch<F>(kTwin, args...), [&] { return CallReal<F, kTwin, Args...>(args...); });
      }
    }
    if constexpr (MemoryRoleOf(F) != MemoryRole::kNone) {
      if (RealMemory* const memory = RealMemory::Get())
        return memory->Run<F>([&] { return CallReal<F, kTwin, Args...>(args...); }, args...);
    }
    if constexpr (CodeRoleOf(F) != CodeRole::kNone) {
      if (RealCode* const code = RealCode::Get())
        return code->Run<F>([&] { return CallReal<F, kTwin, Args...>(args...); }, args...);
    }
    return CallReal<F, kTwin, Args...>(args...);
  }
  if (session::StackIsShort()) [[unlikely]] {
    cuda::CUresult status = cuda::CUDA_ERROR_OUT_OF_MEMORY;
    session::OnLargeStack([&] { status = Enter<F, kTwin, kNeed, Args...>(hook, args...); });
    return status;
  }
  if constexpr (kNeed != Need::kNone) {
    if (const auto status = CheckNeed(kNeed); status != cuda::CUDA_SUCCESS) {
      if (g_looks_at_calls.load(std::memory_order_relaxed)) LookAtCall(F, status);
      return status;
    }
  }
  const session::DefaultStreamScope scope(kTwin);
  try {
    const cuda::CUresult status = hook(args...);
    if (g_looks_at_calls.load(std::memory_order_relaxed)) [[unlikely]]
      LookAtCall(F, status);
    return status;
  } catch (const std::bad_alloc&) {
    return cuda::CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    return AnswerException(F, &error);
  } catch (...) {
    return AnswerException(F, nullptr);
  }
}

template <Fn F, bool kTwin, typename... Args>
cuda::CUresult Refuse(const char* why, Args... args) noexcept {
  if (CurrentMode() == Mode::kReal) return CallReal<F, kTwin, Args...>(args...);
  const cuda::CUresult needed = CheckNeed(Need::kInit);
  const cuda::CUresult status = needed == cuda::CUDA_SUCCESS ? AnswerUnsupported(F, why) : needed;
  if (g_looks_at_calls.load(std::memory_order_relaxed)) LookAtCall(F, status);
  return status;
}

}  // namespace gridloom::api
