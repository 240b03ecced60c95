// The channel to the broker's timing model, with any frames in any order: the session that sent them may end, another
// one goes on.
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "scheduler/protocol/frames.h"
#include "sim/device/device_files.h"
#include "sim/tenants/timing_service.h"
#include "sim/trace/trace_records.h"

namespace gridloom {
namespace {

using protocol::Fd;
using protocol::FrameKind;

void Require(bool condition) {
  if (!condition) std::abort();
}

Fd Join(tenants::TimingService& service, std::uint64_t session) {
  auto socket = service.Join({.session = session,
                              .tenant = static_cast<std::uint32_t>(session),
                              .tenant_name = "tenant",
                              .program = "fuzzer",
                              .limits = {}});
  Require(socket.ok());
  return std::move(socket).value();
}

/// A byte for the kind, two for the length, then so many: what is left of the input is short enough to be sent without
/// waiting.
void SendFrames(const Fd& socket, std::span<const std::uint8_t> bytes) {
  while (bytes.size() >= 3) {
    const std::size_t length = std::min<std::size_t>(bytes[1] | bytes[2] << 8, bytes.size() - 3);
    // Most inputs are to get beyond the check of the kind.
    const auto kind = static_cast<FrameKind>(bytes[0] < 240 ? 1 + bytes[0] % 10 : bytes[0]);
    if (!protocol::SendFrame(socket.get(), kind, bytes.subspan(3, length))) return;
    bytes = bytes.subspan(3 + length);
  }
  // What does not make a whole frame header any more is sent as it is.
  static_cast<void>(!send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

/// An event that is recorded and waited for.
void WaitForMarker(const Fd& socket) {
  trace::HostAction action;
  action.kind = trace::HostAction::Kind::kMarker;
  action.work = 1;
  action.stream = 1;
  trace::ByteWriter marker, question;
  trace::PutAction(action, marker);
  Require(protocol::SendFrame(socket.get(), FrameKind::kAction, marker.bytes()));
  for (const std::uint64_t value : {1, 1, 1}) question.Varint(value);  // number, works, work
  Require(protocol::SendFrame(socket.get(), FrameKind::kWait, question.bytes()));
  const auto answer = protocol::ReceiveFrame(socket.get());
  Require(answer.ok() && answer->has_value());
  trace::ByteReader in((*answer)->bytes);
  Require(in.Varint() == 1 && in.Fixed<protocol::FrameAnswer>() == protocol::FrameAnswer::kYes);
}

}  // namespace
}  // namespace gridloom

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gridloom;
  constexpr std::size_t kMost = 64 << 10;
  if (size > kMost) return 0;
  static const auto device = sim::LoadDevice("fermi-8");
  Require(device.ok());
  auto service = tenants::TimingService::Create(*device, {.policy = "leftover", .patience_ms = 1});
  Require(service.ok());
  const Fd good = Join(**service, 1);
  {
    const Fd hostile = Join(**service, 2);
    const timeval patience{10, 0};
    setsockopt(hostile.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    SendFrames(hostile, std::span(data, size));
  }
  WaitForMarker(good);
  (*service)->Leave(2);
  Require((*service)->problem().empty());
  return 0;
}
