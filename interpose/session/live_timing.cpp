#include "interpose/session/live_timing.h"

#include <algorithm>
#include <cstdlib>

#include "interpose/session/device.h"
#include "interpose/session/launch_capture.h"
#include "interpose/session/log.h"
#include "interpose/session/process.h"
#include "interpose/session/settings.h"
#include "interpose/session/slicing.h"
#include "interpose/session/timing_table.h"
#include "rewriter/support/check.h"
#include "rewriter/support/quantity.h"
#include "scheduler/policy/builtin.h"
#include "sim/hardware/device_files.h"

namespace gridloom::session {
namespace {

using trace::HostAction;

std::string PolicyName() { return TheSettings().policy.value_or("leftover"); }

Result<sim::DeviceSpec> TimedDevice() {
  const auto& name = TheSettings().timing_device;
  if (!name || name->empty()) return Process::Get().first_device().spec();
  return sim::LoadDevice(*name);
}

Result<unsigned> HostThreads() {
  const auto& text = TheSettings().timing_threads;
  if (!text) return 1u;
  const unsigned long threads = std::strtoul(text->c_str(), nullptr, 10);
  if (threads == 0 || threads > 256) return Error{"GRIDLOOM_TIMING_THREADS=" + *text + " is not a number of threads from 1 to 256"};
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

Status LiveTiming::CheckSettings() {
  if (!IsOn(TheSettings().timing)) return {};
  if (policy::MakePolicy(PolicyName()) == nullptr) {
    std::string names;
    for (const std::string_view name : policy::PolicyNames()) names += (names.empty() ? "" : ", ") + std::string(name);
    return Error{"GRIDLOOM_POLICY=" + PolicyName() + " is no policy; there are " + names};
  }
  if (SliceSize() != 0) return Error{"slices (GRIDLOOM_SLICE) cannot be simulated: leave out --slice, or --timing"};
  GL_TRY(device, TimedDevice());
  GL_TRY(threads, HostThreads());
  GL_TRY(bytes, StoreBytes());
  static_cast<void>(threads + bytes);
  return {};
}

std::unique_ptr<LiveTiming> LiveTiming::Make() {
  if (!IsOn(TheSettings().timing) || !CheckSettings().ok()) return nullptr;
  timing::LiveTimeline::Options options;
  options.engine.threads = *HostThreads();
  auto timeline = timing::LiveTimeline::Create(*TimedDevice(), policy::MakePolicy(PolicyName()), std::move(options));
  if (!timeline.ok()) {
    Log(LogLevel::kError, "nothing is simulated: " + timeline.error().message);
    return nullptr;
  }
  return std::unique_ptr<LiveTiming>(new LiveTiming(*std::move(timeline), PolicyName()));
}

LiveTiming::LiveTiming(std::unique_ptr<timing::LiveTimeline> timeline, std::string policy)
    : timeline_(std::move(timeline)),
      policy_(std::move(policy)),
      host_(timeline_->AddHost()),
      store_(std::make_shared<timing::TraceStore>(*StoreBytes())) {}

void LiveTiming::Add(const HostAction& action, KernelOp* kernel) {
  timing::Place place{
      .host = host_, .stream = action.stream, .after = action.after, .group = action.group, .rank = action.rank, .profile = 0};
  timing::NodeId node = 0;
  switch (action.kind) {
    case HostAction::Kind::kLaunch: node = AddLaunch(std::move(place), *kernel); break;
    case HostAction::Kind::kGroup: node = timeline_->OpenGroup(std::move(place)); break;
    case HostAction::Kind::kCopyToDevice:
      node = timeline_->AddCopy(std::move(place), timing::CopyDirection::kToDevice, action.bytes);
      break;
    case HostAction::Kind::kCopyToHost: node = timeline_->AddCopy(std::move(place), timing::CopyDirection::kToHost, action.bytes); break;
    case HostAction::Kind::kCopyOnDevice:
      node = timeline_->AddCopy(std::move(place), timing::CopyDirection::kOnDevice, action.bytes);
      break;
    case HostAction::Kind::kFill: node = timeline_->AddCopy(std::move(place), timing::CopyDirection::kFill, action.bytes); break;
    case HostAction::Kind::kMarker: node = timeline_->AddMarker(std::move(place)); break;
    case HostAction::Kind::kWait: return;  // Wait() does it
  }
  GL_CHECK(node == action.work, "works are numbered alike by the program's timeline and the model");
}

timing::NodeId LiveTiming::AddLaunch(timing::Place place, KernelOp& kernel) {
  if (!timeline_->problem().empty()) return timeline_->AddMarker(std::move(place));
  auto source = std::make_shared<timing::LiveSource>(CodeTableOf(kernel).code, ShapeOf(kernel), store_);
  const bool opens = MayLaunch(kernel);
  const timing::Place copy = place;
  auto node = opens ? timeline_->OpenKernel(std::move(place), source) : timeline_->AddKernel(std::move(place), source);
  if (!node.ok()) {
    LogFormat(LogLevel::kWarn, "a launch is not simulated: %s", node.error().message.c_str());
    return opens ? timeline_->OpenGroup(copy) : timeline_->AddMarker(copy);
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(sources_, [](const auto& known) { return known.expired(); });
  sources_.push_back(source);
  kernel.ctas = std::move(source);
  return *node;
}

/// Once: what there is to say does not change.
void LiveTiming::Complain() {
  const std::string problem = timeline_->problem();
  const std::lock_guard lock(mutex_);
  if (problem.empty() || !complaint_.empty()) return;
  complaint_ = problem;
  LogFormat(LogLevel::kWarn, "the simulation of time has ended: %s; events have the host's time from here on", problem.c_str());
}

void LiveTiming::Wait(std::span<const std::uint64_t> works) {
  if (!timeline_->WaitFor(host_, works)) Complain();
}

std::optional<bool> LiveTiming::Ask(std::span<const std::uint64_t> works) {
  switch (timeline_->Poll(host_, works)) {
    case timing::LiveTimeline::Answer::kYes: return true;
    case timing::LiveTimeline::Answer::kNo: return false;
    case timing::LiveTimeline::Answer::kUnknown: Complain();
  }
  return std::nullopt;
}

std::optional<double> LiveTiming::EndNs(std::uint64_t work) const {
  const auto end = timeline_->EndOf(work);
  if (!end) return std::nullopt;
  return timeline_->Nanoseconds(*end);
}

void LiveTiming::Finish() {
  // What a program leaves running when it ends does not come to an end on a GPU either.
  {
    const std::lock_guard lock(mutex_);
    for (const auto& known : sources_) {
      if (const auto source = known.lock()) source->Close();
    }
  }
  const Status status = timeline_->Finish();
  if (!status.ok()) Complain();
  const TimingTable table{.device = timeline_->parameters().device,
                          .policy = policy_,
                          .cycles = timeline_->end(),
                          .kernels = timeline_->Kernels(),
                          .counters = timeline_->counters(),
                          .problem = timeline_->problem()};
  const auto& json = TheSettings().timing_json;
  if (json && !json->empty()) WriteTimingJson(table, *json);
  if (!json || *json != "-") LogText(TimingText(table));
}

}  // namespace gridloom::session
