// Programs: where variables go and what they start as; what is known of kernels; occupancy.
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>

#include "rewriter/ptx/parser.h"
#include "sim/exec/contract/layout.h"
#include "sim/exec/program.h"
#include "sim/exec/runtime/occupancy.h"
#include "tests/sim/exec/runtime_harness.h"

using namespace gridloom;
using namespace gridloom::exec;

namespace {

struct Loaded {
  std::unique_ptr<DeviceMemory> memory;
  std::shared_ptr<Program> program;
  std::string error;

  template <typename T>
  std::vector<T> Values(const std::string& name) const {
    const GlobalInfo* const info = program->FindGlobal(name);
    REQUIRE(info != nullptr);
    std::vector<T> values(info->bytes / sizeof(T));
    std::memcpy(values.data(), reinterpret_cast<const void*>(info->address), values.size() * sizeof(T));
    return values;
  }
};

Loaded Load(const std::string& body, std::uint64_t limit = 0) {
  Loaded out;
  out.memory = std::move(*DeviceMemory::Create({.limit_bytes = limit}));
  const std::string text = ".version 8.3\n.target sm_90\n.address_size 64\n" + body;
  DiagnosticSink sink;
  auto module = ptx::ParseModule(text, sink);
  INFO(FormatDiagnostics(sink, "t.ptx", text));
  REQUIRE(!sink.has_errors());
  auto program = Program::Load(std::move(module), text, *out.memory);
  if (program) out.program = std::move(*program);
  else out.error = program.error().message;
  return out;
}

}  // namespace

TEST_CASE("Load_Initialisers_BecomeBytes") {
  const Loaded l = Load(R"(
    .global .u32 plain = 7;
    .global .align 8 .b8 bytes[4] = {1, 2, 255, -1};
    .global .s32 short_one[5] = {1, -2};
    .global .u32 nested[2][3] = {{1}, {2, 3}};
    .global .v2 .u16 vectors[2] = {{1, 2}, {3, 4}};
    .global .f32 floats[3] = {0f3F800000, 2.5, -1.5};
    .global .f64 doubles[2] = {0d4000000000000000, 0.25};
    .global .u64 unsized[] = {5, 6, 7};
    .const .u16 constant = 0xFFFF;
    .global .u64 zero;
    .global .attribute(.managed) .u32 managed = 3;
    .global .align 64 .b8 aligned[100];
    .global .b8 large[100000];
  )");
  REQUIRE(l.error.empty());
  CHECK(l.Values<std::uint32_t>("plain") == std::vector<std::uint32_t>{7});
  CHECK(l.Values<std::uint8_t>("bytes") == std::vector<std::uint8_t>{1, 2, 255, 255});
  CHECK(l.Values<std::int32_t>("short_one") == std::vector<std::int32_t>{1, -2, 0, 0, 0});
  CHECK(l.Values<std::uint32_t>("nested") == std::vector<std::uint32_t>{1, 0, 0, 2, 3, 0});
  CHECK(l.Values<std::uint16_t>("vectors") == std::vector<std::uint16_t>{1, 2, 3, 4});
  CHECK(l.Values<float>("floats") == std::vector<float>{1.0f, 2.5f, -1.5f});
  CHECK(l.Values<double>("doubles") == std::vector<double>{2.0, 0.25});
  CHECK(l.Values<std::uint64_t>("unsized") == std::vector<std::uint64_t>{5, 6, 7});
  CHECK(l.Values<std::uint16_t>("constant") == std::vector<std::uint16_t>{0xffff});
  CHECK(l.Values<std::uint64_t>("zero") == std::vector<std::uint64_t>{0});
  CHECK(l.program->FindGlobal("constant")->constant);
  CHECK(l.program->FindGlobal("managed")->managed);
  CHECK(l.memory->Find(l.program->FindGlobal("managed")->address)->kind == MemoryKind::kManaged);
  CHECK(l.memory->Find(l.program->FindGlobal("plain")->address)->kind == MemoryKind::kModule);
  CHECK(l.program->FindGlobal("aligned")->address % 64 == 0);
  CHECK(l.memory->Find(l.program->FindGlobal("large")->address)->bytes == 100000);
  CHECK(l.program->FindGlobal("nothing") == nullptr);
}

TEST_CASE("Load_AddressesInInitialisers_ArePlaced") {
  const Loaded l = Load(R"(
    .global .u32 target[4];
    .func callee() { ret; }
    .global .u64 pointer = target;
    .global .u64 element = target+8;
    .global .u64 generic_pointer = generic(target);
    .global .u64 function = callee;
    .global .b8 parts[3] = {0xFF(target), 0xFF00(target), 0xFF0000(target)};
  )");
  INFO(l.error);
  REQUIRE(l.error.empty());
  const std::uint64_t target = l.program->FindGlobal("target")->address;
  CHECK(l.Values<std::uint64_t>("pointer")[0] == target);
  CHECK(l.Values<std::uint64_t>("element")[0] == target + 8);
  CHECK(l.Values<std::uint64_t>("generic_pointer")[0] == target);
  CHECK(l.Values<std::uint64_t>("function")[0] == FunctionPointer(0));
  const auto parts = l.Values<std::uint8_t>("parts");
  CHECK((parts[0] | std::uint64_t{parts[1]} << 8 | std::uint64_t{parts[2]} << 16) == (target & 0xffffff));
}

// ptxas warns of it and ignores .extern.
TEST_CASE("Load_ExternVariablesDefinedNowhere_AreThereOnce") {
  Loaded l = Load(
      ".extern .global .u32 elsewhere;\n.extern .global .u32 elsewhere;\n.extern .const .u32 fixed;\n"
      ".visible .entry k() { .reg .u64 %a; mov.u64 %a, elsewhere; ret; }");
  INFO(l.error);
  REQUIRE(l.error.empty());
  CHECK(l.Values<std::uint32_t>("elsewhere")[0] == 0);
  REQUIRE(l.program->FindGlobal("fixed") != nullptr);
  CHECK(l.program->FindGlobal("fixed")->constant);
  CHECK(l.program->globals().size() == 2);
}

// As ptxas has it, which counts them up to where the bytes that a launch asks for begin (`ptxas -v`: 368 and 16 bytes).
TEST_CASE("Load_ExternSharedOfASize_IsStatic") {
  Loaded l = Load(
      ".extern .shared .b8 bytes[256];\n.extern .shared .b8 bytes[256];\n.extern .shared .u32 word;\n"
      ".extern .shared .align 8 .b8 table[2][50];\n.extern .shared .align 8 .b8 asked[];\n"
      ".visible .entry all() { .reg .u32 %a; mov.u32 %a, bytes; mov.u32 %a, word; mov.u32 %a, table; mov.u32 %a, "
      "asked; ret; }\n"
      ".visible .entry one() { .reg .u32 %a; mov.u32 %a, word; mov.u32 %a, asked; ret; }");
  INFO(l.error);
  REQUIRE(l.error.empty());
  CHECK(l.program->FindKernel("all")->static_shared_bytes == 364);
  CHECK(l.program->FindKernel("one")->static_shared_bytes == 4);
  const SharedLayout layout = LayoutShared(l.program->module_as_read(), *l.program->FindKernel("all")->function);
  CHECK(layout.dynamic_offset == 368);
  CHECK(layout.offsets.size() == 5);  // both declarations of the first one
}

TEST_CASE("Load_WhatCannotBePlaced_IsNamed") {
  CHECK(Load(".global .b8 big[1000000];", 1000).error.find("big") != std::string::npos);
}

TEST_CASE("Load_Unloading_GivesMemoryBack") {
  Loaded l = Load(".global .b8 big[1000000];\n.global .u32 small;");
  CHECK(l.memory->used_bytes() > 1000000);
  l.program.reset();
  CHECK(l.memory->used_bytes() == 0);
}

TEST_CASE("Kernels_AreDescribed") {
  const Loaded l = Load(R"(
    .const .b8 table[64];
    .shared .align 4 .b8 buffer[100];
    .visible .entry plain(.param .u32 a, .param .u64 b, .param .align 16 .b8 c[24]) .maxntid 16, 8, 2 {
      .reg .u32 %r<10>; .shared .align 8 .b8 more[8]; .local .align 8 .b8 frame[40];
      mov.u32 %r1, buffer; mov.u32 %r2, more; add.u32 %r3, %r1, %r2; ret;
    }
    .visible .entry required() .reqntid 64 .maxnreg 20 { ret; }
    .visible .entry grid() { .reg .u32 %r<3>; mov.u32 %r1, %envreg2; ret; }
  )");
  REQUIRE(l.error.empty());
  const KernelInfo* const plain = l.program->FindKernel("plain");
  REQUIRE(plain != nullptr);
  CHECK(plain->params.offsets == std::vector<std::uint32_t>{0, 8, 16});
  CHECK(plain->param_bytes == std::vector<std::uint32_t>{4, 8, 24});
  CHECK(plain->static_shared_bytes == 112);
  CHECK(plain->local_bytes == 40);
  CHECK(plain->const_bytes == 64);
  CHECK(plain->max_threads == 256);
  CHECK((plain->registers >= 8 && plain->registers <= 24));
  CHECK_FALSE(plain->uses_grid_sync);
  const KernelInfo* const required = l.program->FindKernel("required");
  CHECK((required->required_block[0] == 64 && required->required_block[1] == 1 && required->max_threads == 64 &&
         required->registers <= 20));
  CHECK(l.program->FindKernel("grid")->uses_grid_sync);
  CHECK(l.program->kernels().size() == 3);
}

TEST_CASE("Occupancy_FollowsWarpsRegistersAndSharedMemory") {
  sim::DeviceSpec device = test::TestDevice();
  KernelInfo kernel;
  kernel.registers = 32;
  CHECK(CtasPerSm(device, kernel, 256, 0, 1024) == 8);
  CHECK(CtasPerSm(device, kernel, 32, 0, 1024) == 32);  // the limit of CTAs
  kernel.registers = 64;
  CHECK(CtasPerSm(device, kernel, 256, 0, 1024) == 4);
  kernel.registers = 100;
  CHECK(CtasPerSm(device, kernel, 96, 0, 1024) == 5);  // 4 warps in each of 4 partitions, in blocks of 3
  kernel.registers = 255;
  CHECK(CtasPerSm(device, kernel, 1024, 0, 1024) == 0);
  kernel.registers = 32;
  CHECK(CtasPerSm(device, kernel, 256, 100'000, 1024) == 2);
  CHECK(CtasPerSm(device, kernel, 256, 300'000, 1024) == 0);
  // What all threads of the device need of its memory for their stacks.
  device.memory.size_bytes = std::uint64_t{80} << 30;
  const std::uint64_t bytes_for_each = device.memory.size_bytes / device.sm.count / 256;
  kernel.local_bytes = static_cast<std::uint32_t>(bytes_for_each / 3);
  CHECK(CtasPerSm(device, kernel, 256, 0, 1024) == 3);
  CHECK(CtasPerSm(device, kernel, 256, 0, static_cast<std::uint32_t>(bytes_for_each)) == 3);
  kernel.open_stack = true;
  CHECK(CtasPerSm(device, kernel, 256, 0, static_cast<std::uint32_t>(bytes_for_each)) == 0);
  kernel.local_bytes = 0;
  CHECK(CtasPerSm(device, kernel, 256, 0, static_cast<std::uint32_t>(bytes_for_each)) == 1);
  kernel.max_threads = 128;
  CHECK(CtasPerSm(device, kernel, 256, 0, 1024) == 0);
}
