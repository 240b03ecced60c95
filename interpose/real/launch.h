// Launches on a real GPU that go in slices (--device real). With a broker (--connect) it says when, this process
// launches. A launch waits for its grant in the thread that makes it, and counts as run once an event recorded behind
// it has passed. A grid of more CTAs than the GPU has multiprocessors goes in the slices that the broker grants where
// its kernel has a sliced form (kernel.h): each is one launch of that form, made when the one before has run. Without a
// broker (--slice) slices follow each other in the launch's stream. Everything else goes to the real driver as it is.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/api/driver_api.h"
#include "interpose/real/code.h"
#include "interpose/real/kernel.h"
#include "interpose/real/memory.h"
#include "interpose/real/slice_counts.h"
#include "scheduler/protocol/client.h"

namespace gridloom::session {
class BrokerLink;
class Process;
}  // namespace gridloom::session

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
  // What cuLaunchKernel and cuLaunchKernelEx pass; these launches can go in slices.
  std::array<std::uint32_t, 3> grid{}, block{};
  void** params = nullptr;
  void** extra = nullptr;
  const cuda::CUlaunchConfig* config = nullptr;  ///< of the second one

  using Shape = std::array<std::uint32_t, 3>;
  void SetShape(const Shape& of_grid, const Shape& of_block) {
    grid = of_grid;
    block = of_block;
    ctas = std::uint64_t{grid[0]} * grid[1] * grid[2];
    threads_per_cta = std::uint64_t{block[0]} * block[1] * block[2];
  }
};

template <Fn F, typename... Args>
RealLaunch DescribeLaunch(bool per_thread, Args... args) {
  RealLaunch launch{.entry = F, .per_thread = per_thread};
  const auto all = std::tie(args...);
  if constexpr (F == Fn::cuLaunchKernel || F == Fn::cuLaunchCooperativeKernel) {
    launch.function = std::get<0>(all);
    launch.SetShape({std::get<1>(all), std::get<2>(all), std::get<3>(all)},
                    {std::get<4>(all), std::get<5>(all), std::get<6>(all)});
    launch.shared_bytes = std::get<7>(all);
    launch.stream = std::get<8>(all);
    launch.params = std::get<9>(all);
    if constexpr (F == Fn::cuLaunchKernel) launch.extra = std::get<10>(all);
  } else if constexpr (F == Fn::cuLaunchKernelEx) {
    if (const cuda::CUlaunchConfig* const config = std::get<0>(all)) {
      launch.config = config;
      launch.SetShape({config->grid_dim_x, config->grid_dim_y, config->grid_dim_z},
                      {config->block_dim_x, config->block_dim_y, config->block_dim_z});
      launch.shared_bytes = config->shared_mem_bytes;
      launch.stream = config->stream;
    }
    launch.function = std::get<1>(all);
    launch.params = std::get<2>(all);
    launch.extra = std::get<3>(all);
  } else if constexpr (F == Fn::cuLaunchGridAsync || F == Fn::cuLaunchGrid) {
    launch.function = std::get<0>(all);
    launch.ctas = static_cast<std::uint64_t>(std::get<1>(all)) * static_cast<std::uint64_t>(std::get<2>(all));
    if constexpr (F == Fn::cuLaunchGridAsync) launch.stream = std::get<3>(all);
  } else if constexpr (F == Fn::cuGraphLaunch) {
    launch.stream = std::get<1>(all);
  } else if constexpr (F == Fn::cuLaunch) {
    launch.function = std::get<0>(all);
  }
  return launch;
}

/// Where the program's calls pass on their way to the real driver, where launches may go in slices. Never destroyed:
/// threads of the program may launch until the very end.
class RealGate {
 public:
  /// Null when nobody schedules or slices: calls go straight to the real driver.
  static RealGate* Get() { return g_gate_.load(std::memory_order_acquire); }
  /// Joins the broker that the settings name, if they name one; without one there is a gate where they ask for slices.
  /// Once, when the real driver is loaded.
  static void Start(session::Process& process);

  /// Who watches memory and code go by; null when nothing goes by, as the broker could not be joined.
  RealMemory* memory() const { return memory_.get(); }
  RealCode* code() const { return code_.get(); }

  /// `whole` makes the call as the program did.
  template <typename Call>
  cuda::CUresult Launch(const RealLaunch& launch, const Call& whole) noexcept {
    return Run(launch, {[](const void* call) { return (*static_cast<const Call*>(call))(); }, &whole});
  }

 private:
  /// A launch that runs, and the event behind it.
  struct Pending {
    protocol::Client::Ticket ticket;
    std::uint64_t ctas = 0;
    cuda::CUcontext context = nullptr;
    cuda::CUevent event = nullptr;
    std::shared_ptr<CountTable> table = nullptr;  ///< that counts its last slice; may be null
  };

  /// `link` null: there is no broker; unless `alone` one was asked for, cannot be joined, and nothing is launched.
  RealGate(session::BrokerLink* link, bool alone);
  /// The program's call.
  struct Whole {
    cuda::CUresult (*run)(const void*);
    const void* call;
    cuda::CUresult operator()() const { return run(call); }
  };
  /// The sliced form of what is launched; none: `form` is null.
  struct Slices {
    std::shared_ptr<RealKernel> kernel;
    std::shared_ptr<const SlicedFunction> form;
  };

  cuda::CUresult Run(const RealLaunch& launch, const Whole& whole) noexcept;
  cuda::CUresult RunWhole(const RealLaunch& launch, const Slices& slices, const Whole& whole);
  std::optional<cuda::CUresult> RunInSlices(const RealLaunch& launch, const Slices& slices, const Whole& whole);
  std::optional<cuda::CUresult> RunInSlicesAlone(const RealLaunch& launch, const Slices& slices);
  Slices SlicesOf(const RealLaunch& launch);
  bool GoesOn(protocol::Verdict verdict, cuda::CUresult* status) noexcept;
  void Launched(const RealLaunch& launch, const protocol::Client::Ticket& ticket, cuda::CUresult status,
                const std::shared_ptr<CountTable>& table = nullptr) noexcept;
  void Watch();
  bool Ended(const Pending& pending);

  static std::atomic<RealGate*> g_gate_;
  session::BrokerLink* const link_;
  const bool alone_;
  const std::unique_ptr<RealMemory> memory_;
  const std::unique_ptr<RealCode> code_;
  const std::unique_ptr<SliceCounts> counts_;
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable launched_;
  std::vector<Pending> pending_;
};

}  // namespace gridloom::api
