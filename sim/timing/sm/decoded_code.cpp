#include "sim/timing/sm/decoded_code.h"

#include <algorithm>
#include <string>

#include "sim/lowering/lower.h"

namespace gridloom::timing {
namespace {

OpKind KindOf(const trace::Instruction& instruction) {
  switch (instruction.op) {
    case trace::OpClass::kMemory:
      return instruction.space == trace::Space::kParameter ? OpKind::kArithmetic : OpKind::kMemory;
    case trace::OpClass::kBranch: return OpKind::kBranch;
    case trace::OpClass::kBarrier: return OpKind::kBarrier;
    case trace::OpClass::kFence: return OpKind::kFence;
    default: return OpKind::kArithmetic;
  }
}

/// A product of another size than the device file's takes the unit as long as its work says; its last part takes the
/// file's latency.
void ScaleTensor(const trace::Instruction& instruction, DecodedOp& op) {
  constexpr std::uint32_t kUnits = sim::TimingSpec::kTensorMultiplyAdds / trace::Instruction::kTensorUnit;
  constexpr std::uint32_t kMost = 0xffff;
  if (instruction.width == 0) return;  // not known
  const std::uint32_t file = op.interval;
  const std::uint32_t interval = std::clamp((file * instruction.width + kUnits - 1) / kUnits, 1u, kMost);
  op.interval = static_cast<std::uint16_t>(interval);
  if (interval > file) op.latency = static_cast<std::uint16_t>(std::min(kMost, op.latency + (interval - file)));
}

DecodedOp DecodeOne(const trace::Instruction& instruction, const trace::KernelCode& code,
                    const sim::TimingSpec& timing) {
  const sim::TimingSpec::Op& spec = timing.of(instruction.op);
  DecodedOp op;
  op.kind = KindOf(instruction);
  op.pipe = static_cast<std::uint8_t>(spec.pipe);
  op.latency = static_cast<std::uint16_t>(spec.latency);
  op.interval = static_cast<std::uint16_t>(spec.interval);
  if (instruction.op == trace::OpClass::kTensor) ScaleTensor(instruction, op);
  // Parameters are read through the constant bank, and hit but for the first time.
  if (instruction.space == trace::Space::kParameter) {
    op.latency = static_cast<std::uint16_t>(timing.constant.latency);
    op.parameters = true;
  }
  op.destinations = instruction.destinations;
  op.register_count = static_cast<std::uint8_t>(instruction.destinations + instruction.sources);
  op.operands = instruction.operands;
  for (std::size_t i = 0; i < std::min<std::size_t>(op.register_count, DecodedOp::kInlineRegisters); ++i) {
    op.registers[i] = code.operands[instruction.operands + i];
  }
  op.space = instruction.space;
  op.gated = op.kind == OpKind::kMemory && op.space != trace::Space::kShared;
  op.width = instruction.width;
  op.flags = instruction.flags;
  op.barrier = instruction.barrier;
  op.barrier_warps = instruction.barrier_warps;
  return op;
}

}  // namespace

Status CheckCode(const trace::KernelCode& code, const sim::TimingSpec& timing) {
  GL_TRY_STATUS(trace::ValidateCode(code));
  for (std::size_t i = 0; i < code.instructions.size(); ++i) {
    const trace::Instruction& instruction = code.instructions[i];
    const auto where = [&] { return "kernel " + code.name + ", instruction " + std::to_string(i); };
    if (instruction.destinations + instruction.sources > 255) return Error{where() + ": more than 255 registers"};
    if (timing.units_of(timing.of(instruction.op).pipe) == 0) {
      return Error{where() + ": the device has no unit for its class (timing.units." +
                   sim::kPipeNames[static_cast<std::size_t>(timing.of(instruction.op).pipe)] + " is 0)"};
    }
  }
  return {};
}

namespace {

/// `code`: of the trace.
DecodedCode DecodeAs(const lowering::Lowered& lowered, const trace::KernelCode& code, const sim::TimingSpec& timing) {
  DecodedCode decoded;
  decoded.operands = lowered.code.operands;
  decoded.register_count = lowered.code.register_count;
  decoded.event_ops = lowered.place;
  decoded.ops.reserve(lowered.code.instructions.size());
  for (std::size_t i = 0; i < lowered.code.instructions.size(); ++i) {
    DecodedOp& op = decoded.ops.emplace_back(DecodeOne(lowered.code.instructions[i], lowered.code, timing));
    op.float_atomic = lowered.traits[i].float_atomic;
    if (lowered.traits[i].reads_operands) op.parameters = op.holds_warp = true;
    if (lowered.traits[i].guards)
      op.latency = std::max(op.latency, static_cast<std::uint16_t>(timing.sm.guard_latency));
  }
  std::vector<std::uint32_t> before(code.instructions.size());  // memory instructions
  std::uint32_t accesses = 0;
  for (std::size_t i = 0; i < code.instructions.size(); ++i) {
    before[i] = accesses;
    accesses += code.instructions[i].has_access() ? 1 : 0;
  }
  for (std::size_t i = 0; i < decoded.ops.size(); ++i) {
    const std::uint32_t ptx = lowered.ptx[i];
    decoded.access.push_back({.instruction = ptx == lowering::Lowered::kAdded ? 0 : before[ptx],
                              .record = lowered.access[i],
                              .part = lowered.part[i],
                              .one_lane = lowered.traits[i].one_lane,
                              .whole_warp = lowered.traits[i].whole_warp});
  }
  for (std::size_t b = 0; b < code.blocks.size(); ++b) {
    const trace::BasicBlock &from = code.blocks[b], &to = lowered.code.blocks[b];
    const std::uint32_t end = from.first + from.count;
    decoded.blocks.push_back({.first = to.first,
                              .count = to.count,
                              .accesses = from.count == 0 ? 0
                                                          : before[end - 1] - before[from.first] +
                                                                (code.instructions[end - 1].has_access() ? 1 : 0)});
  }
  for (const lowering::Lowered::Region& region : lowered.regions) {
    const trace::BasicBlock& ops = lowered.code.blocks[region.code];
    decoded.regions.push_back({.parts = region.parts, .next = region.next, .first = ops.first, .count = ops.count});
    decoded.blocks[region.parts[0].block].region = static_cast<std::uint32_t>(decoded.regions.size());
  }
  return decoded;
}

}  // namespace

Result<DecodedCode> Decode(const trace::KernelCode& code, const sim::TimingSpec& timing) {
  GL_TRY_STATUS(CheckCode(code, timing));
  return DecodeAs(lowering::Unchanged(code), code, timing);
}

Result<DecodedCode> DecodeLowered(const trace::KernelCode& code, const sim::DeviceSpec& device) {
  GL_TRY_STATUS(CheckCode(code, device.timing));
  GL_TRY(lowered, lowering::Lower(code, device));
  GL_TRY_STATUS(CheckCode(lowered.code, device.timing));
  return DecodeAs(lowered, code, device.timing);
}

}  // namespace gridloom::timing
