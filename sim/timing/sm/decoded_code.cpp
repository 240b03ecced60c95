#include "sim/timing/sm/decoded_code.h"

#include <algorithm>
#include <string>

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
  // Parameters are read through the constant bank and always hit.
  if (instruction.space == trace::Space::kParameter) op.latency = static_cast<std::uint16_t>(timing.constant.latency);
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

Result<DecodedCode> Decode(const trace::KernelCode& code, const sim::TimingSpec& timing) {
  GL_TRY_STATUS(CheckCode(code, timing));
  DecodedCode decoded;
  decoded.operands = code.operands;
  decoded.blocks = code.blocks;
  decoded.register_count = code.register_count;
  decoded.ops.reserve(code.instructions.size());
  decoded.access_number.reserve(code.instructions.size());
  std::uint32_t accesses = 0;
  for (const trace::Instruction& instruction : code.instructions) {
    decoded.ops.push_back(DecodeOne(instruction, code, timing));
    decoded.access_number.push_back(accesses);
    if (instruction.has_access()) ++accesses;
  }
  return decoded;
}

}  // namespace gridloom::timing
