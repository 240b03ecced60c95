#include "interpose/observe/broker_timeline.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>

#include "interpose/base/log.h"
#include "rewriter/support/own_thread.h"
#include "sim/hardware/catalog.h"
#include "sim/trace/cta_codec.h"
#include "sim/trace/trace_records.h"

namespace gridloom::session {

using protocol::FrameAnswer;
using protocol::FrameKind;
using trace::ByteWriter;
using trace::HostAction;

namespace {

/// CTAs go to the broker in batches of about so many bytes: enough for the encoder to find what repeats.
constexpr std::size_t kBatchBytes = 256u << 10;

/// One launch's CTAs on their way to the broker.
class RemoteCtas final : public trace::CtaSink {
 public:
  RemoteCtas(std::shared_ptr<TimingChannel> channel, const trace::KernelCode& code, std::uint64_t work)
      : channel_(std::move(channel)), code_(code), work_(work) {}

  void Push(std::uint64_t cta, trace::LoadedCta trace) override {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    if (trace::BytesOf(*trace.trace) > protocol::kMaxCtaBytes) return TooMuch(1);
    if (!encoder_) encoder_.emplace(code_);
    encoder_->Encode(trace, content_);
    ctas_.push_back(cta);
    if (content_.size() >= kBatchBytes) Flush();
  }

  void Close() override {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    Flush();
    ByteWriter out;
    out.Varint(work_);
    channel_->Send(FrameKind::kEndLaunch, out);
  }

 private:
  void TooMuch(std::size_t ctas) {
    LogFormat(LogLevel::kWarn, "what %zu CTAs of %s did is too much to tell the broker: they take no simulated time",
              ctas, code_.name.c_str());
  }
  void Flush() {
    if (ctas_.empty()) return;
    ByteWriter out;
    trace::PutCtas(work_, ctas_, out);
    if (out.size() + content_.size() <= protocol::kMaxFrameBytes) {
      std::memcpy(out.Grow(content_.size()), content_.bytes().data(), content_.size());
      channel_->Send(FrameKind::kCtas, out);
    } else {
      TooMuch(ctas_.size());
    }
    ctas_.clear();
    content_.Clear();
    encoder_.reset();
  }

  const std::shared_ptr<TimingChannel> channel_;
  const trace::KernelCode& code_;
  const std::uint64_t work_;
  std::mutex mutex_;
  bool closed_ = false;
  std::optional<trace::CtaEncoder> encoder_;  ///< of the current batch
  ByteWriter content_;
  std::vector<std::uint64_t> ctas_;
};

}  // namespace

// ---- the channel

TimingChannel::TimingChannel(protocol::Fd socket) : socket_(std::move(socket)) {
  // Signals are the program's: none is delivered to our thread.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  reader_ = std::thread([this] {
    BecomeOwnThread();
    ReadAnswers();
  });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

TimingChannel::~TimingChannel() {
  shutdown(socket_.get(), SHUT_RDWR);
  if (reader_.joinable()) reader_.join();
}

bool TimingChannel::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void TimingChannel::Send(FrameKind kind, const ByteWriter& content) {
  const std::lock_guard lock(send_mutex_);
  static_cast<void>(
      protocol::SendFrame(socket_.get(), kind, content.bytes()));  // the reader notices when the broker is gone
}

std::optional<TimingChannel::Answer> TimingChannel::Ask(FrameKind kind, const ByteWriter& content) {
  std::uint64_t question = 0;
  {
    const std::lock_guard lock(mutex_);
    if (lost_) return std::nullopt;
    question = ++questions_;
  }
  ByteWriter out;
  out.Varint(question);
  if (content.size() != 0) std::memcpy(out.Grow(content.size()), content.bytes().data(), content.size());
  Send(kind, out);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return lost_ || answers_.contains(question); });
  auto answer = answers_.extract(question);
  if (answer.empty()) return std::nullopt;
  return std::move(answer.mapped());
}

void TimingChannel::ReadAnswers() {
  while (true) {
    auto frame = protocol::ReceiveFrame(socket_.get());
    if (!frame.ok() || !*frame || (*frame)->kind != FrameKind::kAnswer) break;
    trace::ByteReader in((*frame)->bytes);
    const std::uint64_t question = in.Varint();
    Answer answer;
    answer.answer = in.Fixed<FrameAnswer>();
    answer.ns = in.Fixed<double>();
    if (in.failed()) break;
    answer.rest.assign((*frame)->bytes.end() - static_cast<std::ptrdiff_t>(in.left()), (*frame)->bytes.end());
    const std::lock_guard lock(mutex_);
    answers_[question] = std::move(answer);
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  lost_ = true;
  changed_.notify_all();
}

// ---- works

BrokerTimeline::BrokerTimeline(protocol::Fd socket, sim::DeviceSpec device, std::string policy)
    : channel_(std::make_shared<TimingChannel>(std::move(socket))),
      device_(std::move(device)),
      policy_(std::move(policy)) {}

void BrokerTimeline::Add(const HostAction& action, std::uint64_t) {
  ByteWriter out;
  trace::PutAction(action, out);
  channel_->Send(FrameKind::kAction, out);
}

std::shared_ptr<trace::CtaSink> BrokerTimeline::AddLaunch(const HostAction& action, const trace::KernelCode& code,
                                                          const trace::LaunchShape& shape, bool opens) {
  if (channel_->lost()) return nullptr;
  const auto [known, added] = codes_.try_emplace(&code, static_cast<std::uint32_t>(codes_.size()));
  if (added) {
    ByteWriter table;
    trace::PutCode(code, table);
    channel_->Send(FrameKind::kCode, table);
  }
  trace::LaunchInfo info;
  info.kernel = known->second;
  info.shape = shape;
  info.work = action.work;
  ByteWriter out;
  out.Fixed(static_cast<std::uint8_t>(opens ? 1 : 0));
  trace::PutInfo(info, out);
  trace::PutAction(action, out);
  channel_->Send(FrameKind::kLaunch, out);
  return std::make_shared<RemoteCtas>(channel_, code, action.work);
}

void BrokerTimeline::CloseGroup(std::uint64_t group) {
  ByteWriter out;
  out.Varint(group);
  channel_->Send(FrameKind::kCloseGroup, out);
}

std::optional<TimingChannel::Answer> BrokerTimeline::AskAbout(FrameKind kind, std::span<const std::uint64_t> works) {
  ByteWriter out;
  std::uint64_t count = 0;
  for (const std::uint64_t work : works) count += work != 0 ? 1 : 0;
  out.Varint(count);
  for (const std::uint64_t work : works) {
    if (work != 0) out.Varint(work);
  }
  return channel_->Ask(kind, out);
}

bool BrokerTimeline::Wait(std::span<const std::uint64_t> works, bool) {
  const auto answer = AskAbout(FrameKind::kWait, works);
  return answer && answer->answer == FrameAnswer::kYes;
}

std::optional<bool> BrokerTimeline::Ask(std::span<const std::uint64_t> works, bool) {
  const auto answer = AskAbout(FrameKind::kAsk, works);
  if (!answer || answer->answer == FrameAnswer::kUnknown) return std::nullopt;
  return answer->answer == FrameAnswer::kYes;
}

std::optional<double> BrokerTimeline::EndNs(std::uint64_t work) {
  if (work == 0) return std::nullopt;
  ByteWriter out;
  out.Varint(work);
  const auto answer = channel_->Ask(FrameKind::kEnd, out);
  if (!answer || answer->answer != FrameAnswer::kYes) return std::nullopt;
  return answer->ns;
}

std::string BrokerTimeline::problem() const {
  return channel_->lost() ? "the broker, which simulated it, is gone" : std::string();
}

namespace {

/// The broker's device may have other proposed parts than the file of that name says.
Status ReadParts(trace::ByteReader& in, sim::DeviceSpec& device) {
  const std::string parts(in.Text()), values(in.Text());
  if (in.failed()) return Error{"the broker's answer is damaged"};
  return hardware::Equip(parts.empty() ? "none" : parts, values, device);
}

}  // namespace

TimingTable BrokerTimeline::Finish() {
  TimingTable table{.device = device_, .policy = policy_, .cycles = 0, .kernels = {}, .counters = {}, .problem = {}};
  const auto answer = channel_->Ask(FrameKind::kFinish, {});
  if (!answer) {
    table.problem = problem();
    return table;
  }
  table.cycles = static_cast<std::uint64_t>(answer->ns * device_.timing.clock.sm_mhz / 1e3 + 0.5);
  trace::ByteReader in(answer->rest);
  auto kernels = timing::KernelTable::Get(in);
  if (kernels.ok()) table.kernels = std::move(kernels).value();
  else table.problem = kernels.error().message;
  if (Status equipped = ReadParts(in, table.device); kernels.ok() && !equipped.ok())
    table.problem = equipped.error().message;
  if (answer->answer != FrameAnswer::kYes) table.problem = "the broker has ended the simulation";
  for (const timing::KernelTimes& kernel : table.kernels.Kernels()) table.counters += kernel.during;
  return table;
}

}  // namespace gridloom::session
