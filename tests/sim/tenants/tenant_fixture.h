// The broker's timing model, and programs at their ends of its channels.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/protocol/frames.h"
#include "sim/device/device_files.h"
#include "sim/tenants/timing_service.h"
#include "sim/trace/cta_codec.h"
#include "sim/trace/trace_records.h"
#include "tests/sim/timing/synthetic.h"

namespace gridloom::tenants {

using protocol::FrameAnswer;
using protocol::FrameKind;
using trace::ByteWriter;
using trace::HostAction;

inline trace::KernelCode AddsCode() {
  timing::CodeBuilder code("adds");
  code.Block();
  code.Op(trace::OpClass::kInt, {1}, {1});
  return code.code();
}

inline trace::LoadedCta AddsCta(std::uint32_t adds) {
  timing::CtaBuilder cta;
  cta.Warp();
  cta.Visit(0, timing::kAllLanes, adds);
  return {cta.Finish(), {}};
}

/// A program at its end of the channel: one stream.
struct Program {
  Program(protocol::Fd socket) : socket(std::move(socket)) {}

  bool Send(FrameKind kind, const ByteWriter& content) {
    return protocol::SendFrame(socket.get(), kind, content.bytes());
  }
  void SayCode() {
    ByteWriter out;
    trace::PutCode(code, out);
    Send(FrameKind::kCode, out);
  }
  HostAction Action(HostAction::Kind kind) {
    HostAction action;
    action.kind = kind;
    action.work = ++works;
    action.stream = stream;
    return action;
  }
  std::uint64_t Launch(std::uint64_t ctas, std::uint32_t kernel = 0, std::uint32_t shared_bytes = 0) {
    const HostAction action = Action(HostAction::Kind::kLaunch);
    trace::LaunchInfo info;
    info.kernel = kernel;
    info.shape = {.ctas = ctas, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = shared_bytes};
    ByteWriter out;
    out.Fixed(std::uint8_t{0});
    trace::PutInfo(info, out);
    trace::PutAction(action, out);
    Send(FrameKind::kLaunch, out);
    return action.work;
  }
  void SayCtas(std::uint64_t work, std::uint64_t from, std::uint64_t count, std::uint32_t adds) {
    ByteWriter out, content;
    trace::CtaEncoder encoder(code);
    out.Varint(work);
    out.Varint(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      out.Signed(i == 0 ? static_cast<std::int64_t>(from) : 1);
      encoder.Encode(AddsCta(adds), content);
    }
    std::memcpy(out.Grow(content.size()), content.bytes().data(), content.size());
    Send(FrameKind::kCtas, out);
  }
  /// One CTA of a warp that goes round a loop so often, which takes few bytes.
  void SayLoop(std::uint64_t work, std::uint64_t cta, std::uint64_t rounds) {
    ByteWriter out;
    out.Varint(work);
    out.Varint(1);
    out.Signed(static_cast<std::int64_t>(cta));
    for (const std::uint64_t value :
         {std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}, rounds, std::uint64_t{1}, rounds})
      out.Varint(value);
    out.Fixed(std::uint8_t{1});
    Send(FrameKind::kCtas, out);
  }
  void EndLaunch(std::uint64_t work) {
    ByteWriter out;
    out.Varint(work);
    Send(FrameKind::kEndLaunch, out);
  }
  /// A whole kernel.
  std::uint64_t Kernel(std::uint64_t ctas, std::uint32_t adds) {
    const std::uint64_t work = Launch(ctas);
    SayCtas(work, 0, ctas, adds);
    EndLaunch(work);
    return work;
  }

  struct Answer {
    FrameAnswer answer = FrameAnswer::kUnknown;
    double ns = -1;
    timing::KernelTable table;
  };
  /// Nothing when the other side has ended the channel.
  std::optional<Answer> Ask(FrameKind kind, std::vector<std::uint64_t> asked = {}) {
    ByteWriter out;
    out.Varint(++questions);
    if (kind == FrameKind::kWait || kind == FrameKind::kAsk) out.Varint(asked.size());
    for (const std::uint64_t work : asked) out.Varint(work);
    if (!Send(kind, out)) return std::nullopt;
    const auto frame = protocol::ReceiveFrame(socket.get());
    if (!frame.ok() || !*frame) return std::nullopt;
    trace::ByteReader in((*frame)->bytes);
    static std::mutex one_at_a_time;  // programs ask from threads of their own, and Catch counts on none
    const std::lock_guard lock(one_at_a_time);
    REQUIRE(in.Varint() == questions);
    Answer answer;
    answer.answer = in.Fixed<FrameAnswer>();
    answer.ns = in.Fixed<double>();
    if (kind == FrameKind::kFinish) {
      auto table = timing::KernelTable::Get(in);
      REQUIRE(table.ok());
      answer.table = *table;
    }
    CHECK_FALSE(in.failed());
    return answer;
  }

  protocol::Fd socket;
  trace::KernelCode code = AddsCode();
  std::uint64_t works = 0, questions = 0, stream = 1;
};

struct Fixture {
  /// `part`: a proposed one that the device has.
  explicit Fixture(TimingService::Options options = {.policy = "leftover"}, const char* name = "v100",
                   const char* part = "none") {
    auto device = sim::LoadDevice(name);
    REQUIRE(device.ok());
    REQUIRE(sim::ApplyDeviceText(std::string("proposed: ") + part, "test", *device).ok());
    auto made = TimingService::Create(*device, std::move(options));
    REQUIRE(made.ok());
    service = std::move(made).value();
    service->OnViolation([this](std::uint64_t session, const std::string& why) {
      const std::lock_guard lock(mutex);
      violations[session] = why;
    });
  }
  ~Fixture() { service->OnViolation({}); }

  std::unique_ptr<Program> Join(std::uint64_t session, const std::string& tenant = "tenant",
                                const sched::TenantLimits& limits = {}) {
    auto socket = service->Join({.session = session,
                                 .tenant = static_cast<std::uint32_t>(session),
                                 .tenant_name = tenant,
                                 .program = "test",
                                 .limits = limits});
    REQUIRE(socket.ok());
    auto program = std::make_unique<Program>(std::move(socket).value());
    program->SayCode();
    return program;
  }
  std::string ViolationOf(std::uint64_t session) {
    for (int i = 0; i < 12000; ++i) {
      {
        const std::lock_guard lock(mutex);
        if (const auto found = violations.find(session); found != violations.end()) return found->second;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return {};
  }
  std::size_t violation_count() {
    const std::lock_guard lock(mutex);
    return violations.size();
  }

  std::unique_ptr<TimingService> service;
  std::mutex mutex;
  std::map<std::uint64_t, std::string> violations;
};

}  // namespace gridloom::tenants
