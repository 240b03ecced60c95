// The broker's timing model as sessions see it: through their channels, in good order, hostile, gone.
#include "sim/tenants/timing_service.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>
#include <thread>

#include "scheduler/protocol/frames.h"
#include "sim/device/device_files.h"
#include "sim/trace/cta_codec.h"
#include "sim/trace/trace_records.h"
#include "tests/sim/timing/synthetic.h"

namespace gridloom::tenants {
namespace {

using protocol::FrameAnswer;
using protocol::FrameKind;
using trace::ByteWriter;
using trace::HostAction;

trace::KernelCode AddsCode() {
  timing::CodeBuilder code("adds");
  code.Block();
  code.Op(trace::OpClass::kInt, {1}, {1});
  return code.code();
}

trace::LoadedCta AddsCta(std::uint32_t adds) {
  timing::CtaBuilder cta;
  cta.Warp();
  cta.Visit(0, timing::kAllLanes, adds);
  return {cta.Finish(), {}};
}

/// A program at its end of the channel: one stream.
struct Program {
  Program(protocol::Fd socket) : socket(std::move(socket)) {}

  bool Send(FrameKind kind, const ByteWriter& content) { return protocol::SendFrame(socket.get(), kind, content.bytes()); }
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
  std::uint64_t Launch(std::uint64_t ctas, std::uint32_t kernel = 0) {
    const HostAction action = Action(HostAction::Kind::kLaunch);
    trace::LaunchInfo info;
    info.kernel = kernel;
    info.shape = {.ctas = ctas, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 0};
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
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}, rounds, std::uint64_t{1}, rounds})
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
  explicit Fixture(TimingService::Options options = {.policy = "leftover"}, const char* name = "v100") {
    const auto device = sim::LoadDevice(name);
    REQUIRE(device.ok());
    auto made = TimingService::Create(*device, std::move(options));
    REQUIRE(made.ok());
    service = std::move(made).value();
    service->OnViolation([this](std::uint64_t session, const std::string& why) {
      const std::lock_guard lock(mutex);
      violations[session] = why;
    });
  }
  ~Fixture() { service->OnViolation({}); }

  std::unique_ptr<Program> Join(std::uint64_t session, const std::string& tenant = "tenant", const sched::TenantLimits& limits = {}) {
    auto socket = service->Join(
        {.session = session, .tenant = static_cast<std::uint32_t>(session), .tenant_name = tenant, .program = "test", .limits = limits});
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

TEST_CASE("TimingService_OneSession_WaitsAndIsToldWhenItsKernelEnded") {
  Fixture f;
  const auto program = f.Join(1);
  const std::uint64_t kernel = program->Kernel(4, 1000);
  const auto waited = program->Ask(FrameKind::kWait, {kernel});
  REQUIRE(waited);
  CHECK(waited->answer == FrameAnswer::kYes);
  const auto end = program->Ask(FrameKind::kEnd, {kernel});
  REQUIRE(end);
  CHECK(end->ns > 1000 * 4 / 1.6);  // 1000 additions, each of which waits 4 cycles for the last, at less than 1.6 GHz
  CHECK(end->ns < 100'000);
  CHECK(program->Ask(FrameKind::kAsk, {kernel})->answer == FrameAnswer::kYes);
  const auto last = program->Ask(FrameKind::kFinish);
  REQUIRE(last);
  REQUIRE(last->table.Kernels().size() == 1);
  CHECK(last->table.Kernels()[0].name == "adds");
  CHECK(last->table.Kernels()[0].ctas == 4);
  CHECK(last->table.Kernels()[0].warp_instructions == 4000);
  CHECK(f.service->usage(1).kernels == 1);
  CHECK(f.service->usage(1).seconds > 0);
  CHECK(f.violation_count() == 0);
}

/// When the programs' kernels end, by program; the second one submits its own before or after the first one's in real time.
std::pair<double, double> TwoPrograms(bool second_first, const std::string& policy) {
  // Nobody is given up as gone, however slow the machine is: then times would depend on it.
  Fixture f({.policy = policy, .wait_for = 2, .patience_ms = 3'600'000});
  auto one = second_first ? nullptr : f.Join(1, "a");
  auto two = f.Join(2, "b");
  if (one == nullptr) one = f.Join(1, "a");
  Program* order[] = {one.get(), two.get()};
  if (second_first) std::swap(order[0], order[1]);
  for (Program* program : order) {
    program->Kernel(2000, 300);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  // Whoever asks first waits until the other one has nothing to say before its end, too.
  std::optional<Program::Answer> ends[2];
  std::thread asks([&] { ends[1] = two->Ask(FrameKind::kFinish); });
  ends[0] = one->Ask(FrameKind::kFinish);
  asks.join();
  REQUIRE((ends[0] && ends[1]));
  CHECK(f.service->end_seconds() * 1e9 <= std::max(ends[0]->ns, ends[1]->ns));
  return {ends[0]->ns, ends[1]->ns};
}

TEST_CASE("TimingService_TwoSessions_TimesDoNotDependOnWhoComesFirst") {
  for (const std::string policy : {"serial", "leftover", "fair"}) {
    INFO(policy);
    const auto times = TwoPrograms(false, policy);
    CHECK(times == TwoPrograms(true, policy));
    if (policy == "serial") CHECK(times.first < times.second);  // "a" begins first
  }
}

TEST_CASE("TimingService_SessionThatSaysNothing_HoldsOthersBackNoLongerThanItsPatience") {
  Fixture f({.policy = "leftover", .patience_ms = 300});
  const auto quiet = f.Join(1), busy = f.Join(2);
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t kernel = busy->Kernel(4, 100);
  REQUIRE(busy->Ask(FrameKind::kWait, {kernel}));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
  // Back again, at the time that has passed meanwhile.
  REQUIRE(quiet->Ask(FrameKind::kWait, {quiet->Kernel(4, 100)}));
  CHECK(quiet->Ask(FrameKind::kEnd, {1})->ns > busy->Ask(FrameKind::kEnd, {1})->ns);
}

TEST_CASE("TimingService_SessionGoneInTheMiddleOfAKernel_OthersGoOn") {
  Fixture f;
  const auto other = f.Join(2);
  auto victim = f.Join(1);
  victim->SayCtas(victim->Launch(10'000), 0, 100, 100);
  const std::uint64_t kernel = other->Kernel(10, 100);
  f.service->Leave(1);
  victim.reset();
  const auto waited = other->Ask(FrameKind::kWait, {kernel});
  REQUIRE(waited);
  CHECK(waited->answer == FrameAnswer::kYes);
  CHECK(f.service->problem().empty());
  CHECK(f.violation_count() == 0);
}

TEST_CASE("TimingService_ManyLaunches_WhatHasEndedIsLetGo_AndAllOfItWithItsSession") {
  constexpr int kBatches = 40, kKernels = 100;
  Fixture f({.policy = "fair"});
  auto program = f.Join(1);
  std::size_t works = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    for (int i = 1; i < kKernels; ++i) program->Kernel(1, 1);
    REQUIRE(program->Ask(FrameKind::kWait, {program->Kernel(1, 1)}));
    works = std::max(works, f.service->kept().works);
  }
  CHECK(works < 20);
  CHECK(f.service->kept().ends == kBatches * kKernels);  // the program may still ask for them
  CHECK(program->Ask(FrameKind::kEnd, {1})->ns > 0);
  const auto last = program->Ask(FrameKind::kFinish);
  REQUIRE(last);
  CHECK(last->table.Kernels()[0].launches == kBatches * kKernels);
  f.service->Leave(1);
  program.reset();
  for (int i = 0; i < 12000 && f.service->kept().ends != 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(f.service->kept().ends == 0);
  CHECK(f.service->kept().streams == 0);
  CHECK(f.service->usage(1).kernels == kBatches * kKernels);
}

TEST_CASE("TimingService_TenantKilledInAGridOfManyMillions_LeavesNothingToSimulate") {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 28;
  Fixture f;
  const auto other = f.Join(2);
  auto victim = f.Join(1);
  victim->SayCtas(victim->Launch(kMany), 0, 100, 100);  // one that runs
  victim->stream = 2;
  victim->SayCtas(victim->Launch(kMany), 0, 100, 100);  // one that has ended in real time, and not in simulated time
  victim->EndLaunch(victim->works);
  for (int i = 0; i < 1000; ++i) victim->Launch(kMany);  // and many that have not begun
  f.service->Leave(1);
  victim.reset();
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(other->Ask(FrameKind::kWait, {other->Kernel(10, 100)}));
  const auto last = other->Ask(FrameKind::kFinish);
  REQUIRE(last);
  CHECK(last->ns < 1e6);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  CHECK(f.service->problem().empty());
}

TEST_CASE("TimingService_LaunchThatEndsEarly_HasTheCtasThatCame") {
  Fixture f;
  const auto program = f.Join(1);
  const std::uint64_t work = program->Launch(std::uint64_t{1} << 28);
  program->SayCtas(work, 0, 100, 100);
  program->EndLaunch(work);
  REQUIRE(program->Ask(FrameKind::kWait, {work}));
  const auto last = program->Ask(FrameKind::kFinish);
  REQUIRE(last);
  REQUIRE(last->table.Kernels().size() == 1);
  CHECK(last->table.Kernels()[0].ctas == 100);
}

/// Simulated time of kernels one after the other, each of one CTA and about 0.3 ms, of a tenant with that cap.
double TimeUnderCap(double cap) {
  constexpr int kKernels = 20;
  Fixture f;
  const auto program = f.Join(1, "tenant", {.cap = cap});
  for (int i = 0; i < kKernels; ++i) program->Kernel(1, 100'000);
  const auto last = program->Ask(FrameKind::kFinish);
  REQUIRE(last);
  return last->ns;
}

TEST_CASE("TimingService_Cap_HoldsInSimulatedTime") {
  const double alone = TimeUnderCap(1);
  CHECK(alone > 4e6);
  for (const double cap : {0.25, 0.5}) {
    // A part of a millisecond is there at first, and what the last kernel owes nobody waits for.
    const double last = alone / 20, saved = 1e6 * cap;
    CHECK(TimeUnderCap(cap) == Approx((alone - last - saved) / cap + last).epsilon(0.05));
  }
}

TEST_CASE("TimingService_InFlight_HoldsInSimulatedTime") {
  double ends[2] = {};
  for (const std::uint32_t in_flight : {1u, 2u}) {
    Fixture f;
    const auto program = f.Join(1, "tenant", {.in_flight = in_flight});
    const std::uint64_t first = program->Kernel(1, 10'000);
    program->stream = 2;
    const std::uint64_t second = program->Kernel(1, 10'000);
    REQUIRE(program->Ask(FrameKind::kWait, {first, second}));
    ends[in_flight - 1] = program->Ask(FrameKind::kEnd, {second})->ns;
  }
  CHECK(ends[0] > 1.6 * ends[1]);
}

TEST_CASE("TimingService_WhatMakesNoSense_EndsThatChannelAlone") {
  const std::pair<const char*, std::function<void(Program&)>> lies[] = {
      {"a work out of order", [](Program& p) { ++p.works, p.Launch(1); }},
      {"a kernel that was not said", [](Program& p) { p.Launch(1, 7); }},
      {"no CTAs", [](Program& p) { p.Launch(0); }},
      {"too many CTAs", [](Program& p) { p.Launch(std::uint64_t{1} << 40); }},
      {"a CTA that the launch does not have", [](Program& p) { p.SayCtas(p.Launch(4), 3, 2, 1); }},
      {"a CTA twice", [](Program& p) { p.Launch(4), p.SayCtas(1, 0, 1, 1), p.SayCtas(1, 0, 1, 1); }},
      {"CTAs of an ended launch", [](Program& p) { p.Kernel(4, 1), p.SayCtas(1, 0, 1, 1); }},
      {"CTAs of no launch", [](Program& p) { p.SayCtas(9, 0, 1, 1); }},
      {"a question about a work to come", [](Program& p) { p.Ask(FrameKind::kWait, {5}); }},
      {"a question that is cut off",
       [](Program& p) {
         ByteWriter out;
         out.Varint(1);
         out.Varint(1000);
         p.Send(FrameKind::kWait, out);
       }},
      {"a work of a group that is not there",
       [](Program& p) {
         HostAction action = p.Action(HostAction::Kind::kMarker);
         action.group = 1;
         ByteWriter out;
         trace::PutAction(action, out);
         p.Send(FrameKind::kAction, out);
       }},
      {"a launch as another work",
       [](Program& p) {
         ByteWriter out;
         trace::PutAction(p.Action(HostAction::Kind::kLaunch), out);
         p.Send(FrameKind::kAction, out);
       }},
      {"a damaged code table",
       [](Program& p) {
         ByteWriter out;
         out.Text("code");
         out.Varint(1);
         out.Varint(1000);
         p.Send(FrameKind::kCode, out);
       }},
      {"damaged CTAs",
       [](Program& p) {
         ByteWriter out;
         out.Varint(p.Launch(4));
         out.Varint(1);
         out.Signed(0);
         for (int i = 0; i < 50; ++i) out.Fixed(std::uint8_t{0xEE});
         p.Send(FrameKind::kCtas, out);
       }},
      {"a frame of no kind", [](Program& p) { p.Send(static_cast<FrameKind>(99), {}); }},
      {"an answer", [](Program& p) { p.Send(FrameKind::kAnswer, {}); }},
  };
  Fixture f;
  const auto good = f.Join(1000);
  std::uint64_t session = 0;
  for (const auto& [name, lie] : lies) {
    INFO(name);
    auto liar = f.Join(++session);
    lie(*liar);
    CHECK_FALSE(f.ViolationOf(session).empty());
    CHECK_FALSE(liar->Ask(FrameKind::kWait).has_value());
    f.service->Leave(session);
  }
  const auto waited = good->Ask(FrameKind::kWait, {good->Kernel(10, 100)});
  REQUIRE(waited);
  CHECK(waited->answer == FrameAnswer::kYes);
  CHECK(f.violation_count() == std::size(lies));
}

/// What a tenant may have in the cases below, so that little is enough to have too much.
TimingService::Options Tight() {
  return {.policy = "leftover", .patience_ms = 300, .tenant = {.bytes = 64 << 20, .disk_bytes = 1 << 20}, .launch_seconds = 0.001};
}

struct Attack {
  const char* name;
  const char* why;  ///< is part of what the operator is told
  std::function<void(Program&)> attack;
};

const Attack kAttacks[] = {
    {"a CTA that unpacks to a gigabyte", "takes more than", [](Program& p) { p.SayLoop(p.Launch(4), 0, std::uint64_t{1} << 27); }},
    {"many that unpack to megabytes, all of which run", "takes more than",
     [](Program& p) {
       p.Launch(1000);
       for (std::uint64_t cta = 0; cta < 200; ++cta) p.SayLoop(1, cta, 1 << 20);
       p.EndLaunch(1);
     }},
    {"kernels of many megabytes", "a kernel needs more memory",
     [](Program& p) {
       p.code.instructions.resize(200'000, p.code.instructions[0]);
       for (int i = 0; i < 40; ++i) p.SayCode();
     }},
    {"a frame that is too large for the tenant", "for which there is no memory",
     [](Program& p) {
       ByteWriter out;
       out.Grow(protocol::kMaxFrameBytes);
       p.Send(FrameKind::kCtas, out);
     }},
    {"more questions at a time than anybody has threads", "too many questions",
     [](Program& p) {
       p.Launch(4);
       for (std::uint64_t question = 1; question <= 1000; ++question) {
         ByteWriter out;
         for (const std::uint64_t value : {question, std::uint64_t{1}, std::uint64_t{1}}) out.Varint(value);
         if (!p.Send(FrameKind::kWait, out)) break;
       }
     }},
    {"a question about a million works", "too many works at a time",
     [](Program& p) {
       ByteWriter out;
       p.Launch(4);
       out.Varint(1);
       out.Varint(1'000'000);
       for (int i = 0; i < 1'000'000; ++i) out.Varint(1);
       p.Send(FrameKind::kWait, out);
     }},
    {"a work that waits for a million others", "waits for 1000000 others",
     [](Program& p) {
       p.Launch(4);
       HostAction action = p.Action(HostAction::Kind::kMarker);
       action.after.assign(1'000'000, 1);
       ByteWriter out;
       trace::PutAction(action, out);
       p.Send(FrameKind::kAction, out);
     }},
    {"works without end behind one that does not end", "a work behind",
     [](Program& p) {
       p.Launch(4);
       for (int i = 0; i < 100'000; ++i) {
         ByteWriter out;
         trace::PutAction(p.Action(HostAction::Kind::kMarker), out);
         if (!p.Send(FrameKind::kAction, out)) break;
       }
     }},
    {"works that all wait for all before them", "a work behind",
     [](Program& p) {
       p.Launch(4);
       for (int i = 0; i < 1000; ++i) {
         HostAction action = p.Action(HostAction::Kind::kMarker);
         action.after.assign(60'000, 1);
         ByteWriter out;
         trace::PutAction(action, out);
         if (!p.Send(FrameKind::kAction, out)) break;
       }
     }},
    {"a copy of more than the device has", "a copy of",
     [](Program& p) {
       HostAction action = p.Action(HostAction::Kind::kCopyToDevice);
       action.bytes = std::uint64_t{1} << 49;
       ByteWriter out;
       trace::PutAction(action, out);
       p.Send(FrameKind::kAction, out);
     }},
    {"CTAs here and there in grids of many millions", "a CTA that waits needs more memory",
     [](Program& p) {
       for (const std::uint64_t work : {1, 2, 3}) {
         p.Launch(std::uint64_t{1} << 28);
         for (std::uint64_t cta = 1; cta < 40'000; ++cta) p.SayLoop(work, cta * 5000, 2);
       }
     }},
    {"a kernel that does not end", "ran for more than",
     [](Program& p) {
       p.SayLoop(p.Launch(1), 0, 3 << 20);
       p.EndLaunch(1);
     }},
    {"traces that fill the disk", "bytes of disk",
     [](Program& p) {
       p.Launch(100'000);
       for (std::uint64_t cta = 1; cta < 100'000; ++cta) {  // the model waits for the first
         ByteWriter out;
         trace::CtaEncoder encoder(p.code);
         out.Varint(1);
         out.Varint(1);
         out.Signed(static_cast<std::int64_t>(cta));
         timing::CtaBuilder builder;
         builder.Warp();
         std::uint32_t mask = static_cast<std::uint32_t>(cta * 2654435761u) | 1;
         for (int v = 0; v < 400; ++v) builder.Visit(0, mask = (mask * 1664525 + 1013904223) | 1);
         encoder.Encode({builder.Finish(), {}}, out);
         if (!p.Send(FrameKind::kCtas, out)) return;
       }
       p.SayCtas(1, 0, 1, 1);
     }},
};

std::size_t Threads() { return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {})); }

TEST_CASE("TimingService_Attacks_EndWithTheirSession_AndGiveBackAllMemory") {
  Fixture f(Tight());
  const auto good = f.Join(1000);
  const std::size_t threads = Threads();
  std::uint64_t session = 0;
  for (const Attack& attack : kAttacks) {
    INFO(attack.name);
    auto hostile = f.Join(++session);
    attack.attack(*hostile);
    const std::string why = f.ViolationOf(session);
    INFO(why);
    CHECK(why.find(attack.why) != std::string::npos);
    // What is there of it has bounds, also while it is still there.
    CHECK(f.service->bytes(static_cast<std::uint32_t>(session)) <= Tight().tenant.bytes);
    f.service->Leave(session);
    const auto waited = good->Ask(FrameKind::kWait, {good->Kernel(10, 100)});
    REQUIRE(waited);
    CHECK(waited->answer == FrameAnswer::kYes);
    hostile.reset();
    for (int i = 0; i < 12000 && f.service->bytes(static_cast<std::uint32_t>(session)) != 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    CHECK(f.service->bytes(static_cast<std::uint32_t>(session)) == 0);
  }
  CHECK(f.service->problem().empty());
  // Of those who are gone nothing is left once the device has been simulated so far.
  for (int i = 0; i < 12000 && f.service->kept().hosts != 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(f.service->kept().hosts == 1);
  for (int i = 0; i < 12000 && Threads() != threads; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(Threads() == threads);
}

TEST_CASE("TimingService_WorksThatHaveEnded_ArePaidBackToTheirTenant") {
  Fixture f({.policy = "leftover"});
  const auto program = f.Join(1);
  for (int batch = 0; batch < 20; ++batch) {
    for (int i = 1; i < 100; ++i) program->Kernel(1, 1);
    REQUIRE(program->Ask(FrameKind::kWait, {program->Kernel(1, 1)}));
  }
  CHECK(f.service->bytes(1) < 1 << 20);  // of 2,000 works, each of which takes 2 KiB until it has ended
}

TEST_CASE("TimingService_KernelWhoseInstructionsTheDeviceLacks_TakesNoTime") {
  Fixture f({.policy = "leftover", .patience_ms = 200}, "fermi-8");
  const auto good = f.Join(1), other = f.Join(2);
  timing::CodeBuilder code("tensor");
  code.Block();
  code.Op(trace::OpClass::kTensor, {1}, {1});
  other->code = code.code();
  other->SayCode();
  const std::uint64_t kernel = other->Launch(1, 1);
  other->EndLaunch(kernel);
  REQUIRE(other->Ask(FrameKind::kWait, {kernel}));
  REQUIRE(good->Ask(FrameKind::kWait, {good->Kernel(10, 100)}));
  CHECK(f.service->problem().empty());
}

TEST_CASE("TimingService_QuestionsThatWait_TakeNoThreads_AndAreAllAnswered") {
  constexpr std::uint64_t kQuestions = 200;
  Fixture f;
  const auto program = f.Join(1);
  const std::uint64_t kernel = program->Launch(1);
  const std::size_t threads = Threads();
  for (std::uint64_t question = 1; question <= kQuestions; ++question) {
    ByteWriter out;
    for (const std::uint64_t value : {question, std::uint64_t{1}, kernel}) out.Varint(value);
    REQUIRE(program->Send(FrameKind::kWait, out));
  }
  program->questions = kQuestions;
  CHECK(program->Ask(FrameKind::kEnd, {kernel})->answer == FrameAnswer::kUnknown);
  CHECK(Threads() == threads);
  program->SayCtas(kernel, 0, 1, 10);
  program->EndLaunch(kernel);
  std::set<std::uint64_t> answered;
  while (answered.size() < kQuestions) {
    const auto frame = protocol::ReceiveFrame(program->socket.get());
    REQUIRE((frame.ok() && *frame));
    trace::ByteReader in((*frame)->bytes);
    answered.insert(in.Varint());
    CHECK(in.Fixed<FrameAnswer>() == FrameAnswer::kYes);
  }
  CHECK(*answered.rbegin() == kQuestions);
}

TEST_CASE("TimingService_TenantThatDoesNotTakeItsAnswers_IsNotListenedTo_AndHoldsNobodyBack") {
  Fixture f({.policy = "leftover", .patience_ms = 200});
  const auto good = f.Join(1), deaf = f.Join(2);
  const std::uint64_t kernel = deaf->Kernel(1, 1);
  const timeval patience{0, 200'000};
  setsockopt(deaf->socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  std::uint64_t asked = 0;
  for (; asked < 1'000'000; ++asked) {
    ByteWriter out;
    for (const std::uint64_t value : {asked + 1, kernel}) out.Varint(value);
    if (!deaf->Send(FrameKind::kEnd, out)) break;
  }
  CHECK(asked < 1'000'000);
  REQUIRE(good->Ask(FrameKind::kWait, {good->Kernel(10, 100)}));
  CHECK(f.service->bytes(2) < 1 << 20);
}

TEST_CASE("TimingService_CtasThatNeverCome_AreAViolationWhenNothingRuns") {
  Fixture f;
  const auto silent = f.Join(1);
  silent->Launch(4);
  const auto begin = std::chrono::steady_clock::now();
  while (f.violation_count() == 0 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)) {
    f.service->Watch(1, std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(300), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(f.violation_count() == 1);
  CHECK(std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(1200));  // not while a launch of it ran
}

TEST_CASE("TimingService_PolicyChangedLive_ActsOnWhatComesThen") {
  Fixture f({.policy = "serial"});
  CHECK_FALSE(f.service->SetPolicy("no such policy").ok());
  CHECK(f.service->SetPolicy("leftover").ok());
  const auto program = f.Join(1);
  REQUIRE(program->Ask(FrameKind::kWait, {program->Kernel(4, 100)}));
}

TEST_CASE("TimingService_PolicyThatNeedsProfiles_GetsThemFromTheLaunchesThatComeThen") {
  Fixture f({.policy = "leftover"});
  const auto program = f.Join(1);
  REQUIRE(program->Ask(FrameKind::kWait, {program->Kernel(4, 100)}));
  CHECK(f.service->profiling().kernels == 0);
  CHECK(f.service->SetPolicy("kernelet").ok());
  REQUIRE(program->Ask(FrameKind::kWait, {program->Kernel(4, 100)}));
  REQUIRE(program->Ask(FrameKind::kWait, {program->Kernel(4, 100)}));
  CHECK(f.service->profiling().kernels == 1);
  CHECK(f.service->profiling().warp_instructions > 400);
}

TEST_CASE("Frames_LargerThanAllowed_AreAnError") {
  auto ends = protocol::MakeChannel();
  REQUIRE(ends.ok());
  const std::uint32_t header[] = {static_cast<std::uint32_t>(FrameKind::kCode), 0xffffffffu};
  REQUIRE(write(ends->first.get(), header, sizeof header) == sizeof header);
  CHECK_FALSE(protocol::ReceiveFrame(ends->second.get()).ok());
}

}  // namespace
}  // namespace gridloom::tenants
