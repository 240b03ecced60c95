// Sessions that want more of the broker's timing model than is theirs: memory, disk, threads, time.
#include <sys/socket.h>
#include <sys/time.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>
#include <thread>

#include "tests/sim/tenants/tenant_fixture.h"

namespace gridloom::tenants {
namespace {

/// What a tenant may have in the cases below, so that little is enough to have too much.
TimingService::Options Tight() {
  return {.policy = "leftover",
          .patience_ms = 300,
          .tenant = {.bytes = 64 << 20, .disk_bytes = 1 << 20},
          .launch_seconds = 0.001};
}

struct Attack {
  const char* name;
  const char* why;  ///< is part of what the operator is told
  std::function<void(Program&)> attack;
};

/// A kernel of one load, and one CTA of it that reads there; the CTA's addresses are shifted.
void SayLoad(Program& p, std::uint64_t base, std::int32_t stride, std::uint64_t shift, unsigned flags = 0) {
  timing::CodeBuilder code("loads");
  code.Block();
  code.Load(trace::Space::kGlobal, 1, 4, flags);
  p.code = code.code();
  p.SayCode();
  const std::uint64_t work = p.Launch(1, 1);
  timing::CtaBuilder cta;
  cta.Warp();
  cta.Visit(0);
  cta.Access(base, stride);
  trace::LoadedCta loaded{cta.Finish(), {}};
  *loaded.shifts.Renew(1) = shift;
  ByteWriter out;
  for (const std::uint64_t value : {work, std::uint64_t{1}, std::uint64_t{0}}) out.Varint(value);
  trace::CtaEncoder(p.code).Encode(loaded, out);
  p.Send(FrameKind::kCtas, out);
  p.EndLaunch(work);
}

/// One CTA that goes round a loop 2^31 times, which alone on the device takes the host little.
void SayLongLoop(Program& p) {
  const std::uint64_t work = p.Launch(1);
  trace::CtaTrace cta = *AddsCta(1).trace;
  cta.repeats.push_back(
      {.warp = 0, .visit = 0, .visit_count = 1, .access = 0, .access_count = 0, .more = std::uint64_t{1} << 31});
  ByteWriter out;
  for (const std::uint64_t value : {work, std::uint64_t{1}, std::uint64_t{0}}) out.Varint(value);
  trace::CtaEncoder(p.code).Encode({std::make_shared<const trace::CtaTrace>(std::move(cta)), {}}, out);
  p.Send(FrameKind::kCtas, out);
  p.EndLaunch(work);
}

const Attack kAttacks[] = {
    {"an access far beyond all memory", "where there is no memory",
     [](Program& p) { SayLoad(p, std::uint64_t{1} << 58, 4, 0); }},
    {"one that only L2 would have no room for", "where there is no memory",
     [](Program& p) { SayLoad(p, std::uint64_t{1} << 49, 4, 0); }},
    {"one that a shift moves out of memory", "where there is no memory",
     [](Program& p) { SayLoad(p, 4096, 4, std::uint64_t{1} << 60); }},
    {"lanes that go round the end of all addresses", "where there is no memory",
     [](Program& p) { SayLoad(p, 64, -4, 0); }},
    {"a generic access beyond the window of local memory", "where there is no memory",
     [](Program& p) {
       SayLoad(p, trace::MemoryAccess::kLocalWindow + (std::uint64_t{1} << 50), 4, 0, trace::kGeneric);
     }},
    {"a CTA that unpacks to a gigabyte", "takes more than",
     [](Program& p) { p.SayLoop(p.Launch(4), 0, std::uint64_t{1} << 27); }},
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
    {"a kernel that goes round a loop for ever, in few bytes", "ran for more than", SayLongLoop},
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

std::size_t Threads() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

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
  for (int i = 0; i < 12000 && f.service->kept().hosts != 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(f.service->kept().hosts == 1);
  for (int i = 0; i < 12000 && Threads() != threads; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(Threads() == threads);
}

/// Kernels of one program after the other, each with code of its own that lies where that of an earlier one has lain.
TEST_CASE("TimingService_ProgramsOneAfterTheOther_RunTheirOwnCode_WhateverPartKeepsTasks") {
  for (const char* part : {"pagoda", "gemtc"}) {
    INFO(part);
    Fixture f({.policy = "leftover"}, "titanx-maxwell", part);
    for (std::uint64_t session = 1; session <= 24; ++session) {
      const auto program = f.Join(session);
      timing::CodeBuilder code("of session " + std::to_string(session));
      for (std::uint64_t block = 0; block < 1 + session * 37 % 11; ++block) {
        code.Block();
        for (std::uint64_t op = 0; op < 1 + (session + block) % 3; ++op) code.Op(trace::OpClass::kInt, {1}, {1});
      }
      program->code = code.code();
      program->SayCode();
      const std::uint64_t work = program->Launch(2, 1);
      ByteWriter out;
      for (const std::uint64_t value : {work, std::uint64_t{2}, std::uint64_t{0}, std::uint64_t{2}}) out.Varint(value);
      trace::CtaEncoder encoder(program->code);
      timing::CtaBuilder cta;
      cta.Warp();
      for (std::uint32_t block = 0; block < program->code.blocks.size(); ++block) cta.Visit(block);
      const trace::LoadedCta loaded{cta.Finish(), {}};
      for (int i = 0; i < 2; ++i) encoder.Encode(loaded, out);
      program->Send(FrameKind::kCtas, out);
      program->EndLaunch(work);
      const auto finished = program->Ask(FrameKind::kFinish);
      REQUIRE(finished);
      REQUIRE(finished->answer == FrameAnswer::kYes);
      REQUIRE(finished->table.Kernels().size() == 1);
      CHECK(finished->table.Kernels()[0].warp_instructions == 2 * program->code.instructions.size());
      f.service->Leave(session);
      for (int i = 0; i < 12000 && f.service->kept().hosts != 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(f.service->problem().empty());
  }
}

TEST_CASE("TimingService_PartsThatFollowAllThatProgramsTouch_AreRefusedByName") {
  for (const std::string part : {"crcs", "hazards"}) {
    auto device = sim::LoadDevice("fermi-8");
    REQUIRE(device.ok());
    REQUIRE(sim::ApplyDeviceText("proposed: " + part, "test", *device).ok());
    const auto made = TimingService::Create(*device, {.policy = "leftover"});
    REQUIRE(!made.ok());
    CHECK(made.error().message.find("the part " + part) == 0);
  }
}

/// A kernel of few threads that takes all that an SM has of something leaves nothing for a kernel that would run it as
/// a task.
TEST_CASE("TimingService_SmallKernelsThatTakeAllSharedMemory_EndNobody_WhateverPartKeepsTasks") {
  for (const char* part : {"pagoda", "gemtc"}) {
    INFO(part);
    Fixture f({.policy = "leftover"}, "titanx-maxwell", part);
    const auto device = sim::LoadDevice("titanx-maxwell");
    REQUIRE(device.ok());
    const auto good = f.Join(2);
    const auto program = f.Join(1);
    for (const std::uint32_t less : {0u, 16u, 256u, 4096u}) {
      const std::uint64_t work =
          program->Launch(1, 0, device->sm.shared_bytes - device->block.shared_reserved_bytes - less);
      program->SayCtas(work, 0, 1, 10);
      program->EndLaunch(work);
      const auto waited = program->Ask(FrameKind::kWait, {work});
      REQUIRE(waited);
      CHECK(waited->answer == FrameAnswer::kYes);
    }
    CHECK(f.service->problem().empty());
    const auto waited = good->Ask(FrameKind::kWait, {good->Kernel(1, 1)});
    REQUIRE(waited);
    CHECK(waited->answer == FrameAnswer::kYes);
  }
}

/// A pointer into shared memory, as cluster kernels have them, under policies that profile what they schedule.
TEST_CASE("TimingService_GenericAccessesOfSharedMemory_AreProfiled") {
  Fixture f({.policy = "kernelet"}, "fermi-8");
  const auto program = f.Join(1);
  SayLoad(*program, trace::MemoryAccess::kSharedWindow + 64, 4, 0, trace::kGeneric);
  const auto waited = program->Ask(FrameKind::kWait, {1});
  REQUIRE(waited);
  CHECK(waited->answer == FrameAnswer::kYes);
  CHECK(f.service->profiling().kernels == 1);
  CHECK(f.service->problem().empty());
  CHECK(f.violation_count() == 0);
}

/// What a launch may run is some seconds of simulated time: long, for who simulates it.
TEST_CASE("TimingService_WhileALoopOfATenantIsSimulated_OthersGoOn_AndItsEndEndsIt") {
  for (const char* part : {"none", "pagoda", "gemtc"}) {
    INFO(part);
    Fixture f({.policy = "leftover", .patience_ms = 100}, "titanx-maxwell", part);
    const auto good = f.Join(1000);
    auto hostile = f.Join(1);
    SayLongLoop(*hostile);
    const auto answered = [&](std::uint64_t work) {
      const auto waited = good->Ask(FrameKind::kWait, {work});
      return waited && waited->answer == FrameAnswer::kYes;
    };
    const auto go_on = [&](double seconds) {
      for (int i = 0; i < 4000 && f.service->now_seconds() < seconds; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      REQUIRE(f.service->now_seconds() >= seconds);
    };
    if (part == std::string("none")) {
      for (int i = 0; i < 20; ++i) REQUIRE(answered(good->Kernel(40, 100)));
    }
    go_on(1e-4);
    CHECK(f.violation_count() == 0);
    CHECK(f.service->bytes(1) != 0);
    // One more, which software that keeps tasks has taken when its session ends, but may not have begun.
    hostile->stream = 2;
    SayLongLoop(*hostile);
    go_on(f.service->now_seconds() + 1e-4);
    f.service->Leave(1);
    hostile.reset();
    REQUIRE(answered(good->Kernel(1, 100)));
    for (int i = 0; i < 2000 && f.service->kept().hosts != 1; ++i) REQUIRE(answered(good->Kernel(40, 100)));
    CHECK(f.service->kept().hosts == 1);
    for (int i = 0; i < 2000 && f.service->bytes(1) != 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(f.service->bytes(1) == 0);
    CHECK(f.service->problem().empty());
  }
}

TEST_CASE("TimingService_LaunchOfATenantWithLittleOfTheDevice_MayRunAsMuchLonger") {
  const sched::TenantLimits much{}, little{.cap = 0.01}, late{.priority = -1};
  for (const sched::TenantLimits& limits : {much, little, late}) {
    INFO(limits.cap << " " << limits.priority);
    Fixture f(Tight());
    const auto other = f.Join(2, "other");
    const auto program = f.Join(1, "tenant", limits);
    program->SayLoop(program->Launch(1), 0, 3 << 20);
    program->EndLaunch(1);
    const auto waited = program->Ask(FrameKind::kWait, {1});
    CHECK(waited.has_value());
    CHECK(f.violation_count() == (limits == much ? 1 : 0));
  }
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

/// When a program's tenth kernel has ended that it waits for one by one, beside another one with a kernel in each of so
/// many streams.
double EndBeside(std::uint64_t streams) {
  Fixture f({.policy = "fair", .wait_for = 2});
  const auto own = f.Join(1, "own"), other = f.Join(2, "other");
  for (std::uint64_t i = 0; i < streams; ++i) {
    other->stream = 1 + i;
    other->Kernel(1, 2000);
  }
  std::optional<Program::Answer> all;
  std::thread waits([&] { all = other->Ask(FrameKind::kFinish); });
  std::optional<Program::Answer> last;
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t kernel = own->Kernel(1, 100);
    REQUIRE(own->Ask(FrameKind::kWait, {kernel}));
    last = own->Ask(FrameKind::kEnd, {kernel});
  }
  REQUIRE(own->Ask(FrameKind::kFinish));
  waits.join();
  REQUIRE((all && last));
  return last->ns;
}

TEST_CASE("TimingService_TenantWithKernelsInThousandsOfStreams_LeavesOthersTheirPlaces") {
  const double alone = EndBeside(1), beside = EndBeside(6000);
  INFO(alone << " ns and " << beside << " ns");
  CHECK(beside < 3 * alone);
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

}  // namespace
}  // namespace gridloom::tenants
