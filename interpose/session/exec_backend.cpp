#include "interpose/session/exec_backend.h"

#include <cstdlib>

#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "interpose/base/slice_size.h"
#include "interpose/launch/narrow_tasks.h"
#include "interpose/launch/reordering.h"
#include "interpose/objects/process.h"
#include "interpose/observe/broker_link.h"
#include "interpose/observe/live_timing.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"
#include "interpose/observe/range_capture.h"
#include "interpose/observe/range_checking.h"
#include "rewriter/support/quantity.h"
#include "sim/exec/awaited_code.h"

namespace gridloom::session {
namespace {

/// What a GPU's memory is mapped in: it does not notice an access outside of an allocation but in a page that is used.
constexpr std::uint64_t kDevicePageBytes = std::uint64_t{2} << 20;

class ExecBackend final : public Backend {
 public:
  ExecBackend(std::unique_ptr<exec::DeviceMemory> memory, std::unique_ptr<exec::Engine> engine)
      : memory_(std::move(memory)), engine_(std::move(engine)) {}
  exec::DeviceMemory& memory() override { return *memory_; }
  exec::Engine& engine() override { return *engine_; }
  Result<std::shared_ptr<exec::Program>> Load(std::unique_ptr<ptx::Module> module, std::string text) override {
    return exec::Program::Load(std::move(module), std::move(text), *memory_);
  }

 private:
  std::unique_ptr<exec::DeviceMemory> memory_;
  std::unique_ptr<exec::Engine> engine_;
};

/// What was asked for, and what else there is.
settings::FeatureSet FeaturesOf(const Observers& observers) {
  using settings::Feature;
  settings::FeatureSet features = AskedFeatures();
  if (LiveTiming::RangesWanted(observers)) features.Add(Feature::kTimedRanges);
  const BrokerLink* const link = observers.broker();
  if (link == nullptr) return features;
  if (link->connected()) features.Add(Feature::kBroker);
  if (link->timed()) features.Add(Feature::kBrokerTime);
  else if (link->connected()) features.Add(Feature::kBrokerWithoutTime);
  return features;
}

/// $XDG_CACHE_HOME/gridloom, or ~/.cache/gridloom; empty for `off` and where there is no home.
std::string CacheDirectory() {
  const Settings& settings = TheSettings();
  if (settings.cache_dir) return *settings.cache_dir == "off" ? std::string() : *settings.cache_dir;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
    return std::string(cache) + "/gridloom";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return std::string(home) + "/.cache/gridloom";
  return {};
}

}  // namespace

Result<std::unique_ptr<Backend>> MakeExecBackend(Process& process, const sim::DeviceSpec& device,
                                                 std::uint64_t memory_bytes) {
  const Settings& settings = TheSettings();
  Observers& observers = process.observers();
  if (const auto size = ParseSliceSize(settings.slice); !size.ok()) return size.error();
  GL_TRY_STATUS(RangeChecks::CheckSetting());
  GL_TRY_STATUS(RangeCapture::CheckSetting());
  GL_TRY_STATUS(Reordering::CheckSetting());
  GL_TRY_STATUS(NarrowTasks::CheckSettings());
  GL_TRY_STATUS(settings::CheckExclusions(FeaturesOf(observers)));
  GL_TRY_STATUS(settings::CheckNeeds(FeaturesOf(observers)));
  GL_TRY_STATUS(LiveTiming::CheckSettings(observers));
  exec::DeviceMemory::Options memory_options;
  memory_options.limit_bytes = memory_bytes;
  if (BrokerLink* const link = observers.broker())
    memory_options.quota = [link](std::uint64_t used) { return link->Quota(used); };
  MemcheckLog& memcheck = observers.memcheck();
  memory_options.remember_freed = memcheck.on();
  if (!memcheck.on()) memory_options.device_page_bytes = kDevicePageBytes;
  GL_TRY(memory, exec::DeviceMemory::Create(memory_options));
  exec::Engine::Options options;
  if (settings.threads) {
    options.threads = static_cast<unsigned>(std::strtoul(settings.threads->c_str(), nullptr, 10));
    if (options.threads == 0) return Error{"GRIDLOOM_THREADS=" + *settings.threads + " is not a number of threads"};
  }
  options.cache_dir = CacheDirectory();
  if (settings.cache_size) {
    const auto bytes = ParseBytes(*settings.cache_size, 0);
    if (!bytes) return Error{"GRIDLOOM_CACHE_SIZE=" + *settings.cache_size + " is not a size such as 512M"};
    options.cache_bytes = *bytes;
  }
  if (settings.watchdog) options.watchdog_seconds = std::strtod(settings.watchdog->c_str(), nullptr);
  options.memcheck = memcheck.on();
  options.global_shadow = memcheck.written();
  options.memcheck_limit = memcheck.engine_limit();
  options.on_memcheck = [&memcheck](const exec::MemcheckReport& report) { memcheck.Add(report); };
  if (settings.cpu && *settings.cpu != "avx512") options.cpu_features = *settings.cpu;
  if (settings.code) options.code = *settings.code;
  options.tiers = settings.tiers ? *settings.tiers : "on";
  // The MasterKernel runs as long as the program: what it is at its first launch, it stays.
  if (settings.policy && *settings.policy == "pagoda") options.tiers = "off";
  options.records = settings.trace || settings.timing || settings.check_ranges || settings.connect;
  options.log = [](std::string_view message) { Log(LogLevel::kWarn, message); };
  GL_TRY(engine, exec::Engine::Create(options, device, *memory));
  return std::unique_ptr<Backend>(std::make_unique<ExecBackend>(std::move(memory), std::move(engine)));
}

}  // namespace gridloom::session

/// How many kernels of the process are interpreted while their machine code may still come: who measures waits for 0.
extern "C" __attribute__((visibility("default"))) int gridloomAwaitedKernels() {
  return static_cast<int>(gridloom::exec::AwaitedKernels());
}
