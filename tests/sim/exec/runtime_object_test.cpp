// Object loader: objects of the system's compiler, and damaged ones.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "sim/exec/contract/warp_switch.h"
#include "sim/exec/runtime/object_loader.h"
#include "tests/sim/exec/elf_builder.h"
#include "tests/sim/exec/runtime_harness.h"

using namespace gridloom;
using namespace gridloom::exec;
using namespace gridloom::test;

namespace {

std::vector<std::uint8_t> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The object a C text compiles to; empty when there is no compiler.
std::vector<std::uint8_t> Compile(const std::string& text, const std::string& flags) {
  char directory[] = "/tmp/gridloom-object-XXXXXX";
  REQUIRE(mkdtemp(directory) != nullptr);
  const std::string base = std::string(directory) + "/t";
  std::ofstream(base + ".c") << text;
  const bool ok = std::system(("cc -c -O2 -w " + flags + " -o " + base + ".o " + base + ".c 2>/dev/null").c_str()) == 0;
  auto object = ok ? ReadFile(base + ".o") : std::vector<std::uint8_t>{};
  std::system(("rm -r " + std::string(directory)).c_str());
  return object;
}

constexpr char kProgram[] = R"(
  #include <math.h>
  #include <string.h>
  static const int table[] = {3, 1, 4, 1, 5, 9, 2, 6};
  static const char* const names[] = {"zero", "one", "two"};
  static __attribute__((noinline)) int local(int x) { return table[x & 7]; }
  int outer(int x) { return local(x) * 10; }
  int gl_kernel(int x) { return outer(x) + names[x % 3][1]; }
  float mathematics(float a, float b) { return fmaf(a, b, 1.0f) + floorf(b); }
  void* copy(void* to, const void* from, unsigned long n) { return memcpy(to, from, n); }
  int choose(int x) {
    switch (x) { case 0: return 7; case 1: return 9; case 2: return local(2); case 3: return 1; case 4: return 80; case 5: return 3; default: return -1; }
  }
)";

}  // namespace

TEST_CASE("Load_TextThatIsNoCode_IsNotTakenForIt") {
  ElfBuilder builder;
  builder.sections.resize(2);
  builder.sections[0].name = ".code";
  builder.sections[0].flags = SHF_ALLOC | SHF_EXECINSTR;
  builder.sections[0].bytes = {0xc3};
  builder.sections[1].name = ".text";
  builder.sections[1].bytes = {1, 2, 3};
  const auto object = CodeObject::Load(builder.Build(), "t");
  REQUIRE(object.ok());
  CHECK((*object)->text_bytes() == 0);
}

TEST_CASE("Load_ObjectsOfTheSystemCompiler_RunRight") {
  int loaded_objects = 0;
  for (const char* const flags :
       {"-fPIC", "-fPIC -fno-plt", "-fPIC -O0", "-fPIE -fcf-protection", "-fPIC -ffunction-sections -fdata-sections",
        "-fPIC -mcmodel=small -fno-jump-tables"}) {
    const auto bytes = Compile(kProgram, flags);
    if (bytes.empty()) continue;
    ++loaded_objects;
    INFO(flags);
    const auto object = CodeObject::Load(bytes, "t");
    if (!object) FAIL(object.error().message);
    auto* const kernel = reinterpret_cast<int (*)(int)>(reinterpret_cast<std::uintptr_t>((*object)->Find("gl_kernel")));
    REQUIRE(kernel != nullptr);
    CHECK(kernel(0) == 30 + 'e');
    CHECK(kernel(5) == 90 + 'w');
    auto* const mathematics =
        reinterpret_cast<float (*)(float, float)>(reinterpret_cast<std::uintptr_t>((*object)->Find("mathematics")));
    CHECK(mathematics(2.0f, 3.5f) == 11.0f);
    auto* const choose = reinterpret_cast<int (*)(int)>(reinterpret_cast<std::uintptr_t>((*object)->Find("choose")));
    CHECK((choose(0) == 7 && choose(4) == 80 && choose(2) == 4 && choose(9) == -1));
    auto* const copy = reinterpret_cast<void* (*)(void*, const void*, unsigned long)>(
        reinterpret_cast<std::uintptr_t>((*object)->Find("copy")));
    char to[8];
    copy(to, "1234567", 8);
    CHECK(std::string(to) == "1234567");
    const auto address = reinterpret_cast<std::uintptr_t>(kernel);
    CHECK((address >= (*object)->code_begin() && address < (*object)->code_end()));
  }
  if (loaded_objects == 0) WARN("no C compiler: objects made by one are not tested");
}

TEST_CASE("RingSwitchAssembly_InCompiledCode_IsABarrier") {
  if (!kInlineRingSwitch) return;
  std::string assembly;
  for (const char c : std::string(kRingSwitchAsm)) {
    if (c == '\n') assembly += "\\n";
    else if (c == '\t') assembly += ' ';
    else if (c == '%') assembly += "%%";
    else assembly += c;
  }
  // Warps of odd number leave early; the others check that they see what every warp wrote before the barrier.
  const std::string text =
      R"(
    struct Cta { void* launch; unsigned long shared; };
    struct Launch { unsigned long window, bytes; unsigned long* params; };
    struct Warp { struct Cta* cta; struct Launch* launch; unsigned id; };
    void gl_kernel(struct Warp* warp) {
      volatile unsigned* shared = (volatile unsigned*)warp->cta->shared;
      double sum = 0;
      for (unsigned i = 1; i <= 100; ++i) {
        if ((warp->id & 1) && i == 50) return;
        shared[warp->id] = i;
        sum += i;
        for (int twice = 0; twice < 2; ++twice) {
          asm volatile(")" +
      assembly +
      R"(" : : "D"(warp) : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc",
            "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
          if (twice == 0)
            for (unsigned w = 0; w < 8; ++w)
              if (shared[w] != i && !((w & 1) && i >= 50)) __sync_fetch_and_add((unsigned*)warp->launch->params[0], 1);
        }
      }
      if (sum != 5050) __sync_fetch_and_add((unsigned*)warp->launch->params[0], 1);
      __sync_fetch_and_add((unsigned*)warp->launch->params[0] + 1, 1);
    })";
  for (const char* const flags :
       {"-fPIC -mno-red-zone", "-fPIC -mno-red-zone -O0", "-fPIC -mno-red-zone -fno-omit-frame-pointer"}) {
    const auto object = Compile(text, flags);
    if (object.empty()) continue;
    Harness h(2);
    h.Add("ring", {.needs_fiber = true, .simple_barriers = true, .static_shared_bytes = 64, .object = object});
    auto* const cells = h.Allocate<std::uint32_t>(2);
    const LaunchFault fault = h.Run("ring", {50, 1, 1}, {256, 1, 1}, {reinterpret_cast<std::uint64_t>(cells)});
    INFO(fault.text);
    CHECK(fault.kind == FaultKind::kNone);
    CHECK(cells[0] == 0);
    CHECK(cells[1] == 50 * 4);
  }
}

TEST_CASE("Load_UnknownExternalOrWritableData_IsRefusedByName") {
  const auto calls = Compile("int system(const char*); int gl_kernel(void) { return system(\"true\"); }", "-fPIC");
  const auto writes = Compile("int counter = 5; int gl_kernel(void) { return ++counter; }", "-fPIC");
  if (calls.empty()) return;
  const auto a = CodeObject::Load(calls, "k");
  REQUIRE_FALSE(a.ok());
  CHECK(a.error().message == "object of k: calls system, which generated code may not");
  const auto b = CodeObject::Load(writes, "k");
  REQUIRE_FALSE(b.ok());
  CHECK(b.error().message == "object of k: section .data is writable");
}

TEST_CASE("Load_EveryTruncation_FailsCleanly") {
  ElfBuilder builder;
  builder.sections.push_back({.name = ".text",
                              .flags = SHF_ALLOC | SHF_EXECINSTR,
                              .bytes = std::vector<std::uint8_t>(32, 0xc3),
                              .relocations = {{4, R_X86_64_PC32, "data", 0}, {8, R_X86_64_GOTPCREL, "memcpy", -4}}});
  builder.sections.push_back(
      {.name = ".rodata", .bytes = std::vector<std::uint8_t>(16), .relocations = {{0, R_X86_64_64, "gl_kernel", 0}}});
  builder.symbols = {{"gl_kernel", ".text", 0}, {"data", ".rodata", 8}, {"memcpy", "", 0}};
  const auto bytes = builder.Build();
  REQUIRE(CodeObject::Load(bytes, "t").ok());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(CodeObject::Load(std::span(bytes).first(size), "t").ok());
  // Any other damage may give an object that loads, but never a crash.
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    auto damaged = bytes;
    for (int k = 0; k < 1 + static_cast<int>(random() % 4); ++k)
      damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
    static_cast<void>(CodeObject::Load(damaged, "t").ok());
  }
}

TEST_CASE("Load_RelocationsOutOfRange_AreRefused") {
  const auto build = [](std::uint64_t offset, std::uint32_t type, const char* symbol, std::int64_t addend) {
    ElfBuilder builder;
    builder.sections.push_back({.name = ".text",
                                .flags = SHF_ALLOC | SHF_EXECINSTR,
                                .bytes = std::vector<std::uint8_t>(16, 0xc3),
                                .relocations = {{offset, type, symbol, addend}}});
    builder.symbols = {{"gl_kernel", ".text", 0}, {"memcpy", "", 0}};
    return builder.Build();
  };
  CHECK(CodeObject::Load(build(12, R_X86_64_PC32, "gl_kernel", 0), "t").ok());
  CHECK(CodeObject::Load(build(8, R_X86_64_64, "memcpy", 0), "t").ok());
  CHECK_FALSE(CodeObject::Load(build(13, R_X86_64_PC32, "gl_kernel", 0), "t").ok());
  CHECK_FALSE(CodeObject::Load(build(~0ull - 1, R_X86_64_PC32, "gl_kernel", 0), "t").ok());
  CHECK_FALSE(CodeObject::Load(build(9, R_X86_64_64, "gl_kernel", 0), "t").ok());
  CHECK_FALSE(CodeObject::Load(build(0, R_X86_64_PC32, "gl_kernel", std::int64_t{1} << 40), "t").ok());
  CHECK_FALSE(CodeObject::Load(build(0, R_X86_64_TPOFF32, "gl_kernel", 0), "t").ok());
  CHECK_FALSE(CodeObject::Load(build(0, R_X86_64_32S, "gl_kernel", 0), "t").ok());
}
