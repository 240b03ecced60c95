#include "interpose/observe/live_timing.h"

#include <algorithm>
#include <cstdlib>

#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "interpose/objects/device.h"
#include "interpose/objects/process.h"
#include "interpose/observe/broker_link.h"
#include "interpose/observe/broker_timeline.h"
#include "interpose/observe/launch_capture.h"
#include "interpose/observe/observers.h"
#include "interpose/observe/own_timeline.h"
#include "interpose/observe/range_capture.h"
#include "interpose/observe/timing_table.h"
#include "rewriter/support/quantity.h"
#include "scheduler/model/profile_file.h"
#include "scheduler/policy/builtin.h"
#include "sim/device/device_files.h"
#include "sim/study/measure/timed_device.h"

namespace gridloom::session {
namespace {

using trace::HostAction;

std::string PolicyName() { return TheSettings().policy.value_or("leftover"); }

/// The file of profiles that was given belongs to a policy that needs some, and can be read.
Status CheckProfiles() {
  GL_TRY(policy, policy::FindPolicy(PolicyName()));
  const auto& profiles = TheSettings().profiles;
  if (!profiles) return {};
  if (!policy->needs.Has(policy::Need::kProfiles)) {
    return Error{"policy " + PolicyName() +
                 " needs no profiles of kernels: leave out --profiles, or choose one that does with --policy"};
  }
  GL_TRY(file, model::LoadProfiles(*profiles));
  static_cast<void>(file);
  return {};
}

Result<sim::DeviceSpec> NamedDevice(const Observers& observers) {
  const auto& name = TheSettings().timing_device;
  if (!name || name->empty()) return observers.process().first_device().spec();
  return sim::LoadDevice(*name);
}

/// With its proposed parts, and those that the policy needs.
Result<sim::DeviceSpec> TimedDevice(const Observers& observers) {
  const Settings& settings = TheSettings();
  GL_TRY(device, NamedDevice(observers));
  GL_TRY_STATUS(study::EquipForTiming({.policy = PolicyName(),
                                       .parts = settings.hardware.value_or(""),
                                       .values = settings.timing_set.value_or(""),
                                       .launches = settings.device_launches.value_or(""),
                                       .ranges = settings.ranges.value_or("")},
                                      device));
  return device;
}

Result<unsigned> HostThreads() {
  const auto& text = TheSettings().timing_threads;
  if (!text) return 1u;
  const unsigned long threads = std::strtoul(text->c_str(), nullptr, 10);
  if (threads == 0 || threads > 256)
    return Error{"GRIDLOOM_TIMING_THREADS=" + *text + " is not a number of threads from 1 to 256"};
  return static_cast<unsigned>(threads);
}

Result<std::uint64_t> StoreBytes() {
  constexpr std::uint64_t kDefault = 512u << 20;
  const auto& text = TheSettings().timing_memory;
  if (!text) return kDefault;
  const auto bytes = ParseBytes(*text, 0);
  if (!bytes) return Error{"GRIDLOOM_TIMING_MEMORY=" + *text + " is not a size such as 512M"};
  return *bytes;
}

}  // namespace

Status LiveTiming::CheckSettings(const Observers& observers) {
  const BrokerLink* const link = observers.broker();
  if (!IsOn(TheSettings().timing) || (link != nullptr && link->timed())) return {};
  GL_TRY_STATUS(CheckProfiles());
  GL_TRY(device, TimedDevice(observers));
  GL_TRY(threads, HostThreads());
  GL_TRY(bytes, StoreBytes());
  static_cast<void>(threads + bytes);
  return {};
}

namespace {

Result<std::unique_ptr<Timeline>> MakeTimeline(const Observers& observers) {
  if (BrokerLink* const link = observers.broker(); link != nullptr && link->timed()) {
    GL_TRY(device, sim::LoadDevice(link->device()));
    return std::unique_ptr<Timeline>(
        std::make_unique<BrokerTimeline>(link->TakeTiming(), std::move(device), link->client().welcome().policy));
  }
  GL_TRY(device, TimedDevice(observers));
  return OwnTimeline::Create(device, {.policy = PolicyName(),
                                      .profiles = TheSettings().profiles.value_or(""),
                                      .threads = *HostThreads(),
                                      .store_bytes = *StoreBytes()});
}

}  // namespace

std::unique_ptr<LiveTiming> LiveTiming::Make(Observers& observers) {
  const BrokerLink* const link = observers.broker();
  if (!IsOn(TheSettings().timing) && (link == nullptr || !link->timed())) return nullptr;
  if (!CheckSettings(observers).ok()) return nullptr;
  auto timeline = MakeTimeline(observers);
  if (!timeline.ok()) {
    LogFormat(LogLevel::kError, "nothing is simulated: %s", timeline.error().message.c_str());
    return nullptr;
  }
  const auto device = TimedDevice(observers);
  if (link == nullptr && device.ok() && study::GoesByRecordedOrder(*device) && !IsOn(TheSettings().record_order)) {
    Log(LogLevel::kWarn,
        "the order in which the program fills what it copies (hardware.crcs.order=recorded) is not recorded: add "
        "--record-order");
  }
  return std::unique_ptr<LiveTiming>(new LiveTiming(observers, std::move(timeline).value()));
}

std::optional<trace::LaunchInfo::Ranges> LiveTiming::RangesWanted(const Observers& observers) {
  if (!IsOn(TheSettings().timing) || observers.broker() != nullptr) return std::nullopt;
  const auto device = TimedDevice(observers);
  return device.ok() ? study::RangesOf(*device) : std::nullopt;
}

BeforeWork LiveTiming::Prepare(Context& context, const HostAction& action, const Operation& operation) {
  BeforeWork before;
  const auto* const kernel = std::get_if<KernelOp>(&operation);
  if (kernel == nullptr) before.storage = timeline_->BeforeCopy(action);
  else if (RangeCapture* const capture = overlapped() ? observers_.range_capture() : nullptr)
    before.ranged = capture->Expect(context, *kernel);
  return before;
}

void LiveTiming::PrepareGraph(std::uint64_t to_device, std::uint64_t to_host) {
  timeline_->BeforeGroup(to_device, to_host);
}

void LiveTiming::Add(const HostAction& action, KernelOp* kernel, const BeforeWork& before) {
  if (action.kind == HostAction::Kind::kWait) return;  // Wait() does it
  if (action.kind != HostAction::Kind::kLaunch) return timeline_->Add(action, before.storage);
  constexpr auto kForm = trace::LaunchInfo::Ranges::kInterval;  // of no meaning here
  if (before.ranged.program != nullptr) {
    // Release code takes registers, which there may be none for.
    const Status fits = timeline_->Fits(ShapeOf(*kernel, ReleasingOf(*kernel, before.ranged, kForm)));
    if (fits.ok()) {
      const TracedLaunch profiler = ProfilerOf(before.ranged, kForm);
      kernel->plan.ctas = timeline_->AddRanged(action, CodeTableOf(profiler).code, ShapeOf(*kernel, profiler));
      if (kernel->plan.ctas != nullptr) return;
    } else {
      observers_.range_capture()->NoteTooLarge(*kernel, fits.error().message);
    }
  }
  const TracedLaunch launch = KernelOf(*kernel, observers_.range_checks());
  kernel->plan.ctas =
      timeline_->AddLaunch(action, CodeTableOf(launch).code, ShapeOf(*kernel, launch), MayLaunch(*kernel));
}

/// Once: what there is to say does not change.
void LiveTiming::Complain() {
  const std::string problem = timeline_->problem();
  const std::lock_guard lock(mutex_);
  if (problem.empty() || !complaint_.empty()) return;
  complaint_ = problem;
  LogFormat(LogLevel::kWarn, "the simulation of time has ended: %s; events have the host's time from here on",
            problem.c_str());
}

void LiveTiming::Wait(std::span<const std::uint64_t> works, bool sees) {
  if (!timeline_->Wait(works, sees)) Complain();
}

std::optional<bool> LiveTiming::Ask(std::span<const std::uint64_t> works, bool sees) {
  const auto answer = timeline_->Ask(works, sees);
  if (!answer) Complain();
  return answer;
}

std::optional<double> LiveTiming::EndNs(std::uint64_t work) const { return timeline_->EndNs(work); }

/// Once, at the end: a program whose launches all run without ranges does as it would on a device without the part, but
/// for its copies.
void LiveTiming::SayWhyNothingOverlaps() const {
  RangeCapture* const capture = observers_.range_capture();
  if (!overlapped() || capture == nullptr) return;
  if (const std::string why = capture->outcome().WhyNothingOverlaps("this program"); !why.empty())
    Log(LogLevel::kWarn, why);
}

void LiveTiming::Finish() {
  const TimingTable table = timeline_->Finish();
  if (!table.problem.empty()) Complain();
  SayWhyNothingOverlaps();
  if (!IsOn(TheSettings().timing)) return;  // the broker wanted it, not the program's user
  const auto& json = TheSettings().timing_json;
  if (json && !json->empty()) WriteTimingJson(table, *json);
  if (!json || *json != "-") LogText(TimingText(table));
}

}  // namespace gridloom::session
