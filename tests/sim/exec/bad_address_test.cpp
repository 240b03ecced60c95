// Kernels that load, store and add at random bad addresses: the grid ends with an error or goes on, the process lives,
// and the next grid is right. With and without memcheck.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>

#include "tests/sim/exec/memcheck_fixture.h"

namespace gridloom::test {
namespace {

using exec::FaultKind;

constexpr std::size_t kAddresses = 64;

class BadAddresses {
 public:
  explicit BadAddresses(std::uint64_t seed, std::uint64_t base, const exec::DeviceMemory& memory)
      : random_(seed), base_(base), memory_(memory) {}

  std::uint64_t Next() {
    static int host_variable = 0;
    const std::uint64_t any = random_();
    switch (any % 12) {
      case 0: return any >> 52;                          // null and a little more
      case 1: return ~(any >> 52);                       // the other end
      case 2: return base_ + (any >> 40) % 8192 - 2048;  // around the allocation, aligned or not
      case 3: return base_ + ((any >> 40) % 64) * 4;     // inside
      case 4: return base_ + (std::uint64_t{1} << (any >> 8) % 63);
      case 5: return base_ - (std::uint64_t{1} << (any >> 8) % 63);
      case 6: return memory_.range_base() + (any >> 4) % memory_.range_bytes();
      case 7: return memory_.range_base() + memory_.high_water_bytes() + (any >> 50);
      case 8: return reinterpret_cast<std::uint64_t>(&host_variable) & ~15ull;
      case 9: return any | std::uint64_t{1} << 63;  // no address of a user's
      case 10: return any;
      default: return base_ + ((any >> 40) % 64) * 16;
    }
  }
  std::uint64_t Number(std::uint64_t below) { return random_() % below; }

 private:
  std::mt19937_64 random_;
  std::uint64_t base_;
  const exec::DeviceMemory& memory_;
};

/// One access at the address in %rd10, in a space and form drawn by lot.
std::string Access(BadAddresses& lot) {
  static constexpr const char* kForms[] = {"ld{}.u8 %h1, [%rd10];\ncvt.u32.u16 %r10, %h1;\n",
                                           "ld{}.u16 %h1, [%rd10];\ncvt.u32.u16 %r10, %h1;\n",
                                           "ld{}.u32 %r10, [%rd10];\n",
                                           "ld{}.u64 %rd11, [%rd10];\ncvt.u32.u64 %r10, %rd11;\n",
                                           "ld{}.v4.u32 {%r10, %r11, %r12, %r13}, [%rd10];\n",
                                           "ld{}.v2.u64 {%rd11, %rd12}, [%rd10];\ncvt.u32.u64 %r10, %rd12;\n",
                                           "st{}.u8 [%rd10], %r1;\n",
                                           "st{}.u16 [%rd10], %h2;\n",
                                           "st{}.u32 [%rd10], %r1;\n",
                                           "st{}.u64 [%rd10], %rd3;\n",
                                           "st{}.v4.u32 [%rd10], {%r1, %r2, %r3, %r1};\n",
                                           "atom{}.add.u32 %r10, [%rd10], 1;\n",
                                           "atom{}.cas.b64 %rd11, [%rd10], 1, 2;\ncvt.u32.u64 %r10, %rd11;\n",
                                           "red{}.max.u32 [%rd10], %r1;\n",
                                           "red{}.add.f32 [%rd10], 0f3F800000;\n",
                                           "ld.volatile{}.u32 %r10, [%rd10];\n"};
  static constexpr const char* kSpaces[] = {".global", "", ".shared", ".local"};
  std::string text = kForms[lot.Number(std::size(kForms))];
  std::string space = kSpaces[lot.Number(4)];
  if (space == ".local" && (text.starts_with("atom") || text.starts_with("red"))) space = ".global";
  text.replace(text.find("{}"), 2, space);
  return text;
}

std::string Kernel(BadAddresses& lot) {
  std::string body =
      "mov.u32 %r20, 0;\ncvt.u16.u32 %h2, %r1;\nst.local.u32 [frame], %r1;\nst.shared.u32 [tile], %r1;\nbar.sync 0;\n";
  const std::uint64_t accesses = 1 + lot.Number(4);
  for (std::uint64_t i = 0; i < accesses; ++i) {
    const std::string label = "L" + std::to_string(i);
    const bool guarded = lot.Number(2) == 0;
    if (guarded)
      body += "and.b32 %r21, %r1, " + std::to_string(lot.Number(32)) + ";\nsetp.eq.u32 %p1, %r21, 0;\n@%p1 bra " +
              label + ";\n";
    // Addresses of a table, one for all threads, or a row from a bad start.
    const std::uint64_t form = lot.Number(3), entry = lot.Number(kAddresses);
    if (form == 0)
      body += "mad.lo.u32 %r22, %r1, " + std::to_string(1 + lot.Number(9)) + ", " + std::to_string(entry) +
              ";\nand.b32 %r22, %r22, 63;\nmul.wide.u32 %rd13, %r22, 8;\nadd.u64 %rd14, %rd2, %rd13;\nld.global.u64 "
              "%rd10, [%rd14];\n";
    else body += "ld.global.u64 %rd10, [%rd2+" + std::to_string(entry * 8) + "];\n";
    if (form == 2) body += "add.u64 %rd10, %rd10, %rd3;\n";
    body += Access(lot) + "add.u32 %r20, %r20, %r10;\n";
    if (guarded) body += label + ":\n";
    if (lot.Number(3) == 0) body += "bar.sync 0;\n";
  }
  return KernelText(
      ".local .align 16 .b8 frame[64];\n" + body + "add.u64 %rd15, %rd1, %rd3;\nst.global.u32 [%rd15], %r20;",
      ".shared .align 16 .b8 tile[256];\n");
}

void CheckStillRuns(Executor& executor) {
  const std::uint64_t p = executor.Upload(std::vector<std::uint32_t>(64));
  const exec::LaunchFault fault =
      executor.Launch(KernelText("add.u64 %rd4, %rd1, %rd3;\nst.global.u32 [%rd4], %r1;"), "k", {1, 1, 1}, {64, 1, 1},
                      ParamBlock().Add(p).Add(std::uint64_t{0}));
  REQUIRE(fault.kind == FaultKind::kNone);
  std::vector<std::uint32_t> data(64);
  executor.Download(p, data);
  executor.Free(p);
  for (std::uint32_t i = 0; i < 64; ++i) REQUIRE(data[i] == i);
}

void RunSeeds(bool memcheck) {
  const int seeds = std::getenv("GRIDLOOM_TEST_FULL") ? 2000 : 60;
  int faults = 0, reported = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    std::uint64_t told = 0;
    exec::Engine::Options options;
    options.threads = 2;
    options.memcheck = memcheck;
    options.on_memcheck = [&](const exec::MemcheckReport&) { ++told; };
    Executor executor(options);
    const std::uint64_t p = executor.Upload(std::vector<std::uint32_t>(256));
    BadAddresses lot(static_cast<std::uint64_t>(seed), p, executor.memory());
    std::vector<std::uint64_t> table(kAddresses);
    for (std::uint64_t& address : table) address = lot.Next();
    const std::uint64_t q = executor.Upload(table);
    const std::string text = Kernel(lot);
    INFO("seed " << seed << "\n" << text);
    const exec::LaunchFault fault = executor.Launch(text, "k", {5, 1, 1}, {96, 1, 1}, ParamBlock().Add(p).Add(q));
    INFO("fault: " << fault.text);
    REQUIRE((fault.kind == FaultKind::kNone || fault.kind == FaultKind::kIllegalAddress ||
             fault.kind == FaultKind::kMisalignedAddress));
    faults += fault.kind != FaultKind::kNone;
    reported += told != 0;
    if (memcheck && fault.kind != FaultKind::kNone) REQUIRE(told != 0);
    CheckStillRuns(executor);
  }
  CHECK(faults > seeds / 4);
  if (memcheck) CHECK(reported >= faults);
}

TEST_CASE("bad addresses: random accesses never end the process") { RunSeeds(false); }
TEST_CASE("bad addresses: nor do they under memcheck, which names each grid's first one") { RunSeeds(true); }

}  // namespace
}  // namespace gridloom::test
