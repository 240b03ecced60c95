#include "sim/tenants/tenant_channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "rewriter/support/check.h"
#include "sim/tenants/timing_service.h"
#include "sim/trace/cta_codec.h"
#include "sim/trace/trace_records.h"

namespace gridloom::tenants {

using protocol::FrameAnswer;
using protocol::FrameKind;
using timing::LiveTimeline;
using timing::NodeId;
using trace::HostAction;

namespace {

// More than any program has; what lies beyond is not worth the memory.
constexpr std::size_t kMostWorks = 1u << 26, kMostCodes = 1u << 16, kMostWaits = 1u << 16;
constexpr std::uint64_t kMostCtas = 1u << 28;
/// Groups in groups: graphs in graphs, grids that launch grids (24 levels in CUDA).
constexpr unsigned kMostDepth = 64;

// What things take of memory, here and in the model.
constexpr std::uint64_t kWorkBytes = 2048;  ///< a work that has not ended
constexpr std::uint64_t kWaitBytes = 32;    ///< one that it waits for
constexpr std::uint64_t kEndBytes = 8;      ///< the time when one ended
constexpr std::uint64_t kCodeBytes = 8192;  ///< a kernel, with its row in tables
/// A kernel also takes so many times the bytes that describe it: as they came (terms of meanings are 16 bytes of
/// two), and as the model reads them.
constexpr std::uint64_t kCodeTimes = 16;
constexpr std::uint64_t kDecoderBytes = 64;  ///< for each instruction, while CTAs are unpacked

/// A session has paid for no more works that have ended than this.
constexpr std::uint64_t kPayBackEvery = 256;

/// How often a session whose questions wait looks whether the model waits for it.
constexpr std::chrono::milliseconds kLookEvery{500};

}  // namespace

TenantChannel::TenantChannel(TimingService& service, sched::SimulatedSession session,
                             std::shared_ptr<TenantAccount> account, protocol::Fd socket, protocol::Fd bell)
    : service_(service),
      session_(std::move(session)),
      account_(std::move(account)),
      socket_(std::move(socket)),
      bell_(std::move(bell)),
      code_charge_(account_),
      work_charge_(std::make_shared<Charge>(account_)) {}

TenantChannel::~TenantChannel() {
  End();
  if (thread_.joinable()) thread_.join();
}

Status TenantChannel::Start() {
  try {
    thread_ = std::thread([this] { Main(); });
  } catch (const std::system_error& error) {
    return Error{std::string("there is no thread for the timing model: ") + error.what()};
  }
  return {};
}

void TenantChannel::End() { shutdown(socket_.get(), SHUT_RDWR); }

void TenantChannel::Main() {
  if (service_.Begin(*this)) {
    Touch();
    if (const Status status = Serve(); !status.ok()) service_.Report(session_.session, status.error().message);
    End();
    Close();
  }
  ended_.store(true, std::memory_order_release);
}

/// Until the tenant is gone, or has said what makes no sense.
Status TenantChannel::Serve() {
  auto looked = std::chrono::steady_clock::now();
  while (SendOut()) {
    const bool sends = !out_.empty();
    // Who does not take its answers is not listened to.
    pollfd watched[] = {{socket_.get(), static_cast<short>(sends ? POLLOUT : POLLIN), 0}, {bell_.get(), POLLIN, 0}};
    const int ready = poll(watched, std::size(watched), waiting_ != 0 ? static_cast<int>(kLookEvery.count()) : -1);
    if (ready < 0 && errno != EINTR) return {};
    if (const auto now = std::chrono::steady_clock::now(); waiting_ != 0 && now - looked >= kLookEvery) {
      service_.timeline_->answers().GiveUpStalled(host);
      looked = now;
    }
    if (ready <= 0) continue;
    if (watched[1].revents != 0) TakeReplies();
    if ((watched[0].revents & (POLLERR | POLLNVAL)) != 0 || (sends && (watched[0].revents & POLLHUP) != 0)) return {};
    if (sends || watched[0].revents == 0) continue;
    bool gone = false;
    GL_TRY_STATUS(Read(&gone));
    if (gone) return {};
  }
  return {};
}

/// One frame, whose memory the tenant pays for until it is handled.
Status TenantChannel::Read(bool* gone) {
  Charge charge(account_);
  const auto frame = protocol::ReceiveFrame(socket_.get(), [&](std::size_t bytes) { return charge.Add(bytes); });
  if (!frame.ok()) return Bad(frame.error().message);
  *gone = !frame->has_value();
  return *gone ? Status() : Handle(**frame);
}

/// What the tenant gave ends: what runs on the device with the instructions that it is at, the rest is dropped. Where
/// it is alone what it gave goes on if it had come to its end.
void TenantChannel::Close() {
  {
    const std::lock_guard lock(given_mutex_);
    for (const auto& given : given_) {
      if (const auto source = given.lock()) source->Abandon();
    }
  }
  {
    std::shared_ptr<AloneProgram> left;
    const std::lock_guard lock(away_mutex_);
    left.swap(alone);
  }
  for (const auto& [work, depth] : groups_) service_.timeline_->CloseGroup(timing::NodeOf(host, work));
  service_.timeline_->DropHost(host);  // answers all that it was asked
  for (const auto& [work, launch] : launches_) {
    if (launch.alone != nullptr) launch.alone->Abandon();
  }
  launches_.clear();
  codes_.clear();
  owes_ = 0;
}

/// The host has said something.
void TenantChannel::Touch() {
  const std::lock_guard lock(away_mutex_);
  last_said_ = std::chrono::steady_clock::now();
  if (!away_) return;
  away_ = false;
  service_.timeline_->SetAway(host, false);
  if (alone != nullptr) alone->SetAway(false, service_.timeline_->HostTime(host));
}

void TenantChannel::SetAwayAfter(std::chrono::steady_clock::time_point now, std::chrono::milliseconds patience) {
  const std::lock_guard lock(away_mutex_);
  if (last_said_ == std::chrono::steady_clock::time_point{} || away_ || waiting_ != 0 || owes() ||
      now - last_said_ < patience)
    return;
  away_ = true;
  service_.timeline_->SetAway(host, true);
  if (alone != nullptr) alone->SetAway(true, 0);
}

void TenantChannel::CheckRunningTime(timing::Cycle now, timing::Cycle most, const LongestLaunch& ended) {
  if (most == 0) return;
  std::string late = ended.cycles > most ? ended.kernel : "";
  if (late.empty()) {
    const std::lock_guard lock(given_mutex_);
    for (const auto& given : given_) {
      const auto source = given.lock();
      if (source == nullptr || source->begun() == timing::kNever || now < source->begun() ||
          now - source->begun() <= most)
        continue;
      late = source->code().name;
      break;
    }
  }
  if (late.empty()) return;
  service_.Report(session_.session,
                  Bad("a launch of " + late + " ran for more than " + std::to_string(service_.options_.launch_seconds) +
                      " simulated seconds of its own (timing_launch_s)")
                      .message);
}

Error TenantChannel::NoMemory(const std::string& what) const {
  return Bad(what + " needs more memory than the " + std::to_string(account_->limits().bytes >> 20) +
             " MiB of its tenant (timing_memory)");
}

// ---- frames

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
  if (!code_charge_.Add(kCodeBytes + kCodeTimes * in.left())) return NoMemory("a kernel");
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
  if (action.after.size() > kMostWaits)
    return Bad("a work that waits for " + std::to_string(action.after.size()) + " others");
  GL_TRY_STATUS(PayWork(action.after.size()));
  timing::Place place{.host = host,
                      .stream = action.stream,
                      .after = {},
                      .group = 0,
                      .rank = action.rank,
                      .number = action.group != 0 ? action.work : 0};
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

/// Works that have ended are paid back now and then, and when there is not enough for a further one: the model knows
/// how many there are.
Status TenantChannel::PayWork(std::size_t waits) {
  const std::uint64_t price = kWorkBytes + waits * kWaitBytes;
  if (works_ % kPayBackEvery != 0 && work_charge_->Add(price)) return {};
  const LiveTimeline::HostWorks open = service_.timeline_->WorksOf(host);
  work_charge_->ShrinkTo(open.works * kWorkBytes + open.waits * kWaitBytes + works_ * kEndBytes);
  return work_charge_->Add(price)
             ? Status()
             : Status(NoMemory("a work behind " + std::to_string(open.works) + " that have not ended"));
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
  if (info.shape.threads_per_cta == 0 || info.shape.threads_per_cta > 1024 || info.shape.ctas == 0 ||
      info.shape.ctas > kMostCtas) {
    return Bad("a launch of " + std::to_string(info.shape.ctas) + " CTAs of " +
               std::to_string(info.shape.threads_per_cta) + " threads");
  }
  GL_TRY(place, PlaceOf(action));
  const auto& code = codes_[info.kernel];
  auto source = std::make_shared<TenantSource>(
      code, info.shape,
      TenantSource::Owner{.account = account_,
                          .now = [&service = service_] { return service.timeline_->now(); },
                          .problem = [&service = service_, session = session_.session](
                                         const std::string& why) { service.Report(session, Bad(why).message); }});
  LiveTimeline& timeline = *service_.timeline_;
  const timing::Place own = alone != nullptr ? place : timing::Place{};
  auto node = opens ? timeline.OpenKernel(place, source) : timeline.AddKernel(place, source);
  // One that the device has no room or no units for takes no time; everything else goes on.
  if (!node.ok()) node = opens ? timeline.OpenGroup(std::move(place)) : timeline.AddMarker(std::move(place));
  Give(source);
  launches_.emplace(action.work, Launch{std::move(source),
                                        alone != nullptr ? alone->AddKernel(own, code, info.shape, opens) : nullptr});
  ++owes_;
  return Append(action, *node, opens);
}

/// Remembers a source as long as the model has it.
void TenantChannel::Give(const std::shared_ptr<TenantSource>& source) {
  const std::lock_guard lock(given_mutex_);
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
  LiveTimeline& timeline = *service_.timeline_;
  const auto copy = [&](timing::CopyDirection direction) {
    if (alone != nullptr) alone->AddCopy(place, direction, action.bytes);
    return Append(action, timeline.AddCopy(std::move(place), direction, action.bytes), false);
  };
  if (action.bytes > service_.most_copy_bytes_) return Bad("a copy of " + std::to_string(action.bytes) + " bytes");
  switch (action.kind) {
    case HostAction::Kind::kCopyToDevice: return copy(timing::CopyDirection::kToDevice);
    case HostAction::Kind::kCopyToHost: return copy(timing::CopyDirection::kToHost);
    case HostAction::Kind::kCopyOnDevice: return copy(timing::CopyDirection::kOnDevice);
    case HostAction::Kind::kFill: return copy(timing::CopyDirection::kFill);
    case HostAction::Kind::kMarker:
      if (alone != nullptr) alone->AddMarker(place);
      return Append(action, timeline.AddMarker(std::move(place)), false);
    case HostAction::Kind::kGroup:
      if (alone != nullptr) alone->OpenGroup(place);
      return Append(action, timeline.OpenGroup(std::move(place)), true);
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
  if (alone != nullptr) alone->CloseGroup(node);
  return {};
}

Result<TenantChannel::Launch> TenantChannel::LaunchOf(std::uint64_t work) {
  const auto launch = launches_.find(work);
  if (launch == launches_.end())
    return Bad("CTAs of work " + std::to_string(work) + ", which is no launch or has ended");
  return launch->second;
}

Status TenantChannel::HandleCtas(trace::ByteReader in) {
  const std::uint64_t work = in.Varint(), count = in.Count();
  if (in.failed()) return Damaged();
  GL_TRY(launch, LaunchOf(work));
  TenantSource* const source = launch.source.get();
  std::vector<std::uint64_t> ctas(count);
  std::uint64_t last = 0;
  for (std::uint64_t& cta : ctas) {
    last += static_cast<std::uint64_t>(in.Signed());
    cta = last;
  }
  if (in.failed()) return Damaged();
  Charge decoding(account_);
  if (!decoding.Add(ctas.size() * sizeof ctas[0] + source->code().instructions.size() * kDecoderBytes))
    return NoMemory("unpacking CTAs");
  trace::CtaDecoder decoder(source->code(), account_.get());
  for (const std::uint64_t cta : ctas) {
    auto trace = decoder.Decode(in);
    if (!trace.ok()) return Bad(trace.error().message);
    const trace::LoadedCta own = launch.alone != nullptr ? *trace : trace::LoadedCta{};
    switch (source->Push(cta, std::move(trace).value())) {
      case TenantSource::Pushed::kYes:
        if (launch.alone != nullptr && alone != nullptr) alone->Push(*launch.alone, cta, own);
        break;
      case TenantSource::Pushed::kNotOfLaunch:
        return Bad("CTA " + std::to_string(cta) + ", which the launch does not have");
      case TenantSource::Pushed::kNoMemory: return NoMemory("a CTA that waits");
      case TenantSource::Pushed::kLost: return Bad(source->lost());
    }
  }
  if (in.left() != 0) return Damaged();
  return {};
}

Status TenantChannel::HandleEndLaunch(trace::ByteReader in) {
  const std::uint64_t work = in.Varint();
  if (in.failed()) return Damaged();
  GL_TRY(launch, LaunchOf(work));
  launch.source->Close();
  if (launch.alone != nullptr) launch.alone->Close();
  launches_.erase(work);
  --owes_;
  return {};
}

// ---- the socket

void TenantChannel::Put(const trace::ByteWriter& content) {
  const std::vector<std::uint8_t> frame = protocol::FrameBytes(FrameKind::kAnswer, content.bytes());
  out_.insert(out_.end(), frame.begin(), frame.end());
}

bool TenantChannel::SendOut() {
  while (sent_ < out_.size()) {
    const ssize_t put = send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (put <= 0) return false;
    sent_ += static_cast<std::size_t>(put);
  }
  out_.clear();
  sent_ = 0;
  return true;
}

}  // namespace gridloom::tenants
