// Additions of f32 by atomics: subnormal numbers and NaNs, in machine code and interpreted. "atom.add.f32 on global
// memory flushes subnormal inputs and results to sign-preserving zero", on shared memory it does not (PTX ISA, atom);
// .noftz (9.4) never does.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "tests/sim/exec/executor_fixture.h"
#include "tests/sim/exec/reference_float.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

constexpr std::uint32_t kThreads = 75;

enum class Memory { kGlobal, kShared, kMixed };  ///< kMixed: odd threads' places are in shared memory
struct AddCase {
  const char* space;  ///< as it is written; "": generic
  Memory memory;
  bool wanted, noftz, diverged;
  unsigned width;  ///< elements of a thread: 1, 2, 4
};

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

/// "{a0, a1}", or "a0" alone.
std::string List(const std::string& name, unsigned width) {
  std::string text;
  for (unsigned i = 0; i < width; ++i) text += (i == 0 ? "" : ", ") + name + std::to_string(i);
  return width == 1 ? text : "{" + text + "}";
}

std::string Instruction(const AddCase& one) {
  const std::string words = std::string(one.space) + ".add" + (one.noftz ? ".noftz" : "") +
                            (one.width > 1 ? ".v" + std::to_string(one.width) : std::string()) + ".f32 ";
  return (one.wanted ? "atom" + words + List("%o", one.width) + ", " : "red" + words) + "[%rd9], " +
         List("%b", one.width) + ";";
}

/// Each thread adds operands[thread] to its place, which holds places[thread], and gives the old value and what is
/// there then.
std::string Kernel(const AddCase& one) {
  const std::string bytes = std::to_string(one.width * 4);
  const std::string vector = one.width > 1 ? ".v" + std::to_string(one.width) : "";
  std::string text = R"(.version VERSION
.target sm_90
.address_size 64
.visible .entry adds(.param .u64 places, .param .u64 operands, .param .u64 old)
{
.reg .b32 %r<9>; .reg .b64 %rd<19>; .reg .f32 %b<5>; .reg .f32 %o<5>; .reg .f32 %c<5>; .reg .pred %p<9>;
.shared .align 16 .b8 cells[2048];
ld.param.u64 %rd1, [places]; ld.param.u64 %rd2, [operands]; ld.param.u64 %rd3, [old];
mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, BYTES;
add.u64 %rd5, %rd1, %rd4; add.u64 %rd6, %rd2, %rd4; add.u64 %rd7, %rd3, %rd4;
mov.u64 %rd8, cells; add.u64 %rd8, %rd8, %rd4; cvta.shared.u64 %rd10, %rd8;
ld.globalVECTOR.f32 CELLS, [%rd5]; st.sharedVECTOR.f32 [%rd8], CELLS;
ld.globalVECTOR.f32 OPERANDS, [%rd6];
and.b32 %r2, %r1, 1; setp.ne.u32 %p1, %r2, 0;
ADDRESS
rem.u32 %r3, %r1, 3; setp.ne.u32 %p2, %r3, THIRD;
@!%p2 bra skip;
ADD
st.globalVECTOR.f32 [%rd7], OLD;
skip:
bar.sync 0;
AFTER
st.globalVECTOR.f32 [%rd5], CELLS;
ret;
}
)";
  const bool generic = *one.space == 0;
  const std::string address = one.memory == Memory::kMixed    ? "selp.b64 %rd9, %rd10, %rd5, %p1;"
                              : one.memory == Memory::kGlobal ? "mov.b64 %rd9, %rd5;"
                              : generic                       ? "mov.b64 %rd9, %rd10;"
                                                              : "mov.b64 %rd9, %rd8;";
  text = Replaced(text, "ADDRESS", address);
  text = Replaced(text, "AFTER",
                  (one.memory == Memory::kShared && !generic ? "ld.sharedVECTOR.f32 CELLS, [%rd9];"
                                                             : "ldVECTOR.f32 CELLS, [%rd9];"));
  text = Replaced(text, "ADD", Instruction(one));
  text = Replaced(text, "VERSION", one.noftz ? "9.4" : "8.1");
  text = Replaced(text, "BYTES", bytes);
  text = Replaced(text, "VECTOR", vector);
  text = Replaced(text, "CELLS", List("%c", one.width));
  text = Replaced(text, "OPERANDS", List("%b", one.width));
  text = Replaced(text, "OLD", one.wanted ? List("%o", one.width) : List("%b", one.width));
  return Replaced(text, "THIRD", one.diverged ? "1" : "7");
}

constexpr std::uint32_t kNumbers[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff,
                                      0x807fffff, 0x00400000, 0x80400000, 0x00800000, 0x80800000,
                                      0x00800001, 0x80c00000, 0x3f800000, 0xbf800000, 0x7f7fffff,
                                      0x7f800000, 0xff800000, 0x7f812345, 0xffc54321};
constexpr std::size_t kCount = std::size(kNumbers);

std::uint32_t Sum(std::uint32_t old, std::uint32_t operand, bool flushes) {
  const auto number = [&](std::uint32_t bits) {
    const auto value = std::bit_cast<float>(bits);
    return flushes ? exec::reference::Flush(value) : value;
  };
  const float sum = number(old) + number(operand);
  return std::isnan(sum) ? 0x7fffffff : std::bit_cast<std::uint32_t>(flushes ? exec::reference::Flush(sum) : sum);
}

void Check(Executor& executor, const AddCase& one, std::uint32_t shift) {
  const std::size_t count = std::size_t{kThreads} * one.width;
  std::vector<std::uint32_t> places(count), operands(count), old(count), found(count);
  for (std::size_t i = 0; i < count; ++i)
    places[i] = kNumbers[i % kCount], operands[i] = kNumbers[(i + shift) % kCount];
  const std::uint64_t places_at = executor.Upload(places), old_at = executor.Upload(old);
  const exec::LaunchFault fault =
      executor.Launch(Kernel(one), "adds", {1, 1, 1}, {kThreads, 1, 1},
                      ParamBlock().Add(places_at).Add(executor.Upload(operands)).Add(old_at));
  REQUIRE(fault.text == "");
  executor.Download(places_at, found);
  executor.Download(old_at, old);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t thread = i / one.width;
    if (one.diverged && thread % 3 == 1) continue;
    const bool shared = one.memory == Memory::kShared || (one.memory == Memory::kMixed && thread % 2 != 0);
    INFO("element " << i << ": " << std::hex << places[i] << " + " << operands[i]
                    << (shared ? ", shared" : ", global"));
    CHECK(found[i] == Sum(places[i], operands[i], !shared && !one.noftz));
    CHECK(old[i] == (one.wanted ? places[i] : operands[i]));
  }
}

/// `widths`: of vectors there is .global alone (PTX ISA, atom).
std::vector<AddCase> Cases() {
  std::vector<AddCase> cases;
  for (const bool wanted : {false, true}) {
    for (const bool noftz : {false, true}) {
      for (const bool diverged : {false, true}) {
        for (const auto& [space, memory] :
             {std::pair(".global", Memory::kGlobal), std::pair(".shared", Memory::kShared),
              std::pair("", Memory::kGlobal), std::pair("", Memory::kShared), std::pair("", Memory::kMixed)})
          cases.push_back({space, memory, wanted, noftz, diverged, 1});
        for (const unsigned width : {2u, 4u})
          cases.push_back({".global", Memory::kGlobal, wanted, noftz, diverged, width});
      }
    }
  }
  return cases;
}

}  // namespace

TEST_CASE("AtomicAddsOfSingles_FlushInGlobalMemoryAlone_InBothTiers") {
  for (const std::string tiers : {"off", "interpret"}) {
    exec::Engine::Options options;
    options.tiers = tiers;
    Executor executor(options);
    for (const AddCase& one : Cases()) {
      INFO(Instruction(one) << (one.memory == Memory::kMixed    ? " mixed"
                                : one.memory == Memory::kShared ? " shared"
                                                                : " global")
                            << (one.diverged ? ", diverged" : "") << ", tiers " << tiers);
      for (std::uint32_t shift = 0; shift < kCount; shift += one.width == 1 ? 1 : 6) Check(executor, one, shift);
    }
  }
}

// cp.reduce.async.bulk.add.f32 flushes, too (PTX ISA).
TEST_CASE("BulkReductionsOfSingles_Flush_InBothTiers") {
  constexpr const char* kKernel = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry adds(.param .u64 places, .param .u64 operands)
{
.reg .b32 %r<9>; .reg .b64 %rd<19>; .reg .f32 %b<5>; .reg .pred %p<2>;
.shared .align 16 .b8 cells[128];
ld.param.u64 %rd1, [places]; ld.param.u64 %rd2, [operands];
mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd6, %rd2, %rd4;
mov.u64 %rd8, cells; add.u64 %rd9, %rd8, %rd4;
ld.global.f32 %b1, [%rd6]; st.shared.f32 [%rd9], %b1;
fence.proxy.async; bar.sync 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra done;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%rd8], 128;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
done: ret;
}
)";
  for (const std::string tiers : {"off", "interpret"}) {
    exec::Engine::Options options;
    options.tiers = tiers;
    Executor executor(options);
    for (std::uint32_t shift = 0; shift < kCount; ++shift) {
      std::vector<std::uint32_t> places(32), operands(32), found(32);
      for (std::size_t i = 0; i < 32; ++i)
        places[i] = kNumbers[i % kCount], operands[i] = kNumbers[(i + shift) % kCount];
      const std::uint64_t places_at = executor.Upload(places);
      const exec::LaunchFault fault = executor.Launch(kKernel, "adds", {1, 1, 1}, {32, 1, 1},
                                                      ParamBlock().Add(places_at).Add(executor.Upload(operands)));
      REQUIRE(fault.text == "");
      executor.Download(places_at, found);
      for (std::size_t i = 0; i < 32; ++i) {
        INFO(std::hex << places[i] << " + " << operands[i] << ", tiers " << tiers);
        CHECK(found[i] == Sum(places[i], operands[i], true));
      }
    }
  }
}
