#include "tests/sim/exec/runtime_harness.h"

#include <catch2/catch.hpp>
#include <map>
#include <mutex>

#include "rewriter/ptx/parser.h"
#include "sim/exec/compiler/compiler.h"
#include "sim/exec/runtime/engine_internal.h"
#include "tests/sim/exec/elf_builder.h"

namespace gridloom::test {
namespace {

std::mutex g_mutex;
std::map<std::string, NativeKernel> g_kernels;
std::atomic<int> g_compilations{0};

void FakeCompile(const ptx::Module*, const char* name, const CompileOptions*, CompiledKernel* out) {
  const std::lock_guard lock(g_mutex);
  ++g_compilations;
  const NativeKernel& kernel = g_kernels.at(name);
  out->error = kernel.error;
  out->object = kernel.object.empty() ? ThunkObject(reinterpret_cast<const void*>(kernel.entry)) : kernel.object;
  out->needs_fiber = kernel.needs_fiber;
  out->simple_barriers = kernel.simple_barriers;
  out->recursive = kernel.recursive;
  out->static_shared_bytes = kernel.static_shared_bytes;
  out->local_bytes = kernel.local_bytes;
}

}  // namespace

sim::DeviceSpec TestDevice(std::uint32_t sm_count) {
  sim::DeviceSpec device;
  device.id = device.name = "test";
  device.sm.count = sm_count;
  device.sm.clock_mhz = 1000;
  device.sm.max_threads = 2048;
  device.sm.max_blocks = 32;
  device.sm.registers = 65536;
  device.sm.shared_bytes = 233472;
  device.block.max_threads = 1024;
  device.block.shared_bytes = 49152;
  device.block.shared_optin_bytes = 232448;
  device.block.shared_reserved_bytes = 1024;
  device.allocation.registers_per_warp = 256;
  device.allocation.warps = 4;
  device.allocation.shared_bytes = 128;
  return device;
}

Harness::Harness(unsigned threads, Engine::Options options, const DeviceMemory::Options& memory_options) {
  auto created = DeviceMemory::Create(memory_options);
  REQUIRE(created.ok());
  memory = std::move(*created);
  options.threads = threads;
  EngineParts parts;
  parts.compile = &FakeCompile;
  parts.compiler_id = "fake";
  parts.printf_sink = [this](std::string_view text) { printed += text; };
  auto made = CreateEngine(options, TestDevice(), *memory, std::move(parts));
  REQUIRE(made.ok());
  engine = std::move(*made);
}

namespace {

constexpr std::uint32_t kLines = 64;

/// Lines 1 to kLines in each kernel, as if it had a text of its own: what a test's code says of lines is then the line
/// of a message.
void NumberLines(ptx::Block& body) {
  std::uint32_t line = 0;
  for (ptx::Statement& statement : body.statements)
    if (auto* const instruction = std::get_if<ptx::Instruction>(&statement)) instruction->loc.line = ++line;
}

}  // namespace

int Harness::compilations() { return g_compilations; }

void Harness::Add(const std::string& name, NativeKernel kernel) {
  {
    const std::lock_guard lock(g_mutex);
    g_kernels[name] = std::move(kernel);
  }
  names_.push_back(name);
  Link();
}

void Harness::Link() {
  std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n";
  for (const std::string& name : names_) {
    text += ".visible .entry " + name + "(.param .u64 p0)\n{\n";
    for (std::uint32_t i = 0; i < kLines; ++i) text += " ret;\n";
    text += "}\n";
  }
  DiagnosticSink sink;
  auto module = ptx::ParseModule(text, sink);
  REQUIRE(!sink.has_errors());
  for (ptx::Function& function : module->functions) NumberLines(*function.body);
  auto loaded = Program::Load(std::move(module), text, *memory);
  REQUIRE(loaded.ok());
  program = std::move(*loaded);
}

LaunchFault Harness::Run(const std::string& name, Dim3 grid, Dim3 block, std::vector<std::uint64_t> params,
                         std::uint32_t dynamic_shared_bytes, Dim3 cluster, bool cooperative, LaunchStats* stats) {
  if (params.empty()) params.push_back(0);
  LaunchParams launch;
  launch.program = program;
  launch.kernel = program->FindKernel(name);
  REQUIRE(launch.kernel != nullptr);
  launch.grid = grid;
  launch.block = block;
  launch.cluster = cluster;
  launch.dynamic_shared_bytes = dynamic_shared_bytes;
  launch.params = std::as_bytes(std::span(params));
  launch.cooperative = cooperative;
  return engine->Run(launch, stats);
}

std::uint32_t Sync(WarpCtx* warp, BarrierOp op, std::uint32_t id, std::uint32_t threads, std::uint32_t predicate,
                   std::uint32_t mask, std::uint32_t line, std::uint64_t flags) {
  alignas(64) std::uint32_t out[32] = {}, ids[32], counts[32];
  for (int i = 0; i < 32; ++i) {
    ids[i] = id;
    counts[i] = threads;
  }
  void* args[] = {out, ids, counts, &predicate};
  CallHelper(warp, Helper::kBarrier, mask, line, static_cast<std::uint64_t>(op) | flags, args);
  return out[std::countr_zero(mask)];
}

}  // namespace gridloom::test
