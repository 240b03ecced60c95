#include "interpose/session/own_timeline.h"

#include "interpose/session/log.h"
#include "rewriter/support/check.h"
#include "sim/hardware/catalog.h"

namespace gridloom::session {

using trace::HostAction;

Result<std::unique_ptr<Timeline>> OwnTimeline::Create(const sim::DeviceSpec& device, const Options& options) {
  timing::LiveTimeline::Options live;
  live.engine.threads = options.threads;
  live.engine.keep_ended = false;
  GL_TRY(parts, hardware::Build(device));
  live.engine.parts = std::move(parts);
  const auto tell = [](const std::string& sentence) { LogFormat(LogLevel::kWarn, "%s", sentence.c_str()); };
  GL_TRY(supply, study::PolicySupply::Create(device, {.profiles = options.profiles, .tell = tell}));
  GL_TRY(policy, supply->Make(options.policy));
  live.profiler = [supply](std::shared_ptr<trace::CtaSource>& source) { return supply->Profile(source); };
  GL_TRY(timeline, timing::LiveTimeline::Create(device, std::move(policy), std::move(live)));
  return std::unique_ptr<Timeline>(new OwnTimeline(std::move(timeline), std::move(supply), options));
}

OwnTimeline::OwnTimeline(std::unique_ptr<timing::LiveTimeline> timeline, std::shared_ptr<const study::PolicySupply> supply,
                         const Options& options)
    : timeline_(std::move(timeline)),
      supply_(std::move(supply)),
      policy_(options.policy),
      host_(timeline_->AddHost()),
      store_(std::make_shared<timing::TraceStore>(options.store_bytes)) {}

timing::Place OwnTimeline::PlaceOf(const HostAction& action) const {
  return {.host = host_, .stream = action.stream, .after = action.after, .group = action.group, .rank = action.rank, .profile = 0};
}

void OwnTimeline::Add(const HostAction& action) {
  using timing::CopyDirection;
  timing::NodeId node = 0;
  const auto copy = [&](CopyDirection direction) { node = timeline_->AddCopy(PlaceOf(action), direction, action.bytes); };
  switch (action.kind) {
    case HostAction::Kind::kGroup: node = timeline_->OpenGroup(PlaceOf(action)); break;
    case HostAction::Kind::kCopyToDevice: copy(CopyDirection::kToDevice); break;
    case HostAction::Kind::kCopyToHost: copy(CopyDirection::kToHost); break;
    case HostAction::Kind::kCopyOnDevice: copy(CopyDirection::kOnDevice); break;
    case HostAction::Kind::kFill: copy(CopyDirection::kFill); break;
    case HostAction::Kind::kMarker: node = timeline_->AddMarker(PlaceOf(action)); break;
    case HostAction::Kind::kLaunch:
    case HostAction::Kind::kWait: break;
  }
  GL_CHECK(node == action.work, "works are numbered alike by the program's timeline and the model");
}

std::shared_ptr<trace::CtaSink> OwnTimeline::AddLaunch(const HostAction& action, const trace::KernelCode& code,
                                                       const trace::LaunchShape& shape, bool opens) {
  if (!timeline_->problem().empty()) {
    static_cast<void>(timeline_->AddMarker(PlaceOf(action)));
    return nullptr;
  }
  auto source = std::make_shared<timing::LiveSource>(code, shape, store_);
  auto node = opens ? timeline_->OpenKernel(PlaceOf(action), source) : timeline_->AddKernel(PlaceOf(action), source);
  if (!node.ok()) {
    LogFormat(LogLevel::kWarn, "a launch is not simulated: %s", node.error().message.c_str());
    static_cast<void>(opens ? timeline_->OpenGroup(PlaceOf(action)) : timeline_->AddMarker(PlaceOf(action)));
    return nullptr;
  }
  GL_CHECK(*node == action.work, "works are numbered alike by the program's timeline and the model");
  const std::lock_guard lock(mutex_);
  std::erase_if(sources_, [](const auto& known) { return known.expired(); });
  sources_.push_back(source);
  return source;
}

std::optional<bool> OwnTimeline::Ask(std::span<const std::uint64_t> works) {
  switch (timeline_->Poll(host_, works)) {
    case timing::LiveTimeline::Answer::kYes: return true;
    case timing::LiveTimeline::Answer::kNo: return false;
    case timing::LiveTimeline::Answer::kUnknown: break;
  }
  return std::nullopt;
}

std::optional<double> OwnTimeline::EndNs(std::uint64_t work) {
  const auto end = timeline_->EndOf(work);
  if (!end) return std::nullopt;
  return timeline_->Nanoseconds(*end);
}

TimingTable OwnTimeline::Finish() {
  // What a program leaves running when it ends does not come to an end on a GPU either.
  {
    const std::lock_guard lock(mutex_);
    for (const auto& known : sources_) {
      if (const auto source = known.lock()) source->Close();
    }
  }
  static_cast<void>(timeline_->Finish().ok());  // problem() says the same
  return {.device = timeline_->parameters().device,
          .policy = policy_,
          .cycles = timeline_->end(),
          .kernels = timeline_->Kernels(),
          .counters = timeline_->counters(),
          .profiled = supply_->cost(),
          .problem = timeline_->problem()};
}

}  // namespace gridloom::session
