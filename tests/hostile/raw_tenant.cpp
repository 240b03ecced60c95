#include "tests/hostile/raw_tenant.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "sim/trace/trace_records.h"
#include "tests/hostile/daemon_process.h"
#include "tests/sim/timing/synthetic.h"

namespace gridloom::hostile {

using protocol::FrameKind;
using protocol::RawRecord;
using protocol::RecordKind;
using trace::ByteWriter;
using trace::HostAction;

RawRecord LaunchRecord(std::uint32_t slot, std::uint64_t number, std::uint64_t ctas, std::uint64_t kernel) {
  RawRecord record = RecordOf(RecordKind::kLaunch, slot, number, ctas);
  record.kernel = kernel;
  record.threads_per_cta = 32;
  record.flags = protocol::kDivisible;
  protocol::SetField(record.name, "hostile");
  return record;
}

RawRecord RecordOf(RecordKind kind, std::uint32_t slot, std::uint64_t number, std::uint64_t value) {
  RawRecord record;
  record.kind = static_cast<std::uint32_t>(kind);
  record.slot = slot;
  record.launch = number;
  record.value = value;
  return record;
}

protocol::Fd Connected(const std::string& socket) {
  auto connected = protocol::Connect(socket, 10'000);
  if (!connected.ok()) throw Failed(connected.error().message);
  return std::move(connected).value();
}

std::optional<RawTenant> RawTenant::Join(const std::string& socket, const std::string& tenant) {
  auto connected = protocol::Connect(socket, 10'000);
  if (!connected.ok() || !protocol::Send(connected->get(), Format(protocol::Hello{tenant, "", "hostile"}), true))
    return std::nullopt;
  auto received = protocol::Receive(connected->get(), true);
  if (!received.ok() || received->fds.size() < 2) return std::nullopt;
  auto attached = protocol::Segment::Attach(received->fds[0].Release());
  if (!attached.ok()) return std::nullopt;
  RawTenant joined;
  joined.socket_ = std::move(connected).value();
  joined.doorbell_ = std::move(received->fds[1]);
  if (received->fds.size() > 2) joined.channel_ = std::move(received->fds[2]);
  joined.segment_.emplace(std::move(attached).value());
  return joined;
}

RawTenant::RawTenant(const std::string& socket, const std::string& tenant) {
  auto joined = Join(socket, tenant);
  Require(joined.has_value(), "tenant " + tenant + " was not admitted");
  *this = std::move(*joined);
}

void RawTenant::Ring() const {
  const std::uint64_t one = 1;
  static_cast<void>(!write(doorbell_.get(), &one, sizeof one));
}

bool RawTenant::Push(RawRecord record) {
  record.sequence = pushed_;
  const auto full = [&] { return pushed_ - layout().taken.load(std::memory_order_acquire) >= protocol::kRingRecords; };
  if (full()) {
    for (int i = 0; i < 1000 && full(); ++i) std::this_thread::yield();
    Ring();
    if (full() && !Within(5, [&] { return !full(); })) return false;
  }
  PushAsIs(record);
  return true;
}

void RawTenant::PushAsIs(const RawRecord& record) {
  std::memcpy(&layout().ring[pushed_ % protocol::kRingRecords], &record, sizeof record);
  layout().pushed.store(++pushed_, std::memory_order_seq_cst);
  if (layout().broker_sleeps.load(std::memory_order_seq_cst) != 0) Ring();
}

bool RawTenant::AwaitGrant(std::uint64_t done, std::uint32_t slot, double seconds) const {
  return Within(seconds, [&] { return granted(slot) > done; });
}

bool RawTenant::Dropped(double seconds) const {
  pollfd hung_up{socket_.get(), 0, 0};
  return Within(seconds, [&] { return poll(&hung_up, 1, 0) == 1 && (hung_up.revents & (POLLHUP | POLLERR)) != 0; });
}

// ---- the channel to the timing model

bool TimingTalk::Send(FrameKind kind, const ByteWriter& content) const {
  return protocol::SendFrame(channel_, kind, content.bytes());
}

bool TimingTalk::SayCode(std::uint32_t instructions) {
  timing::CodeBuilder code("adds");
  code.Block();
  for (std::uint32_t i = 0; i < instructions; ++i) code.Op(trace::OpClass::kInt, {1}, {1});
  ByteWriter out;
  trace::PutCode(code.code(), out);
  return Send(FrameKind::kCode, out);
}

HostAction TimingTalk::Action(HostAction::Kind kind) {
  HostAction action;
  action.kind = kind;
  action.work = ++works_;
  action.stream = 1;
  return action;
}

bool TimingTalk::Say(const HostAction& action) const {
  ByteWriter out;
  trace::PutAction(action, out);
  return Send(FrameKind::kAction, out);
}

std::uint64_t TimingTalk::Launch(std::uint64_t ctas, std::uint32_t threads) {
  const HostAction action = Action(HostAction::Kind::kLaunch);
  trace::LaunchInfo info;
  info.shape = {.ctas = ctas, .threads_per_cta = threads, .registers_per_thread = 16, .shared_bytes = 0};
  ByteWriter out;
  out.Fixed(std::uint8_t{0});
  trace::PutInfo(info, out);
  trace::PutAction(action, out);
  Send(FrameKind::kLaunch, out);
  return action.work;
}

bool TimingTalk::SayCtas(std::uint64_t work, std::uint64_t count, std::uint64_t visits) {
  ByteWriter out;
  out.Varint(work);
  out.Varint(count);
  for (std::uint64_t i = 0; i < count; ++i) out.Signed(i == 0 ? 0 : 1);
  for (std::uint64_t i = 0; i < count; ++i) {  // as CtaEncoder writes them (sim/trace/cta_codec.h)
    out.Varint(0);                             // a new trace
    out.Varint(0);                             // patterns
    out.Varint(1);                             // warps
    out.Varint(visits);
    if (visits != 0) {
      out.Varint(1);  // block 0, all lanes, a run
      out.Varint(visits);
    }
    out.Fixed(std::uint8_t{1});  // shifts as expected
  }
  return Send(FrameKind::kCtas, out);
}

bool TimingTalk::EndLaunch(std::uint64_t work) {
  ByteWriter out;
  out.Varint(work);
  return Send(FrameKind::kEndLaunch, out);
}

bool TimingTalk::Ask(FrameKind kind, std::span<const std::uint64_t> works) {
  ByteWriter out;
  out.Varint(++questions_);
  if (kind == FrameKind::kWait || kind == FrameKind::kAsk) out.Varint(works.size());
  for (const std::uint64_t work : works) out.Varint(work);
  return Send(kind, out);
}

bool TimingTalk::Answered() const {
  const auto frame = protocol::ReceiveFrame(channel_);
  if (!frame.ok() || !*frame) return false;
  trace::ByteReader in((*frame)->bytes);
  in.Varint();
  return in.Fixed<protocol::FrameAnswer>() == protocol::FrameAnswer::kYes;
}

}  // namespace gridloom::hostile
