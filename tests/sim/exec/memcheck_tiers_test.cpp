// memcheck in the interpreter against memcheck in machine code: random kernels that do much wrong have the same
// findings, to the thread, the line and the number of accesses.
#include <catch2/catch.hpp>
#include <chrono>
#include <random>
#include <sstream>

#include "tests/sim/exec/memcheck_fixture.h"
#include "tests/sim/exec/random_kernel.h"
#include "tests/sim/exec/tiers_fixture.h"

namespace gridloom::test {
namespace {

/// A body for KernelText that goes on without a loop that waits: accesses of all sorts and sizes to shared, local and
/// global memory, some of them out of bounds, misaligned, unordered, of memory that nobody has written; barriers and
/// .sync instructions, some of which not all threads come to; values that decide something.
class RandomDefects {
 public:
  explicit RandomDefects(std::uint64_t seed) : random_(seed) {
    text_ << ".shared .align 16 .b8 tile[" << kSharedBytes << "]; .local .align 16 .b8 own[64];\n";
    for (unsigned at = 0; at < 64; at += 16) text_ << "st.local.v4.u32 [own+" << at << "], {0, 0, 0, 0};\n";
    for (unsigned i = 0; i < kValues; ++i)
      text_ << "mad.lo.u32 %r" << kFirst + i << ", %r1, " << Below(9) << ", " << Below(99) << ";\n";
    if (Below(3) != 0) text_ << "mov.u32 %r30, tile; add.u32 %r30, %r30, %r2; st.shared.u32 [%r30], %r1;\n";
    if (Below(2) != 0) text_ << "bar.sync 0;\n";
    Block(14, 0);
  }
  std::string text() const { return text_.str(); }

 private:
  static constexpr unsigned kSharedBytes = 512, kFirst = 10, kValues = 8;

  unsigned Below(unsigned count) { return static_cast<unsigned>(random_() % count); }
  bool Rarely() { return Below(40) == 0; }
  std::string Register() { return "%r" + std::to_string(kFirst + Below(kValues)); }

  /// Leaves an offset below `bytes` or thereabouts in %r31: of the thread, the warp, or any value.
  void Offset(unsigned bytes, unsigned access) {
    switch (Below(4)) {
      case 0: text_ << "mul.lo.u32 %r31, %r1, " << access << ";"; break;
      case 1: text_ << "mov.u32 %r31, " << Below(bytes / access) * access << ";"; break;
      case 2: text_ << "shr.u32 %r31, %r1, " << Below(6) << "; mul.lo.u32 %r31, %r31, " << access << ";"; break;
      default:
        text_ << "and.b32 %r31, " << Register() << ", " << (bytes / access - 1) << "; mul.lo.u32 %r31, %r31, " << access
              << ";";
    }
    text_ << " add.u32 %r31, %r31, " << (Rarely() ? bytes : 0) + Below(4) * access + (Rarely() ? 1 : 0) << ";\n";
  }

  void Access() {
    static constexpr const char* kTypes[] = {"u8", "u16", "u32", "u32", "u64", "v2.u32"};
    static constexpr unsigned kBytes[] = {1, 2, 4, 4, 8, 8};
    const unsigned type = Below(6);
    const std::string strong = type < 5 && Below(8) == 0 ? ".volatile" : "";
    const unsigned space = Below(8);
    std::string address, name = "shared";
    if (space < 5) {
      Offset(kSharedBytes / 2, kBytes[type]);
      text_ << "mov.u32 %r32, tile; add.u32 %r31, %r31, %r32;\n";
      address = "[%r31]";
      if (space == 0) {
        text_ << "cvt.u64.u32 %rd10, %r31; cvta.shared.u64 %rd10, %rd10;\n";
        address = "[%rd10]", name = "";
      }
    } else if (space == 5) {
      Offset(32, kBytes[type]);
      text_ << "mov.u32 %r32, own; add.u32 %r31, %r31, %r32;\n";
      address = "[%r31]", name = "local";
    } else {
      Offset(kGlobalBytes / 2, kBytes[type]);
      text_ << "cvt.u64.u32 %rd10, %r31; add.u64 %rd10, %rd10, " << (Below(2) != 0 ? "%rd1" : "%rd2") << ";\n";
      address = "[%rd10]", name = "global";
    }
    const std::string what = strong + (name.empty() ? "" : "." + name) + "." + kTypes[type] + " ";
    const std::string a = Register(), b = Register();
    if (Below(2) != 0) {
      if (type == 4) text_ << "ld" << what << "%rd11, " << address << "; cvt.u32.u64 " << a << ", %rd11;\n";
      else if (type == 5)
        text_ << "ld" << what << "{" << a << ", %r33}, " << address << "; xor.b32 " << b << ", " << b << ", %r33;\n";
      else text_ << "ld" << what << a << ", " << address << ";\n";
    } else {
      if (type == 4) text_ << "mov.b64 %rd11, {" << a << ", " << b << "}; st" << what << address << ", %rd11;\n";
      else if (type == 5) text_ << "st" << what << address << ", {" << a << ", " << b << "};\n";
      else text_ << "st" << what << address << ", " << a << ";\n";
    }
  }

  /// Reads of rows in a straight line, as unrolled loops have them: of memory that was all written before a barrier,
  /// mostly, and behind which somebody may write.
  void Stretch() {
    text_ << "mov.u32 %r32, tile;\n";
    if (Below(4) != 0) {
      for (unsigned i = 0; i < 4; ++i)
        text_ << "add.u32 %r31, %r2, " << i * 160 << "; and.b32 %r31, %r31, " << kSharedBytes - 4
              << "; add.u32 %r31, %r31, %r32; st.shared.u32 [%r31], 7;\n";
    }
    if (Below(8) != 0) text_ << "bar.sync 0;\n";
    text_ << "shr.u32 %r31, %r1, " << 3 + Below(3) << "; shl.b32 %r31, %r31, 2; add.u32 %r31, %r31, %r32;\n"
          << "add.u32 %r34, %r2, %r32;\n";
    const unsigned reads = 3 + Below(9), inside = Below(3) != 0 ? kSharedBytes - 96 * 4 : kSharedBytes;
    for (unsigned i = 0; i < reads; ++i) {
      const std::string into = Register(), other = Register();
      const std::string at = Below(2) != 0 ? "%r31" : Below(4) != 0 ? "%r34" : "%r32";
      const unsigned offset = Below(inside / 4 - 3) * 4;
      if (Below(6) == 0)
        text_ << "ld.shared.v2.u32 {" << into << ", %r33}, [%r32+" << offset / 8 * 8 << "]; add.u32 " << other
              << ", %r33, " << into << ";\n";
      else text_ << "ld.shared.u32 " << into << ", [" << at << "+" << offset << "];\n";
      if (Below(2) != 0) text_ << "add.u32 " << other << ", " << other << ", " << into << ";\n";
    }
    if (Below(3) == 0) text_ << "st.shared.u32 [%r34+" << Below(16) * 4 << "], " << Register() << ";\n";
  }

  void Atomic() {
    static constexpr const char* kOps[] = {"add.u32", "exch.b32", "min.s32", "xor.b32", "inc.u32"};
    const bool shared = Below(3) != 0;
    Offset(shared ? kSharedBytes / 2 : kGlobalBytes / 2, 4);
    std::string address = "[%r31]";
    if (shared) {
      text_ << "mov.u32 %r32, tile; add.u32 %r31, %r31, %r32;\n";
    } else {
      text_ << "cvt.u64.u32 %rd10, %r31; add.u64 %rd10, %rd10, %rd1;\n";
      address = "[%rd10]";
    }
    const std::string result = Below(2) != 0 ? Register() : "%r34";  // %r34: nobody reads it
    text_ << "atom" << (shared ? ".shared." : ".global.");
    if (Below(5) == 0)
      text_ << "cas.b32 " << result << ", " << address << ", " << Register() << ", " << Register() << ";\n";
    else text_ << kOps[Below(5)] << " " << result << ", " << address << ", " << Register() << ";\n";
  }

  void Sync() {
    const std::string mask = Below(5) == 0 ? "0x0000ffff" : "0xffffffff";
    switch (Below(6)) {
      case 0: text_ << "bar.warp.sync " << mask << ";\n"; break;
      case 1:
        text_ << "shfl.sync.bfly.b32 " << Register() << ", " << Register() << ", " << (1 << Below(5)) << ", 0x1f, "
              << mask << ";\n";
        break;
      case 2:
        text_ << "shfl.sync.idx.b32 " << Register() << ", " << Register() << ", " << Register() << ", 0x1f, " << mask
              << ";\n";
        break;
      case 3:
        text_ << "setp.gt.u32 %p2, " << Register() << ", 7; vote.sync.ballot.b32 " << Register() << ", %p2, " << mask
              << ";\n";
        break;
      case 4: text_ << (Below(2) != 0 ? "membar.cta;\n" : "fence.acq_rel.cta;\n"); break;
      default: text_ << "bar.sync 0;\n";
    }
  }

  void Compute() {
    static constexpr const char* kOps[] = {"add.u32", "xor.b32", "and.b32", "mul.lo.u32", "max.u32", "shr.u32"};
    const std::string out = Register();
    switch (Below(4)) {
      case 0:
        text_ << "setp.lt.u32 %p3, " << Register() << ", " << Register() << "; selp.b32 " << out << ", " << Register()
              << ", " << Register() << ", %p3;\n";
        break;
      case 1:
        text_ << "cvt.rn.f32.u32 %f1, " << Register() << "; add.f32 %f1, %f1, 0f3F800000; cvt.rzi.u32.f32 " << out
              << ", %f1;\n";
        break;
      case 2:
        text_ << "prmt.b32 " << out << ", " << Register() << ", " << Register() << ", 0x" << Below(8) << Below(8)
              << Below(8) << Below(8) << ";\n";
        break;
      default:
        text_ << kOps[Below(6)] << " " << out << ", " << Register() << ", "
              << (Below(2) != 0 ? Register() : std::to_string(Below(9))) << ";\n";
    }
  }

  void Branch(unsigned statements, unsigned depth) {
    const unsigned label = labels_++, predicate = 4 + depth;
    if (Below(2) != 0) text_ << "setp.lt.u32 %p" << predicate << ", %r3, " << 1 + Below(31) << ";\n";
    else text_ << "and.b32 %r33, " << Register() << ", 1; setp.eq.u32 %p" << predicate << ", %r33, 0;\n";
    text_ << "@%p" << predicate << " bra ELSE" << label << ";\n";
    Block(statements / 2, depth + 1);
    text_ << "bra.uni END" << label << ";\nELSE" << label << ":\n";
    Block(statements / 3, depth + 1);
    text_ << "END" << label << ":\n";
  }

  void Loop(unsigned statements, unsigned depth) {
    const unsigned label = labels_++, counter = 35 + depth, predicate = 4 + depth;
    text_ << "mov.u32 %r" << counter << ", 0;\nLOOP" << label << ":\n";
    Block(statements / 2, depth + 1);
    text_ << "add.u32 %r" << counter << ", %r" << counter << ", 1; setp.lt.u32 %p" << predicate << ", %r" << counter
          << ", " << 2 + Below(3) << ";\n"
          << "@%p" << predicate << " bra LOOP" << label << ";\n";
  }

  void Block(unsigned statements, unsigned depth) {
    for (unsigned i = 0; i < statements; ++i) {
      const unsigned what = Below(20);
      if (what == 0) Stretch();
      else if (what < 9) Access();
      else if (what < 11) Atomic();
      else if (what < 14) Sync();
      else if (what < 18 || depth == 3) Compute();
      else if (what == 18) Branch(statements, depth);
      else Loop(statements, depth);
    }
  }

 public:
  static constexpr unsigned kGlobalBytes = 1024;

 private:
  std::mt19937_64 random_;
  std::ostringstream text_;
  unsigned labels_ = 0;
};

std::string Describe(const exec::MemcheckReport& report) {
  std::ostringstream out;
  out << exec::FormatMemcheck(report) << " | address " << report.address << ", PTX line " << report.access.ptx_line
      << ", other " << (report.other ? report.other->ptx_line : 0) << ", use " << static_cast<int>(report.use)
      << ", times " << report.times;
  return out.str();
}

/// What comes of a kernel: findings, and the fault it ends with.
std::vector<std::string> FindingsOf(const std::string& ptx, const std::string& tiers, std::uint32_t threads) {
  MemcheckRun run(100, tiers);
  const std::vector<std::uint32_t> zeros(RandomDefects::kGlobalBytes / 4);
  const std::uint64_t p = run.executor().Upload(zeros), q = run.executor().Upload(zeros);
  const exec::LaunchFault fault = run.Run(ptx, {1, 1, 1}, {threads, 1, 1}, p, q);
  std::vector<std::string> all;
  for (const exec::MemcheckReport& report : run.told()) all.push_back(Describe(report));
  all.push_back("fault " + std::to_string(static_cast<int>(fault.kind)) + " " + std::to_string(fault.ptx_line));
  return all;
}

}  // namespace

TEST_CASE("RandomDefects_Interpreter_FindsWhatMachineCodeFinds") {
  std::size_t found = 0;
  const std::uint64_t kernels = RandomKernels(40);
  for (std::uint64_t seed = 1; seed <= kernels; ++seed) {
    const std::string ptx = KernelText(RandomDefects(seed).text(), "", seed % 4 == 0 ? "sm_60" : "sm_75");
    constexpr std::uint32_t kShapes[] = {64, 96, 40};
    const std::uint32_t threads = kShapes[seed % 3];
    const std::vector<std::string> interpreted = FindingsOf(ptx, "interpret", threads),
                                   compiled = FindingsOf(ptx, "off", threads);
    INFO("seed " << seed << "\n" << ptx);
    CHECK(interpreted == compiled);
    found += compiled.size() - 1;
  }
  CHECK(found > kernels);  // they have something to find
}

TEST_CASE("Tiers_MachineCodeOfTheService_ChecksAsTheInterpreterDoes") {
  // All warps write to one word.
  const std::string ptx =
      ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 rounds)\n{\n"
      ".shared .align 4 .b32 word; .reg .pred %p<4>; .reg .b32 %r<12>; .reg .f32 %f<4>; .reg .b64 %rd<5>;\n"
      "ld.param.u64 %rd1, [out]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
      "mad.lo.u32 %r5, %r2, %r3, %r4; mov.u32 %r6, %r5; cvt.rn.f32.u32 %f1, %r5;\nst.shared.u32 [word], %r5;\n" +
      MixedSteps(600) + "mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r6;\nret;\n}\n";
  const Folder folder;
  Tiers tiers("on", folder.path(), true);
  const auto accesses = [&] {
    std::uint64_t times = 0;
    for (const exec::MemcheckReport& report : tiers.executor().engine().MemcheckFindings().reports)
      times += report.times;
    return times;
  };
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t first = 0;
  bool machine_code = false;
  while (!machine_code && std::chrono::steady_clock::now() - start < std::chrono::seconds(200)) {
    const std::uint64_t before = accesses();
    machine_code = tiers.Run(ptx, 400, 1).stats.interpreted_ctas == 0;
    const std::uint64_t found = accesses() - before;
    if (first == 0) first = found;
    CHECK(found == first);
  }
  CHECK(first != 0);
  CHECK(machine_code);
  CHECK(Tiers("on", folder.path(), true).Run(ptx, 400, 1).stats.interpreted_ctas == 0);  // from the cache
}

}  // namespace gridloom::test
