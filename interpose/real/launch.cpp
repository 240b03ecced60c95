#include "interpose/real/launch.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>

#include "interpose/base/log.h"
#include "interpose/base/slice_size.h"
#include "interpose/objects/process.h"
#include "interpose/observe/broker_link.h"
#include "interpose/observe/observers.h"
#include "interpose/real/call.h"
#include "interpose/real/code.h"
#include "interpose/real/memory.h"
#include "interpose/real/own_thread.h"

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

/// A launch into a stream that is captured runs nothing.
bool Captured(const RealLaunch& launch) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return RealTwin<Fn::cuStreamIsCapturing>(launch.per_thread, launch.stream, &status) == CUDA_SUCCESS &&
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

/// Its own attribute's or, without one, its stream's, as CUDA counts: the smaller number is the more urgent one.
int PriorityOf(const RealLaunch& launch) {
  if (launch.config != nullptr) {
    const std::span attributes(launch.config->attrs, launch.config->num_attrs);
    const auto own = std::ranges::find(attributes, CU_LAUNCH_ATTRIBUTE_PRIORITY, &CUlaunchAttribute::id);
    if (own != attributes.end()) return own->value.priority;
  }
  int priority = 0;
  static_cast<void>(RealTwin<Fn::cuStreamGetPriority>(launch.per_thread, launch.stream, &priority));
  return priority;
}

/// `known`: the kernel, if it is known; `divisible`: it may go in slices.
protocol::LaunchRecord RecordOf(const RealLaunch& launch, const RealKernel* known, bool divisible) {
  const char* name = nullptr;
  int registers = 0, shared = 0;
  if (launch.function != nullptr) {
    if (known != nullptr) name = known->name().c_str();
    else if (Real<Fn::cuFuncGetName>(&name, launch.function) != CUDA_SUCCESS) name = nullptr;
    static_cast<void>(Real<Fn::cuFuncGetAttribute>(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, launch.function));
    static_cast<void>(Real<Fn::cuFuncGetAttribute>(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, launch.function));
  }
  CUcontext context = nullptr;
  static_cast<void>(Real<Fn::cuCtxGetCurrent>(&context));
  const std::string text = name != nullptr ? name : RowOf(launch.entry).name;
  return {
      .kernel = protocol::KernelHash(text),
      .stream = std::max<std::uint64_t>(StreamNumber(launch, context), 1),
      .ctas = std::clamp<std::uint64_t>(launch.ctas, 1, kMostCtas),
      .threads_per_cta = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(launch.threads_per_cta, 1, kMostThreads)),
      .registers_per_thread = static_cast<std::uint32_t>(std::clamp(registers, 0, 255)),
      .shared_bytes = std::min(launch.shared_bytes + static_cast<std::uint32_t>(std::max(shared, 0)), 1u << 28),
      .priority = std::clamp(-PriorityOf(launch), -100, 100),
      .divisible = divisible,
      .name = text};
}

/// The event is no more because the program has ended its context, which ends when its kernels have: no fault of
/// theirs.
bool WentWithItsContext(CUresult status) {
  return status == CUDA_ERROR_DEINITIALIZED || status == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
         status == CUDA_ERROR_INVALID_CONTEXT || status == CUDA_ERROR_INVALID_HANDLE;
}

/// Attributes that mean for each slice what they mean for the grid.
bool HoldsForSlices(const CUlaunchAttribute& attribute) {
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return true;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: return attribute.value.cooperative == 0;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      return std::max({attribute.value.cluster_dim.x, attribute.value.cluster_dim.y, attribute.value.cluster_dim.z}) <=
             1;
    default: return false;
  }
}

/// Whether such a launch can go in slices, whatever its kernel.
bool MayGoInSlices(const RealLaunch& launch) {
  if (launch.entry != Fn::cuLaunchKernel && (launch.entry != Fn::cuLaunchKernelEx || launch.config == nullptr))
    return false;
  const auto& [x, y, z] = launch.grid;
  constexpr std::uint32_t kMostX = 0x7FFFFFFF, kMostYz = 65535;
  if (launch.ctas == 0 || x > kMostX || y > kMostYz || z > kMostYz || launch.threads_per_cta > kMostThreads)
    return false;
  return launch.config == nullptr || launch.config->num_attrs == 0 ||
         std::all_of(launch.config->attrs, launch.config->attrs + launch.config->num_attrs, HoldsForSlices);
}

/// Multiprocessors of the device of a context, which is current.
std::uint32_t MultiprocessorsOf(std::uint64_t context) {
  thread_local std::uint64_t known = 0;
  thread_local int count = 0;
  if (known == context) return static_cast<std::uint32_t>(count);
  CUdevice device = 0;
  if (Real<Fn::cuCtxGetDevice>(&device) != CUDA_SUCCESS ||
      Real<Fn::cuDeviceGetAttribute>(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) != CUDA_SUCCESS)
    return 0;
  known = context;
  return static_cast<std::uint32_t>(count);
}

/// CTAs first to first + count - 1, whose parameters are set.
CUresult LaunchSlice(const RealLaunch& launch, const SlicedFunction& form, SliceParams& params, std::uint64_t count) {
  const auto ctas = static_cast<unsigned>(count);
  const auto& [x, y, z] = launch.block;
  if (launch.config == nullptr)
    return RealTwin<Fn::cuLaunchKernel>(launch.per_thread, form.function, ctas, 1u, 1u, x, y, z, launch.shared_bytes,
                                        launch.stream, params.params(), params.extra());
  CUlaunchConfig config = *launch.config;
  config.grid_dim_x = ctas;
  config.grid_dim_y = config.grid_dim_z = 1;
  return RealTwin<Fn::cuLaunchKernelEx>(launch.per_thread, const_cast<const CUlaunchConfig*>(&config), form.function,
                                        params.params(), params.extra());
}

/// The number of a grid: %gridid of its slices.
std::uint64_t NextGrid() {
  static std::atomic<std::uint64_t> grids{0};
  return ++grids;
}

passes::GridShape ShapeOf(const RealLaunch& launch) { return {launch.grid[0], launch.grid[1], launch.grid[2]}; }

/// CTAs `from` to `end` - 1, in slices of at most `most`, one behind the other. `from` is then where it came to.
/// `table` counts them, if it is there.
CUresult LaunchSlices(const RealLaunch& launch, const SlicedFunction& form, SliceParams& params, std::uint64_t& from,
                      std::uint64_t end, std::uint64_t most, CountTable* table = nullptr) {
  for (std::uint64_t count = 0; from < end; from += count) {
    count = std::min({end - from, most, passes::LongestSlice(ShapeOf(launch), from)});
    if (table != nullptr) params.SetCounts(table->Add(count, static_cast<std::uint32_t>(launch.threads_per_cta)));
    params.SetFirst(from);
    if (const CUresult status = LaunchSlice(launch, form, params, count); status != CUDA_SUCCESS) return status;
  }
  return CUDA_SUCCESS;
}

/// Waits until everything that the launch's stream has so far has run.
CUresult WaitForStream(const RealLaunch& launch) {
  const OutsideCaptures outside;
  CUevent event = nullptr;
  CUresult status =
      Real<Fn::cuEventCreate>(&event, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
  if (status != CUDA_SUCCESS) return status;
  status = RealTwin<Fn::cuEventRecord>(launch.per_thread, event, launch.stream);
  if (status == CUDA_SUCCESS) status = Real<Fn::cuEventSynchronize>(event);
  static_cast<void>(Real<Fn::cuEventDestroy_v2>(event));
  return status;
}

}  // namespace

RealGate::RealGate(BrokerLink* link, bool alone)
    : link_(link),
      alone_(alone),
      memory_(link != nullptr ? std::make_unique<RealMemory>(*link) : nullptr),
      code_(link != nullptr || alone ? std::make_unique<RealCode>() : nullptr),
      counts_(link != nullptr ? std::make_unique<SliceCounts>(link->client()) : nullptr) {}

void RealGate::Start(session::Process& process) {
  const Status joined = process.observers().JoinBroker();
  BrokerLink* link = process.observers().broker();
  bool alone = false;
  if (!joined.ok()) {
    session::Log(LogLevel::kError, joined.error().message);
    link = nullptr;
  } else if (link == nullptr) {
    if (session::SliceSize() == 0) return;
    alone = true;
  } else if (link->timed()) {
    session::Log(LogLevel::kError,
                 "the broker simulates time (`gridloom daemon --timing`): a real GPU cannot be shared through it");
    link = nullptr;
  }
  auto* const gate = new RealGate(link, alone);
  if (link != nullptr) StartThread([gate] { gate->Watch(); });
  g_gate_.store(gate, std::memory_order_release);
  pthread_atfork(nullptr, nullptr, [] {
    g_gate_.store(nullptr,
                  std::memory_order_release);  // a driver does not outlive fork, and the connection is the parent's
    session::Process::Get().observers().AbandonBroker();
  });
}

CUresult RealGate::Run(const RealLaunch& launch, const Whole& whole) noexcept {
  if (link_ == nullptr && !alone_) return CUDA_ERROR_MPS_CONNECTION_FAILED;
  try {
    if (Captured(launch)) return whole();
    const Slices slices = SlicesOf(launch);
    if (slices.form != nullptr) {
      const auto status = alone_ ? RunInSlicesAlone(launch, slices) : RunInSlices(launch, slices, whole);
      if (status) return *status;
    }
    return alone_ ? whole() : RunWhole(launch, slices, whole);
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

/// Whether a launch runs although the broker has not granted it; else what it answers.
bool RealGate::GoesOn(Verdict verdict, CUresult* status) noexcept {
  if (verdict == Verdict::kLost && link_->goes_on_alone()) return true;
  static std::atomic<bool> told{false};
  const bool ended = verdict == Verdict::kEnded;
  if (!ended && !told.exchange(true))  // of the session's end BrokerLink has told
    session::Log(LogLevel::kError, "the broker is gone, and --on-broker-loss is fail: no kernel runs any more");
  *status = ended ? CUDA_ERROR_MPS_CLIENT_TERMINATED : CUDA_ERROR_MPS_RPC_FAILURE;
  return false;
}

CUresult RealGate::RunWhole(const RealLaunch& launch, const Slices& slices, const Whole& whole) {
  protocol::Client::Ticket ticket;
  Verdict verdict = link_->client().Announce(RecordOf(launch, slices.kernel.get(), false), &ticket);
  std::uint64_t granted = 0;
  if (verdict == Verdict::kGranted) verdict = link_->client().Wait(ticket, 0, &granted);
  CUresult status = CUDA_SUCCESS;
  if (verdict == Verdict::kGranted) {
    status = whole();
    Launched(launch, ticket, status);
    return status;
  }
  return GoesOn(verdict, &status) ? whole() : status;
}

RealGate::Slices RealGate::SlicesOf(const RealLaunch& launch) {
  const std::uint64_t context = CurrentContextId();
  if (context == 0) return {};
  Slices slices{.kernel = code_->Find(launch.function, context), .form = nullptr};
  if (slices.kernel == nullptr || !MayGoInSlices(launch)) return slices;
  if (session::SliceSize() == 0 && !link_->WantsSlices(launch.ctas, MultiprocessorsOf(context))) return slices;
  slices.form = slices.kernel->SlicedIn(context);
  if (slices.form != nullptr &&
      !slices.form->Allows(static_cast<std::uint32_t>(launch.threads_per_cta), launch.shared_bytes))
    slices.form = nullptr;
  return slices;
}

/// Nothing: it has to go whole, and nothing of it has run.
std::optional<CUresult> RealGate::RunInSlicesAlone(const RealLaunch& launch, const Slices& slices) {
  SliceParams params(*slices.form, ShapeOf(launch), NextGrid(), launch.params, launch.extra);
  if (!params.valid()) return std::nullopt;
  std::uint64_t at = 0;
  const CUresult status = LaunchSlices(launch, *slices.form, params, at, launch.ctas, session::SliceSize());
  if (status == CUDA_SUCCESS || at != 0) return status;
  slices.kernel->GiveUp("the driver does not launch its sliced form");
  return std::nullopt;
}

/// Nothing: it has to go whole, and nothing of it has run.
std::optional<CUresult> RealGate::RunInSlices(const RealLaunch& launch, const Slices& slices, const Whole& whole) {
  SliceParams params(*slices.form, ShapeOf(launch), NextGrid(), launch.params, launch.extra);
  if (!params.valid()) return std::nullopt;
  const std::uint64_t most = session::SliceSize() != 0 ? session::SliceSize() : launch.ctas;
  protocol::Client& client = link_->client();
  protocol::Client::Ticket ticket;
  Verdict verdict = client.Announce(RecordOf(launch, slices.kernel.get(), true), &ticket);
  CUresult status = CUDA_SUCCESS;
  for (std::uint64_t done = 0, end = 0; true; done = end) {
    if (verdict == Verdict::kGranted) verdict = client.Wait(ticket, done, &end);
    if (verdict != Verdict::kGranted) {
      if (!GoesOn(verdict, &status)) return status;
      end = launch.ctas;
    }
    end = std::min(end, launch.ctas);
    if (done == 0 && end == launch.ctas && most == launch.ctas) {
      status = whole();
      Launched(launch, ticket, status);
      return status;
    }
    std::uint64_t at = done;
    const auto table = slices.form->counts && verdict == Verdict::kGranted
                           ? counts_->Begin(ticket, CurrentContextId(), launch.per_thread, launch.stream, done, end)
                           : nullptr;
    status = LaunchSlices(launch, *slices.form, params, at, end, most, table.get());
    if (status != CUDA_SUCCESS) {
      counts_->End(table, at == done);
      client.End(ticket, done, at != 0);
      if (at != 0) return status;
      slices.kernel->GiveUp("the driver does not launch its sliced form");
      return std::nullopt;
    }
    if (end == launch.ctas) {
      Launched(launch, ticket, CUDA_SUCCESS, table);
      break;
    }
    if (verdict != Verdict::kGranted) continue;
    const CUresult waited = WaitForStream(launch);
    counts_->End(table, waited == CUDA_SUCCESS);
    if (waited != CUDA_SUCCESS) {  // the driver says so to every call that follows
      client.End(ticket, done, true);
      return CUDA_SUCCESS;
    }
    client.Progress(ticket, end);
  }
  return CUDA_SUCCESS;
}

/// The driver has taken the launch, or not.
void RealGate::Launched(const RealLaunch& launch, const protocol::Client::Ticket& ticket, CUresult status,
                        const std::shared_ptr<CountTable>& table) noexcept {
  const std::uint64_t ctas = std::clamp<std::uint64_t>(launch.ctas, 1, kMostCtas);
  if (ticket.launch == 0) return;
  if (status != CUDA_SUCCESS) return link_->client().End(ticket, 0, true);
  try {
    const OutsideCaptures outside;
    Pending pending{.ticket = ticket, .ctas = ctas, .table = table};
    static_cast<void>(Real<Fn::cuCtxGetCurrent>(&pending.context));
    if (Real<Fn::cuEventCreate>(&pending.event, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING)) == CUDA_SUCCESS) {
      if (RealTwin<Fn::cuEventRecord>(launch.per_thread, pending.event, launch.stream) == CUDA_SUCCESS) {
        const std::lock_guard lock(mutex_);
        pending_.push_back(pending);
        launched_.notify_one();
        return;
      }
      static_cast<void>(Real<Fn::cuEventDestroy_v2>(pending.event));
    }
  } catch (...) {
  }
  counts_->End(table, false);
  link_->client().End(ticket, ctas, false);  // nobody can tell when it ends: it counts as run
}

/// Whether the launch is over; then the broker knows.
bool RealGate::Ended(const Pending& pending) {
  const CUresult status = Real<Fn::cuEventQuery>(pending.event);
  if (status == CUDA_ERROR_NOT_READY) return false;
  const bool over = status == CUDA_SUCCESS || WentWithItsContext(status);
  counts_->End(pending.table, status == CUDA_SUCCESS);
  link_->client().End(pending.ticket, over ? pending.ctas : 0, !over);
  static_cast<void>(Real<Fn::cuEventDestroy_v2>(pending.event));
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
      if (pending.context != current) static_cast<void>(Real<Fn::cuCtxSetCurrent>(current = pending.context));
      return Ended(pending);
    });
    if (ended == 0) std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace gridloom::api
