// Kernels that are interpreted until their machine code is there: the same bits, wherever machine code takes over, and
// whatever becomes of the service that makes it.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "rewriter/ptx/linker.h"
#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "sim/exec/contract/layout.h"
#include "sim/exec/runtime/background/after_end.h"
#include "sim/exec/runtime/background/client.h"
#include "sim/exec/runtime/background/messages.h"
#include "sim/exec/runtime/background/spawn.h"
#include "sim/exec/runtime/bytecode_text.h"
#include "sim/exec/runtime/compiler_loader.h"
#include "sim/exec/runtime/interpreter/check_bytecode.h"
#include "tests/sim/exec/tiers_fixture.h"

namespace gridloom::test {
namespace {

using namespace exec;

/// A kernel that takes some tenths of a second to compile: out[i] = what `rounds` rounds of `steps` mixed operations
/// make of i. With `barrier`, a barrier in each round.
std::string LargeKernel(unsigned steps, bool barrier) {
  std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 rounds)
{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mov.u32 %r6, %r5;
  cvt.rn.f32.u32 %f1, %r5;
LOOP:
)";
  text += MixedSteps(steps);
  if (barrier) text += "  bar.sync 0;\n";
  text += R"(
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p2, %r1, 0;
  @%p2 bra LOOP;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r6;
  ret;
}
)";
  return text;
}

}  // namespace

TEST_CASE("Tiers_GridsOfManyCtas_MachineCodeTakesOver") {
  const std::string ptx = LargeKernel(1000, true);
  const Folder folder;
  Tiers tiers("on", folder.path());
  Outcome outcome;
  // For as long as it takes on this machine, with whatever else runs on it.
  unsigned ctas = 250;
  const auto start = std::chrono::steady_clock::now();
  do {
    ctas = std::min(ctas * 2, 16000u);
    outcome = tiers.Run(ptx, ctas, 4);
  } while (outcome.stats.interpreted_ctas == ctas &&
           std::chrono::steady_clock::now() - start < std::chrono::seconds(200));
  CHECK(tiers.said.empty());
  INFO("of " << ctas << " CTAs interpreted: " << outcome.stats.interpreted_ctas);
  CHECK(outcome.stats.interpreted_ctas < ctas);
  CHECK(Same(outcome.values, Tiers("off").Run(ptx, ctas, 4).values));
  // From then on there is only machine code.
  CHECK(tiers.Run(ptx, 3, 2).stats.interpreted_ctas == 0);
  CHECK(tiers.said.empty());
}

TEST_CASE("Tiers_AnyNumberOfInterpretedCtas_SameBits") {
  for (const unsigned ctas : {1u, 14u}) {
    for (const std::uint32_t rounds : {1u, 5u}) {
      const std::string ptx = LargeKernel(1020 + ctas, ctas % 2 == 0);
      const Folder folder;
      Tiers tiers("on", folder.path());
      const Outcome interpreted = tiers.Run(ptx, ctas, rounds);
      CHECK(interpreted.stats.interpreted_ctas == ctas);
      CHECK(Same(interpreted.values, Tiers("off").Run(ptx, ctas, rounds).values));
    }
  }
}

TEST_CASE("Tiers_ShortKernelOfAnEarlierProcess_IsCompiledForTheNext") {
  const std::string ptx = LargeKernel(1040, true);
  const Folder folder;
  const std::vector<std::uint32_t> expected = Tiers("off").Run(ptx, 1, 1).values;
  const auto start = std::chrono::steady_clock::now();
  const auto finds_machine_code = [&] {
    Tiers tiers("on", folder.path());
    const Outcome outcome = tiers.Run(ptx, 1, 1);
    CHECK(Same(outcome.values, expected));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // a program that ends at once has asked nobody
    return outcome.stats.interpreted_ctas == 0;
  };
  CHECK(!finds_machine_code());
  bool found = false;
  while (!(found = finds_machine_code()) && std::chrono::steady_clock::now() - start < std::chrono::seconds(200)) {
  }
  CHECK(found);
}

/// The files of kernels in a cache directory.
std::vector<std::string> KernelFiles(const Folder& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().extension() == ".glk") found.push_back(entry.path().string());
  return found;
}

std::string ContentsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("Tiers_SecondRun_MakesNoCodeAnew") {
  const std::string ptx = LargeKernel(500, true);
  const std::vector<std::uint32_t> expected = Tiers("off").Run(ptx, 2, 1).values;
  for (const char* const mode : {"on", "interpret"}) {
    const Folder folder;
    for (const bool first : {true, false}) {
      INFO(mode << ", first run: " << first);
      Tiers tiers(mode, folder.path());
      const Outcome outcome = tiers.Run(ptx, 2, 1);
      CHECK(Same(outcome.values, expected));
      CHECK(outcome.stats.interpreted_ctas == 2);
      CHECK(outcome.stats.cache_hit == !first);
    }
  }
}

TEST_CASE("Tiers_BytecodeInTheCacheIsDamaged_IsMadeAnew") {
  const std::string ptx = LargeKernel(100, true);
  const std::vector<std::uint32_t> expected = Tiers("off").Run(ptx, 1, 1).values;
  const Folder folder;
  const auto run = [&] {
    Tiers tiers("interpret", folder.path());
    const Outcome outcome = tiers.Run(ptx, 1, 1);
    CHECK(Same(outcome.values, expected));
    return outcome.stats.cache_hit;
  };
  CHECK(!run());
  REQUIRE(KernelFiles(folder).size() == 1);
  const std::string path = KernelFiles(folder)[0], good = ContentsOf(path);
  CHECK(run());
  for (const std::string& bad :
       {std::string(), good.substr(0, good.size() / 2), good + "x", good.substr(0, 100) + good.substr(101)}) {
    std::ofstream(path, std::ios::binary) << bad;
    CHECK(!run());
    CHECK(ContentsOf(path) == good);
  }
  CHECK(run());
}

TEST_CASE("Tiers_CooperativeGrid_RunsAsMachineCode") {
  const std::string ptx = LargeKernel(1030, true);
  const Folder folder;
  Tiers tiers("on", folder.path());
  const Outcome outcome = tiers.Run(ptx, 3, 2, true);
  CHECK(outcome.stats.interpreted_ctas == 0);
  CHECK(Same(outcome.values, Tiers("off").Run(ptx, 3, 2).values));
}

TEST_CASE("Tiers_ServiceIsKilled_ProgramGoesOnInterpreting") {
  const Folder folder;
  Tiers tiers("on", folder.path());
  const std::string ptx = LargeKernel(900, false);
  std::thread killer([&] {
    for (int i = 0; i < 2000 && Services(folder.path()).empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (const pid_t pid : Services(folder.path())) kill(pid, SIGKILL);
  });
  const std::vector<std::uint32_t> expected = Tiers("off").Run(ptx, 40, 2).values;
  CHECK(Same(tiers.Run(ptx, 40, 2).values, expected));
  CHECK(Same(tiers.Run(ptx, 40, 2).values, expected));  // asks for machine code
  killer.join();
  CHECK(Same(tiers.Run(ptx, 40, 2).values, expected));
}

TEST_CASE("Tiers_EndsEarly_LeavesNoChildAndDoesNotWait") {
  const Folder folder;
  const std::string ptx = LargeKernel(500, false);
  auto tiers = std::make_unique<Tiers>("on", folder.path());
  tiers->Run(ptx, 2, 1);
  tiers->Run(ptx, 2, 1);
  for (int i = 0; i < 2000 && Services(folder.path()).empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  REQUIRE(!Services(folder.path()).empty());
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);  // nobody's child
  CHECK(errno == ECHILD);
  // What was asked for is finished, for the next run, however busy the machine is.
  tiers = nullptr;
  for (int i = 0; i < 24000 && !Services(folder.path()).empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(Services(folder.path()).empty());
  Tiers next("on", folder.path());
  CHECK(next.Run(ptx, 2, 1).stats.interpreted_ctas == 0);
}

TEST_CASE("BackgroundCompiler_ServiceDoesNotStart_SaysSoAndIsNotAskedAgain") {
  const Folder folder;
  const std::string service = folder.path() + "/service";
  std::ofstream(service) << "neither a program nor a script";
  std::filesystem::permissions(service, std::filesystem::perms::owner_all);
  BackgroundCompiler compiler({service, folder.path() + "/library", "", 0, 1});
  CHECK(compiler.available());
  DiagnosticSink sink;
  std::atomic<bool> told = false;
  std::string problem;
  BackgroundCompiler::Job job;
  job.module = ptx::ParseModule(LargeKernel(5, false), sink);
  job.kernel = "k";
  job.done = [&](Result<CompiledKernel> made) {
    if (!made.ok()) problem = made.error().message;
    told = true;
  };
  compiler.Ask(std::move(job), 0);
  for (int i = 0; i < 2000 && !told; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  REQUIRE(told);
  CHECK(problem == "the compile service does not start");
  CHECK(!compiler.available());
}

/// A service that never answers, and ends when hung up.
std::string SilentService(const Folder& folder) {
  std::string service = folder.path() + "/service";
  std::ofstream(service) << "#!/bin/sh\nexec cat <&" << background::kServiceSocket << " >/dev/null\n";
  std::filesystem::permissions(service, std::filesystem::perms::owner_all);
  return service;
}

TEST_CASE("BackgroundCompiler_EndsWhileTheServiceStarts_HangsUp") {
  const Folder folder;
  const std::string service = SilentService(folder);
  DiagnosticSink sink;
  const std::shared_ptr<ptx::Module> module = ptx::ParseModule(LargeKernel(5, false), sink);
  std::atomic<int> told = 0;
  for (int i = 0; i < 60; ++i) {
    BackgroundCompiler compiler({service, folder.path() + "/library", "", 0, 1});
    BackgroundCompiler::Job job;
    job.module = module;
    job.kernel = "k";
    job.done = [&](const Result<CompiledKernel>&) { ++told; };
    compiler.Ask(std::move(job), 0);
    std::this_thread::sleep_for(std::chrono::microseconds(50 * i));  // the start takes a millisecond or two
  }
  CHECK(told == 0);
}

TEST_CASE("BackgroundCompiler_HangsUpBeforeAJobIsSent_TellsNobody") {
  const Folder folder;
  const std::string service = SilentService(folder);
  DiagnosticSink sink;
  const std::shared_ptr<ptx::Module> module = ptx::ParseModule(LargeKernel(5, false), sink);
  std::atomic<int> told = 0;
  std::atomic<bool> due = false;
  {
    BackgroundCompiler compiler({service, folder.path() + "/library", "", 0, 1});
    BackgroundCompiler::Job job;
    job.module = module;
    job.kernel = "k";
    job.done = [&](const Result<CompiledKernel>&) { ++told; };
    BackgroundCompiler::Job other = job;
    other.wanted = [&] {
      due = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the compiler hangs up meanwhile
      return true;
    };
    compiler.Ask(std::move(job), 0);  // connects
    compiler.Ask(std::move(other), 1000);
    for (int i = 0; i < 2000 && !due; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  CHECK(due);
  CHECK(told == 0);
}

TEST_CASE("Tiers_UnknownValue_IsNamed") { CHECK_THROWS_WITH(Tiers("fast"), Catch::Contains("GRIDLOOM_TIERS=fast")); }

// ---------------------------------------------------------------------------------------------------------------------
// What travels
// ---------------------------------------------------------------------------------------------------------------------

/// Both compile, to the same machine code.
void CheckSameCode(const ptx::Module& module, const ptx::Module& read) {
  CompilerLoader loader;
  const auto compile = loader.Load();
  REQUIRE(compile.ok());
  const CompileOptions options;
  CompiledKernel one, other;
  (*compile)(&module, "k", &options, &one);
  (*compile)(&read, "k", &options, &other);
  CHECK(one.error.empty());
  CHECK(one.object == other.object);
}

TEST_CASE("PackedModule_ReadsBack_CompilesToTheSameCode") {
  const std::string ptx = LargeKernel(120, true);
  DiagnosticSink sink;
  const auto module = ptx::ParseModule("// a line before it\n\n" + ptx, sink);
  REQUIRE(!sink.has_errors());
  const auto read = background::UnpackModule(background::PackModule(*module));
  REQUIRE(read.ok());
  CheckSameCode(*module, **read);
}

/// Two parts, whose kernels call and point to each other's functions and variables.
std::unique_ptr<ptx::Module> LinkedModule() {
  const char* const parts[] = {R"(
.version 8.0
.target sm_70
.address_size 64
.extern .func (.param .b32 out) second (.param .b32 in);
.extern .global .u32 of_second;
.visible .global .u32 of_first = 3;
.visible .func (.param .b32 out) first (.param .b32 in)
{
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [in];
  ld.global.u32 %r2, [of_second];
  add.u32 %r3, %r1, %r2;
  st.param.b32 [out], %r3;
  ret;
}
.visible .entry k (.param .u64 to)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [to];
  mov.u64 %rd2, second;
  mov.u32 %r1, %tid.x;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), second, (a); ld.param.b32 %r2, [b]; }
  cvt.u32.u64 %r3, %rd2;
  add.u32 %r2, %r2, %r3;
  st.global.u32 [%rd1], %r2;
  ret;
}
)",
                               R"(
.version 8.0
.target sm_52
.address_size 64
.extern .func (.param .b32 out) first (.param .b32 in);
.extern .global .u32 of_first;
.visible .global .u32 of_second = 5;
.visible .func (.param .b32 out) second (.param .b32 in)
{
  .reg .b32 %r<5>;
  ld.param.u32 %r1, [in];
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), first, (a); ld.param.b32 %r2, [b]; }
  ld.global.u32 %r3, [of_first];
  add.u32 %r4, %r2, %r3;
  st.param.b32 [out], %r4;
  ret;
}
)"};
  std::vector<ptx::LinkInput> inputs;
  for (const char* part : parts) {
    DiagnosticSink sink;
    inputs.push_back({"part", ptx::ParseModule(part, sink)});
    REQUIRE(!sink.has_errors());
  }
  auto linked = ptx::LinkModules(std::move(inputs), [](std::string_view) { return false; });
  REQUIRE(linked.ok());
  return std::move(*linked);
}

std::vector<std::string> NamesOfFunctions(const ptx::Module& module) {
  std::vector<std::string> names;
  for (const ptx::Function* function : NumberSymbols(module).functions) names.emplace_back(function->name);
  return names;
}

TEST_CASE("PackedModule_LinkedFromParts_KeepsNumbersAndTargets") {
  const auto module = LinkedModule();
  const auto read = background::UnpackModule(background::PackModule(*module));
  REQUIRE(read.ok());
  // Numbers would be others if they were those of the text.
  DiagnosticSink sink;
  const auto as_text = ptx::ParseModule(ptx::PrintModule(*module), sink);
  REQUIRE(!sink.has_errors());
  CHECK(NamesOfFunctions(*as_text) != NamesOfFunctions(*module));
  CHECK(NamesOfFunctions(**read) == NamesOfFunctions(*module));
  CHECK((*read)->FindFunction("second")->target_sm == 52);
  CHECK((*read)->FindFunction("first")->target_sm == 70);
  CheckSameCode(*module, **read);
}

TEST_CASE("PackedModule_Damaged_IsRefused") {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(LargeKernel(10, false), sink);
  const std::string packed = background::PackModule(*module);
  for (std::size_t bytes = 0; bytes < packed.size(); bytes += 7)
    CHECK(!background::UnpackModule(packed.substr(0, bytes)).ok());
  CHECK(!background::UnpackModule(packed + "x").ok());
  std::uint32_t random = 1;
  for (int round = 0; round < 400; ++round) {
    std::string changed = packed;
    for (int i = 0; i < 3; ++i) {
      random = random * 1664525u + 1013904223u;
      changed[(random >> 8) % changed.size()] = static_cast<char>(random >> 3);
    }
    static_cast<void>(background::UnpackModule(changed));  // an error or a module, and no more
  }
}

TEST_CASE("PackedKernel_Damaged_IsRefused") {
  CompiledKernel kernel;
  kernel.object.assign(500, 7);
  kernel.needs_fiber = true;
  kernel.frame_bytes = 12345;
  const CacheKey key{1, 2};
  const std::string packed = PackKernel(key, kernel);
  const auto read = UnpackKernel(key, packed);
  REQUIRE(read.has_value());
  CHECK(read->object == kernel.object);
  CHECK(read->needs_fiber);
  CHECK(read->frame_bytes == 12345);
  CHECK(!UnpackKernel({1, 3}, packed));
  for (std::size_t at = 0; at < packed.size(); ++at) {
    CHECK(!UnpackKernel(key, packed.substr(0, at)));
    std::string changed = packed;
    changed[at] ^= 1;
    CHECK(!UnpackKernel(key, changed));
  }
}

Bytecode BytecodeOf(const std::string& ptx) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  CompilerLoader loader;
  const CompileOptions options;
  InterpretedKernel made;
  loader.LoadInterpret()(module.get(), "k", &options, &made);
  REQUIRE((made.error + made.refuses).empty());
  return std::move(made.code);
}

TEST_CASE("BytecodeAsText_ReadsBack_TheSame") {
  const std::string text = WriteBytecode(BytecodeOf(LargeKernel(60, true)));
  const std::optional<Bytecode> read = ReadBytecode(text);
  REQUIRE(read.has_value());
  CHECK(CheckBytecode(*read).ok());
  CHECK(WriteBytecode(*read) == text);
  for (std::size_t at = 0; at < text.size(); at += 3) CHECK(!ReadBytecode(text.substr(0, at)));
  CHECK(!ReadBytecode(text + "x"));
}

/// Branches one behind the other, each with a value that its arm and what comes behind it read.
std::string KernelOfBranches(unsigned branches) {
  std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 rounds)
{
  .reg .pred %p1;
  .reg .b32 %r<3>;
  .reg .b32 %v<)" + std::to_string(branches) +
                     R"(>;
  .reg .b64 %rd1;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %r1;
)";
  for (unsigned i = 0; i < branches; ++i) {
    const std::string value = "%v" + std::to_string(i), behind = "L" + std::to_string(i);
    text += "  add.u32 " + value + ", %r2, " + std::to_string(i) + ";\n  setp.gt.u32 %p1, %r2, " +
            std::to_string(i * 40503 % 65536) + ";\n  @%p1 bra " + behind + ";\n  st.global.u32 [%rd1], " + value +
            ";\n" + behind + ":\n  mad.lo.u32 %r2, %r2, " + value + ", %r1;\n";
  }
  return text + "  st.global.u32 [%rd1+4], %r2;\n  ret;\n}\n";
}

TEST_CASE("Bytecode_ValuesThatLiveOneAfterTheOther_ShareRegisters") {
  const Bytecode code = BytecodeOf(KernelOfBranches(400));
  CHECK(code.functions.at(0).blocks.size() > 800);
  CHECK(code.functions.at(0).frame_bytes < 8'000);  // one for each value: 51,200
}

TEST_CASE("Bytecode_OutOfBounds_IsRefused") {
  const Bytecode good = BytecodeOf(LargeKernel(60, true));
  REQUIRE(CheckBytecode(good).ok());
  const auto refused = [&](auto change) {
    Bytecode code = good;
    change(code);
    return !CheckBytecode(code).ok();
  };
  const ByteFunction& kernel = good.functions[0];
  for (std::size_t i = 0; i < kernel.blocks.size(); ++i) {
    CHECK(refused([&](Bytecode& code) {
      code.functions[0].blocks[i].last = static_cast<std::uint32_t>(kernel.steps.size() + 1);
    }));
    CHECK((kernel.blocks[i].end == ByteBlock::End::kReturn || kernel.blocks[i].end == ByteBlock::End::kEnded ||
           refused([&](Bytecode& code) {
             code.functions[0].blocks[i].edges[0].block = static_cast<std::uint32_t>(kernel.blocks.size());
           })));
  }
  for (std::size_t i = 0; i < kernel.steps.size(); ++i) {
    INFO("step " << i << ", code " << static_cast<int>(kernel.steps[i].code));
    if (kernel.steps[i].dst != kNoRegister) {
      CHECK(refused([&](Bytecode& code) { code.functions[0].steps[i].dst = kernel.frame_bytes; }));
      CHECK(refused([&](Bytecode& code) { code.functions[0].steps[i].dst |= kConstantOperand; }));
    }
    CHECK(refused([&](Bytecode& code) { code.functions[0].steps[i].code = ByteCode::kCount; }));
    CHECK(refused([&](Bytecode& code) { code.functions[0].steps[i].type = ByteType::kCount; }));
  }
  CHECK(refused([](Bytecode& code) { code.functions[0].constants.clear(); }));
  CHECK(refused([](Bytecode& code) { code.functions[0].lists.clear(); }));
  CHECK(refused([](Bytecode& code) { code.functions[0].frame_bytes = 64; }));
  CHECK(refused([](Bytecode& code) { code.functions[0].blocks.clear(); }));
  CHECK(refused([](Bytecode& code) { code.functions.clear(); }));
  CHECK(refused([](Bytecode& code) { code.pointers.push_back({16, 7, 0}); }));
}

// ---------------------------------------------------------------------------------------------------------------------
// After the program's end
// ---------------------------------------------------------------------------------------------------------------------

/// The lowest priority of a process' threads.
int NiceOf(pid_t pid) {
  int nice = 19;
  std::error_code ended;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", ended)) {
    const std::string line = ContentsOf(thread.path() / "stat");
    std::istringstream fields(line.substr(line.rfind(')') + 1));
    std::string field;
    for (int i = 0; i < 17; ++i) fields >> field;
    nice = std::min(nice, std::atoi(field.c_str()));
  }
  return nice;
}

constexpr CacheKey kLeftKey = {3, 4};

/// A service whose program has ended while it makes the code of a kernel, under kLeftKey.
pid_t LeaveBehind(const Folder& folder) {
  DiagnosticSink sink;
  CompilerLoader loader;
  BackgroundCompiler::Job job;
  job.module = ptx::ParseModule(LargeKernel(500, false), sink);
  job.kernel = "k";
  job.key = kLeftKey;
  {
    BackgroundCompiler compiler({loader.ServicePath(), loader.path(), folder.path(), 1 << 30, 1, 1});
    compiler.Ask(job, 0);
    for (int i = 0; i < 2000 && Services(folder.path()).empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the job is on its way
  }
  const std::vector<pid_t> services = Services(folder.path());
  REQUIRE(services.size() == 1);
  for (int i = 0; i < 2000 && NiceOf(services[0]) != 19; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return services[0];
}

TEST_CASE("BackgroundCompiler_ServiceHasNoTimeAfterTheEnd_FinishesWhatItBegan") {
  const Folder folder;
  const pid_t service = LeaveBehind(folder);
  CHECK(NiceOf(service) == 19);  // of all threads
  kill(service, SIGSTOP);        // as on a machine that has time for everybody else
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  kill(service, SIGCONT);
  for (int i = 0; i < 24000 && !Services(folder.path()).empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CodeCache cache(folder.path(), 1 << 30, {});
  CHECK(cache.Load(kLeftKey).has_value());
}

TEST_CASE("PlacesAfterEnd_MoreThanProcessors_WaitOrGiveUp") {
  using background::PlacesAfterEnd;
  using Place = PlacesAfterEnd::Place;
  const Folder folder;
  const auto make = [&] { return std::make_unique<PlacesAfterEnd>(folder.path(), 2); };
  auto first = make();
  const auto second = make(), third = make(), fourth = make(), fifth = make(), sixth = make(), seventh = make();
  CHECK(first->Take() == Place::kWork);
  CHECK(second->Take() == Place::kWork);
  for (const auto* one : {&third, &fourth, &fifth, &sixth}) CHECK((*one)->Take() == Place::kWait);
  CHECK(seventh->Take() == Place::kNone);
  first = nullptr;
  third->WaitForWork();
  CHECK(seventh->Take() == Place::kWait);  // where the third was
  CHECK(make()->Take() == Place::kNone);
  CHECK(PlacesAfterEnd("", 2).Take() == Place::kWork);
  CHECK(PlacesAfterEnd(folder.path() + "/nowhere", 2).Take() == Place::kWork);
}

TEST_CASE("BackgroundCompiler_OthersWorkAfterTheirEnds_StandsStillUntilItsTurn") {
  const Folder folder;
  std::vector<std::unique_ptr<background::PlacesAfterEnd>> others;
  do {
    others.push_back(std::make_unique<background::PlacesAfterEnd>(folder.path(), std::thread::hardware_concurrency()));
  } while (others.back()->Take() == background::PlacesAfterEnd::Place::kWork);
  others.pop_back();  // it would wait itself
  const pid_t service = LeaveBehind(folder);
  const auto ticks = [&] {  // of processor time
    std::istringstream fields(ContentsOf("/proc/" + std::to_string(service) + "/stat"));
    std::string field;
    for (int i = 0; i < 14; ++i) fields >> field;
    return std::stoul(field);
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const unsigned long before = ticks();
  std::this_thread::sleep_for(std::chrono::seconds(2));
  CHECK(ticks() - before <= 10);  // a tenth of a second: it looks whether there is a place
  CodeCache cache(folder.path(), 1 << 30, {});
  CHECK(!cache.Load(kLeftKey).has_value());
  others.clear();
  for (int i = 0; i < 24000 && !Services(folder.path()).empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(cache.Load(kLeftKey).has_value());
}

TEST_CASE("SpawnDetached_NoSuchProgram_SaysSo") { CHECK(!background::SpawnDetached({"/nowhere/gridloom-compile"}, 0)); }

}  // namespace gridloom::test
