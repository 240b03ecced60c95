#include "interpose/observe/own_timeline.h"

#include <atomic>

#include "interpose/base/log.h"
#include "rewriter/support/check.h"
#include "sim/hardware/catalog.h"
#include "sim/study/measure/timed_device.h"
#include "sim/timing/sm/occupancy.h"

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
  live.profiler = [supply](std::uint32_t tenant, std::shared_ptr<trace::CtaSource>& source) {
    return supply->Profile(tenant, source);
  };
  GL_TRY(timeline, timing::LiveTimeline::Create(device, std::move(policy), std::move(live)));
  return std::unique_ptr<Timeline>(
      new OwnTimeline(std::move(timeline), std::move(supply), study::RangesOf(device).has_value(), options));
}

OwnTimeline::OwnTimeline(std::unique_ptr<timing::LiveTimeline> timeline,
                         std::shared_ptr<const study::PolicySupply> supply, bool overlapped, const Options& options)
    : timeline_(std::move(timeline)),
      supply_(std::move(supply)),
      policy_(options.policy),
      host_(timeline_->AddHost()),
      store_(std::make_shared<timing::TraceStore>(options.store_bytes)),
      works_(*timeline_, host_, overlapped, [this](std::uint64_t work) { return NodeOf(work); }) {}

// ---- numbers

timing::NodeId OwnTimeline::NodeOf(std::uint64_t work) const {
  const std::lock_guard lock(mutex_);
  return work == 0 || work > numbers_.size() ? 0 : timing::NodeOf(host_, numbers_[work - 1]);
}

std::vector<timing::NodeId> OwnTimeline::NodesOf(std::span<const std::uint64_t> works) const {
  std::vector<timing::NodeId> nodes;
  for (const std::uint64_t work : works) nodes.push_back(NodeOf(work));
  return nodes;
}

void OwnTimeline::Know(std::uint64_t work, timing::NodeId node) {
  const std::lock_guard lock(mutex_);
  GL_CHECK(work == numbers_.size() + 1, "works come in the order of their numbers");
  numbers_.push_back(static_cast<std::uint32_t>(node));
}

/// Once of each action.
timing::Place OwnTimeline::PlaceOf(const HostAction& action) {
  timing::Place place = {.host = host_,
                         .stream = action.stream,
                         .after = NodesOf(action.after),
                         .group = NodeOf(action.group),
                         .rank = action.rank,
                         .number = action.group != 0 ? action.work : 0,
                         .profile = 0};
  if (action.group == 0) works_.PutBehindWaits(place);
  return place;
}

// ---- works

/// What is to be known of it is the partner alone: a work in storage, or 0.
std::uint64_t OwnTimeline::BeforeCopy(const HostAction& action) {
  timing::Place place;
  static_cast<void>(works_.BeforeCopy(action, place));  // problem() says what is wrong
  return place.partner;
}

void OwnTimeline::BeforeGroup(std::uint64_t to_device, std::uint64_t to_host) {
  static_cast<void>(works_.BeforeGroup(to_device, to_host));
}

void OwnTimeline::Add(const HostAction& action, std::uint64_t storage) {
  timing::Place place = PlaceOf(action);
  place.partner = storage;
  if (action.kind != HostAction::Kind::kGroup) return Know(action.work, works_.Add(std::move(place), action));
  Know(action.work, timeline_->OpenGroup(std::move(place)));
  const std::lock_guard lock(mutex_);
  open_.insert(action.work);
}

void OwnTimeline::CloseGroup(std::uint64_t group) {
  {
    const std::lock_guard lock(mutex_);
    if (open_.erase(group) == 0) return;
  }
  timeline_->CloseGroup(NodeOf(group));
}

std::shared_ptr<timing::LiveSource> OwnTimeline::NewSource(const trace::KernelCode& code,
                                                           const trace::LaunchShape& shape) {
  auto source = std::make_shared<timing::LiveSource>(code, shape, store_);
  const std::lock_guard lock(mutex_);
  std::erase_if(sources_, [](const auto& known) { return known.expired(); });
  sources_.push_back(source);
  return source;
}

std::shared_ptr<trace::CtaSink> OwnTimeline::AddLaunch(const HostAction& action, const trace::KernelCode& code,
                                                       const trace::LaunchShape& shape, bool opens) {
  const timing::Place place = PlaceOf(action);
  if (!timeline_->problem().empty()) {
    Know(action.work, timeline_->AddMarker(place));
    return nullptr;
  }
  auto source = NewSource(code, shape);
  auto node = opens ? timeline_->OpenKernel(place, source) : timeline_->AddKernel(place, source);
  if (!node.ok()) {
    LogFormat(LogLevel::kWarn, "a launch is not simulated: %s", node.error().message.c_str());
    node = opens ? timeline_->OpenGroup(place) : timeline_->AddMarker(place);
    source = nullptr;
  }
  Know(action.work, *node);
  const std::lock_guard lock(mutex_);
  if (opens) open_.insert(action.work);
  return source;
}

/// Decided once; the simulation stands before it until then.
class OwnTimeline::Ranged final : public RangedLaunch {
 public:
  Ranged(OwnTimeline& timeline, std::shared_ptr<timing::LiveSource> profiler, timing::NodeId kernel)
      : timeline_(timeline), profiler_(std::move(profiler)), kernel_(kernel) {}
  ~Ranged() override { Leave(); }
  std::shared_ptr<trace::CtaSink> profiler() override { return profiler_; }

  bool Decide(const trace::KernelCode& code, const trace::LaunchShape& shape, bool tracked) override {
    if (decided_.exchange(true)) return false;
    source_ = timeline_.NewSource(code, shape);
    const Status fits =
        timeline_.timeline_->Decide(kernel_, tracked ? timing::Tracking::kKernel : timing::Tracking::kNone, source_);
    if (!fits.ok()) LogFormat(LogLevel::kWarn, "a launch is not simulated: %s", fits.error().message.c_str());
    return fits.ok();
  }
  void Push(std::uint64_t cta, trace::LoadedCta trace) override { source_->Push(cta, std::move(trace)); }
  void Close() override { source_->Close(); }

  /// It does not run, or not any more.
  void Leave() {
    profiler_->Close();
    if (!decided_.exchange(true))
      static_cast<void>(timeline_.timeline_->Decide(kernel_, timing::Tracking::kNone, nullptr));
  }

 private:
  OwnTimeline& timeline_;
  const std::shared_ptr<timing::LiveSource> profiler_;
  const timing::NodeId kernel_;
  std::atomic<bool> decided_{false};
  std::shared_ptr<timing::LiveSource> source_;  ///< of the thread that has decided
};

std::shared_ptr<RangedLaunch> OwnTimeline::AddRanged(const HostAction& action, const trace::KernelCode& profiler,
                                                     const trace::LaunchShape& shape) {
  if (!timeline_->problem().empty()) return nullptr;
  const auto source = NewSource(profiler, shape);
  timing::Place place = PlaceOf(action);
  if (const auto node = works_.AddProfiler(place, source); !node.ok()) {
    LogFormat(LogLevel::kWarn, "a launch does not overlap with others: its profiler is not simulated: %s",
              node.error().message.c_str());
    return nullptr;
  }
  const timing::NodeId kernel = timeline_->AddUndecided(std::move(place));
  Know(action.work, kernel);
  auto launch = std::make_shared<Ranged>(*this, source, kernel);
  const std::lock_guard lock(mutex_);
  std::erase_if(undecided_, [](const auto& known) { return known.expired(); });
  undecided_.push_back(launch);
  return launch;
}

Status OwnTimeline::Fits(const trace::LaunchShape& shape) const {
  GL_TRY(needs, timing::NeedsOf(shape, timeline_->parameters().device));
  static_cast<void>(needs);
  return {};
}

// ---- answers

std::optional<bool> OwnTimeline::Ask(std::span<const std::uint64_t> works, bool sees) {
  switch (timeline_->answers().Poll(host_, NodesOf(works))) {
    case timing::Answer::kYes: return works_.Looks(sees) ? std::optional(true) : std::nullopt;
    case timing::Answer::kNo: return false;
    case timing::Answer::kUnknown: break;
  }
  return std::nullopt;
}

std::optional<double> OwnTimeline::EndNs(std::uint64_t work) {
  const auto end = timeline_->EndOf(NodeOf(work));
  if (!end) return std::nullopt;
  return timeline_->Nanoseconds(*end);
}

/// What a program leaves running when it ends does not come to an end on a GPU either.
void OwnTimeline::LeaveRunning() {
  std::vector<std::shared_ptr<timing::LiveSource>> sources;
  std::vector<std::shared_ptr<Ranged>> undecided;
  std::set<std::uint64_t> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& known : sources_) sources.push_back(known.lock());
    for (const auto& known : undecided_) undecided.push_back(known.lock());
    open = open_;
  }
  for (const auto& source : sources) {
    if (source != nullptr) source->Close();
  }
  for (const auto& launch : undecided) {
    if (launch != nullptr) launch->Leave();
  }
  for (const std::uint64_t group : open) CloseGroup(group);
}

TimingTable OwnTimeline::Finish() {
  LeaveRunning();
  static_cast<void>(works_.Finish());
  static_cast<void>(timeline_->Finish().ok());  // problem() says the same
  return {.device = timeline_->parameters().device,
          .policy = policy_,
          .cycles = timeline_->end(),
          .kernels = timeline_->Kernels(),
          .counters = timeline_->engine().counters(),
          .profiled = supply_->cost(),
          .problem = timeline_->problem()};
}

}  // namespace gridloom::session
