// Launches on a real GPU that a broker shares (--connect, --device real): the broker says when, this process launches. A launch waits
// for its grant in the thread that makes it, goes to the real driver as it is, and counts as run once an event recorded behind it has
// passed. It goes whole: a real driver does not know of slices' parameters.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <tuple>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/api/driver_api.h"
#include "scheduler/protocol/client.h"

namespace gridloom::session {
class BrokerLink;
}

namespace gridloom::api {

/// What a call that starts kernels says of them. A graph is one launch of one CTA: what is in it nobody tells.
struct RealLaunch {
  Fn entry = Fn::kCount;
  bool per_thread = false;  ///< the per-thread twin was called: no stream means the thread's own
  cuda::CUfunction function = nullptr;
  cuda::CUstream stream = nullptr;
  std::uint64_t ctas = 1;
  std::uint64_t threads_per_cta = 1;
  std::uint32_t shared_bytes = 0;
};

template <Fn F, typename... Args>
RealLaunch DescribeLaunch(bool per_thread, Args... args) {
  RealLaunch launch{.entry = F, .per_thread = per_thread};
  const auto all = std::tie(args...);
  const auto product = [](std::uint64_t x, std::uint64_t y, std::uint64_t z) { return x * y * z; };
  if constexpr (F == Fn::cuLaunchKernel || F == Fn::cuLaunchCooperativeKernel) {
    launch.function = std::get<0>(all);
    launch.ctas = product(std::get<1>(all), std::get<2>(all), std::get<3>(all));
    launch.threads_per_cta = product(std::get<4>(all), std::get<5>(all), std::get<6>(all));
    launch.shared_bytes = std::get<7>(all);
    launch.stream = std::get<8>(all);
  } else if constexpr (F == Fn::cuLaunchKernelEx) {
    if (const cuda::CUlaunchConfig* const config = std::get<0>(all)) {
      launch.ctas = product(config->grid_dim_x, config->grid_dim_y, config->grid_dim_z);
      launch.threads_per_cta = product(config->block_dim_x, config->block_dim_y, config->block_dim_z);
      launch.shared_bytes = config->shared_mem_bytes;
      launch.stream = config->stream;
    }
    launch.function = std::get<1>(all);
  } else if constexpr (F == Fn::cuLaunchGridAsync || F == Fn::cuLaunchGrid) {
    launch.function = std::get<0>(all);
    launch.ctas = product(static_cast<std::uint64_t>(std::get<1>(all)), static_cast<std::uint64_t>(std::get<2>(all)), 1);
    if constexpr (F == Fn::cuLaunchGridAsync) launch.stream = std::get<3>(all);
  } else if constexpr (F == Fn::cuGraphLaunch) {
    launch.stream = std::get<1>(all);
  } else if constexpr (F == Fn::cuLaunch) {
    launch.function = std::get<0>(all);
  }
  return launch;
}

/// Never destroyed: threads of the program may launch until the very end.
class RealGate {
 public:
  /// Null when nobody schedules: calls go straight to the real driver.
  static RealGate* Get() { return g_gate_.load(std::memory_order_acquire); }
  /// Joins the broker that the settings name, if they name one. Once, when the real driver is loaded.
  static void Start();

  template <typename Call>
  cuda::CUresult Launch(const RealLaunch& launch, const Call& call) noexcept {
    protocol::Client::Ticket ticket;
    if (const cuda::CUresult refused = Begin(launch, &ticket); refused != cuda::CUDA_SUCCESS) return refused;
    const cuda::CUresult status = call();
    if (ticket.launch != 0) Launched(launch, ticket, status);
    return status;
  }

 private:
  /// A launch that runs, and the event behind it.
  struct Pending {
    protocol::Client::Ticket ticket;
    std::uint64_t ctas = 0;
    cuda::CUcontext context = nullptr;
    cuda::CUevent event = nullptr;
  };

  /// `link` null: the broker cannot be joined, and the program is not to go on without it: nothing is launched.
  explicit RealGate(session::BrokerLink* link) : link_(link) {}
  cuda::CUresult Begin(const RealLaunch& launch, protocol::Client::Ticket* ticket) noexcept;
  void Launched(const RealLaunch& launch, const protocol::Client::Ticket& ticket, cuda::CUresult status) noexcept;
  void Watch();
  bool Ended(const Pending& pending);

  static std::atomic<RealGate*> g_gate_;
  session::BrokerLink* const link_;
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable launched_;
  std::vector<Pending> pending_;
};

}  // namespace gridloom::api
