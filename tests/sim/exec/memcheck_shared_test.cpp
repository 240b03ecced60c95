// Shared memory that was not written, and accesses of threads of a CTA that nothing orders.
#include <catch2/catch.hpp>

#include "tests/sim/exec/memcheck_fixture.h"

namespace gridloom::test {
namespace {

using exec::MemcheckReport;

const std::string kTile = ".shared .align 16 .b8 tile[8192];\n";
constexpr exec::Dim3 kTwoWarps{64, 1, 1}, kWarp{32, 1, 1};

// %r4: the thread's own word in tile; %r5: that of the other warp's thread with the same lane; %r6: of the next lane.
const std::string kAddresses =
    "mov.u32 %r7, tile;\nadd.u32 %r4, %r7, %r2;\nxor.b32 %r5, %r2, 128;\nadd.u32 %r5, %r5, %r7;\n"
    "add.u32 %r6, %r1, 1;\nand.b32 %r6, %r6, 31;\nshl.b32 %r6, %r6, 2;\nadd.u32 %r6, %r6, %r7;\n";
const std::string kStoreOwn = "st.shared.u32 [%r4], %r1;\n", kLoadOwn = "ld.shared.u32 %r10, [%r4];\n",
                  kStoreOther = "st.shared.u32 [%r5], %r1;\n", kLoadOther = "ld.shared.u32 %r10, [%r5];\n",
                  kStoreNew = "st.shared.u32 [%r4], 99;\n", kLoadNext = "ld.shared.u32 %r10, [%r6];\n",
                  kBarrier = "bar.sync 0;\n", kSyncWarp = "bar.warp.sync -1;\n", kFence = "membar.cta;\n",
                  kOut = "add.u64 %rd4, %rd1, %rd3;\nst.global.u32 [%rd4], %r10;\n";

std::string Found(const std::string& body, exec::Dim3 block, const std::string& target = "sm_75") {
  return KindsFound(KernelText(kAddresses + body, kTile, target), block);
}

TEST_CASE("memcheck: reads by lanes that stand in no rows, of memory that was all written, count when it is written") {
  const std::string scattered =
      "mul.lo.u32 %r8, %r1, 20;\nand.b32 %r8, %r8, 255;\nadd.u32 %r8, %r8, %r7;\nld.shared.u32 %r10, [%r8];\n";
  CHECK(Found(kStoreOwn + kBarrier + scattered + kStoreNew + kOut, kTwoWarps) == "race race");
  CHECK(Found(kStoreOwn + kBarrier + scattered + scattered + kBarrier + kStoreNew + kOut, kTwoWarps) == "");
  CHECK(Found(kStoreOwn + kBarrier + scattered + kBarrier + scattered + kStoreOther + kOut, kTwoWarps) == "race race");
}

// A stretch of reads that code asks about all at once (compiler/read_groups.h): rows at a lane's own place, and one
// place of all.
const std::string kReads =
    "ld.shared.u32 %r10, [%r4];\nld.shared.u32 %r11, [%r4+128];\nadd.u32 %r10, %r10, %r11;\n"
    "ld.shared.u32 %r11, [tile+16];\nadd.u32 %r10, %r10, %r11;\nld.shared.u32 %r11, [%r4+256];\n"
    "add.u32 %r10, %r10, %r11;\nld.shared.u32 %r11, [tile+244];\nadd.u32 %r10, %r10, %r11;\n";

TEST_CASE("memcheck: a stretch of reads counts when something is written") {
  const std::string fill = kStoreOwn + "st.shared.u32 [%r4+256], %r1;\n" + kBarrier;
  CHECK(Found(fill + kReads + kOut, kTwoWarps) == "");
  CHECK(Found(fill + kReads + kBarrier + kStoreNew + kOut, kTwoWarps) == "");
  // Each of the five reads, by the other warp or the same one, is before some lane's write.
  CHECK(Found(fill + kReads + "st.shared.u32 [%r4+256], 99;\n" + kOut, kTwoWarps) == "race");
  CHECK(Found(fill + kReads + kStoreNew + kOut, kTwoWarps) == "race");
  CHECK(Found(fill + kReads + kBarrier + kReads + kStoreNew + kOut, kTwoWarps) == "race");
  CHECK(Found(kStoreOwn + kBarrier + kReads + kOut, kTwoWarps) == "uninitialised");
  CHECK(Found(fill + "st.shared.u32 [tile+244], 99;\n" + kReads + kOut, kTwoWarps).find("race") != std::string::npos);
}

TEST_CASE("memcheck: a write by several lanes names a thread that there is") {
  // 20 threads: the warp's last lane is none. In another shape, it would be in a row that there is not.
  for (const exec::Dim3 block : {exec::Dim3{52, 1, 1}, exec::Dim3{13, 4, 1}}) {
    MemcheckRun run;
    const std::uint64_t out = run.executor().Upload(std::vector<std::uint32_t>(4096));
    const std::string linear = "mov.u32 %r8, %tid.y;\nmov.u32 %r9, %ntid.x;\nmad.lo.u32 %r1, %r8, %r9, %r1;\n";
    // All of the second warp writes one word, which the first one reads.
    run.Run(KernelText(linear +
                           "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra R;\nst.shared.u32 [tile], %r1;\nbra E;\nR:\n"
                           "ld.shared.u32 %r10, [tile];\nst.global.u32 [%rd1], %r10;\nE:\n" +
                           kBarrier + "setp.ge.u32 %p1, %r1, 32;\n@%p1 bra F;\nst.shared.u32 [tile+4], %r1;\nF:\n" +
                           "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra G;\nst.shared.u32 [tile+4], 77;\nG:\n",
                       kTile),
            {1, 1, 1}, block, out, out);
    bool several = false;
    for (const MemcheckReport& report : run.told()) {
      INFO(exec::FormatMemcheck(report));
      for (const exec::MemcheckAccess& access : {report.access, report.other.value_or(report.access)}) {
        CHECK(access.thread.x < block.x);
        CHECK(access.thread.y < block.y);
        several |= access.several;
      }
    }
    CHECK(several);
  }
}

TEST_CASE("memcheck: a read of shared memory that nobody wrote") {
  CHECK(Found(kLoadOwn + kOut, kWarp) == "uninitialised");
  CHECK(Found(kStoreOwn + kLoadOwn + kOut, kWarp) == "");
  CHECK(Found(kStoreOwn + kBarrier + "ld.shared.u32 %r10, [%r4+128];\n" + kOut, kTwoWarps) ==
        "uninitialised");                                                    // of the second warp
  CHECK(Found("red.shared.add.u32 [%r4], 1;\n", kWarp) == "uninitialised");  // reads what it adds to
  CHECK(Found("atom.shared.exch.b32 %r10, [%r4], 1;\n" + kOut, kWarp) == "uninitialised");
  CHECK(Found("st.shared.u16 [%r4], %r1;\n" + kLoadOwn + kOut, kWarp) == "");  // as a struct with a gap
  CHECK(Found("st.shared.u16 [%r4], %r1;\nst.shared.u8 [%r4+2], %r1;\nst.shared.u8 [%r4+3], %r1;\n" + kLoadOwn + kOut,
              kWarp) == "");
}

// %r10: unwritten; %r1 and %r12 = 5: valid.
const std::string kInvalid = "ld.shared.u32 %r10, [%r4+256];\nmov.u32 %r12, 5;\n";

std::string UseOf(const std::string& body) {
  MemcheckRun run;
  const std::uint64_t out = run.executor().Upload(std::vector<std::uint32_t>(4096));
  run.Run(KernelText(kAddresses + body, kTile), {1, 1, 1}, kWarp, out, out);
  REQUIRE(run.told().size() == 1);
  const std::string text = exec::FormatMemcheck(run.told()[0]);
  const std::size_t from = text.find("memory ") + 7;
  return text.substr(from, text.find(" in kernel") - from);
}

TEST_CASE("memcheck: an unwritten value is told where it decides something") {
  CHECK(UseOf(kInvalid + kOut) == "is stored to global memory");
  CHECK(UseOf(kInvalid + "add.u32 %r10, %r10, %r1;\n" + kOut) == "is stored to global memory");
  CHECK(UseOf(kInvalid + "cvt.rn.f32.u32 %f1, %r10;\nfma.rn.f32 %f1, %f1, %f1, %f1;\nmov.b32 %r10, %f1;\n" + kOut) ==
        "is stored to global memory");
  CHECK(UseOf(kInvalid + "setp.eq.u32 %p1, %r10, 7;\n@%p1 bra L;\nst.global.u32 [%rd1], %r1;\nL:\n") ==
        "decides a branch");
  CHECK(
      UseOf(
          kInvalid +
          "and.b32 %r10, %r10, 4;\ncvt.u64.u32 %rd5, %r10;\nadd.u64 %rd5, %rd5, %rd1;\nst.global.u32 [%rd5], %r1;\n") ==
      "is an address");
  CHECK(UseOf(kInvalid + "atom.global.add.u32 %r11, [%rd1], %r10;\n") == "goes into an atomic operation");
}

TEST_CASE("memcheck: an unwritten value goes through shared memory, shuffles and votes") {
  CHECK(Found(kInvalid + "st.shared.u32 [%r4], %r10;\n", kWarp) == "");
  CHECK(Found(kInvalid + "st.shared.u32 [%r4], %r10;\nld.shared.u32 %r10, [%r4];\n" + kOut, kWarp) == "uninitialised");
  CHECK(Found(kInvalid + "st.shared.u32 [%r4], %r10;\n" + kStoreOwn + "ld.shared.u32 %r10, [%r4];\n" + kOut, kWarp) ==
        "");
  CHECK(Found(kInvalid + "shfl.sync.bfly.b32 %r10, %r10, 1, 31, -1;\n" + kOut, kWarp) == "uninitialised");
  CHECK(Found(kInvalid + "setp.eq.u32 %p1, %r10, 7;\nvote.sync.ballot.b32 %r10, %p1, -1;\n" + kOut, kWarp) ==
        "uninitialised");
}

TEST_CASE("memcheck: an unwritten value that decides nothing is no error") {
  CHECK(Found(kInvalid + "setp.lt.u32 %p1, %r1, 99;\nselp.u32 %r10, %r1, %r10, %p1;\n" + kOut, kWarp) == "");
  CHECK(Found(kInvalid + "and.b32 %r10, %r10, 0;\n" + kOut, kWarp) == "");
  CHECK(Found(kInvalid + "mov.u32 %r12, -1;\nor.b32 %r10, %r10, %r12;\nsetp.eq.u32 %p1, %r10, -1;\n@%p1 bra L;\n" +
                  kOut + "L:\n",
              kWarp) == "");
  // A choice between what is the same; a difference in what is known.
  CHECK(Found(kInvalid + "setp.eq.u32 %p1, %r10, 7;\nselp.u32 %r10, %r12, 5, %p1;\n" + kOut, kWarp) == "");
  // Three bytes of four, taken apart by shifts, permutations and bit fields.
  const std::string bytes =
      "st.shared.u8 [%r4], %r1;\nst.shared.u8 [%r4+1], %r1;\nst.shared.u8 [%r4+3], %r1;\nld.shared.u32 %r10, [%r4];\n";
  CHECK(Found(bytes + "shr.u32 %r10, %r10, 24;\nsetp.eq.u32 %p1, %r10, 7;\n@%p1 bra L;\n" + kOut + "L:\n", kWarp) ==
        "");
  CHECK(Found(bytes + "bfe.u32 %r10, %r10, 8, 8;\nsetp.eq.u32 %p1, %r10, 7;\n@%p1 bra L;\n" + kOut + "L:\n", kWarp) ==
        "");
  CHECK(Found(bytes + "prmt.b32 %r10, %r10, 0, 0x4130;\nsetp.eq.u32 %p1, %r10, 7;\n@%p1 bra L;\n" + kOut + "L:\n",
              kWarp) == "");
  CHECK(Found(bytes + "bfe.u32 %r10, %r10, 16, 8;\nsetp.eq.u32 %p1, %r10, 7;\n@%p1 bra L;\n" + kOut + "L:\n", kWarp) ==
        "uninitialised");
  // An element of a vector that nobody uses, or that is only copied along.
  const std::string three =
      "shl.b32 %r8, %r1, 4;\nadd.u32 %r9, %r7, %r8;\nst.shared.v2.u32 [%r9], {%r1, %r1};\n"
      "st.shared.u32 [%r9+8], %r1;\nld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r9];\n";
  CHECK(Found(three + "add.u32 %r10, %r10, %r12;\n" + kOut, kWarp) == "");
  CHECK(Found(three + "st.global.v4.u32 [%rd1], {%r10, %r11, %r12, %r13};\n", kWarp) == "");
  CHECK(Found(three + "add.u32 %r10, %r10, %r13;\n" + kOut, kWarp) == "uninitialised");
}

TEST_CASE("memcheck: unwritten values in loops and behind generic addresses") {
  const std::string sum =
      "mov.u32 %r10, 0;\nmov.u32 %r8, 0;\nL:\nadd.u32 %r9, %r4, %r8;\nld.shared.u32 %r11, [%r9];\n"
      "add.u32 %r10, %r10, %r11;\nadd.u32 %r8, %r8, 128;\nsetp.lt.u32 %p1, %r8, 512;\n@%p1 bra L;\n";
  CHECK(Found(sum + kOut, kWarp) == "uninitialised");
  CHECK(Found(sum, kWarp) == "");
  const std::string generic = "cvt.u64.u32 %rd5, %r4;\ncvta.shared.u64 %rd5, %rd5;\nld.u32 %r10, [%rd5];\n";
  CHECK(Found(generic, kWarp) == "");
  CHECK(Found(generic + "st.u32 [%rd5+512], %r10;\n", kWarp) == "");
  CHECK(Found(generic + "st.u32 [%rd1], %r10;\n", kWarp) == "uninitialised");
}

TEST_CASE("memcheck: every CTA begins with unwritten shared memory") {
  MemcheckRun run;
  const std::uint64_t p = run.executor().Upload(std::vector<std::uint32_t>(64));
  // The first CTA writes, the others do not.
  run.Run(KernelText(kAddresses + "mov.u32 %r8, %ctaid.x;\nsetp.ne.u32 %p1, %r8, 0;\n@%p1 bra L;\n" + kStoreOwn +
                         "L:\n" + kLoadOwn + kOut,
                     kTile),
          {5, 1, 1}, kWarp, p);
  REQUIRE(Kinds(run.told()) == "uninitialised");
  CHECK(run.told()[0].times == 4 * 32);
}

TEST_CASE("memcheck: races between warps") {
  CHECK(Found(kStoreOwn + kLoadOther + kOut, kTwoWarps) ==
        "uninitialised race race");  // the first warp reads before the second writes, which then reads what the first
                                     // wrote
  CHECK(Found(kStoreOwn + kBarrier + kLoadOther + kOut, kTwoWarps) == "");
  CHECK(Found(kStoreOwn + kBarrier + kLoadOther + kOut + kStoreNew, kTwoWarps) ==
        "race race");  // read after write, write after read
  CHECK(Found(kStoreOwn + kBarrier + kLoadOther + kOut + kBarrier + kStoreNew, kTwoWarps) == "");
  // All warps have read before one writes (give_way.h), which orders nothing.
  CHECK(Found(kStoreOwn + kBarrier + "ld.shared.u32 %r10, [tile];\n" + kOut + kStoreNew, kTwoWarps) == "race");
  CHECK(Found(kStoreOwn + kStoreOther, kTwoWarps) ==
        "race");  // of two instructions that are alike  // write after write, at both stores
  CHECK(Found(kStoreOwn + kBarrier + kStoreOther, kTwoWarps) == "");
}

TEST_CASE("memcheck: what a race report says") {
  MemcheckRun run;
  run.Run(KernelText(kAddresses + kStoreOwn + kBarrier + kLoadOther + kStoreNew + kOut, kTile), {1, 1, 1}, kTwoWarps,
          run.executor().Upload(std::vector<std::uint32_t>(64)));
  REQUIRE(Kinds(run.told()) == "race race");  // the warp that arrives last goes on first
  const MemcheckReport& report = run.told()[1];
  CHECK(report.access.kind == exec::AccessKind::kWrite);
  CHECK(report.access.thread.x == 0);
  REQUIRE(report.other);
  CHECK(report.other->kind == exec::AccessKind::kRead);
  CHECK(report.other->thread.x == 32);
  const std::string text = exec::FormatMemcheck(report);
  INFO(text);
  CHECK(text.find("race on shared memory: write of 4 bytes after a read by another thread in kernel `k`") !=
        std::string::npos);
  CHECK(text.find("the first byte of shared variable `tile`") != std::string::npos);
  CHECK(text.find("the read before it: thread (32,0,0) at PTX line") != std::string::npos);
}

TEST_CASE("memcheck: lanes of one warp need order from sm_70 on") {
  CHECK(Found(kStoreOwn + kLoadNext + kOut, kWarp) == "race");
  CHECK(Found(kStoreOwn + kSyncWarp + kLoadNext + kOut, kWarp) == "");
  CHECK(Found(kStoreOwn + kLoadNext + kOut, kWarp, "sm_60") == "");
  CHECK(Found(kStoreOwn + kSyncWarp + kLoadNext + kOut + kStoreOwn, kWarp) ==
        "");  // the same values again: nobody can tell
  CHECK(Found(kStoreOwn + kSyncWarp + kLoadNext + kOut + "st.shared.u32 [%r4], 77;\n", kWarp) == "race");
  CHECK(Found(kStoreOwn + "shfl.sync.bfly.b32 %r11, %r1, 1, 31, -1;\n" + kLoadNext + kOut, kWarp) == "");
}

TEST_CASE("memcheck: writes that nobody can tell apart are no races") {
  CHECK(Found("st.shared.u32 [tile], 1;\n" + kBarrier + "ld.shared.u32 %r10, [tile];\n" + kOut, {256, 1, 1}) == "");
  CHECK(Found("st.shared.u32 [tile], %r1;\n", kWarp) == "");  // lanes of one instruction: one of them wins
  CHECK(Found("st.shared.u32 [tile], %r1;\n", kTwoWarps) == "race");
}

TEST_CASE("memcheck: neighbouring bytes belong to different threads") {
  const std::string bytes = "mov.u32 %r7, tile;\nadd.u32 %r4, %r7, %r1;\nst.shared.u8 [%r4], %r1;\n";
  CHECK(Found(bytes, kTwoWarps) == "");
  CHECK(
      Found(bytes + kBarrier +
                "xor.b32 %r5, %r1, 33;\nadd.u32 %r5, %r5, %r7;\nld.shared.u8 %h1, [%r5];\nst.global.u8 [%rd1], %h1;\n",
            kTwoWarps) == "");
  CHECK(Found(bytes + "mov.u32 %r5, tile;\nadd.u32 %r5, %r5, %r3;\nst.shared.u8 [%r5], %r1;\n", kTwoWarps) == "race");
}

TEST_CASE("memcheck: atomics and volatile accesses are no races and order what is around them") {
  const std::string clear = "st.shared.u32 [%r4], 0;\n" + kBarrier;
  CHECK(Found(clear + "red.shared.add.u32 [tile], 1;\n" + kBarrier + "ld.shared.u32 %r10, [tile];\n" + kOut,
              {256, 1, 1}) == "");
  CHECK(Found(clear + "st.volatile.shared.u32 [tile], %r1;\nld.volatile.shared.u32 %r10, [tile];\n" + kOut,
              {256, 1, 1}) == "");
  // A ticket: the warp that draws the last one reads what the others wrote before they drew theirs.
  const std::string ticket =
      clear + "st.shared.u32 [%r4+2048], %r1;\n" + kFence + "atom.shared.add.u32 %r12, [tile], 1;\n" + kFence +
      "setp.ne.u32 %p1, %r12, 63;\n@%p1 bra L;\nld.shared.u32 %r10, [tile+2048];\n" + kOut + "L:\n";
  CHECK(Found(ticket, kTwoWarps) == "");
}

TEST_CASE("memcheck: atomics race with other accesses") {
  const std::string add = "red.shared.add.u32 [tile], 1;\n", read = "ld.shared.u32 %r10, [tile];\n" + kOut;
  const std::string zero = "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra Z;\nst.shared.u32 [tile], 0;\nZ:\n";
  CHECK(Found(zero + kBarrier + add + kBarrier + read, kTwoWarps) == "");
  // A histogram without the barrier behind its zeroing, and without the one before it is read.
  CHECK(Found(zero + add + kBarrier + read, kTwoWarps).find("race") != std::string::npos);
  CHECK(Found(zero + kBarrier + add + read, kTwoWarps).find("race") != std::string::npos);
  CHECK(Found(zero + kBarrier + add + kBarrier + read + "st.shared.u32 [tile], %r1;\n", kTwoWarps).find("race") !=
        std::string::npos);
  CHECK(Found(zero + kBarrier + read + add, kTwoWarps).find("race") != std::string::npos);
  CHECK(Found(zero + kBarrier + read + kBarrier + add + kBarrier + read, kTwoWarps) == "");
  // Neighbouring words are apart.
  CHECK(Found("st.shared.u32 [%r4+256], %r1;\n" + zero + kBarrier + add + "ld.shared.u32 %r10, [%r4+256];\n" + kOut,
              kTwoWarps) == "");
  // Lanes of one warp.
  CHECK(Found(zero + kSyncWarp + add + read, kWarp) == "race");
  CHECK(Found(zero + kSyncWarp + add + kSyncWarp + read, kWarp) == "");
  CHECK(Found(zero + kSyncWarp + add + kSyncWarp + read, kWarp, "sm_60") == "");
  // Nor is what a loop around a compare-and-swap reads before it.
  const std::string swap =
      "L:\nmov.b32 %r12, %r10;\nadd.u32 %r11, %r12, 2;\natom.shared.cas.b32 %r10, [%r7], %r12, %r11;\n"
      "setp.ne.u32 %p1, %r10, %r12;\n@%p1 bra L;\n";
  CHECK(Found(zero + kBarrier + "ld.shared.u32 %r10, [tile];\n" + swap, kTwoWarps) == "");
  CHECK(Found(zero + kBarrier + "ld.shared.u32 %r10, [tile];\n" + swap + read, kTwoWarps).find("race") !=
        std::string::npos);
  // Volatile reads of a counter are no races.
  CHECK(Found(zero + kBarrier + add + "ld.volatile.shared.u32 %r10, [tile];\n" + kOut, kTwoWarps) == "");
}

TEST_CASE("memcheck: an mbarrier that others use before it is there") {
  const std::string init = "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra Z;\nmbarrier.init.shared.b64 [tile], 64;\nZ:\n";
  const std::string use = "mbarrier.arrive.shared.b64 %rd5, [tile];\n";
  CHECK(Found(init + kBarrier + use, kTwoWarps, "sm_80") == "");
  CHECK(Found(init + use, kTwoWarps, "sm_80").find("race") != std::string::npos);
}

TEST_CASE("memcheck: named barriers, arrivals without waiting") {
  // The first warp produces, the second consumes, and gives the buffer back at another barrier.
  const std::string text =
      "setp.ge.u32 %p1, %r1, 32;\n@%p1 bra C;\nst.shared.u32 [%r4], %r1;\nbar.arrive 1, 64;\nbar.sync 2, "
      "64;\nst.shared.u32 [%r4], 9;\nbra "
      "E;\n"
      "C:\nbar.sync 1, 64;\nld.shared.u32 %r10, [%r5];\nbar.arrive 2, 64;\n" +
      kOut + "E:\n";
  CHECK(Found(text, kTwoWarps) == "");
  const std::string wrong =
      "setp.ge.u32 %p1, %r1, 32;\n@%p1 bra C;\nst.shared.u32 [%r4], %r1;\nbar.arrive 1, 64;\nst.shared.u32 [%r4], "
      "9;\nbra E;\n"
      "C:\nbar.sync 1, 64;\nld.shared.u32 %r10, [%r5];\n" +
      kOut + "E:\nbar.sync 3, 64;\n";
  CHECK(Found(wrong, kTwoWarps) == "race");
}

TEST_CASE("memcheck: barriers inside of loops and branches, warps that end early") {
  const std::string loop = "mov.u32 %r8, 0;\nL:\n" + kStoreOwn + kBarrier + kLoadOther + kBarrier +
                           "add.u32 %r8, %r8, 1;\nsetp.lt.u32 %p1, %r8, 9;\n@%p1 bra L;\n" + kOut;
  CHECK(Found(loop, kTwoWarps) == "");
  const std::string leaves =
      "st.shared.u32 [%r4], %r1;\nsetp.lt.u32 %p1, %r1, 32;\n@%p1 ret;\n" + kBarrier + kLoadOther + kOut;
  CHECK(Found(leaves, kTwoWarps) == "");
  const std::string diverged =
      "st.shared.u32 [%r4], %r1;\nand.b32 %r8, %r1, 1;\nsetp.eq.u32 %p1, %r8, 0;\n@%p1 bra A;\n" + kBarrier +
      "bra B;\nA:\n" + kBarrier + "B:\n" + kLoadOther + kOut;
  CHECK(Found(diverged, kTwoWarps) == "barrier-divergence");  // and no race
}

TEST_CASE("memcheck: an address that wraps for a lane that is off") {
  const std::string before =
      kStoreOwn + kBarrier + "setp.lt.s32 %p1, %r1, 1;\n@%p1 bra L;\nld.shared.u32 %r10, [%r4+-4];\n" + kOut + "L:\n";
  CHECK(Found(before, kTwoWarps) == "");
}

TEST_CASE("memcheck: vector, strided and uniform accesses to shared memory") {
  const std::string wide =
      "shl.b32 %r8, %r1, 4;\nmov.u32 %r7, tile;\nadd.u32 %r9, %r7, %r8;\nst.shared.v4.u32 [%r9], {%r1, %r1, %r1, "
      "%r1};\n";
  CHECK(Found(wide + kBarrier +
                  "xor.b32 %r8, %r8, 4080;\nadd.u32 %r9, %r7, %r8;\nld.shared.v2.u64 {%rd5, %rd6}, "
                  "[%r9];\nst.global.u64 [%rd1], %rd6;\n",
              {256, 1, 1}) == "");
  CHECK(Found(wide + "ld.shared.u32 %r10, [tile+1024];\n" + kOut, {256, 1, 1}).find("race") != std::string::npos);
  const std::string strided =
      "mul.lo.u32 %r8, %r1, 132;\nand.b32 %r8, %r8, 8188;\nmov.u32 %r7, tile;\nadd.u32 %r9, %r7, %r8;\nst.shared.u32 "
      "[%r9], %r1;\n";
  CHECK(Found(strided + kBarrier + "ld.shared.u32 %r10, [%r9];\n" + kOut, {32, 1, 1}) == "");
}

}  // namespace
}  // namespace gridloom::test
