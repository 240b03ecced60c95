// Every file of settings or state that is read as a text: the first byte says as what. What is accepted must hold
// together: a state that is written reads the same again, profiles have a plan, a device has a timing model.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rewriter/support/quantity.h"
#include "scheduler/daemon/accounts.h"
#include "scheduler/daemon/config.h"
#include "scheduler/daemon/limits_file.h"
#include "scheduler/model/kernelet_config.h"
#include "scheduler/model/kernelet_setup.h"
#include "scheduler/model/profile_file.h"
#include "scheduler/policy/builtin.h"
#include "sim/device/device_files.h"
#include "sim/device/yaml_map.h"
#include "sim/study/experiment/settings.h"
#include "sim/study/sweep/file.h"
#include "sim/timing/engine.h"

namespace gridloom {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

/// Larger devices are legal, but take more memory than a fuzzer has.
bool IsSmall(const sim::DeviceSpec& device) {
  return device.sm.count <= 64 && device.sm.max_threads <= 4096 && device.sm.max_blocks <= 128 &&
         device.l2.size_bytes <= 64 << 20 && device.timing.dram.channels <= 64 && device.timing.l2.slices <= 256 &&
         device.timing.l1.size_bytes <= 1 << 20 && device.timing.constant.size_bytes <= 1 << 20 &&
         device.timing.texture.size_bytes <= 1 << 20 && device.timing.tlb.entries <= 65536;
}

/// Over the facts of a device that works, as `inherits` and `--set` do.
void Device(std::string_view text) {
  static const auto base = sim::LoadDevice("fermi-8");
  Require(base.ok());
  sim::DeviceSpec device = *base;
  if (!sim::ApplyDeviceText(text, "device.yaml", device).ok() || !sim::ValidateDevice(device).ok() || !IsSmall(device))
    return;
  const auto policy = policy::MakePolicy("leftover").value();
  const auto engine = timing::Engine::Create(device, *policy);
  if (engine.ok()) Require((*engine)->Run().ok());
}

void BrokerConfig(std::string_view text) {
  broker::DaemonConfig config;
  if (!broker::ApplyConfig(text, "broker.yaml", &config).ok()) return;
  for (const broker::TenantConfig& tenant : config.tenants) Require(broker::CheckLimits(tenant.limits).ok());
}

void Profiles(std::string_view text) {
  const auto file = model::ParseProfiles(text);
  if (!file.ok()) return;
  const std::string written = model::ToJson(*file);
  const auto again = model::ParseProfiles(written);
  Require(again.ok() && model::ToJson(*again) == written);
  static_cast<void>(model::SetUpKernelet(*file).ok());
}

void Limits(std::string_view text) {
  const auto limits = broker::ParseLimits(text, "limits.json");
  if (!limits.ok()) return;
  const std::string written = broker::LimitsText(*limits);
  const auto again = broker::ParseLimits(written, "limits.json");
  Require(again.ok() && broker::LimitsText(*again) == written);
}

void Accounts(std::string_view text) {
  const auto accounts = broker::ParseAccounts(text, "accounts.json");
  if (!accounts.ok()) return;
  const std::string written = broker::AccountsText(*accounts);
  const auto again = broker::ParseAccounts(written, "accounts.json");
  Require(again.ok() && broker::AccountsText(*again) == written);
}

void Sweep(std::string_view text) {
  const auto sweep = study::ParseSweep(std::string(text), "/folder/sweep.yaml");
  if (sweep.ok()) Require(!sweep->replays.workloads.empty());
}

void Experiment(std::string_view text) {
  const auto settings = study::Settings::FromText(text, "experiment.yaml");
  if (!settings.ok()) return;
  for (const std::string& name : settings->Below("")) static_cast<void>(settings->Numbers(name).ok());
  static_cast<void>(settings->Number("seed").ok());
  static_cast<void>(settings->Below("kernels"));
}

void Policy(std::string_view text) {
  const auto entries = sim::ReadYamlLists(text, "kernelet.yaml");
  if (!entries.ok()) return;
  model::KerneletConfig config;
  for (const sim::YamlEntry& entry : *entries)
    static_cast<void>(model::SetKerneletParameter(config, entry.key, entry.value).ok());
}

void Quantities(std::string_view text) {
  static_cast<void>(ParseBytes(text, 1000));
  static_cast<void>(ParseNumberRange(text));
  static_cast<void>(ParseCudaVersion(text));
  if (const auto part = broker::ParsePart(text)) Require(*part > 0 && *part <= 1);
  if (const auto parameter = study::ParseParameter(std::string(text)); parameter.ok())
    Require(!parameter->values.empty());
}

constexpr void (*kReaders[])(std::string_view) = {Device, BrokerConfig, Profiles, Limits,    Accounts,
                                                  Sweep,  Experiment,   Policy,   Quantities};

}  // namespace
}  // namespace gridloom

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // 'a' for the first reader, so that a corpus can be written by hand.
  const std::size_t reader = static_cast<std::size_t>(data[0] - 'a') % std::size(gridloom::kReaders);
  gridloom::kReaders[reader]({reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
