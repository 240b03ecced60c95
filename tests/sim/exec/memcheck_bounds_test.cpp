// Accesses outside of allocations, variables and windows.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/sim/exec/memcheck_fixture.h"

namespace gridloom::test {
namespace {

using exec::FaultKind;
using exec::MemcheckKind;
using exec::MemcheckReport;

constexpr exec::Dim3 kOne{1, 1, 1};

std::string Text(const MemcheckReport& report) { return exec::FormatMemcheck(report); }
bool Has(const MemcheckReport& report, const std::string& part) {
  INFO(Text(report));
  const bool found = Text(report).find(part) != std::string::npos;
  CHECK(found);
  return found;
}

const std::string kStoreByIndex = KernelText("add.u64 %rd4, %rd1, %rd3;\nst.global.u32 [%rd4], %r1;");

TEST_CASE("memcheck: a write past the end in the same page is found, not done, and the grid goes on") {
  MemcheckRun run;
  const std::uint64_t p = run.executor().Upload(std::vector<std::uint32_t>(1000, 7));
  const exec::LaunchFault fault = run.Run(kStoreByIndex, kOne, {1024, 1, 1}, p);
  CHECK(fault.kind == FaultKind::kNone);
  REQUIRE(run.told().size() == 1);
  const MemcheckReport& report = run.told()[0];
  CHECK(report.kind == MemcheckKind::kOutOfBounds);
  CHECK(report.access.kind == exec::AccessKind::kWrite);
  CHECK(report.access.bytes == 4);
  CHECK(report.access.thread.x == 1000);
  CHECK(report.access.ptx_line == 11);
  CHECK(report.address == p + 4000);
  CHECK(report.times == 24);
  Has(report, "out-of-bounds write of 4 bytes to global memory in kernel `k` at PTX line 11");
  Has(report, "CTA (0,0,0), thread (1000,0,0)");
  Has(report,
      "right at the end of the 4,000-byte allocation " + exec::HexAddress(p) + " made by cudaMalloc (allocation 1)");
  Has(report, "and 23 more accesses of this kind at this place");
  std::vector<std::uint32_t> data(1000);
  run.executor().Download(p, data);
  CHECK(data[999] == 999);
  CHECK(*reinterpret_cast<const std::uint32_t*>(p + 4000) == 0);  // its page is there, the write was not done
}

TEST_CASE("memcheck: an access that no memory answers stops the grid with the error it has without memcheck") {
  MemcheckRun run;
  const std::uint64_t p = run.executor().Upload(std::vector<std::uint32_t>(1000));
  const exec::LaunchFault fault = run.Run(kStoreByIndex, kOne, {64, 1, 1}, p + (1 << 20));
  CHECK(fault.kind == FaultKind::kIllegalAddress);
  REQUIRE(run.told().size() == 1);
  CHECK(run.told()[0].times == 32);
  Has(run.told()[0], "1,044,576 bytes past the end of the 4,000-byte allocation");
}

TEST_CASE("memcheck: a distance that says nothing is not told") {
  MemcheckRun run;
  const std::uint64_t p = run.executor().Upload(std::vector<std::uint32_t>(1000));
  run.Run(kStoreByIndex, kOne, kOne, p + (std::uint64_t{1} << 44));
  REQUIRE(run.told().size() == 1);
  Has(run.told()[0], ": not near any allocation");
}

// PTX 9.2: the bytes at both ends that `ignoreBytesLeft` and `ignoreBytesRight` name may lie outside of the memory.
TEST_CASE("memcheck: a bulk copy does not read the bytes that it ignores, and copies all others") {
  constexpr const char* kCopies = R"(.version 9.2
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q) {
  .reg .b64 %rd<9>; .reg .b32 %r<20>; .reg .pred %p<3>;
  .shared .align 16 .b8 buffer[256];
  .shared .align 8 .b64 barrier;
  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];
  ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];
  mov.u32 %r10, 0; mov.u32 %r11, buffer; mov.u32 %r12, 0x11111111;
FILL:
  st.shared.u32 [%r11], %r12; add.u32 %r11, %r11, 4; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 64; @%p1 bra FILL;
  mbarrier.init.shared.b64 [barrier], 1;
  mbarrier.arrive.expect_tx.shared.b64 %rd4, [barrier], %r1;
  mov.u32 %r11, buffer; mov.u32 %r12, barrier;
  cvt.u64.u32 %rd5, %r4; add.u64 %rd1, %rd1, %rd5;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r11], [%rd1], %r1, %r2, %r3, [%r12];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p2, [barrier], 0;
  @!%p2 bra WAIT;
  mov.u32 %r10, 0;
OUT:
  ld.shared.u32 %r12, [%r11]; st.global.u32 [%rd2+16], %r12;
  add.u32 %r11, %r11, 4; add.u64 %rd2, %rd2, 4; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 64; @%p1 bra OUT;
  ret;
}
)";
  struct Copy {
    std::uint32_t size, left, right, skip;  ///< `skip`: bytes of the source before what is copied
  };
  // The source has 100 bytes: what ends behind them has to ignore the rest.
  const Copy kWithin[] = {{112, 0, 12, 0}, {112, 7, 12, 0}, {16, 3, 12, 96}, {32, 15, 15, 80},
                          {48, 0, 0, 16},  {96, 5, 0, 0},   {0, 0, 0, 0}};
  for (const Copy& copy : kWithin) {
    INFO("copy of " << copy.size << " without " << copy.left << " and " << copy.right << " from " << copy.skip);
    MemcheckRun run;
    std::vector<std::uint8_t> source(100);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint8_t>(i + 100);
    std::vector<std::uint32_t> words(4 + 64);
    std::memcpy(words.data(), &copy, sizeof copy);
    const std::uint64_t q = run.executor().Upload(words);
    CHECK(run.Run(kCopies, kOne, kOne, run.executor().Upload(source), q).text == "");
    CHECK(Kinds(run.told()) == "");
    run.executor().Download(q, words);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(words.data() + 4);
    for (std::uint32_t i = copy.left; i + copy.right < copy.size; ++i) CHECK(bytes[i] == source[copy.skip + i]);
    for (std::uint32_t i = copy.size; i < 256; ++i) CHECK(bytes[i] == 0x11);
  }
  MemcheckRun run;
  std::vector<std::uint32_t> words(4 + 64);
  const Copy beyond{112, 0, 11, 0};
  std::memcpy(words.data(), &beyond, sizeof beyond);
  const std::uint64_t q = run.executor().Upload(words);
  run.Run(kCopies, kOne, kOne, run.executor().Upload(std::vector<std::uint8_t>(100)), q);
  REQUIRE(run.told().size() == 1);
  CHECK(run.told()[0].kind == MemcheckKind::kOutOfBounds);
}

TEST_CASE("memcheck: names of kernels are short") {
  const auto name = [](const std::string& kernel) {
    MemcheckReport report{};
    report.kernel = kernel;
    const std::string text = Text(report);
    const std::size_t first = text.find('`') + 1;
    return text.substr(first, text.find('`', first) - first);
  };
  const std::string much(150, 'x');
  CHECK(name("void a::b<int>(char*)") == "void a::b<int>(char*)");
  CHECK(name("void a::b<c<" + much + ">, d>::e<f>(char*)") == "void a::b<…>::e<…>(char*)");
  CHECK(name("void a(" + much + ")") == "void a(…)");
  CHECK(name("bool a::operator<(" + much + ")") == "bool a::operator<(…)");
}

TEST_CASE("memcheck: addresses before an allocation, null and misaligned ones") {
  MemcheckRun run;
  const std::uint64_t p = run.executor().Upload(std::vector<std::uint32_t>(64));
  CHECK(run.Run(kStoreByIndex, kOne, kOne, p - 8).kind == FaultKind::kIllegalAddress);
  CHECK(run.Run(kStoreByIndex, kOne, kOne, 0).kind == FaultKind::kIllegalAddress);
  CHECK(run.Run(kStoreByIndex, kOne, {8, 1, 1}, p + 2).kind == FaultKind::kMisalignedAddress);
  REQUIRE(Kinds(run.findings().reports) == "out-of-bounds misaligned");  // the first two are at one place
  Has(run.findings().reports[0], "8 bytes before the 256-byte allocation");
  Has(run.findings().reports[1], "4-byte accesses need a multiple of 4");
  MemcheckRun other;
  other.Run(kStoreByIndex, kOne, kOne, 16);
  REQUIRE(other.told().size() == 1);
  Has(other.told()[0], "a null pointer plus 16 bytes");
}

TEST_CASE("memcheck: a vector access whose end lies outside") {
  const std::string text = KernelText("ld.global.v2.u64 {%rd5, %rd6}, [%rd1];\nst.global.u64 [%rd2], %rd6;");
  MemcheckRun run;
  const std::uint64_t p = run.executor().Upload(std::vector<std::uint32_t>(6)),
                      q = run.executor().Upload(std::vector<std::uint64_t>(1));
  CHECK(run.Run(text, kOne, kOne, p + 16, q).kind == FaultKind::kNone);
  REQUIRE(run.told().size() == 1);
  CHECK(run.told()[0].access.kind == exec::AccessKind::kRead);
  Has(run.told()[0], "its last 8 bytes lie past the end of the 24-byte allocation");
}

TEST_CASE("memcheck: memory that has been freed") {
  MemcheckRun run;
  const std::uint64_t p = run.executor().Upload(std::vector<std::uint32_t>(1024));
  run.executor().Free(p);
  for (int i = 0; i < 50; ++i)
    CHECK(run.executor().Upload(std::vector<std::uint32_t>(1024)) != p);  // not handed out again at once
  CHECK(run.Run(kStoreByIndex, kOne, {32, 1, 1}, p + 16).kind == FaultKind::kIllegalAddress);
  REQUIRE(Kinds(run.told()) == "use-after-free");
  Has(run.told()[0], "use after free: write of 4 bytes");
  Has(run.told()[0], "16 bytes into the 4,096-byte allocation");
  Has(run.told()[0], "(allocation 1), which has been freed");
}

TEST_CASE("memcheck: atomics and reductions are checked") {
  const std::string text = KernelText(
      "add.u64 %rd4, %rd1, %rd3;\nred.global.add.u32 [%rd4], 1;\natom.global.cas.b32 %r5, [%rd4], 1, 2;\n"
      "add.u64 %rd5, %rd2, %rd3;\nst.global.u32 [%rd5], %r5;");
  MemcheckRun run;
  const std::uint64_t p = run.executor().Upload(std::vector<std::uint32_t>(30)),
                      q = run.executor().Upload(std::vector<std::uint32_t>(32));
  run.Run(text, kOne, {32, 1, 1}, p, q);
  REQUIRE(Kinds(run.told()) == "out-of-bounds out-of-bounds");
  CHECK(run.told()[0].times == 2);
  Has(run.told()[0], "out-of-bounds atomic operation of 4 bytes on global memory");
}

TEST_CASE("memcheck: variables of a module have exact bounds") {
  const std::string text =
      KernelText("mov.u64 %rd4, table;\nadd.u64 %rd4, %rd4, %rd3;\nst.global.u32 [%rd4], %r1;",
                 ".visible .global .align 4 .b8 table[40]; .visible .global .align 4 .b8 next[400];");
  MemcheckRun run;
  CHECK(run.Run(text, kOne, {16, 1, 1}).kind == FaultKind::kNone);
  REQUIRE(run.told().size() == 1);
  CHECK(run.told()[0].times == 6);
  Has(run.told()[0], "right at the end of variable `table` (40 bytes)");
}

TEST_CASE("memcheck: shared and local windows") {
  MemcheckRun run;
  const std::string shared = KernelText("mov.u32 %r4, tile;\nadd.u32 %r4, %r4, %r2;\nst.shared.u32 [%r4], %r1;",
                                        ".shared .align 4 .b8 tile[128];");
  CHECK(run.Run(shared, kOne, {64, 1, 1}).kind == FaultKind::kIllegalAddress);
  const std::string local = KernelText(
      ".local .align 4 .b8 frame[64];\nmov.u64 %rd4, frame;\nadd.u64 %rd4, %rd4, 65536;\nst.local.u32 [%rd4], %r1;\n"
      "ld.local.u32 %r5, [frame];\nst.global.u32 [%rd1], %r5;");
  CHECK(run.Run(local, kOne, {32, 1, 1}).kind == FaultKind::kIllegalAddress);
  REQUIRE(Kinds(run.told()) == "out-of-bounds out-of-bounds");
  Has(run.told()[0], "shared memory at 0x80: the CTA has 128 bytes of shared memory (128 static, 0 dynamic)");
  Has(run.told()[1], "write of 4 bytes to local memory");
}

TEST_CASE("memcheck: generic addresses are told apart") {
  const std::string text = KernelText(
      "mov.u64 %rd4, tile;\ncvta.shared.u64 %rd4, %rd4;\nadd.u64 %rd5, %rd4, %rd3;\nst.u32 [%rd5], %r1;\n"
      "ld.u32 %r6, [%rd5];\nadd.u64 %rd6, %rd1, %rd3;\nst.u32 [%rd6], %r6;\n"
      "st.global.u32 [%rd5], %r1;",
      ".shared .align 4 .b8 tile[128];");
  MemcheckRun run;
  const std::uint64_t p = run.executor().Upload(std::vector<std::uint32_t>(30));
  run.Run(text, kOne, {32, 1, 1}, p);
  REQUIRE(Kinds(run.told()) == "out-of-bounds out-of-bounds");
  CHECK(run.told()[0].times == 2);
  Has(run.told()[1], "it lies in shared memory, and the instruction is for global memory");
}

TEST_CASE("memcheck: registered host memory, also for reading only") {
  MemcheckRun run;
  std::vector<std::uint32_t> host(64, 5);
  REQUIRE(run.executor().memory().RegisterHost(host.data(), 128, true));
  const auto p = reinterpret_cast<std::uint64_t>(host.data());
  const std::uint64_t q = run.executor().Upload(std::vector<std::uint32_t>(64));
  const std::string copy = KernelText(
      "add.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\nld.global.u32 %r5, [%rd4];\nst.global.u32 [%rd5], %r5;");
  CHECK(run.Run(copy, kOne, {32, 1, 1}, p, q).kind == FaultKind::kNone);
  CHECK(run.told().empty());
  CHECK(run.Run(copy, kOne, {33, 1, 1}, p, q).kind == FaultKind::kIllegalAddress);
  CHECK(run.Run(copy, kOne, {1, 1, 1}, q, p).kind == FaultKind::kIllegalAddress);
  REQUIRE(Kinds(run.told()) == "out-of-bounds read-only");
  Has(run.told()[0], "right at the end of the 128-byte allocation");
  Has(run.told()[0], "made by cudaHostRegister");
  CHECK(host[0] == 5);
}

const std::string kHeap = ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 a);\n";
std::string Allocate(const std::string& bytes) {
  return "{ .param .b64 a; .param .b64 b; st.param.b64 [a], " + bytes +
         "; call.uni (b), malloc, (a); ld.param.b64 %rd4, [b]; }\n";
}
const std::string kFree = "{ .param .b64 a; st.param.b64 [a], %rd4; call.uni free, (a); }\n";

TEST_CASE("memcheck: blocks of malloc() in a kernel") {
  MemcheckRun run;
  CHECK(run.Run(KernelText(Allocate("20") + "st.global.u32 [%rd4+16], 1;\nst.global.u32 [%rd4+20], 1;\n" + kFree +
                               "ld.global.u32 %r5, [%rd4];\n"
                               "st.global.u32 [%rd1], %r5;",
                           kHeap),
                kOne, kOne, run.executor().Upload(std::vector<std::uint32_t>(1)))
            .kind == FaultKind::kNone);
  REQUIRE(Kinds(run.told()) == "out-of-bounds use-after-free");
  Has(run.told()[0], "right at the end of the 20-byte block");
  Has(run.told()[0], "made by malloc() in a kernel");
  Has(run.told()[1], "which has been freed");
}

TEST_CASE("memcheck: free() of what is no block") {
  MemcheckRun run;
  CHECK(run.Run(KernelText(Allocate("20") + kFree + kFree, kHeap), kOne, kOne).kind == FaultKind::kIllegalAddress);
  REQUIRE(Kinds(run.told()) == "invalid-free");
  Has(run.told()[0], "which has been freed");
}

TEST_CASE("memcheck: the source line comes from .loc") {
  const std::string text =
      ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry _Z5scalePfi(.param .u64 p, .param .u32 "
      "n)\n{\n.reg .b64 %rd<4>;\n"
      ".loc 1 11 3\nld.param.u64 %rd1, [p];\n.loc 1 12 5\nst.global.u32 [%rd1], 0;\nret;\n}\n.file 1 \"/src/app.cu\"\n";
  MemcheckRun run;
  run.executor().Launch(text, "_Z5scalePfi", kOne, kOne, ParamBlock().Add(std::uint64_t{0}).Add(1));
  REQUIRE(run.told().size() == 1);
  Has(run.told()[0], "in kernel `scale(float*, int)` at /src/app.cu:12 (PTX line 10)");
}

TEST_CASE("memcheck: no more findings are kept than the limit says") {
  MemcheckRun run(1);
  const std::uint64_t p = run.executor().Upload(std::vector<std::uint32_t>(2));
  const std::string text =
      KernelText("st.global.u32 [%rd1+8], 1;\nA:\nst.global.u32 [%rd1+12], 1;\nB:\nst.global.u32 [%rd1+16], 1;");
  run.Run(text, {3, 1, 1}, kOne, p);
  run.Run(text, {3, 1, 1}, kOne, p);
  CHECK(run.told().size() == 1);
  REQUIRE(run.findings().reports.size() == 1);
  CHECK(run.findings().reports[0].times == 6);
  CHECK(run.findings().not_kept == 12);
}

TEST_CASE("memcheck: instructions that are alike and stand in one straight line are one error") {
  MemcheckRun run;
  const std::uint64_t p = run.executor().Upload(std::vector<std::uint32_t>(2)),
                      q = run.executor().Upload(std::vector<std::uint32_t>(2));
  const std::string unrolled = "st.global.u32 [%rd1+8], 1;\nst.global.u32 [%rd1+12], 1;\nst.global.u32 [%rd1+16], 1;\n";
  run.Run(KernelText(unrolled + "st.global.u32 [%rd2+8], 1;\nst.global.u16 [%rd1+8], %h1;\nL:\n" + unrolled), {2, 1, 1},
          kOne, p, q);
  REQUIRE(run.findings().reports.size() == 4);
  CHECK(run.findings().reports[0].times == 6);
  CHECK(run.findings().reports[1].times == 2);  // another allocation
  CHECK(run.findings().reports[2].times == 2);  // another instruction
  CHECK(run.findings().reports[3].times == 6);  // behind a label
}

TEST_CASE("memcheck: an address far from everything") {
  MemcheckRun run;
  run.Run(
      KernelText("mov.u64 %rd4, 0x123456789abc;\nst.global.u32 [%rd4], 1;", ".visible .global .align 4 .b8 table[40];"),
      kOne, kOne);
  REQUIRE(run.told().size() == 1);
  Has(run.told()[0], ": not near any allocation");
}

TEST_CASE("memcheck: a correct grid over many CTAs and sizes of access") {
  const std::string text = KernelText(
      "mov.u32 %r4, %ctaid.x;\nmov.u32 %r5, %ntid.x;\nmad.lo.u32 %r6, %r4, %r5, %r1;\nmul.wide.u32 %rd4, %r6, "
      "16;\nadd.u64 %rd5, %rd1, "
      "%rd4;\n"
      "st.global.v4.u32 [%rd5], {%r6, %r6, %r6, %r6};\nld.global.v2.u64 {%rd6, %rd7}, [%rd5];\nst.global.u8 [%rd5+15], "
      "%r6;\nst.global.u16 "
      "[%rd5+12], %r6;\n"
      "xor.b32 %r7, %r6, 5;\nmul.wide.u32 %rd8, %r7, 16;\nadd.u64 %rd9, %rd2, %rd8;\nst.global.u64 [%rd9+8], %rd6;");
  MemcheckRun run;
  const std::uint64_t p = run.executor().Upload(std::vector<std::uint64_t>(2 * 96 * 50)),
                      q = run.executor().Upload(std::vector<std::uint64_t>(2 * 96 * 50));
  CHECK(run.Run(text, {50, 1, 1}, {96, 1, 1}, p, q).kind == FaultKind::kNone);
  CHECK(run.told().empty());
}

}  // namespace
}  // namespace gridloom::test
