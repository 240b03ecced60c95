// Barriers of the whole CTA in random control flow, of kernels whose warps take turns within one call: against threads
// that a plain interpreter runs one by one from barrier to barrier.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/exec/executor_fixture.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

constexpr unsigned kTurnRegisters = 5, kTurnLocals = 4;

/// What a thread does next. Registers are 32 bits wide; `a` is the one that is written or read.
struct TurnStep {
  enum class Kind : std::uint8_t {
    kCombine,  ///< a = b * k + (a ^ b)
    kShare,    ///< shared[tid] = a
    kTake,     ///< a = shared[(tid + k) % threads]
    kBarrier,
    kKeep,      ///< local[k] = a
    kRecall,    ///< a = local[k]
    kIfThread,  ///< tid < k: to `target`
    kIfWarp,    ///< the warp's number is odd: to `target`
    kIfBit,     ///< a & 1: to `target`
    kCount,     ///< --counter != 0: to `target`
    kSetCount,  ///< counter = k
    kJump,
    kExit
  } kind;
  unsigned a = 0, b = 0;
  std::uint32_t k = 0;
  std::size_t target = 0;
};

using TurnSteps = std::vector<TurnStep>;
using Kind = TurnStep::Kind;

class RandomTurns {
 public:
  RandomTurns(std::uint32_t seed, unsigned threads) : random_(seed), threads_(threads) {
    for (unsigned i = 0; i < kTurnLocals; ++i) Add({Kind::kKeep, i % kTurnRegisters, 0, i});
    Add({Kind::kShare});
    Add({Kind::kBarrier});
    Block(3);
  }
  const TurnSteps& steps() const { return steps_; }

 private:
  unsigned Below(unsigned count) { return random_() % count; }
  unsigned Register() { return Below(kTurnRegisters); }
  std::size_t Add(const TurnStep& step) {
    steps_.push_back(step);
    return steps_.size() - 1;
  }

  void Plain(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      switch (Below(4)) {
        case 0: Add({Kind::kKeep, Register(), 0, Below(kTurnLocals)}); break;
        case 1: Add({Kind::kRecall, Register(), 0, Below(kTurnLocals)}); break;
        default: Add({Kind::kCombine, Register(), Register(), static_cast<std::uint32_t>(random_())});
      }
    }
  }

  void Exchange() {
    Add({Kind::kShare, Register()});
    Plain(Below(3));
    Add({Kind::kBarrier});
    Plain(Below(2));
    Add({Kind::kTake, Register(), 0, Below(threads_)});
    Add({Kind::kBarrier});
  }

  void Loop(unsigned depth) {
    if (in_loop_) return Exchange();
    in_loop_ = true;
    Add({Kind::kSetCount, 0, 0, 1 + Below(3)});
    const std::size_t begin = steps_.size();
    Block(depth);
    Add({Kind::kCount, 0, 0, 0, begin});
    in_loop_ = false;
  }

  /// Both ways have a barrier each where all lanes of a warp go the same, and none otherwise.
  void Branch() {
    const unsigned way = Below(3);
    TurnStep step{way == 0 ? Kind::kIfWarp : way == 1 ? Kind::kIfThread : Kind::kIfBit, Register(), 0, Below(threads_)};
    const std::size_t branch = Add(step);
    const auto arm = [&] {
      Plain(1 + Below(3));
      if (way == 0) Exchange();
    };
    arm();
    const std::size_t jump = Add({Kind::kJump});
    steps_[branch].target = steps_.size();
    arm();
    steps_[jump].target = steps_.size();
  }

  /// Threads from one on end here; the others go on alone.
  void SomeExit() {
    const std::size_t branch = Add({Kind::kIfThread, 0, 0, 1 + Below(threads_)});
    Add({Kind::kExit});
    steps_[branch].target = steps_.size();
  }

  void Block(unsigned depth) {
    for (unsigned i = 0, count = 2 + Below(3); i < count; ++i) {
      Plain(Below(3));
      switch (Below(depth == 0 ? 2 : 5)) {
        case 0:
        case 1: Exchange(); break;
        case 2: Loop(depth - 1); break;
        case 3: Branch(); break;
        default: SomeExit();
      }
    }
  }

  std::mt19937 random_;
  unsigned threads_;
  bool in_loop_ = false;
  TurnSteps steps_;
};

std::string TextOf(const TurnStep& step, unsigned threads) {
  const std::string a = "%r" + std::to_string(step.a), b = "%r" + std::to_string(step.b), k = std::to_string(step.k);
  const std::string to = "bra L" + std::to_string(step.target) + ";\n";
  const std::string local = "[locals+" + std::to_string(step.k * 4) + "]";
  switch (step.kind) {
    case Kind::kCombine:
      return "mul.lo.u32 %t, " + b + ", " + k + "; xor.b32 " + a + ", " + a + ", " + b + "; add.u32 " + a + ", " + a +
             ", %t;\n";
    case Kind::kShare: return "st.shared.u32 [%own], " + a + ";\n";
    case Kind::kTake:
      return "add.u32 %t, %i, " + k + "; rem.u32 %t, %t, " + std::to_string(threads) +
             "; shl.b32 %t, %t, 2; add.u32 %t, %t, %base; ld.shared.u32 " + a + ", [%t];\n";
    case Kind::kBarrier: return "bar.sync 0;\n";
    case Kind::kKeep: return "st.local.u32 " + local + ", " + a + ";\n";
    case Kind::kRecall: return "ld.local.u32 " + a + ", " + local + ";\n";
    case Kind::kIfThread: return "setp.lt.u32 %p, %i, " + k + "; @%p " + to;
    case Kind::kIfWarp: return "and.b32 %t, %i, 32; setp.ne.u32 %p, %t, 0; @%p " + to;
    case Kind::kIfBit: return "and.b32 %t, " + a + ", 1; setp.ne.u32 %p, %t, 0; @%p " + to;
    case Kind::kCount: return "sub.u32 %count, %count, 1; setp.ne.u32 %p, %count, 0; @%p " + to;
    case Kind::kSetCount: return "mov.u32 %count, " + k + ";\n";
    case Kind::kJump: return to;
    case Kind::kExit: return "bra END;\n";
  }
  return {};
}

/// Each thread leaves its registers at out[number], and first[number] is what it begins with.
std::string TurnKernel(const TurnSteps& steps, unsigned threads) {
  std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry turns(.param .u64 first, .param .u64 out)
{
  .reg .b32 %r<5>, %t, %i, %own, %base, %count, %number; .reg .b64 %rd<6>; .reg .pred %p;
  .local .align 4 .b8 locals[16];
  .shared .align 4 .b8 words[4096];
  ld.param.u64 %rd1, [first]; ld.param.u64 %rd2, [out];
  mov.u32 %i, %tid.x; mov.u32 %base, words;
  shl.b32 %own, %i, 2; add.u32 %own, %own, %base;
  mov.u32 %number, %ctaid.x; mov.u32 %t, %ntid.x; mad.lo.u32 %number, %number, %t, %i;
  mul.wide.u32 %rd3, %number, 4; add.u64 %rd1, %rd1, %rd3; ld.global.u32 %r0, [%rd1];
  mov.u32 %count, 1;
)";
  for (unsigned i = 1; i < kTurnRegisters; ++i)
    text += "  mad.lo.u32 %r" + std::to_string(i) + ", %i, " + std::to_string(2 * i + 1) + ", %r0;\n";
  for (std::size_t i = 0; i < steps.size(); ++i) text += "L" + std::to_string(i) + ":\n  " + TextOf(steps[i], threads);
  text += "L" + std::to_string(steps.size()) + ":\nEND:\n  mul.wide.u32 %rd3, %number, " +
          std::to_string(4 * kTurnRegisters) + "; add.u64 %rd2, %rd2, %rd3;\n";
  for (unsigned i = 0; i < kTurnRegisters; ++i)
    text += "  st.global.u32 [%rd2+" + std::to_string(4 * i) + "], %r" + std::to_string(i) + ";\n";
  return text + "  ret;\n}\n";
}

struct TurnThread {
  std::uint32_t registers[kTurnRegisters] = {}, locals[kTurnLocals] = {}, counter = 1;
  std::size_t at = 0;
};

/// One thread up to its next barrier, or its end.
void RunToBarrier(const TurnSteps& steps, TurnThread& thread, std::uint32_t tid, std::vector<std::uint32_t>& shared) {
  while (thread.at < steps.size()) {
    const TurnStep& step = steps[thread.at++];
    std::uint32_t& a = thread.registers[step.a];
    const auto go = [&](bool taken) { thread.at = taken ? step.target : thread.at; };
    switch (step.kind) {
      case Kind::kCombine: {
        const std::uint32_t b = thread.registers[step.b];
        a = b * step.k + (a ^ b);
        if (step.a == step.b) a = b * step.k;
        break;
      }
      case Kind::kShare: shared[tid] = a; break;
      case Kind::kTake: a = shared[(tid + step.k) % shared.size()]; break;
      case Kind::kBarrier: return;
      case Kind::kKeep: thread.locals[step.k] = a; break;
      case Kind::kRecall: a = thread.locals[step.k]; break;
      case Kind::kIfThread: go(tid < step.k); break;
      case Kind::kIfWarp: go((tid & 32) != 0); break;
      case Kind::kIfBit: go((a & 1) != 0); break;
      case Kind::kCount: go(--thread.counter != 0); break;
      case Kind::kSetCount: thread.counter = step.k; break;
      case Kind::kJump: go(true); break;
      case Kind::kExit: thread.at = steps.size(); break;
    }
  }
}

std::vector<std::uint32_t> ExpectedTurns(const TurnSteps& steps, const std::vector<std::uint32_t>& first,
                                         unsigned threads) {
  std::vector<std::uint32_t> out;
  for (std::size_t cta = 0; cta < first.size() / threads; ++cta) {
    std::vector<TurnThread> all(threads);
    std::vector<std::uint32_t> shared(threads);
    for (std::uint32_t tid = 0; tid < threads; ++tid)
      for (unsigned i = 0; i < kTurnRegisters; ++i)
        all[tid].registers[i] = first[cta * threads + tid] + (i == 0 ? 0 : tid * (2 * i + 1));
    const auto runs = [&] {
      return std::any_of(all.begin(), all.end(), [&](const TurnThread& t) { return t.at < steps.size(); });
    };
    while (runs())
      for (std::uint32_t tid = 0; tid < threads; ++tid) RunToBarrier(steps, all[tid], tid, shared);
    for (const TurnThread& thread : all)
      out.insert(out.end(), std::begin(thread.registers), std::end(thread.registers));
  }
  return out;
}

exec::Engine::Options TurnMachine() {
  exec::Engine::Options options;
  options.cpu_features = GENERATE("", "avx2", "baseline");
  return options;
}

}  // namespace

TEST_CASE("Turns_RandomBarriers_AreThoseOfThreadsOneByOne") {
  Executor executor(TurnMachine());
  const unsigned threads = GENERATE(32u, 96u, 250u, 256u);
  constexpr unsigned kCtas = 3;
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    const RandomTurns program(seed * 100 + threads, threads);
    std::vector<std::uint32_t> first(kCtas * threads);
    std::mt19937 random(seed);
    for (std::uint32_t& word : first) word = static_cast<std::uint32_t>(random());
    std::vector<std::uint32_t> got(first.size() * kTurnRegisters);
    const std::uint64_t out = executor.Upload(got), in = executor.Upload(first);
    const std::string text = TurnKernel(program.steps(), threads);
    INFO("seed " << seed << ", " << threads << " threads\n" << text);
    REQUIRE(executor.Launch(text, "turns", {kCtas, 1, 1}, {threads, 1, 1}, ParamBlock().Add(in).Add(out)).kind ==
            exec::FaultKind::kNone);
    executor.Download(out, got);
    REQUIRE(got == ExpectedTurns(program.steps(), first, threads));
    executor.Free(in);
    executor.Free(out);
  }
}

TEST_CASE("Turns_MoreThanFramesHold_IsKeptOnStacks") {
  Executor executor(TurnMachine());
  constexpr unsigned kWords = 60, kThreads = 1024;
  std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry keep(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<60>, %t, %i, %sum; .reg .b64 %rd<5>;
  .shared .align 4 .b8 words[4096];
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
  mov.u32 %t, %tid.x; mul.wide.u32 %rd3, %t, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
)";
  for (unsigned i = 0; i < kWords; ++i)
    text += "  ld.global.u32 %r" + std::to_string(i) + ", [%rd1+" + std::to_string(4 * kThreads * i) + "];\n";
  text += "  shl.b32 %i, %t, 2; st.shared.u32 [%i], %r0;\n  bar.sync 0;\n";
  text += "  xor.b32 %i, %i, 4092; ld.shared.u32 %sum, [%i];\n";
  for (unsigned i = 0; i < kWords; ++i) text += "  mad.lo.u32 %sum, %sum, 3, %r" + std::to_string(i) + ";\n";
  text += "  st.global.u32 [%rd2], %sum;\n  ret;\n}\n";
  std::vector<std::uint32_t> in(kWords * kThreads), got(kThreads);
  std::mt19937 random(1);
  for (std::uint32_t& word : in) word = static_cast<std::uint32_t>(random());
  const std::uint64_t from = executor.Upload(in), to = executor.Upload(got);
  REQUIRE(executor.Launch(text, "keep", {1, 1, 1}, {kThreads, 1, 1}, ParamBlock().Add(from).Add(to)).kind ==
          exec::FaultKind::kNone);
  executor.Download(to, got);
  std::vector<std::uint32_t> want(kThreads);
  for (unsigned t = 0; t < kThreads; ++t) {
    want[t] = in[kThreads - 1 - t];
    for (unsigned i = 0; i < kWords; ++i) want[t] = want[t] * 3 + in[i * kThreads + t];
  }
  CHECK(got == want);
}

TEST_CASE("Turns_AFaultNamesTheWarpWhoseTurnItIs") {
  Executor executor(TurnMachine());
  // Each thread stores behind the first barrier; those of one warp store where no memory is, behind the second one.
  const std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry fault(.param .u64 out, .param .u32 warp)
{
  .reg .b32 %r<6>; .reg .b64 %rd<6>; .reg .pred %p;
  .shared .align 4 .b8 words[1024];
  ld.param.u64 %rd1, [out]; ld.param.u32 %r4, [warp];
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; st.shared.u32 [%r2], %r1;
  bar.sync 0;
  ld.shared.u32 %r3, [%r2]; mul.wide.u32 %rd2, %r3, 4; add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r3;
  bar.sync 0;
  shr.u32 %r5, %r1, 5; setp.ne.u32 %p, %r5, %r4;
  @%p bra END;
  ld.shared.u32 %r3, [%r2]; mul.wide.u32 %rd4, %r3, 4; add.u64 %rd5, %rd1, %rd4;
  st.global.u32 [%rd5+1073741824], %r3;
END:
  ret;
}
)";
  const std::uint64_t out = executor.Upload(std::vector<std::uint32_t>(256));
  for (const std::uint32_t warp : {0u, 3u, 7u}) {
    const exec::LaunchFault fault =
        executor.Launch(text, "fault", {2, 1, 1}, {256, 1, 1}, ParamBlock().Add(out).Add(warp));
    CHECK(fault.kind == exec::FaultKind::kIllegalAddress);
    CHECK(fault.thread.x / 32 == warp);
    CHECK(fault.ptx_line == 17);
  }
}
