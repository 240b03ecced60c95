// What every generated entry point does: forward to a real driver if there is one, else check that the call is allowed
// now, run the hook, and let no exception cross the C interface.
#pragma once

#include <cstdint>
#include <exception>
#include <new>

#include "interpose/api/cuda_types.h"
#include "interpose/api/driver_api.h"
#include "interpose/base/large_stack.h"
#include "interpose/base/thread_state.h"
#include "interpose/objects/process.h"
#include "interpose/real/call.h"
#include "interpose/real/code.h"
#include "interpose/real/driver.h"
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

/// What is done with a call that has been answered, where calls are looked at (real/driver.h).
void LookAtCall(const session::Process& process, Fn fn, cuda::CUresult status);

/// Success, NOT_INITIALIZED, INVALID_CONTEXT, CONTEXT_IS_DESTROYED, or the error a kernel left behind.
cuda::CUresult CheckNeed(const session::Process& process, Need need);
/// One log line per name and process. `why` may be empty.
cuda::CUresult AnswerUnsupported(Fn fn, const char* why);
cuda::CUresult AnswerException(Fn fn, const std::exception* error);

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
cuda::CUresult Enter(cuda::CUresult (*hook)(session::Process&, Args...), Args... args) noexcept {
  if (CurrentMode() == Mode::kReal) [[unlikely]] {
    if constexpr (kNeed == Need::kLaunch) {
      CountRealLaunch(F);
      if (RealGate* const gate = RealGate::Get()) {
        return gate->Launch(DescribeLaunch<F>(kTwin, args...), [&] { return CallReal<F, kTwin, Args...>(args...); });
      }
    }
    if constexpr (MemoryRoleOf(F) != MemoryRole::kNone) {
      if (RealGate* const gate = RealGate::Get(); gate != nullptr && gate->memory() != nullptr)
        return gate->memory()->Run<F>([&] { return CallReal<F, kTwin, Args...>(args...); }, args...);
    }
    if constexpr (CodeRoleOf(F) != CodeRole::kNone) {
      if (RealGate* const gate = RealGate::Get(); gate != nullptr && gate->code() != nullptr)
        return gate->code()->Run<F>([](Args... given) { return CallReal<F, kTwin, Args...>(given...); }, args...);
    }
    return CallReal<F, kTwin, Args...>(args...);
  }
  if (session::StackIsShort()) [[unlikely]] {
    cuda::CUresult status = cuda::CUDA_ERROR_OUT_OF_MEMORY;
    session::OnLargeStack([&] { status = Enter<F, kTwin, kNeed, Args...>(hook, args...); });
    return status;
  }
  session::Process& process = session::Process::Get();
  if constexpr (kNeed != Need::kNone) {
    if (const auto status = CheckNeed(process, kNeed); status != cuda::CUDA_SUCCESS) {
      if (g_looks_at_calls.load(std::memory_order_relaxed)) LookAtCall(process, F, status);
      return status;
    }
  }
  const session::DefaultStreamScope scope(kTwin);
  try {
    const cuda::CUresult status = hook(process, args...);
    if (g_looks_at_calls.load(std::memory_order_relaxed)) [[unlikely]]
      LookAtCall(process, F, status);
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
  const session::Process& process = session::Process::Get();
  const cuda::CUresult needed = CheckNeed(process, Need::kInit);
  const cuda::CUresult status = needed == cuda::CUDA_SUCCESS ? AnswerUnsupported(F, why) : needed;
  if (g_looks_at_calls.load(std::memory_order_relaxed)) LookAtCall(process, F, status);
  return status;
}

}  // namespace gridloom::api
