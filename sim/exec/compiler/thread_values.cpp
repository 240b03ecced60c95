#include "sim/exec/compiler/thread_values.h"

#include <llvm/Support/MathExtras.h>

#include <algorithm>

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kMostThreads = 1024;
constexpr unsigned kMostDepth = 24;

unsigned BitsOf(const llvm::Value& value) {
  const auto* type = llvm::dyn_cast<llvm::IntegerType>(value.getType());
  return type && type->getBitWidth() <= 64 ? type->getBitWidth() : 0;
}

std::uint64_t Clip(std::uint64_t value, unsigned bits) {
  return bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

std::optional<std::uint64_t> Binary(unsigned opcode, std::uint64_t a, std::uint64_t b, unsigned bits) {
  using llvm::Instruction;
  const bool shift = opcode == Instruction::Shl || opcode == Instruction::LShr || opcode == Instruction::AShr;
  const bool divides = opcode == Instruction::UDiv || opcode == Instruction::URem;
  if ((shift && b >= bits) || (divides && b == 0)) return std::nullopt;
  switch (opcode) {
    case Instruction::Add: return a + b;
    case Instruction::Sub: return a - b;
    case Instruction::Mul: return a * b;
    case Instruction::And: return a & b;
    case Instruction::Or: return a | b;
    case Instruction::Xor: return a ^ b;
    case Instruction::Shl: return a << b;
    case Instruction::LShr: return a >> b;
    case Instruction::AShr: return static_cast<std::uint64_t>(llvm::SignExtend64(a, bits) >> b);
    case Instruction::UDiv: return a / b;
    case Instruction::URem: return a % b;
    default: return std::nullopt;
  }
}

}  // namespace

ThreadValues::ThreadValues(const SpmdModule& spmd, const CompileOptions& options) : spmd_(spmd) {
  std::ranges::copy(options.block, block_);
  if (block_[0] == 0 && IsRowOfWarps(options.block)) {
    any_length_ = true;
    block_[0] = kMostThreads;
  }
  const std::uint64_t threads = std::uint64_t{block_[0]} * block_[1] * block_[2];
  threads_ = threads <= kMostThreads ? static_cast<std::uint32_t>(threads) : 0;
}

const std::vector<std::uint64_t>* ThreadValues::Of(const llvm::Value* value) { return Of(value, 0); }

const ThreadValues::Values* ThreadValues::Of(const llvm::Value* value, unsigned depth) {
  if (!knows_block() || depth > kMostDepth || BitsOf(*value) == 0) return nullptr;
  if (const auto it = known_.find(value); it != known_.end()) return it->second.get();
  std::unique_ptr<Values> values = Compute(value, depth);
  return (known_[value] = std::move(values)).get();
}

std::unique_ptr<ThreadValues::Values> ThreadValues::Compute(const llvm::Value* value, unsigned depth) {
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value)) {
    return std::make_unique<Values>(threads_, constant->getZExtValue());
  }
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
  if (!instruction) return nullptr;
  if (const auto* call = llvm::dyn_cast<llvm::CallInst>(instruction)) {
    const MarkerInfo* info = call->getCalledFunction() ? spmd_.Find(call->getCalledFunction()) : nullptr;
    return info && info->kind == MarkerKind::kSpecial ? OfSpecial(info->special) : nullptr;
  }
  return OfInstruction(*instruction, depth);
}

std::unique_ptr<ThreadValues::Values> ThreadValues::OfSpecial(Special special) const {
  auto values = std::make_unique<Values>(threads_);
  const auto fill = [&](auto value_of) {
    for (std::uint32_t thread = 0; thread < threads_; ++thread) (*values)[thread] = value_of(thread);
  };
  switch (special) {
    case Special::kTidX: fill([&](std::uint32_t t) { return t % block_[0]; }); break;
    case Special::kTidY: fill([&](std::uint32_t t) { return t / block_[0] % block_[1]; }); break;
    case Special::kTidZ: fill([&](std::uint32_t t) { return t / block_[0] / block_[1]; }); break;
    case Special::kLaneId: fill([](std::uint32_t t) { return t % kWarpSize; }); break;
    case Special::kWarpId: fill([](std::uint32_t t) { return t / kWarpSize; }); break;
    case Special::kNtidX:
      if (any_length_) return nullptr;
      fill([&](std::uint32_t) { return block_[0]; });
      break;
    case Special::kNtidY: fill([&](std::uint32_t) { return block_[1]; }); break;
    case Special::kNtidZ: fill([&](std::uint32_t) { return block_[2]; }); break;
    default: return nullptr;
  }
  return values;
}

std::unique_ptr<ThreadValues::Values> ThreadValues::OfInstruction(const llvm::Instruction& instruction,
                                                                  unsigned depth) {
  const bool cast = llvm::isa<llvm::ZExtInst, llvm::SExtInst, llvm::TruncInst>(instruction);
  const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction);
  const bool select = llvm::isa<llvm::SelectInst>(instruction);
  if (!cast && !compare && !select && !instruction.isBinaryOp()) return nullptr;
  const Values* operands[3] = {};
  for (unsigned i = 0; i < instruction.getNumOperands(); ++i) {
    operands[i] = Of(instruction.getOperand(i), depth + 1);
    if (!operands[i]) return nullptr;
  }
  const unsigned bits = BitsOf(instruction), from = BitsOf(*instruction.getOperand(0));
  auto values = std::make_unique<Values>(threads_);
  for (std::uint32_t thread = 0; thread < threads_; ++thread) {
    const auto operand = [&](unsigned i) { return (*operands[i])[thread]; };
    std::optional<std::uint64_t> value;
    if (llvm::isa<llvm::SExtInst>(instruction))
      value = static_cast<std::uint64_t>(llvm::SignExtend64(operand(0), from));
    else if (cast) value = operand(0);
    else if (compare) value = llvm::ICmpInst::compare({from, operand(0)}, {from, operand(1)}, compare->getPredicate());
    else if (select) value = operand(0) != 0 ? operand(1) : operand(2);
    else value = Binary(instruction.getOpcode(), operand(0), operand(1), bits);
    if (!value) return nullptr;
    (*values)[thread] = Clip(*value, bits);
  }
  return values;
}

}  // namespace gridloom::exec
