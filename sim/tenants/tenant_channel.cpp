#include "sim/tenants/tenant_channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <unordered_set>

#include "rewriter/support/check.h"
#include "sim/tenants/timing_service.h"
#include "sim/timing/live/live_source.h"
#include "sim/trace/cta_codec.h"
#include "sim/trace/trace_records.h"

namespace gridloom::tenants {

using protocol::FrameAnswer;
using protocol::FrameKind;
using timing::NodeId;
using trace::HostAction;

namespace {

// More than any program has; what lies beyond is not worth the memory.
constexpr std::size_t kMostWorks = 1u << 26, kMostCodes = 1u << 16, kMostQuestions = 256;
constexpr std::uint64_t kMostCtas = 1u << 28;
/// Groups in groups: graphs in graphs, grids that launch grids (24 levels in CUDA).
constexpr unsigned kMostDepth = 64;

Error Bad(const std::string& what) { return Error{"to the timing model: " + what}; }
Error Damaged() { return Bad("a frame that is damaged"); }

/// Ends what it counts.
class Counted {
 public:
  explicit Counted(std::atomic<unsigned>& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;

 private:
  std::atomic<unsigned>& count_;
};

}  // namespace

/// A tenant's launch. Whatever goes wrong with it, the model gets CTAs that it can simulate: those that are lost are empty.
class TenantSource final : public trace::CtaSource {
 public:
  TenantSource(std::shared_ptr<const trace::KernelCode> code, const trace::LaunchShape& shape, std::shared_ptr<timing::TraceStore> store)
      : code_(std::move(code)), live_(*code_, shape, std::move(store)) {}

  const trace::KernelCode& code() const override { return *code_; }
  const trace::LaunchShape& shape() const override { return live_.shape(); }
  Result<trace::LoadedCta> Load(std::uint64_t index) override {
    auto cta = live_.Load(index);
    if (cta.ok()) return cta;
    auto empty = std::make_shared<trace::CtaTrace>();
    empty->warps.resize(shape().warps_per_cta());
    return trace::LoadedCta{std::move(empty), {}};
  }

  /// On the channel's thread. False: that CTA is not the launch's, or has come before.
  bool Push(std::uint64_t cta, trace::LoadedCta trace) {
    if (cta >= shape().ctas || trace.trace->warps.size() != shape().warps_per_cta() || !came_.insert(cta).second) return false;
    live_.Push(cta, std::move(trace));
    return true;
  }
  void Close() { live_.Close(); }
  void Abandon() { live_.Abandon(); }

 private:
  const std::shared_ptr<const trace::KernelCode> code_;
  timing::LiveSource live_;
  std::unordered_set<std::uint64_t> came_;
};

TenantChannel::TenantChannel(TimingService& service, sched::SimulatedSession session, protocol::Fd socket)
    : service_(service), session_(std::move(session)), socket_(std::move(socket)) {}

TenantChannel::~TenantChannel() {
  End();
  if (thread_.joinable()) thread_.join();
}

void TenantChannel::Start() {
  thread_ = std::thread([this] { Main(); });
}

void TenantChannel::End() { shutdown(socket_.get(), SHUT_RDWR); }

void TenantChannel::Main() {
  const bool begins = service_.Begin(*this);
  Touch();
  while (begins) {
    const auto frame = protocol::ReceiveFrame(socket_.get());
    if (frame.ok() && !*frame) break;
    const Status status = frame.ok() ? Handle(**frame) : Status(Bad(frame.error().message));
    if (status.ok()) continue;
    service_.Report(session_.session, status.error().message);
    break;
  }
  End();
  if (begins) Close();
  ended_.store(true, std::memory_order_release);
}

/// What runs on the device of what the tenant gave ends with the CTAs that have started; the rest is dropped.
void TenantChannel::Close() {
  for (const auto& given : given_) {
    if (const auto source = given.lock()) source->Abandon();
  }
  for (const auto& [work, depth] : groups_) service_.timeline_->CloseGroup(timing::NodeOf(host, work));
  service_.timeline_->DropHost(host);
  for (Question& question : questions_) question.thread.join();
  service_.Forget(host);
  owes_ = 0;
}

/// The host has said something.
void TenantChannel::Touch() {
  const std::lock_guard lock(away_mutex_);
  last_said_ = std::chrono::steady_clock::now();
  if (!away_) return;
  away_ = false;
  service_.timeline_->SetAway(host, false);
}

void TenantChannel::SetAwayAfter(std::chrono::steady_clock::time_point now, std::chrono::milliseconds patience) {
  const std::lock_guard lock(away_mutex_);
  if (last_said_ == std::chrono::steady_clock::time_point{} || away_ || waiting_ != 0 || owes() || now - last_said_ < patience) return;
  away_ = true;
  service_.timeline_->SetAway(host, true);
}

// ---- frames -------------------------------------------------------------------------------------------------------------

Status TenantChannel::Handle(const protocol::Frame& frame) {
  const trace::ByteReader in(frame.bytes);
  switch (frame.kind) {
    case FrameKind::kCode: return HandleCode(in);
    case FrameKind::kCtas: return HandleCtas(in);
    case FrameKind::kEndLaunch: return HandleEndLaunch(in);
    default: break;
  }
  Touch();  // what comes from kernels that run says nothing about the host
  switch (frame.kind) {
    case FrameKind::kLaunch: return HandleLaunch(in);
    case FrameKind::kAction: return HandleAction(in);
    case FrameKind::kCloseGroup: return HandleCloseGroup(in);
    case FrameKind::kWait:
    case FrameKind::kAsk:
    case FrameKind::kEnd:
    case FrameKind::kFinish: return HandleQuestion(frame.kind, in);
    default: return Bad("a frame that has no place here");
  }
}

Status TenantChannel::HandleCode(trace::ByteReader in) {
  if (codes_.size() >= kMostCodes) return Bad("too many kernels");
  GL_TRY(code, trace::GetCode(in));
  codes_.push_back(std::make_shared<const trace::KernelCode>(std::move(code)));
  return {};
}

Result<NodeId> TenantChannel::NodeOf(std::uint64_t work) const {
  if (work == 0 || work > works_) return Bad("work " + std::to_string(work) + ", which was not given");
  return timing::NodeOf(host, work);
}

Result<timing::Place> TenantChannel::PlaceOf(const HostAction& action) {
  if (action.work != works_ + 1) {
    return Bad("work " + std::to_string(action.work) + " where " + std::to_string(works_ + 1) + " has to come");
  }
  if (works_ >= kMostWorks) return Bad("too many works");
  timing::Place place{.host = host, .stream = action.stream, .after = {}, .group = 0, .rank = action.rank};
  for (const std::uint64_t before : action.after) {
    if (before == 0) continue;
    GL_TRY(node, NodeOf(before));
    place.after.push_back(node);
  }
  if (action.group != 0) {
    const auto group = groups_.find(action.group);
    if (group == groups_.end()) return Bad("a work of a group that is not open");
    if (group->second >= kMostDepth) return Bad("groups in groups in groups");
    GL_TRY(node, NodeOf(action.group));
    place.group = node;
  }
  place.owner = service_.OwnerOf(session_.tenant);
  return place;
}

Status TenantChannel::Append(const HostAction& action, NodeId node, bool group) {
  ++works_;
  GL_CHECK(node == timing::NodeOf(host, works_), "works are numbered alike by the tenant and the model");
  if (!group) return {};
  const auto parent = groups_.find(action.group);
  groups_[action.work] = parent != groups_.end() ? parent->second + 1 : 0;
  ++owes_;
  return {};
}

Status TenantChannel::HandleLaunch(trace::ByteReader in) {
  const bool opens = in.Fixed<std::uint8_t>() != 0;
  const trace::LaunchInfo info = trace::GetInfo(in);
  const HostAction action = trace::GetAction(in);
  if (in.failed() || action.kind != HostAction::Kind::kLaunch) return Damaged();
  if (info.kernel >= codes_.size()) return Bad("a launch of a kernel that was not said");
  if (info.shape.threads_per_cta == 0 || info.shape.threads_per_cta > 1024 || info.shape.ctas == 0 || info.shape.ctas > kMostCtas) {
    return Bad("a launch of " + std::to_string(info.shape.ctas) + " CTAs of " + std::to_string(info.shape.threads_per_cta) + " threads");
  }
  GL_TRY(place, PlaceOf(action));
  const auto& code = codes_[info.kernel];
  auto source = std::make_shared<TenantSource>(code, info.shape, service_.store_);
  const timing::Place copy = place;
  timing::LiveTimeline& timeline = *service_.timeline_;
  auto node = opens ? timeline.OpenKernel(std::move(place), source) : timeline.AddKernel(std::move(place), source);
  // One that the device has no room for takes no time; everything else goes on.
  if (!node.ok()) node = opens ? timeline.OpenGroup(copy) : timeline.AddMarker(copy);
  Give(source);
  sources_.emplace(action.work, std::move(source));
  ++owes_;
  return Append(action, *node, opens);
}

/// Remembers a source as long as the model has it.
void TenantChannel::Give(const std::shared_ptr<TenantSource>& source) {
  if (given_.size() >= most_given_) {
    std::erase_if(given_, [](const auto& given) { return given.expired(); });
    most_given_ = std::max(kGivenAtFirst, 2 * given_.size());
  }
  given_.push_back(source);
}

Status TenantChannel::HandleAction(trace::ByteReader in) {
  const HostAction action = trace::GetAction(in);
  if (in.failed()) return Damaged();
  GL_TRY(place, PlaceOf(action));
  timing::LiveTimeline& timeline = *service_.timeline_;
  const auto copy = [&](timing::CopyDirection direction) { return timeline.AddCopy(std::move(place), direction, action.bytes); };
  if (action.bytes > std::uint64_t{1} << 50) return Bad("a copy of " + std::to_string(action.bytes) + " bytes");
  switch (action.kind) {
    case HostAction::Kind::kCopyToDevice: return Append(action, copy(timing::CopyDirection::kToDevice), false);
    case HostAction::Kind::kCopyToHost: return Append(action, copy(timing::CopyDirection::kToHost), false);
    case HostAction::Kind::kCopyOnDevice: return Append(action, copy(timing::CopyDirection::kOnDevice), false);
    case HostAction::Kind::kFill: return Append(action, copy(timing::CopyDirection::kFill), false);
    case HostAction::Kind::kMarker: return Append(action, timeline.AddMarker(std::move(place)), false);
    case HostAction::Kind::kGroup: return Append(action, timeline.OpenGroup(std::move(place)), true);
    case HostAction::Kind::kWait:
    case HostAction::Kind::kLaunch: break;
  }
  return Bad("a work that has no place here");
}

Status TenantChannel::HandleCloseGroup(trace::ByteReader in) {
  const std::uint64_t work = in.Varint();
  if (in.failed()) return Damaged();
  GL_TRY(node, NodeOf(work));
  if (groups_.erase(work) == 0) return {};  // every kernel's end is said, also of those that are no groups
  --owes_;
  service_.timeline_->CloseGroup(node);
  return {};
}

Result<std::shared_ptr<TenantSource>> TenantChannel::SourceOf(std::uint64_t work) {
  const auto source = sources_.find(work);
  if (source == sources_.end()) return Bad("CTAs of work " + std::to_string(work) + ", which is no launch or has ended");
  return source->second;
}

Status TenantChannel::HandleCtas(trace::ByteReader in) {
  const std::uint64_t work = in.Varint(), count = in.Count();
  if (in.failed()) return Damaged();
  GL_TRY(source, SourceOf(work));
  std::vector<std::uint64_t> ctas(count);
  std::uint64_t last = 0;
  for (std::uint64_t& cta : ctas) {
    last += static_cast<std::uint64_t>(in.Signed());
    cta = last;
  }
  if (in.failed()) return Damaged();
  trace::CtaDecoder decoder(source->code());
  for (const std::uint64_t cta : ctas) {
    GL_TRY(trace, decoder.Decode(in));
    if (!source->Push(cta, std::move(trace))) return Bad("CTA " + std::to_string(cta) + ", which the launch does not have");
  }
  if (in.left() != 0) return Damaged();
  return {};
}

Status TenantChannel::HandleEndLaunch(trace::ByteReader in) {
  const std::uint64_t work = in.Varint();
  if (in.failed()) return Damaged();
  GL_TRY(source, SourceOf(work));
  source->Close();
  sources_.erase(work);
  --owes_;
  return {};
}

// ---- questions ----------------------------------------------------------------------------------------------------------

Status TenantChannel::HandleQuestion(FrameKind kind, trace::ByteReader in) {
  const std::uint64_t number = in.Varint();
  std::vector<NodeId> nodes;
  if (kind == FrameKind::kFinish) {
    for (std::uint64_t work = 1; work <= works_; ++work) nodes.push_back(timing::NodeOf(host, work));
  } else {
    const std::uint64_t count = kind == FrameKind::kEnd ? 1 : in.Count();
    for (std::uint64_t i = 0; i < count; ++i) {
      GL_TRY(node, NodeOf(in.Varint()));
      nodes.push_back(node);
    }
  }
  if (in.failed()) return Damaged();
  for (auto question = questions_.begin(); question != questions_.end();) {
    if (!question->done.load(std::memory_order_acquire)) {
      ++question;
      continue;
    }
    question->thread.join();
    question = questions_.erase(question);
  }
  if (questions_.size() >= kMostQuestions) return Bad("too many questions at a time");
  if (kind == FrameKind::kFinish) {
    for (auto& [work, source] : sources_) source->Close();  // what a program leaves running does not come to an end on a GPU either
  }
  Question& question = questions_.emplace_back();
  question.thread = std::thread([this, number, kind, nodes = std::move(nodes), &question]() mutable {
    Answer(number, kind, std::move(nodes));
    question.done.store(true, std::memory_order_release);
  });
  return {};
}

void TenantChannel::Answer(std::uint64_t question, FrameKind kind, std::vector<NodeId> nodes) {
  timing::LiveTimeline& timeline = *service_.timeline_;
  const Counted waiting(waiting_);
  const auto ns_of = [&](std::optional<timing::Cycle> cycle) { return cycle ? timeline.Nanoseconds(*cycle) : 0; };
  if (kind == FrameKind::kEnd) {
    const auto end = timeline.EndOf(nodes.front());
    return Send(question, end ? FrameAnswer::kYes : FrameAnswer::kUnknown, ns_of(end), nullptr);
  }
  if (kind == FrameKind::kAsk) {
    switch (timeline.Poll(host, nodes)) {
      case timing::LiveTimeline::Answer::kYes: return Send(question, FrameAnswer::kYes, 0, nullptr);
      case timing::LiveTimeline::Answer::kNo: return Send(question, FrameAnswer::kNo, 0, nullptr);
      case timing::LiveTimeline::Answer::kUnknown: return Send(question, FrameAnswer::kUnknown, 0, nullptr);
    }
  }
  const timing::Cycle before = timeline.HostTime(host);
  const bool all = timeline.WaitFor(host, nodes);
  const FrameAnswer answer = all ? FrameAnswer::kYes : FrameAnswer::kUnknown;
  if (kind == FrameKind::kWait) return Send(question, answer, 0, nullptr);
  timing::Cycle end = before;  // asking for the end is no part of the program
  for (const NodeId node : nodes) end = std::max(end, timeline.EndOf(node).value_or(0));
  const timing::KernelTable table = service_.TableOf(host);
  Send(question, answer, ns_of(end - std::min(end, begin)), &table);
}

void TenantChannel::Send(std::uint64_t question, FrameAnswer answer, double ns, const timing::KernelTable* table) {
  trace::ByteWriter out;
  out.Varint(question);
  out.Fixed(answer);
  out.Fixed(ns);
  if (table != nullptr) {
    table->Put(out);
    // What the counters of proposed parts are called the tenant knows when it knows the parts.
    out.Text(service_.parts_);
    out.Text(service_.part_values_);
  }
  const std::lock_guard lock(send_mutex_);
  protocol::SendFrame(socket_.get(), FrameKind::kAnswer, out.bytes());
  // The program's end: it holds nobody back while it does what is left.
  if (table != nullptr) service_.timeline_->RemoveHost(host);
}

}  // namespace gridloom::tenants
