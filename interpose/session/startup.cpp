// How the shim begins in a process: the settings, the devices, and who does what when threads and contexts begin and
// end.
#include <pthread.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "interpose/base/last_thread.h"
#include "interpose/base/log.h"
#include "interpose/base/refusals.h"
#include "interpose/base/settings.h"
#include "interpose/base/summary.h"
#include "interpose/base/task.h"
#include "interpose/base/thread_end.h"
#include "interpose/base/thread_state.h"
#include "interpose/launch/capture.h"
#include "interpose/launch/launches.h"
#include "interpose/launch/narrow_tasks.h"
#include "interpose/launch/spawned_tasks.h"
#include "interpose/objects/current_context.h"
#include "interpose/objects/device.h"
#include "interpose/objects/host_memory.h"
#include "interpose/objects/process.h"
#include "interpose/objects/program_scan.h"
#include "interpose/observe/broker_link.h"
#include "interpose/observe/fill_order.h"
#include "interpose/observe/host_timeline.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"
#include "rewriter/support/own_thread.h"
#include "rewriter/support/quantity.h"
#include "sim/device/device_files.h"
#include "sim/exec/runtime/fork_guard.h"

namespace gridloom::session {

using namespace cuda;

namespace {

std::atomic<bool> g_child_of_user{false};  // forked after cuInit: the virtual GPU stayed with the parent

/// From before the first call on: a thread may be in cuInit while another one forks.
const int g_fork_handlers = [] {
  exec::InstallForkHandlers();  // called after these: under init_mutex_ devices are made
  return pthread_atfork(Process::BeforeFork, Process::AfterForkInParent, Process::AfterForkInChild);
}();

/// What this machine has, or lets this process's container have.
std::uint64_t HostMemoryBytes() {
  const std::uint64_t machine =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::uint64_t container = 0;
  std::ifstream limit("/sys/fs/cgroup/memory.max");  // "max" where there is none
  return limit >> container && container != 0 ? std::min(machine, container) : machine;
}

std::uint64_t MemoryBytes(const sim::DeviceSpec& spec) {
  const std::uint64_t host = HostMemoryBytes();
  if (const auto& text = TheSettings().memory) {
    if (const auto bytes = ParseBytes(*text, host); bytes && *bytes != 0) return *bytes;
    LogFormat(LogLevel::kWarn, "GRIDLOOM_MEMORY=%s is neither a size (512M, 8G) nor a share (50%%); using the default",
              text->c_str());
  }
  // Programs that fill the device often have as much on the host.
  return std::min(spec.memory.size_bytes, host / 2);
}

/// CUDA_VISIBLE_DEVICES: ordinals in the order wanted, up to the first one that does not exist.
std::vector<int> VisibleOrdinals(int count) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(i);
  const auto& text = TheSettings().visible_devices;
  if (!text) return all;
  std::vector<int> wanted;
  std::size_t at = 0;
  while (at <= text->size()) {
    const auto comma = std::min(text->find(',', at), text->size());
    const std::string item = text->substr(at, comma - at);
    at = comma + 1;
    char* end = nullptr;
    const long ordinal = std::strtol(item.c_str(), &end, 10);
    if (item.starts_with("GPU-")) wanted.push_back(0);
    else if (item.empty() || end != item.c_str() + item.size() || ordinal < 0 || ordinal >= count) break;
    else wanted.push_back(static_cast<int>(ordinal));
  }
  return wanted;
}

/// `shared`: the device that a broker gives; empty: none does.
Result<sim::DeviceSpec> ChooseDevice(const std::string& shared) {
  const auto& asked = TheSettings().device;
  if (asked && !asked->empty() && *asked != "real") return sim::LoadDevice(*asked);
  auto spec = sim::LoadDevice(shared.empty() ? std::string(sim::kDefaultDevice) : shared);
  if (!spec.ok()) return spec;
  const ComputeCapability wanted = CapabilityForProgram(spec->compute_capability);
  if (wanted == spec->compute_capability) return spec;
  GL_LOG(kInfo, "the program's PTX needs compute capability %s: using device %s", wanted.text().c_str(),
         sim::GenericDeviceId(wanted).c_str());
  return sim::LoadDevice(sim::GenericDeviceId(wanted));
}

}  // namespace

namespace {

// ---- threads and contexts

/// The thread's default streams are streams no more, and the contexts on its stack are no longer held by it.
void LeaveContexts() {
  if (Process::child_of_user()) return;  // others may hold the locks, who are not here
  while (PopContext() != nullptr) continue;
  if (t_state.thread_id != 0) Process::Get().ForgetThread(t_state.thread_id);
}

bool WorkLeft() {
  bool left = false;
  Process::Get().ForEachContext([&](Context& context) { left = left || (!context.destroyed() && !context.AllIdle()); });
  return left;
}

Observers& ObserversOf(const Context& context) { return context.process().observers(); }

constexpr HostMemoryFollower kHostMemoryFollower{
    .added =
        [](Context& context, std::uint64_t address, const ContextMemory::Block& block) {
          if (FillOrder* const order = ObserversOf(context).fill_order())
            order->Follow(address, block.bytes, block.kind == ContextMemory::Kind::kPinned);
        },
    .gone =
        [](Context& context, std::uint64_t address, const ContextMemory::Block& block) {
          if (FillOrder* const order = ObserversOf(context).fill_order()) order->Leave(address);
          if (HostTimeline* const timeline = ObserversOf(context).timeline()) timeline->Leave(address, block.bytes);
        },
};

constexpr ContextFollower kContextFollowers[] = {
    {.made = [](Context& context) { context.set_narrow_tasks(NarrowTasks::MakeFor(context)); },
     .work_over =
         [](Context& context) {
           if (context.narrow_tasks() != nullptr) context.narrow_tasks()->End();
         }},
    {.unfinished = &SpawnedTasksOf},
    {.thread_ended = &AbandonCapture},  // nobody else can end it
    {.host_waited =
         [](Stream& stream) {
           if (HostTimeline* const timeline = ObserversOf(stream.context()).timeline()) timeline->Wait(stream);
         },
     .host_waited_for_all =
         [](Context& context) {
           if (HostTimeline* const timeline = ObserversOf(context).timeline()) timeline->WaitAll(context);
         }},
    {.host_waited = [](Stream& stream) { ObserversOf(stream.context()).memcheck().HostWaited(stream); },
     .host_waited_for_all = [](Context& context) { ObserversOf(context).memcheck().HostWaitedForAll(context); }},
    {.destroyed = [](Context& context) { context.process().ReleaseContextObjects(context); }},
};

}  // namespace

Process& Process::Get() {
  static Process* const process = [] {
    auto* const made = new Process;
    made->observers_ = new Observers(*made);
    made->launches_ = new Launches;
    return made;
  }();
  return *process;
}

CUresult Process::Init() {
  if (g_child_of_user.load(std::memory_order_acquire)) return CUDA_ERROR_NOT_INITIALIZED;
  const std::lock_guard lock(init_mutex_);
  if (initialised_) return init_status();
  SetThreadEnd(&LeaveContexts);
  SetWorkLeft(&WorkLeft);
  SetContextFollowers(kContextFollowers);
  SetHostMemoryFollower(kHostMemoryFollower);
  const CUresult status = MakeDevices();
  status_.store(status, std::memory_order_release);
  initialised_ = status == CUDA_SUCCESS;
  WatchRefusals();
  return status;
}

void Process::BeforeFork() { Get().init_mutex_.lock(); }

void Process::AfterForkInParent() { Get().init_mutex_.unlock(); }

void Process::AfterForkInChild() {
  Process& process = Get();
  process.init_mutex_.unlock();
  ForgetOwnThreads();
  ForgetLastThread(t_state.end_watched);
  if (process.init_status() == CUDA_ERROR_NOT_INITIALIZED) return;
  if (process.init_status() == CUDA_SUCCESS) g_child_of_user.store(true, std::memory_order_release);
  TaskPool::Get().AbandonAfterFork();
  process.observers().AbandonBroker();
}

CUresult Process::MakeDevices() {
  const Settings& settings = TheSettings();
  eager_loading_ = settings.module_loading && strcasecmp(settings.module_loading->c_str(), "EAGER") == 0;
  launch_blocking_ = IsOn(settings.launch_blocking);
  if (IsOn(settings.summary)) summary();  // which also says that no kernel ran
  if (const Status joined = observers().JoinBroker(); !joined.ok()) {
    Log(LogLevel::kError, joined.error().message);
    return CUDA_ERROR_MPS_CONNECTION_FAILED;
  }
  const BrokerLink* const link = observers().broker();
  auto spec = ChooseDevice(link != nullptr ? link->device() : std::string());
  if (!spec.ok()) {
    Log(LogLevel::kError, spec.error().message);
    return CUDA_ERROR_NO_DEVICE;
  }
  maker_ = getpid();
  devices_.clear();
  for (const int ordinal : VisibleOrdinals(1)) {
    static_cast<void>(ordinal);
    devices_.push_back(std::make_unique<Device>(*this, static_cast<int>(devices_.size()), *spec, MemoryBytes(*spec)));
    auto& primary = devices_.back()->primary();
    contexts_.Add(std::shared_ptr<Context>(&primary, [](Context*) {}));
  }
  if (devices_.empty()) return CUDA_ERROR_NO_DEVICE;
  GL_LOG(kInfo, "virtual GPU %s, compute capability %s, %llu MiB", spec->name.c_str(),
         spec->compute_capability.text().c_str(),
         static_cast<unsigned long long>(devices_.front()->memory_bytes() >> 20));
  return CUDA_SUCCESS;
}

std::optional<VisibleDevice> Process::LookAtDevice(const std::string& shared) {
  const std::lock_guard lock(init_mutex_);
  if (initialised_ && !devices_.empty()) {
    Device& device = first_device();
    const std::uint64_t used = device.has_backend() ? std::min(device.memory().used_bytes(), device.memory_bytes()) : 0;
    return VisibleDevice{device.spec(), device.memory_bytes(), used, device.has_backend() ? maker_ : 0};
  }
  if (!expected_) {
    auto spec = ChooseDevice(shared);
    if (!spec.ok()) return std::nullopt;
    const std::uint64_t bytes = MemoryBytes(*spec);
    expected_ = VisibleDevice{*std::move(spec), bytes};
  }
  return expected_;
}

bool Process::child_of_user() { return g_child_of_user.load(std::memory_order_relaxed); }

}  // namespace gridloom::session
