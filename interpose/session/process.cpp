#include "interpose/session/process.h"

#include <pthread.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "interpose/session/array.h"
#include "interpose/session/broker_link.h"
#include "interpose/session/graph.h"
#include "interpose/session/green_context.h"
#include "interpose/session/link_job.h"
#include "interpose/session/log.h"
#include "interpose/session/memcheck.h"
#include "interpose/session/module.h"
#include "interpose/session/pool.h"
#include "interpose/session/program_scan.h"
#include "interpose/session/settings.h"
#include "interpose/session/summary.h"
#include "interpose/session/task.h"
#include "interpose/session/texture.h"
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

Process& Process::Get() {
  static Process* const process = new Process;
  return *process;
}

Process::Process() = default;

CUresult Process::Init() {
  if (g_child_of_user.load(std::memory_order_acquire)) return CUDA_ERROR_NOT_INITIALIZED;
  const std::lock_guard lock(init_mutex_);
  if (initialised_) return init_status();
  const CUresult status = MakeDevices();
  status_.store(status, std::memory_order_release);
  initialised_ = status == CUDA_SUCCESS;
  return status;
}

void Process::BeforeFork() { Get().init_mutex_.lock(); }

void Process::AfterForkInParent() { Get().init_mutex_.unlock(); }

void Process::AfterForkInChild() {
  Process& process = Get();
  process.init_mutex_.unlock();
  if (process.init_status() == CUDA_ERROR_NOT_INITIALIZED) return;
  if (process.init_status() == CUDA_SUCCESS) g_child_of_user.store(true, std::memory_order_release);
  TaskPool::Get().AbandonAfterFork();
  BrokerLink::AbandonAfterFork();
}

CUresult Process::MakeDevices() {
  const Settings& settings = TheSettings();
  eager_loading_ = settings.module_loading && strcasecmp(settings.module_loading->c_str(), "EAGER") == 0;
  launch_blocking_ = IsOn(settings.launch_blocking);
  if (IsOn(settings.summary)) Summary::Get();  // which also says that no kernel ran
  if (const Status joined = BrokerLink::Start(); !joined.ok()) {
    Log(LogLevel::kError, joined.error().message);
    return CUDA_ERROR_MPS_CONNECTION_FAILED;
  }
  auto spec = ChooseDevice(BrokerLink::Get() != nullptr ? BrokerLink::Get()->device() : std::string());
  if (!spec.ok()) {
    Log(LogLevel::kError, spec.error().message);
    return CUDA_ERROR_NO_DEVICE;
  }
  maker_ = getpid();
  devices_.clear();
  for (const int ordinal : VisibleOrdinals(1)) {
    static_cast<void>(ordinal);
    devices_.push_back(std::make_unique<Device>(static_cast<int>(devices_.size()), *spec, MemoryBytes(*spec)));
    auto& primary = devices_.back()->primary();
    contexts_.Add(std::shared_ptr<Context>(&primary, [](Context*) {}));
  }
  if (devices_.empty()) return CUDA_ERROR_NO_DEVICE;
  GL_LOG(kInfo, "virtual GPU %s, compute capability %s, %llu MiB", spec->name.c_str(),
         spec->compute_capability.text().c_str(),
         static_cast<unsigned long long>(devices_.front()->memory_bytes() >> 20));
  return CUDA_SUCCESS;
}

void Process::Terminate(CUresult status) {
  std::vector<exec::Engine*> engines;
  {
    const std::lock_guard lock(init_mutex_);
    initialised_ = true;
    status_.store(status, std::memory_order_release);
    contexts_.ForEach([&](const std::shared_ptr<Context>& context) { context->Fail(status); });
    for (const auto& device : devices_) {
      if (device->has_backend()) engines.push_back(&device->engine());
    }
  }
  for (exec::Engine* const engine : engines) engine->Stop();
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

Device* Process::FindDevice(CUdevice ordinal) const {
  return ordinal >= 0 && static_cast<std::size_t>(ordinal) < devices_.size()
             ? devices_[static_cast<std::size_t>(ordinal)].get()
             : nullptr;
}

namespace {

constexpr std::size_t kShelved = 64;  // for so many more the handle of a destroyed context is known as one

}  // namespace

Context& Process::AddContext(Device& device) {
  {
    const std::lock_guard lock(shelf_mutex_);
    const auto free = [&](const Context* context) { return &context->device() == &device && context->on_stacks == 0; };
    const auto found = shelf_.size() > kShelved ? std::ranges::find_if(shelf_, free) : shelf_.end();
    if (found != shelf_.end()) {
      Context& context = **found;
      shelf_.erase(found);
      context.Renew();
      return context;
    }
  }
  auto context = std::make_shared<Context>(device, false);
  contexts_.Add(context);
  return *context;
}

void Process::ShelveContext(Context& context) {
  const std::lock_guard lock(shelf_mutex_);
  if (std::ranges::find(shelf_, &context) == shelf_.end()) shelf_.push_back(&context);
}

void Process::ForgetThread(std::uint64_t thread) {
  contexts_.ForEach([thread](const std::shared_ptr<Context>& context) { context->ForgetThread(thread); });
}

Context* Process::FindContext(CUcontext handle) const {
  if (Context* const context = contexts_.Find(handle).get()) return context;
  const GreenPtr green = FindGreen(handle);
  return green == nullptr ? nullptr : &green->primary();
}

GreenPtr Process::FindGreen(CUcontext handle) const { return greens.Find(reinterpret_cast<CUgreenCtx>(handle)); }

void Process::ShelveGreen(GreenContext& green) {
  GreenPtr oldest;  // goes when the mutex is free
  const std::lock_guard lock(shelf_mutex_);
  green_shelf_.push_back(green.handle());
  if (green_shelf_.size() <= kShelved) return;
  oldest = greens.Remove(green_shelf_.front());
  green_shelf_.pop_front();
}

Context* Process::FindContext(const exec::Program& program) const {
  Context* context = nullptr;
  const auto look = [&](const auto& object) {
    if (context == nullptr) context = object->code().ContextOf(program);
  };
  modules.ForEach(look);
  libraries.ForEach(look);
  return context;
}

StreamPtr Process::FindStream(CUstream handle) const {
  StreamPtr found;
  if (Context::IsDefaultStream(handle)) return found;
  contexts_.ForEach([&](const std::shared_ptr<Context>& context) {
    if (found == nullptr) found = context->FindStream(handle);
  });
  return found;
}

void Process::ReleaseContextObjects(Context& context) {
  MemcheckLog::Get().NoteLeaks(context);
  for (const auto& module : modules.RemoveIf([&](const Module& m) { return &m.context() == &context; })) {
    if (module->owns_code()) module->code().Unload();
  }
  libraries.ForEach([&](const std::shared_ptr<Library>& library) { library->ForgetContext(context); });
  events.RemoveIf([&](const Event& event) { return &event.context() == &context; });
  mipmaps.RemoveIf([&](const MipmappedArray& mipmap) { return &mipmap.context() == &context; });
  arrays.RemoveIf([&](const Array& array) { return &array.context() == &context; });
  if (context.device().has_backend()) context.memory.FreeAll(context.device().memory());
}

bool Process::child_of_user() { return g_child_of_user.load(std::memory_order_relaxed); }

}  // namespace gridloom::session
