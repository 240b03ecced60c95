#include "interpose/api/real_launch.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "interpose/api/entry.h"
#include "interpose/api/real_memory.h"
#include "interpose/session/broker_link.h"
#include "interpose/session/log.h"

namespace gridloom::api {

using namespace cuda;
using protocol::Verdict;
using session::BrokerLink;
using session::LogLevel;

std::atomic<RealGate*> RealGate::g_gate_{nullptr};

namespace {

/// How often events are looked at while launches run: an event cannot be slept on together with others.
constexpr std::chrono::microseconds kLookEvery{20};
// What the records of the broker's protocol have room for.
constexpr std::uint64_t kMostCtas = std::uint64_t{1} << 62, kMostThreads = 1024;

/// A call of the real driver; NOT_SUPPORTED where it lacks the function.
template <Fn F, typename... Args>
CUresult Real(bool twin, Args... args) {
  void* const* const both = g_real[static_cast<std::size_t>(F)];
  void* const function = twin && both[1] != nullptr ? both[1] : both[0];
  return function != nullptr ? reinterpret_cast<CUresult (*)(Args...)>(function)(args...) : CUDA_ERROR_NOT_SUPPORTED;
}

/// While it lives, what the thread asks of the driver disturbs no capture of the program's.
class OutsideCaptures {
 public:
  OutsideCaptures() { exchanged_ = Real<Fn::cuThreadExchangeStreamCaptureMode>(false, &mode_) == CUDA_SUCCESS; }
  ~OutsideCaptures() {
    if (exchanged_) Real<Fn::cuThreadExchangeStreamCaptureMode>(false, &mode_);
  }
  OutsideCaptures(const OutsideCaptures&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_ = false;
};

/// A launch into a stream that is captured runs nothing.
bool Captured(const RealLaunch& launch) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return Real<Fn::cuStreamIsCapturing>(launch.per_thread, launch.stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/// Tells streams apart: the broker orders and charges the launches of one stream one after the other.
std::uint64_t StreamNumber(const RealLaunch& launch, CUcontext context) {
  auto number = reinterpret_cast<std::uint64_t>(launch.stream);
  const bool own = number == 2 || (number == 0 && launch.per_thread);  // CU_STREAM_PER_THREAD
  if (own) number = static_cast<std::uint64_t>(syscall(SYS_gettid)) << 8 | 2;
  else if (number == 0) number = 1;  // CU_STREAM_LEGACY
  return number + reinterpret_cast<std::uint64_t>(context) * 0x9e3779b97f4a7c15ULL;
}

protocol::LaunchRecord RecordOf(const RealLaunch& launch) {
  const char* name = nullptr;
  int registers = 0, shared = 0;
  if (launch.function != nullptr) {
    if (Real<Fn::cuFuncGetName>(false, &name, launch.function) != CUDA_SUCCESS) name = nullptr;
    static_cast<void>(Real<Fn::cuFuncGetAttribute>(false, &registers, CU_FUNC_ATTRIBUTE_NUM_REGS, launch.function));
    static_cast<void>(Real<Fn::cuFuncGetAttribute>(false, &shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, launch.function));
  }
  int priority = 0;
  static_cast<void>(Real<Fn::cuStreamGetPriority>(launch.per_thread, launch.stream, &priority));
  CUcontext context = nullptr;
  static_cast<void>(Real<Fn::cuCtxGetCurrent>(false, &context));
  const std::string text = name != nullptr ? name : RowOf(launch.entry).name;
  return {.kernel = protocol::KernelHash(text),
          .stream = std::max<std::uint64_t>(StreamNumber(launch, context), 1),
          .ctas = std::clamp<std::uint64_t>(launch.ctas, 1, kMostCtas),
          .threads_per_cta = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(launch.threads_per_cta, 1, kMostThreads)),
          .registers_per_thread = static_cast<std::uint32_t>(std::clamp(registers, 0, 255)),
          .shared_bytes = std::min(launch.shared_bytes + static_cast<std::uint32_t>(std::max(shared, 0)), 1u << 28),
          .priority = std::clamp(-priority, -100, 100),  // CUDA's smaller number is the more urgent one
          .divisible = false,
          .name = text};
}

/// Signals are the program's: none is delivered to a thread of ours.
template <typename Main>
void StartThread(Main main) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  std::thread(std::move(main)).detach();
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

}  // namespace

void RealGate::Start() {
  const Status joined = BrokerLink::Start();
  BrokerLink* link = BrokerLink::Get();
  if (!joined.ok()) {
    session::Log(LogLevel::kError, joined.error().message);
    link = nullptr;
  } else if (link == nullptr) {
    return;
  } else if (link->timed()) {
    session::Log(LogLevel::kError, "the broker simulates time (`gridloom daemon --timing`): a real GPU cannot be shared through it");
    link = nullptr;
  }
  auto* const gate = new RealGate(link);
  if (link != nullptr) {
    StartThread([gate] { gate->Watch(); });
    RealMemory::Start(*link);
  }
  g_gate_.store(gate, std::memory_order_release);
  pthread_atfork(nullptr, nullptr, [] {
    RealMemory::AbandonAfterFork();
    g_gate_.store(nullptr, std::memory_order_release);  // a driver does not outlive fork, and the connection is the parent's
    BrokerLink::AbandonAfterFork();
  });
}

CUresult RealGate::Begin(const RealLaunch& launch, protocol::Client::Ticket* ticket) noexcept {
  if (link_ == nullptr) return CUDA_ERROR_MPS_CONNECTION_FAILED;
  try {
    if (Captured(launch)) return CUDA_SUCCESS;
    Verdict verdict = link_->client().Announce(RecordOf(launch), ticket);
    std::uint64_t granted = 0;
    if (verdict == Verdict::kGranted) verdict = link_->client().Wait(*ticket, 0, &granted);
    if (verdict == Verdict::kGranted) return CUDA_SUCCESS;
    *ticket = {};
    if (verdict == Verdict::kLost && link_->goes_on_alone()) return CUDA_SUCCESS;
    static std::atomic<bool> told{false};
    const bool ended = verdict == Verdict::kEnded;
    if (!told.exchange(true)) {
      session::Log(LogLevel::kError, ended ? "the broker has ended this session: " + link_->client().end_reason()
                                           : "the broker is gone, and --on-broker-loss is fail: no kernel runs any more");
    }
    return ended ? CUDA_ERROR_MPS_CLIENT_TERMINATED : CUDA_ERROR_MPS_RPC_FAILURE;
  } catch (...) {
    *ticket = {};
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

/// The driver has taken the launch, or not.
void RealGate::Launched(const RealLaunch& launch, const protocol::Client::Ticket& ticket, CUresult status) noexcept {
  const std::uint64_t ctas = std::clamp<std::uint64_t>(launch.ctas, 1, kMostCtas);
  if (status != CUDA_SUCCESS) return link_->client().End(ticket, 0, true);
  try {
    const OutsideCaptures outside;
    Pending pending{.ticket = ticket, .ctas = ctas};
    static_cast<void>(Real<Fn::cuCtxGetCurrent>(false, &pending.context));
    if (Real<Fn::cuEventCreate>(false, &pending.event, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING)) == CUDA_SUCCESS) {
      if (Real<Fn::cuEventRecord>(launch.per_thread, pending.event, launch.stream) == CUDA_SUCCESS) {
        const std::lock_guard lock(mutex_);
        pending_.push_back(pending);
        launched_.notify_one();
        return;
      }
      static_cast<void>(Real<Fn::cuEventDestroy_v2>(false, pending.event));
    }
  } catch (...) {
  }
  link_->client().End(ticket, ctas, false);  // nobody can tell when it ends: it counts as run
}

/// Whether the launch is over; then the broker knows.
bool RealGate::Ended(const Pending& pending) {
  const CUresult status = Real<Fn::cuEventQuery>(false, pending.event);
  if (status == CUDA_ERROR_NOT_READY) return false;
  link_->client().End(pending.ticket, status == CUDA_SUCCESS ? pending.ctas : 0, status != CUDA_SUCCESS);
  static_cast<void>(Real<Fn::cuEventDestroy_v2>(false, pending.event));
  return true;
}

/// Looks at the events behind the launches that run.
void RealGate::Watch() {
  const OutsideCaptures outside;
  CUcontext current = nullptr;
  std::vector<Pending> running;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (running.empty()) launched_.wait(lock, [&] { return !pending_.empty(); });
      running.insert(running.end(), pending_.begin(), pending_.end());
      pending_.clear();
    }
    const auto ended = std::erase_if(running, [&](const Pending& pending) {
      if (pending.context != current) static_cast<void>(Real<Fn::cuCtxSetCurrent>(false, current = pending.context));
      return Ended(pending);
    });
    if (ended == 0) std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace gridloom::api
