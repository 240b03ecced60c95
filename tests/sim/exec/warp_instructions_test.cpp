// Instructions between lanes, atomics, asynchronous copies and mbarriers, through the whole executor against host
// references.
#include <bit>
#include <catch2/catch.hpp>
#include <functional>
#include <random>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

constexpr std::uint32_t kThreads = 96;

struct Lane {
  std::uint32_t a, b;
};

// Kernel skeleton: %r1 and %r2 are the thread's inputs, %r3 and %r4 its outputs, %r5 its index, %r6 its lane.
std::string Kernel(const std::string& body) {
  return ".version 9.5\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
         "  .reg .b32 %r<20>; .reg .b64 %rd<10>; .reg .pred %p<8>; .reg .f32 %f<4>; .reg .b16 %h<2>;\n"
         "  ld.param.u64 %rd1, [in];\n  ld.param.u64 %rd2, [out];\n  mov.u32 %r5, %tid.x;\n  mov.u32 %r6, %laneid;\n"
         "  mul.wide.u32 %rd3, %r5, 8;\n  add.u64 %rd1, %rd1, %rd3;\n  add.u64 %rd2, %rd2, %rd3;\n"
         "  ld.global.v2.u32 {%r1, %r2}, [%rd1];\n  mov.u32 %r3, 0;\n  mov.u32 %r4, 0;\n" +
         body + "\n  st.global.v2.u32 [%rd2], {%r3, %r4};\n  ret;\n}\n";
}

std::vector<Lane> Run(const std::string& body, const std::vector<Lane>& in) {
  test::Executor executor;
  std::vector<Lane> out(in.size(), Lane{0xdead, 0xdead});
  const std::uint64_t in_device = executor.Upload(in), out_device = executor.Upload(out);
  const LaunchFault fault = executor.Launch(Kernel(body), "k", {1, 1, 1}, {static_cast<std::uint32_t>(in.size()), 1, 1},
                                            test::ParamBlock().Add(in_device).Add(out_device));
  INFO(body << '\n' << fault.text);
  REQUIRE(fault.kind == FaultKind::kNone);
  executor.Download(out_device, out);
  return out;
}

std::vector<Lane> RandomLanes(std::uint32_t limit_a, std::uint32_t limit_b, std::uint32_t count = kThreads) {
  std::mt19937 random(7);
  std::vector<Lane> lanes(count);
  for (Lane& lane : lanes)
    lane = {limit_a == 0 ? static_cast<std::uint32_t>(random()) : static_cast<std::uint32_t>(random() % limit_a),
            limit_b == 0 ? static_cast<std::uint32_t>(random()) : static_cast<std::uint32_t>(random() % limit_b)};
  return lanes;
}

// Checks every thread against a function of its warp's inputs and its lane.
void Check(const std::string& body, const std::vector<Lane>& in,
           const std::function<Lane(const Lane* warp, std::uint32_t lanes, std::uint32_t lane)>& expected) {
  const std::vector<Lane> out = Run(body, in);
  for (std::uint32_t i = 0; i < in.size(); ++i) {
    const std::uint32_t first = i / 32 * 32,
                        lanes = std::min<std::uint32_t>(32, static_cast<std::uint32_t>(in.size()) - first);
    const Lane wanted = expected(&in[first], lanes, i - first);
    INFO(body << " thread " << i);
    CHECK(out[i].a == wanted.a);
    CHECK(out[i].b == wanted.b);
  }
}

}  // namespace

TEST_CASE("Shfl_AllModesAndSegments_FollowTheManual") {
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    for (const std::uint32_t c : {0x1fu, 0u, 0x1018u, 0x181fu, 0x1c07u}) {
      const std::string body = "  and.b32 %r2, %r2, 31;\n  shfl.sync." + mode + ".b32 %r3|%p1, %r1, %r2, " +
                               std::to_string(c) + ", -1;\n  selp.u32 %r4, 1, 0, %p1;";
      Check(body, RandomLanes(0, 40), [&](const Lane* warp, std::uint32_t, std::uint32_t lane) {
        const int b = static_cast<int>(warp[lane].b & 31), segment = static_cast<int>(c >> 8 & 31),
                  clamp = static_cast<int>(c & 31);
        const int me = static_cast<int>(lane), low = me & segment, high = low | (clamp & ~segment & 31);
        int j = 0;
        bool valid = false;
        if (mode == "up") j = me - b, valid = j >= high;
        if (mode == "down") j = me + b, valid = j <= high;
        if (mode == "bfly") j = me ^ b, valid = j <= high;
        if (mode == "idx") j = low | (b & ~segment & 31), valid = j <= high;
        if (!valid) j = me;
        return Lane{warp[j].a, valid};
      });
    }
  }
}

TEST_CASE("Shfl_ConstantDistance_FollowsTheManual") {
  Check("  shfl.sync.bfly.b32 %r3, %r1, 5, 0x1f, -1;\n  shfl.sync.down.b32 %r4, %r1, 3, 0x1f, -1;", RandomLanes(0, 0),
        [](const Lane* warp, std::uint32_t, std::uint32_t lane) {
          return Lane{warp[lane ^ 5].a, warp[lane + 3 < 32 ? lane + 3 : lane].a};
        });
}

TEST_CASE("Shfl_FromALaneThatDoesNotTakePart_GivesZero") {
  // %laneid < 5 take part; a value of the lane and one that is the same everywhere.
  Check(
      "  mov.u32 %r3, %laneid;\n  setp.ge.u32 %p1, %r3, 5;\n  mov.u32 %r3, 0;\n  mov.u32 %r4, 0;\n  @%p1 bra Done;\n"
      "  shfl.sync.down.b32 %r3, %r1, 3, 0x1f, 0x1f;\n  mov.u32 %r4, 7;\n  shfl.sync.bfly.b32 %r4, %r4, 4, 0x1f, "
      "0x1f;\nDone:",
      RandomLanes(0, 0), [](const Lane* warp, std::uint32_t lanes, std::uint32_t lane) {
        if (lane >= 5) return Lane{0, 0};
        const std::uint32_t there = std::min<std::uint32_t>(lanes, 5);
        return Lane{lane + 3 < there ? warp[lane + 3].a : 0, (lane ^ 4) < there ? 7u : 0u};
      });
}

TEST_CASE("Vote_AllForms_FollowTheManual") {
  struct Form {
    std::string text;
    std::function<std::uint32_t(std::uint32_t holds, std::uint32_t members)> result;
  };
  const Form forms[] = {
      {"all", [](std::uint32_t h, std::uint32_t m) -> std::uint32_t { return (h & m) == m; }},
      {"any", [](std::uint32_t h, std::uint32_t m) -> std::uint32_t { return (h & m) != 0; }},
      {"uni", [](std::uint32_t h, std::uint32_t m) -> std::uint32_t { return (h & m) == m || (h & m) == 0; }}};
  for (const std::uint32_t limit : {1u, 2u, 100u}) {
    for (const Form& form : forms) {
      Check("  setp.ne.u32 %p1, %r1, 0;\n  vote.sync." + form.text +
                ".pred %p2, %p1, -1;\n  selp.u32 %r3, 1, 0, %p2;\n  vote.sync.ballot.b32 %r4, !%p1, -1;",
            RandomLanes(limit, 0), [&](const Lane* warp, std::uint32_t lanes, std::uint32_t) {
              std::uint32_t holds = 0;
              for (std::uint32_t i = 0; i < lanes; ++i) holds |= static_cast<std::uint32_t>(warp[i].a != 0) << i;
              return Lane{form.result(holds, ~0u), ~holds};
            });
    }
  }
}

TEST_CASE("Vote_InDivergentCode_CountsActiveMembers") {
  const std::string body = R"(
  and.b32 %r7, %r6, 3;
  setp.eq.u32 %p1, %r7, 0;
  @%p1 bra QUARTER;
  setp.ne.u32 %p2, %r1, 0;
  vote.sync.ballot.b32 %r3, %p2, 0xeeeeeeee;
  activemask.b32 %r4;
  bra DONE;
QUARTER:
  setp.ne.u32 %p2, %r1, 0;
  vote.sync.ballot.b32 %r3, %p2, 0x11111111;
  activemask.b32 %r4;
DONE:)";
  Check(body, RandomLanes(2, 0), [](const Lane* warp, std::uint32_t lanes, std::uint32_t lane) {
    std::uint32_t holds = 0;
    for (std::uint32_t i = 0; i < lanes; ++i) holds |= static_cast<std::uint32_t>(warp[i].a != 0) << i;
    const std::uint32_t side = lane % 4 == 0 ? 0x11111111 : 0xeeeeeeee;
    return Lane{holds & side, side};
  });
}

TEST_CASE("Match_AnyAndAll_FindEqualValues") {
  for (const std::uint32_t limit : {1u, 4u, 20u}) {
    Check("  match.any.sync.b32 %r3, %r1, -1;\n  match.all.sync.b32 %r4|%p1, %r1, -1;\n  @!%p1 add.u32 %r4, %r4, 7;",
          RandomLanes(limit, 0), [](const Lane* warp, std::uint32_t lanes, std::uint32_t lane) {
            std::uint32_t same = 0;
            for (std::uint32_t i = 0; i < lanes; ++i)
              same |= static_cast<std::uint32_t>(warp[i].a == warp[lane].a) << i;
            return Lane{same, same == ~0u ? ~0u : 7u};
          });
  }
  Check("  mov.b64 %rd4, {%r1, %r2};\n  match.any.sync.b64 %r3, %rd4, -1;", RandomLanes(2, 3),
        [](const Lane* warp, std::uint32_t lanes, std::uint32_t lane) {
          std::uint32_t same = 0;
          for (std::uint32_t i = 0; i < lanes; ++i)
            same |= static_cast<std::uint32_t>(warp[i].a == warp[lane].a && warp[i].b == warp[lane].b) << i;
          return Lane{same, 0};
        });
}

TEST_CASE("Match_MembersThatDifferByLane_ComparesThemAlone") {
  // The quarters of the warp, even and odd lanes apart in the second; from all different to all alike.
  const std::string body = R"(
  shr.u32 %r7, %r6, 3;
  shl.b32 %r7, %r7, 3;
  mov.u32 %r8, 0xff;
  shl.b32 %r7, %r8, %r7;
  mov.u32 %r8, 0x55555555;
  and.b32 %r9, %r6, 1;
  shl.b32 %r8, %r8, %r9;
  and.b32 %r8, %r8, 0xff00;
  setp.eq.u32 %p2, %r7, 0xff00;
  selp.b32 %r7, %r8, %r7, %p2;
  match.any.sync.b32 %r3, %r1, %r7;
  match.all.sync.b32 %r4|%p1, %r1, %r7;
  @!%p1 add.u32 %r4, %r4, 7;)";
  for (const std::uint32_t limit : {0u, 1u, 2u, 40u}) {
    Check(body, RandomLanes(limit, 0), [](const Lane* warp, std::uint32_t lanes, std::uint32_t lane) {
      std::uint32_t members = 0xffu << lane / 8 * 8, same = 0;
      if (lane / 8 == 1) members = 0x55555555u << lane % 2 & 0xff00;
      if (lanes < 32) members &= (1u << lanes) - 1;
      for (std::uint32_t i = 0; i < lanes; ++i)
        same |= static_cast<std::uint32_t>((members >> i & 1) != 0 && warp[i].a == warp[lane].a) << i;
      return Lane{same, same == members ? members : 7u};
    });
  }
}

TEST_CASE("Redux_AllOperations_Combine") {
  using S = std::int32_t;
  struct Form {
    std::string text;
    std::uint32_t (*combine)(std::uint32_t, std::uint32_t);
  };
  const Form forms[] = {{"add.u32", [](auto a, auto b) { return a + b; }},
                        {"min.u32", [](auto a, auto b) { return std::min(a, b); }},
                        {"max.u32", [](auto a, auto b) { return std::max(a, b); }},
                        {"min.s32", [](auto a, auto b) { return static_cast<S>(a) < static_cast<S>(b) ? a : b; }},
                        {"max.s32", [](auto a, auto b) { return static_cast<S>(a) > static_cast<S>(b) ? a : b; }},
                        {"and.b32", [](auto a, auto b) { return a & b; }},
                        {"or.b32", [](auto a, auto b) { return a | b; }},
                        {"xor.b32", [](auto a, auto b) { return a ^ b; }}};
  for (const Form& form : forms) {
    // The lower and the upper half of the warp reduce apart.
    Check("  setp.lt.u32 %p1, %r6, 16;\n  selp.b32 %r7, 0x0000ffff, 0xffff0000, %p1;\n  redux.sync." + form.text +
              " %r3, %r1, %r7;",
          RandomLanes(0, 0), [&](const Lane* warp, std::uint32_t, std::uint32_t lane) {
            const std::uint32_t first = lane & 16;
            std::uint32_t total = warp[first].a;
            for (std::uint32_t i = first + 1; i < first + 16; ++i) total = form.combine(total, warp[i].a);
            return Lane{total, 0};
          });
  }
}

TEST_CASE("Elect_LowestMemberLeads") {
  Check("  elect.sync %r3|%p1, 0xffffffff;\n  selp.u32 %r4, 1, 0, %p1;", RandomLanes(0, 0),
        [](const Lane*, std::uint32_t, std::uint32_t lane) {
          return Lane{0, lane == 0};
        });
}

TEST_CASE("Atom_WideWithUnusedResult_LeavesTheOperandsAlone") {
  // The old values are nobody's: they must not land on what the lanes still to come exchange. Instructions whose
  // results are used come first, because the code generator lays buffers out by how often they are used.
  std::string matches;
  for (int i = 0; i < 6; ++i) matches += "  match.any.sync.b32 %r3, %r1, -1; add.u32 %r1, %r1, %r3;\n";
  const std::string body = "  .shared .align 16 .b8 cells[1536]; .reg .b128 %q<3>; .reg .b64 %w<5>;\n" + matches +
                           "  mov.u32 %r7, cells; shl.b32 %r8, %r5, 4; add.u32 %r7, %r7, %r8;\n"
                           "  st.shared.v2.u64 [%r7], {-1, -1};\n"
                           "  cvt.u64.u32 %w1, %r1; cvt.u64.u32 %w2, %r2; mov.b128 %q1, {%w1, %w2};\n"
                           "  atom.shared.exch.b128 %q2, [%r7], %q1;\n"
                           "  ld.shared.v2.u64 {%w3, %w4}, [%r7]; cvt.u32.u64 %r3, %w3; cvt.u32.u64 %r4, %w4;";
  const std::vector<Lane> in = RandomLanes(0, 0);  // all different: each lane matches itself only
  Check(body, in, [](const Lane* warp, std::uint32_t, std::uint32_t lane) {
    return Lane{warp[lane].a + 6 * (1u << lane), warp[lane].b};
  });
}

TEST_CASE("CpAsync_SourceSizes_FillWithZeros") {
  for (const std::uint32_t size : {4u, 8u, 16u}) {
    const std::string cache = size == 16 ? "cg" : "ca";
    const std::string body = R"(
  .shared .align 16 .b8 buffer[1600];
  mov.u32 %r7, buffer;
  mad.lo.u32 %r7, %r6, 16, %r7;
  st.shared.v4.u32 [%r7], {-1, -1, -1, -1};
  and.b32 %r8, %r2, 31;
  min.u32 %r8, %r8, )" + std::to_string(size) +
                             R"(;
  ld.param.u64 %rd4, [in];
  and.b32 %r9, %r5, 0xfffffffe;
  mul.wide.u32 %rd5, %r9, 8;
  add.u64 %rd4, %rd4, %rd5;
  cp.async.)" + cache + ".shared.global [%r7], [%rd4], " +
                             std::to_string(size) + R"(, %r8;
  cp.async.commit_group;
  cp.async.wait_group 0;
  ld.shared.u32 %r3, [%r7];
  ld.shared.u32 %r4, [%r7+)" +
                             std::to_string(size == 4 ? 4 : size - 4) + "];";
    std::vector<Lane> in = RandomLanes(0, 32, 32);
    Check(body, in, [&](const Lane* warp, std::uint32_t, std::uint32_t lane) {
      std::uint8_t bytes[16];
      std::memset(bytes, 0xff, sizeof bytes);
      std::memset(bytes, 0, size);
      std::memcpy(bytes, &warp[lane & ~1u], std::min(warp[lane].b & 31, size));
      Lane out;
      std::memcpy(&out.a, bytes, 4);
      std::memcpy(&out.b, bytes + (size == 4 ? 4 : size - 4), 4);
      return out;
    });
  }
}

// Producer and consumer warps hand a buffer over through two mbarriers, four rounds; the last warp's threads all
// arrive.
TEST_CASE("Mbarrier_ProducerConsumer_SeesEveryRound") {
  const std::string body = R"(
  .shared .align 8 .b64 full;
  .shared .align 8 .b64 empty;
  .shared .align 4 .b8 buffer[128];
  mov.u32 %r7, full;
  mov.u32 %r8, empty;
  setp.eq.u32 %p1, %r5, 0;
  @%p1 mbarrier.init.shared.b64 [%r7], 32;
  @%p1 mbarrier.init.shared.b64 [%r8], 64;
  bar.sync 0;
  mov.u32 %r9, 0;
  mov.u32 %r10, buffer;
  mad.lo.u32 %r10, %r6, 4, %r10;
  setp.lt.u32 %p2, %r5, 32;
  @%p2 bra PRODUCE;
CONSUME:
  and.b32 %r11, %r9, 1;
WAIT_FULL:
  mbarrier.try_wait.parity.shared.b64 %p3, [%r7], %r11;
  @!%p3 bra WAIT_FULL;
  ld.shared.u32 %r12, [%r10];
  add.u32 %r3, %r3, %r12;
  mbarrier.arrive.shared.b64 _, [%r8];
  add.u32 %r9, %r9, 1;
  setp.lt.u32 %p4, %r9, 4;
  @%p4 bra CONSUME;
  bra DONE;
PRODUCE:
  mul.lo.u32 %r12, %r9, 1000;
  add.u32 %r12, %r12, %r6;
  st.shared.u32 [%r10], %r12;
  mbarrier.arrive.shared.b64 %rd4, [%r7];
  and.b32 %r11, %r9, 1;
WAIT_EMPTY:
  mbarrier.test_wait.parity.shared.b64 %p3, [%r8], %r11;
  @!%p3 bra WAIT_EMPTY;
  add.u32 %r9, %r9, 1;
  setp.lt.u32 %p4, %r9, 4;
  @%p4 bra PRODUCE;
DONE:
  mov.u32 %r4, %r9;)";
  const std::vector<Lane> out = Run(body, RandomLanes(0, 0));
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    CHECK(out[i].a == (i < 32 ? 0 : 6000 + 4 * (i % 32)));
    CHECK(out[i].b == 4);
  }
}

// Three warps count together up to a number that one would reach alone.
TEST_CASE("Loop_ThatReadsWhatItCountsAtomically_GivesOtherWarpsTheirTurns") {
  const std::string body = R"(
  .shared .align 4 .u32 count;
  mov.u32 %r7, count;
  setp.eq.u32 %p1, %r5, 0;
  @%p1 st.shared.u32 [%r7], 0;
  bar.sync 0;
  mov.u32 %r3, 0;
COUNT:
  add.u32 %r3, %r3, 1;
  atom.shared.add.u32 %r8, [%r7], 1;
  ld.shared.u32 %r9, [%r7];
  setp.lt.u32 %p2, %r9, 48000;
  @%p2 bra COUNT;)";
  const std::vector<Lane> out = Run(body, RandomLanes(0, 0));
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    CHECK(out[i].a > 400);  // 500 each would be fair
    all += out[i].a;
  }
  CHECK(all >= 48000);
}

// Warps 0 and 1 wait for what warp 2 writes, in a loop whose end depends on it only by the way taken through the loop.
TEST_CASE("Loop_ThatGoesOnWhereAFlagIsSet_WaitsForTheFlag") {
  const std::string body = R"(
  .shared .align 4 .b8 flags[16];
  mov.u32 %r7, flags;
  shl.b32 %r8, %r5, 2;
  add.u32 %r8, %r7, %r8;
  setp.lt.u32 %p1, %r5, 4;
  @%p1 st.shared.u32 [%r8], 0;
  bar.sync 0;
  mov.u32 %r9, 0;
  mov.u32 %r3, 0;
  setp.ge.u32 %p2, %r5, 64;
  @%p2 bra SET;
WAIT:
  shl.b32 %r8, %r9, 2;
  add.u32 %r8, %r7, %r8;
  ld.volatile.shared.u32 %r10, [%r8];
  setp.eq.u32 %p3, %r10, 0;
  @%p3 bra AGAIN;
  add.u32 %r3, %r3, %r10;
  st.shared.u32 [%r8], %r10;
  add.u32 %r9, %r9, 1;
AGAIN:
  setp.lt.u32 %p4, %r9, 4;
  @%p4 bra WAIT;
  bra DONE;
SET:
  st.volatile.shared.u32 [%r7], 1;
  st.volatile.shared.u32 [%r7+4], 20;
  st.volatile.shared.u32 [%r7+8], 300;
  st.volatile.shared.u32 [%r7+12], 4000;
DONE:)";
  const std::vector<Lane> out = Run(body, RandomLanes(0, 0));
  for (std::uint32_t i = 0; i < kThreads; ++i) CHECK(out[i].a == (i < 64 ? 4321 : 0));
}

// The last thread to arrive goes on and begins the object anew, then ends it, before threads that wait for the phase
// have looked again.
TEST_CASE("Mbarrier_BegunAnewOrEnded_LetsThoseGoWhoWaited") {
  const std::string body = R"(
  .shared .align 8 .b64 barrier;
  mov.u32 %r7, barrier;
  setp.eq.u32 %p1, %r5, 0;
  @%p1 mbarrier.init.shared.b64 [%r7], 64;
  bar.sync 0;
  setp.ge.u32 %p2, %r5, 64;
  @%p2 bra DONE;
  mov.u32 %r9, 0;
  mbarrier.arrive.shared.b64 %rd4, [%r7];
WAIT:
  add.u32 %r9, %r9, 1;
  mbarrier.try_wait.shared.b64 %p3, [%r7], %rd4;
  @!%p3 bra WAIT;
  setp.ne.u32 %p4, %r5, 63;
  @%p4 bra DONE;
  KEEP
DONE:
  setp.lt.u32 %p2, %r5, 64;
  selp.u32 %r3, 7, 9, %p2;)";
  for (const std::string_view keep : {"mbarrier.init.shared.b64 [%r7], 3;", "mbarrier.inval.shared.b64 [%r7];"}) {
    std::string text = body;
    text.replace(text.find("KEEP"), 4, keep);
    const std::vector<Lane> out = Run(text, RandomLanes(0, 0));
    for (std::uint32_t i = 0; i < kThreads; ++i) CHECK(out[i].a == (i < 64 ? 7 : 9));
  }
}

// A thread that ends the object does not keep others from arriving at it and finding its phase over.
TEST_CASE("Mbarrier_Ended_TakesLateArrivals") {
  const std::string body = R"(
  .shared .align 8 .b64 barrier;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra DONE;
  mbarrier.init.shared.b64 [barrier], 2;
  mbarrier.arrive.shared.b64 %rd4, [barrier];
  mbarrier.inval.shared.b64 [barrier];
  mbarrier.arrive.shared.b64 %rd5, [barrier];
  mbarrier.test_wait.shared.b64 %p2, [barrier], %rd5;
  selp.u32 %r3, 1, 0, %p2;
DONE:)";
  CHECK(Run(body, RandomLanes(0, 0))[0].a == 1);
}

TEST_CASE("Mbarrier_StateTokens_AndDrops") {
  const std::string body = R"(
  .shared .align 8 .b64 barrier;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra DONE;
  mbarrier.init.shared.b64 [barrier], 3;
  mbarrier.arrive.shared.b64 %rd4, [barrier];
  mbarrier.pending_count.b64 %r7, %rd4;
  mbarrier.test_wait.shared.b64 %p2, [barrier], %rd4;
  selp.u32 %r8, 1, 0, %p2;
  mbarrier.arrive_drop.shared.b64 %rd5, [barrier];
  mbarrier.arrive.shared.b64 %rd6, [barrier], 1;
  mbarrier.test_wait.shared.b64 %p2, [barrier], %rd4;
  selp.u32 %r9, 1, 0, %p2;
  mbarrier.arrive.shared.b64 %rd7, [barrier];
  mbarrier.pending_count.b64 %r10, %rd7;
  mad.lo.u32 %r3, %r7, 10, %r8;
  mad.lo.u32 %r3, %r3, 10, %r9;
  mad.lo.u32 %r3, %r3, 10, %r10;
  mbarrier.inval.shared.b64 [barrier];
DONE:)";
  // Three were missing; not over; over after two more; the next phase expects two.
  CHECK(Run(body, RandomLanes(0, 0))[0].a == 3012);
}

// PTX 9.3. An object knows its layout; nothing makes reports, so none is there and both phases end at once.
TEST_CASE("Mbarrier_Layouts_AndReports") {
  for (const std::string layout : {"", ".layout::v0", ".layout::v1"}) {
    const std::string body = R"(
  .shared .align 8 .b64 barrier;
  .reg .b8 %b<3>;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra DONE;
  mbarrier.init)" + layout + R"(.shared.b64 [barrier], 2;
  mbarrier.check_layout.layout::v0.shared::cta.b64 %p2, [barrier];
  mbarrier.check_layout.layout::v1.shared::cta.b64 %p3, [barrier];
  selp.u32 %r7, 1, 0, %p2;
  selp.u32 %r8, 1, 0, %p3;
  mbarrier.arrive.expect_tx.shared.b64 %rd4, [barrier], 1048575;
  mbarrier.test_wait.parity.phase_type::conditional.shared.b64 %p4, [barrier], 0;
  selp.u32 %r9, 1, 0, %p4;
  mbarrier.arrive.shared.b64 _, [barrier];
  mbarrier.test_wait.phase_type::primary.shared.b64 %p4|%p5, [barrier], %rd4;
  selp.u32 %r10, 1, 0, %p4;
  mbarrier.complete_tx.shared.b64 [barrier], 1048575;
  mov.b16 %h1, 0x5555;
  cvt.u8.u16 %b1, %h1;
  setp.eq.u32 %p5, %r5, %r5;
  mbarrier.try_wait.phase_type::primary.acquire.cta.shared::cta.b64 %p4|%p5, %b1, [barrier], %rd4, 20;
  selp.u32 %r11, 1, 0, %p4;
  selp.u32 %r12, 1, 0, %p5;
  cvt.u16.u8 %h1, %b1;
  cvt.u32.u16 %r13, %h1;
  mbarrier.try_wait.parity.phase_type::conditional.shared.b64 %p4, [barrier], 0;
  selp.u32 %r14, 1, 0, %p4;
  mbarrier.check_layout.layout::v1.shared::cta.b64 %p3, [barrier];
  selp.u32 %r15, 1, 0, %p3;
  mad.lo.u32 %r3, %r7, 10, %r8;
  mad.lo.u32 %r3, %r3, 10, %r9;
  mad.lo.u32 %r3, %r3, 10, %r10;
  mad.lo.u32 %r3, %r3, 10, %r11;
  mad.lo.u32 %r3, %r3, 10, %r12;
  mad.lo.u32 %r3, %r3, 10, %r13;
  mad.lo.u32 %r3, %r3, 10, %r14;
  mad.lo.u32 %r3, %r3, 10, %r15;
DONE:)";
    // v0, v1; not over twice; over, no report, value 0; over; still v1.
    CHECK(Run(body, RandomLanes(0, 0))[0].a == (layout == ".layout::v1" ? 10010011 : 100010010));
  }
}

// PTX 9.3: copies and reductions say how strong their accesses are. They happen at once, in order, as ever.
TEST_CASE("BulkCopy_WithSemanticsAndScope") {
  const std::string body = R"(
  .shared .align 16 .b8 buffer[256];
  .shared .align 16 .b8 ones[256];
  .shared .align 8 .b64 barrier;
  mov.u32 %r7, buffer;
  mov.u32 %r8, barrier;
  mov.u32 %r9, ones;
  setp.ge.u32 %p2, %r5, 64;
  mad.lo.u32 %r10, %r5, 4, %r9;
  @!%p2 st.shared.u32 [%r10], 1;
  setp.ne.u32 %p1, %r5, 0;
  bar.sync 0;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [barrier], 1;
  mbarrier.arrive.expect_tx.shared.b64 %rd4, [barrier], 512;
  ld.param.u64 %rd5, [in];
  cp.async.bulk.relaxed.gpu.shared::cta.global.mbarrier::complete_tx::bytes.b128 [%r7], [%rd5], 128, [%r8];
  add.u32 %r11, %r7, 128;
  add.u64 %rd6, %rd5, 128;
  cp.async.bulk.weak.shared::cluster.global.mbarrier::complete_tx::bytes [%r11], [%rd6], 128, [%r8];
  cp.reduce.async.bulk.relaxed.cluster.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r7], [%r9], 256, [%r8];
READY:
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p3, [barrier], 0;
  @!%p3 bra WAIT;
  and.b32 %r9, %r5, 31;
  mad.lo.u32 %r7, %r9, 8, %r7;
  ld.shared.v2.u32 {%r3, %r4}, [%r7];)";
  const std::vector<Lane> in = RandomLanes(0, 0);
  const std::vector<Lane> out = Run(body, in);
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    CHECK(out[i].a == in[i % 32].a + 1);
    CHECK(out[i].b == in[i % 32].b + 1);
  }
}

// PTX 9.5. The device's attributes say that no tensor is large.
TEST_CASE("TensorMaps_HaveTheSmallAllocationClass") {
  const std::string body = R"(
  .shared .align 128 .b8 map[128];
  setp.eq.u32 %p1, %r5, %r5;
  tensormap.query.alloc_class_large.shared::cta.b1024 %p1, [map];
  selp.u32 %r3, 1, 2, %p1;)";
  CHECK(Run(body, RandomLanes(0, 0))[0].a == 2);
}

TEST_CASE("BulkCopy_ReportsBytesToTheBarrier") {
  const std::string body = R"(
  .shared .align 16 .b8 buffer[256];
  .shared .align 8 .b64 barrier;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [barrier], 1;
  mbarrier.arrive.expect_tx.shared.b64 %rd4, [barrier], 256;
  mov.u32 %r7, buffer;
  mov.u32 %r8, barrier;
  ld.param.u64 %rd5, [in];
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r7], [%rd5], 256, [%r8];
READY:
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p2, [barrier], 0;
  @!%p2 bra WAIT;
  mov.u32 %r7, buffer;
  and.b32 %r9, %r5, 31;
  mad.lo.u32 %r7, %r9, 8, %r7;
  ld.shared.v2.u32 {%r3, %r4}, [%r7];)";
  const std::vector<Lane> in = RandomLanes(0, 0);
  const std::vector<Lane> out = Run(body, in);
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    CHECK(out[i].a == in[i % 32].a);
    CHECK(out[i].b == in[i % 32].b);
  }
}

TEST_CASE("BulkReduce_AddsElements_BulkStoreZeroes") {
  const std::string body = R"(
  .shared .align 16 .b8 buffer[256];
  .shared .align 16 .b8 zeroed[64];
  mov.u32 %r7, buffer;
  and.b32 %r9, %r5, 31;
  mad.lo.u32 %r8, %r9, 8, %r7;
  setp.lt.u32 %p2, %r5, 32;
  @%p2 st.shared.v2.u32 [%r8], {%r5, 1000};
  st.shared.u32 [zeroed+60], 77;
  bar.sync 0;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra READY;
  ld.param.u64 %rd5, [out];
  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd5], [%r7], 256;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  mov.u64 %rd6, 64;
  mov.u32 %r10, zeroed;
  st.bulk.weak.shared::cta [%r10], %rd6, 0;
READY:
  bar.sync 0;
  ld.global.v2.u32 {%r3, %r4}, [%rd2];
  ld.shared.u32 %r10, [zeroed+60];
  add.u32 %r4, %r4, %r10;)";
  const std::vector<Lane> out = Run(body, RandomLanes(0, 0));
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    CHECK(out[i].a == 0xdead + (i < 32 ? i : 0));
    CHECK(out[i].b == 0xdead + (i < 32 ? 1000 : 0));
  }
}

TEST_CASE("BulkCopy_UnderAMaskOfBytes_LeavesTheOthers") {
  const std::string body = R"(
  .shared .align 16 .b8 buffer[256];
  .reg .b16 %h;
  mov.u32 %r7, buffer;
  and.b32 %r9, %r5, 31;
  mad.lo.u32 %r8, %r9, 8, %r7;
  setp.lt.u32 %p2, %r5, 32;
  @%p2 st.shared.v2.u32 [%r8], {%r1, %r2};
  bar.sync 0;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra READY;
  ld.param.u64 %rd5, [out];
  mov.u16 %h, 0xA5C3;
  cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd5], [%r7], 256, %h;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
READY:
  bar.sync 0;
  ld.global.v2.u32 {%r3, %r4}, [%rd2];)";
  const std::vector<Lane> in = RandomLanes(0, 0);
  const std::vector<Lane> out = Run(body, in);
  std::vector<Lane> wanted(in.size(), Lane{0xdead, 0xdead});
  for (std::size_t i = 0; i < 256; ++i) {
    if ((0xA5C3 >> i % 16 & 1) != 0)
      reinterpret_cast<unsigned char*>(wanted.data())[i] = reinterpret_cast<const unsigned char*>(in.data())[i];
  }
  for (std::uint32_t i = 0; i < kThreads; ++i) CHECK((out[i].a == wanted[i].a && out[i].b == wanted[i].b));
}

// A grid of one CTA: there is none whose place could be taken (cancel_test.cpp has larger ones). The answer comes as
// that of a copy does.
TEST_CASE("ClusterLaunchControl_FindsNothingToCancel") {
  for (const std::string to_all : {"", ".multicast::cluster::all"}) {
    const std::string body = R"(
  .shared .align 16 .b8 answer[16];
  .shared .align 8 .b64 barrier;
  .reg .b128 %q;
  mov.u32 %r4, 5;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra READY;
  mov.u32 %r7, answer;
  mov.u32 %r8, barrier;
  mov.u32 %r9, -1;
  st.shared.v4.u32 [answer], {%r9, %r9, %r9, %r9};
  mbarrier.init.shared.b64 [barrier], 1;
  clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes)" +
                             to_all + R"(.b128 [%r7], [%r8];
  mbarrier.arrive.expect_tx.shared.b64 %rd4, [barrier], 16;
READY:
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p2, [barrier], 0;
  @!%p2 bra WAIT;
  ld.shared.v2.b64 {%rd5, %rd6}, [answer];
  mov.b128 %q, {%rd5, %rd6};
  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q;
  selp.u32 %r3, 1, 2, %p3;
  @!%p3 bra DONE;
  clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r4, %q;
  clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r10, %r11, %r12, %r13}, %q;
  add.u32 %r4, %r4, %r11;
DONE:)";
    for (const Lane& lane : Run(body, RandomLanes(0, 0))) {
      CHECK(lane.a == 2);
      CHECK(lane.b == 5);
    }
  }
}

// Bounds at the borders of warps split no warp, others do; both orders of the operands, ragged last warps, an index
// that is shifted.
TEST_CASE("Comparison_OfTheThreadsIndexWithABound_HoldsForTheLanesItShould") {
  constexpr const char* kPredicates[] = {"lt", "le", "gt", "ge"};
  const auto holds = [](unsigned predicate, auto a, auto b) {
    return predicate == 0 ? a < b : predicate == 1 ? a <= b : predicate == 2 ? a > b : a >= b;
  };
  for (const std::uint32_t bound : {0u, 31u, 32u, 33u, 48u, 63u, 64u, 95u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    for (const std::uint32_t shift : {0u, 16u, 32u}) {
      std::string body = "  add.u32 %r7, %r5, " + std::to_string(shift) + ";\n";
      for (unsigned i = 0; i < 16; ++i) {
        const std::string value = i < 8 ? "%r7, " + std::to_string(bound) : std::to_string(bound) + ", %r7";
        body += std::string("  setp.") + kPredicates[i % 4] + (i % 8 < 4 ? ".u32" : ".s32") + " %p1, " + value +
                ";\n  @!%p1 bra L" + std::to_string(i) + ";\n  or.b32 %r3, %r3, " + std::to_string(1u << i) + ";\nL" +
                std::to_string(i) + ":\n";
      }
      for (const std::uint32_t threads : {96u, 70u, 20u}) {
        const std::vector<Lane> out = Run(body, RandomLanes(0, 0, threads));
        for (std::uint32_t t = 0; t < threads; ++t) {
          std::uint32_t wanted = 0;
          for (unsigned i = 0; i < 16; ++i) {
            const std::uint32_t a = i < 8 ? t + shift : bound, b = i < 8 ? bound : t + shift;
            const bool is = i % 8 < 4 ? holds(i % 4, a, b)
                                      : holds(i % 4, static_cast<std::int32_t>(a), static_cast<std::int32_t>(b));
            wanted |= static_cast<std::uint32_t>(is) << i;
          }
          INFO("bound " << bound << ", shift " << shift << ", thread " << t << " of " << threads);
          CHECK(out[t].a == wanted);
        }
      }
    }
  }
}
