// Lowered kernels do what the PTX does: every pass alone and all of them, on random kernels, against an interpreter.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "rewriter/ptx/parser.h"
#include "sim/device/device_files.h"
#include "sim/lowering/lower.h"
#include "sim/trace/code_table.h"
#include "sim/trace/trace_records.h"
#include "tests/sim/exec/random_kernel.h"
#include "tests/sim/lowering/interpreter.h"
#include "tests/sim/lowering/random_ptx.h"

namespace gridloom {
namespace {

using lowering::Kernel, lowering::Node, lowering::Pass;

trace::KernelCode CodeOf(const std::string& ptx, const std::string& kernel) {
  DiagnosticSink sink;
  const auto module = ptx::ParseModule(ptx, sink);
  REQUIRE(!sink.has_errors());
  trace::KernelCode code = trace::BuildCodeTable(*module, *module->FindFunction(kernel)).code;
  const Status valid = trace::ValidateCode(code);
  INFO((valid.ok() ? "" : valid.error().message));
  REQUIRE(valid.ok());
  REQUIRE(!code.meanings.empty());
  return code;
}

sim::DeviceSpec Device(const std::string& name) {
  auto device = sim::LoadDevice(name);
  REQUIRE(device.ok());
  return *device;
}

Kernel Run(const trace::KernelCode& code, const sim::DeviceSpec& device, std::span<const Pass> passes,
           std::uint32_t budget) {
  const lowering::Target target{.device = device, .budget = budget};
  Kernel kernel = lowering::KernelOf(code);
  for (const Pass& pass : passes) pass.run(kernel, target);
  return kernel;
}

/// Random kernels of both kinds.
std::vector<trace::KernelCode> RandomCodes(std::uint64_t count) {
  std::vector<trace::KernelCode> codes;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    codes.push_back(CodeOf(test::RandomPtx(seed, 1 + seed % 6, 5 + seed % 60), "k"));
    test::RandomKernelOptions options;
    options.blocks = 3 + static_cast<unsigned>(seed % 9);
    codes.push_back(CodeOf(test::RandomKernel(seed, options).Ptx(), "random_kernel"));
  }
  return codes;
}

std::string FirstDifference(const trace::KernelCode& code, const Kernel& lowered, std::uint64_t seeds) {
  const Kernel original = lowering::KernelOf(code);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const std::vector<std::uint32_t> path = test::RandomPath(original, seed, 30);
    const std::string difference =
        test::Difference(test::Interpret(original, path, seed), test::Interpret(lowered, path, seed));
    if (!difference.empty()) return difference;
  }
  return "";
}

/// Whether what an instruction reads by its numbers was written by the nodes that wrote it by registers of PTX.
bool NumbersMeanTheSame(const Kernel& kernel, const trace::KernelCode& numbered, std::uint64_t seed) {
  std::map<std::uint64_t, std::uint32_t> by_register, by_number;  // the last writer, as a place in the path
  std::uint32_t at = 0;
  for (const std::uint32_t b : test::RandomPath(kernel, seed, 30)) {
    std::uint32_t index = 0;
    for (std::uint32_t earlier = 0; earlier < b; ++earlier)
      index += static_cast<std::uint32_t>(kernel.blocks[earlier].nodes.size());
    for (const Node& node : kernel.blocks[b].nodes) {
      const trace::Instruction& instruction = numbered.instructions[index++];
      std::set<std::uint32_t> registers, numbers;
      lowering::VisitReads(node, [&](lowering::Register reg) { registers.insert(by_register[reg]); });
      const auto first = numbered.operands.begin() + instruction.operands;
      const auto sources = first + instruction.destinations;
      for (auto number = sources; number != sources + instruction.sources; ++number) numbers.insert(by_number[*number]);
      if (registers != numbers) return false;
      ++at;
      lowering::VisitRegisters(node.results, [&](lowering::Register reg) { by_register[reg] = at; });
      for (auto number = first; number != sources; ++number) by_number[*number] = at;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("Lowering_EachPassAlone_LeavesWhatAKernelDoes") {
  const sim::DeviceSpec device = Device("h200");
  for (const trace::KernelCode& code : RandomCodes(60)) {
    for (const Pass& pass : lowering::Passes()) {
      INFO(pass.name << ", " << code.instructions.size() << " instructions");
      CHECK(FirstDifference(code, Run(code, device, std::span(&pass, 1), 32), 6) == "");
    }
  }
}

TEST_CASE("Lowering_AllPasses_LeaveWhatAKernelDoes") {
  std::ptrdiff_t before = 0, after = 0;
  for (const char* name : {"h200", "v100", "gtx480"}) {
    const sim::DeviceSpec device = Device(name);
    for (const trace::KernelCode& code : RandomCodes(40)) {
      for (const std::uint32_t budget : {8u, 32u, 255u}) {
        INFO(name << ", budget " << budget);
        const Kernel lowered = Run(code, device, lowering::Passes(), budget);
        CHECK(FirstDifference(code, lowered, 6) == "");
        before += std::ssize(code.instructions);
        // Fewer of PTX are left, whatever is added.
        for (std::size_t b = 0; b < code.blocks.size(); ++b)
          after += std::ranges::count_if(lowered.blocks[b].nodes, [](const Node& node) { return !node.is_part; });
      }
    }
  }
  CHECK(after < before);
}

TEST_CASE("Lowering_RegistersOfTheDevice_HoldWhatRegistersOfPtxHold") {
  const sim::DeviceSpec device = Device("v100");
  for (const trace::KernelCode& code : RandomCodes(60)) {
    const Kernel kernel = Run(code, device, lowering::Passes(), 32);
    trace::KernelCode numbered;
    for (const lowering::Block& block : kernel.blocks) {
      for (const Node& node : block.nodes) numbered.instructions.push_back(node.shape);
    }
    lowering::AssignRegisters(kernel, numbered);
    for (std::uint64_t seed = 0; seed < 6; ++seed) CHECK(NumbersMeanTheSame(kernel, numbered, seed));
  }
}

TEST_CASE("Lowering_RecordsAndEvents_StayWithinTheirBlocks") {
  const sim::DeviceSpec device = Device("h200");
  for (const trace::KernelCode& code : RandomCodes(40)) {
    const lowering::Lowered lowered = lowering::Lower(code, device, lowering::Passes());
    REQUIRE(trace::ValidateCode(lowered.code).ok());
    REQUIRE(lowered.code.blocks.size() == code.blocks.size() + lowered.regions.size());
    for (std::size_t b = 0; b < code.blocks.size(); ++b) {
      const trace::BasicBlock &from = code.blocks[b], &to = lowered.code.blocks[b];
      CHECK((from.count == 0) == (to.count == 0));
      std::uint32_t records = 0, last = to.first;
      for (std::uint32_t i = from.first; i < from.first + from.count; ++i) {
        records += code.instructions[i].has_access() ? 1 : 0;
        CHECK(lowered.place[i] >= last);
        CHECK(lowered.place[i] < to.first + to.count);
        last = lowered.place[i];
      }
      for (std::uint32_t i = to.first; i < to.first + to.count; ++i) {
        if (lowered.code.instructions[i].has_access()) CHECK(lowered.access[i] < records);
      }
    }
    for (const lowering::Lowered::Region& region : lowered.regions) {
      const trace::BasicBlock& to = lowered.code.blocks[region.code];
      for (std::uint32_t i = to.first; i < to.first + to.count; ++i) {
        if (!lowered.code.instructions[i].has_access()) continue;
        const trace::BasicBlock& from = code.blocks[region.parts[lowered.part[i]].block];
        CHECK(lowered.ptx[i] - from.first < from.count);
      }
    }
  }
}

TEST_CASE("Lowering_CodeOfOtherTraces_IsReadAsItWasOrRefused") {
  sim::DeviceSpec device = Device("h200");
  device.timing.lowering = sim::Lowering::kFull;
  std::mt19937_64 random(7);
  std::size_t read = 0, lowered = 0;
  for (const trace::KernelCode& code : RandomCodes(20)) {
    trace::ByteWriter out;
    trace::PutCode(code, out);
    const std::vector<std::uint8_t> bytes(out.bytes().begin(), out.bytes().end());
    const auto same = trace::GetCode(trace::ByteReader(bytes));
    REQUIRE(same.ok());
    CHECK(same->meanings.texts == code.meanings.texts);
    CHECK(same->meanings.terms == code.meanings.terms);
    CHECK(same->meanings.successors == code.meanings.successors);
    CHECK(FirstDifference(code, lowering::KernelOf(*same), 3) == "");
    for (int i = 0; i < 200; ++i) {
      std::vector<std::uint8_t> changed = bytes;
      for (unsigned flips = 1 + random() % 3; flips != 0; --flips)
        changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
      const auto other = trace::GetCode(trace::ByteReader(changed));
      if (!other.ok()) continue;
      ++read;
      const auto made = lowering::Lower(*other, device);
      REQUIRE(made.ok());
      REQUIRE(trace::ValidateCode(made->code).ok());
      lowered += made->code.instructions.size() < other->instructions.size() ? 1 : 0;
    }
  }
  CHECK(read > 100);
  CHECK(lowered > 10);
}

TEST_CASE("Lowering_TracesWithoutMeanings_AreOrderedOnly") {
  sim::DeviceSpec device = Device("h200");
  device.timing.lowering = sim::Lowering::kFull;
  for (trace::KernelCode& code : RandomCodes(20)) {
    code.meanings = {};
    const auto lowered = lowering::Lower(code, device);
    REQUIRE(lowered.ok());
    CHECK(lowered->code.instructions.size() == code.instructions.size());
    CHECK(lowered->code.register_count == code.register_count);
    // Each instruction is there once, in its block.
    std::vector<std::uint32_t> ptx = lowered->ptx;
    std::ranges::sort(ptx);
    for (std::uint32_t i = 0; i < ptx.size(); ++i) CHECK(ptx[i] == i);
    device.timing.lowering = sim::Lowering::kNone;
    CHECK(lowering::Lower(code, device)->ptx == ptx);
    device.timing.lowering = sim::Lowering::kFull;
  }
}

}  // namespace gridloom
