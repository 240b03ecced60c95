#include "tests/rewriter/passes/interpreter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>

#include "rewriter/analysis/cfg.h"
#include "rewriter/ptx/printer.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::test {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::StateSpace;

namespace {

constexpr std::uint64_t kFunctionStep = 16;

[[noreturn]] void Unknown(const std::string& what) { throw std::runtime_error("the interpreter does not know " + what); }

std::uint64_t Cut(std::uint64_t value, unsigned bits) { return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1); }
std::int64_t Signed(std::uint64_t value, unsigned bits) { return static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits); }

bool Compare(const Instruction& setp, std::uint64_t a, std::uint64_t b) {
  const unsigned bits = ptx::BitsOf(setp.type());
  if (ptx::IsSigned(setp.type()) && setp.Has(Mod::kLt)) return Signed(a, bits) < Signed(b, bits);
  if (setp.Has(Mod::kEq)) return a == b;
  if (setp.Has(Mod::kNe)) return a != b;
  if (setp.Has(Mod::kLt) && ptx::IsUnsigned(setp.type())) return a < b;
  if (setp.Has(Mod::kGt) && ptx::IsUnsigned(setp.type())) return a > b;
  Unknown(ptx::PrintInstruction(setp));
}

std::uint64_t Arithmetic(const Instruction& instruction, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const unsigned bits = ptx::BitsOf(instruction.type());
  switch (instruction.opcode) {
    case Opcode::kAdd: return a + b;
    case Opcode::kSub: return a - b;
    case Opcode::kMul: return instruction.Has(Mod::kHi) ? (a * b) >> 32 : a * b;  // .hi of 32 bits only
    case Opcode::kMad: return a * b + c;
    case Opcode::kXor: return a ^ b;
    case Opcode::kAnd: return a & b;
    case Opcode::kOr: return a | b;
    case Opcode::kShr: return b >= bits ? 0 : a >> b;
    case Opcode::kShl: return b >= bits ? 0 : a << b;
    case Opcode::kMin: return Signed(a, bits) < Signed(b, bits) ? a : b;
    case Opcode::kDiv: return a / b;
    case Opcode::kRem: return Signed(b, bits) == -1 ? 0 : static_cast<std::uint64_t>(Signed(a, bits) % Signed(b, bits));
    case Opcode::kPopc: return static_cast<std::uint64_t>(std::popcount(a));
    case Opcode::kSelp: return c != 0 ? a : b;
    case Opcode::kCvt: return a;  // between unsigned integers
    default: Unknown(ptx::PrintInstruction(instruction));
  }
}

}  // namespace

Interpreter::Interpreter(const ptx::Module& module) : module_(module) {
  for (const ptx::Variable& variable : module.variables) {
    std::vector<std::uint64_t>& words = globals_[&variable];
    words.resize(variable.element_count());  // 64-bit elements: tables of functions
    for (const ptx::Initializer& element : variable.initializer) {
      const ptx::Function* const function = module.FindFunction(std::get<Operand>(element.value).function->name);
      const auto it = std::ranges::find_if(module.functions, [&](const ptx::Function& one) { return &one == function; });
      words[element.element] = (static_cast<std::uint64_t>(it - module.functions.begin()) + 1) * kFunctionStep;
    }
  }
}

const Interpreter::Code& Interpreter::CodeOf(const ptx::Function& function) {
  const auto [it, added] = code_.try_emplace(&function);
  if (!added) return it->second;
  ptx::VisitStatements(*function.body, [&](ptx::Statement& statement) {
    if (const auto* instruction = std::get_if<Instruction>(&statement)) it->second.instructions.push_back(instruction);
    if (auto* label = std::get_if<ptx::Label*>(&statement)) it->second.labels[*label] = it->second.instructions.size();
  });
  return it->second;
}

void Interpreter::Run(const ptx::Function& kernel, const std::vector<std::byte>& params, const ThreadPlace& place) {
  registers_.clear();
  params_.clear();
  block_ = &params;
  kernel_ = &kernel;
  layout_ = ptx::LayoutParams(kernel);
  place_ = place;
  RunFunction(kernel);
}

Interpreter::Flow Interpreter::RunFunction(const ptx::Function& function) {
  const Code& code = CodeOf(function);
  for (std::size_t at = 0; at < code.instructions.size();) {
    std::size_t next = at + 1;
    const Flow flow = Step(*code.instructions[at], code, next);
    if (flow == Flow::kExit) return flow;
    if (flow == Flow::kReturn) break;
    at = next;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Step(const Instruction& instruction, const Code& code, std::size_t& next) {
  if (instruction.guard) {
    const bool holds = registers_[{instruction.guard->predicate, instruction.guard->index * 8}] != 0;
    if (holds == instruction.guard->negated) return Flow::kNext;
  }
  switch (instruction.opcode) {
    case Opcode::kBra: next = code.labels.at(instruction.operands[0].label); return Flow::kNext;
    case Opcode::kRet: return Flow::kReturn;
    case Opcode::kExit: return Flow::kExit;
    case Opcode::kCall: return Call(instruction);
    case Opcode::kMov: Move(instruction); return Flow::kNext;
    case Opcode::kLd: Load(instruction); return Flow::kNext;
    case Opcode::kSt: Store(instruction); return Flow::kNext;
    default: Compute(instruction); return Flow::kNext;
  }
}

Interpreter::Flow Interpreter::Call(const Instruction& call) {
  const Operand* const target = analysis::CallTargetOf(call);
  const ptx::Function* callee = target->function;
  if (callee == nullptr) callee = &module_.functions.at(Value(*target) / kFunctionStep - 1);
  callee = module_.FindFunction(callee->name);
  const std::size_t at = static_cast<std::size_t>(target - call.operands.data());
  const bool has_arguments = at + 1 < call.operands.size() && call.operands[at + 1].kind == OperandKind::kList;
  const std::size_t arguments = has_arguments ? call.operands[at + 1].elements.size() : 0;
  if (arguments != callee->params.size()) throw std::runtime_error("wrong number of arguments: " + ptx::PrintInstruction(call));
  for (std::size_t i = 0; i < arguments; ++i) {
    const Operand& argument = call.operands[at + 1].elements[i];
    params_[&callee->params[i]] = argument.kind == OperandKind::kSymbol ? params_[argument.variable] : Value(argument);
  }
  const Flow flow = RunFunction(*callee);
  if (at == 1) {
    for (std::size_t i = 0; i < callee->returns.size(); ++i) params_[call.operands[0].elements[i].variable] = params_[&callee->returns[i]];
  }
  return flow;
}

void Interpreter::Compute(const Instruction& instruction) {
  const auto& operands = instruction.operands;
  const auto value = [&](std::size_t i) { return i < operands.size() ? Value(operands[i]) : 0; };
  if (instruction.opcode == Opcode::kSetp) return Set(operands[0], Compare(instruction, value(1), value(2)));
  const unsigned bits = ptx::BitsOf(instruction.type()) * (instruction.Has(Mod::kWide) ? 2 : 1);
  Set(operands[0], Cut(Arithmetic(instruction, value(1), value(2), value(3)), bits));
}

void Interpreter::Move(const Instruction& instruction) {
  const Operand &to = instruction.operands[0], &from = instruction.operands[1];
  if (to.kind != OperandKind::kVector) return Set(to, Value(from));
  const std::array<std::uint32_t, 3>& values = from.text == "%ctaid" ? place_.cta : place_.grid;
  for (std::size_t i = 0; i < to.elements.size(); ++i) Set(to.elements[i], i < 3 ? values[i] : 0);
}

const std::byte* Interpreter::ParamBytes(const ptx::Variable& param) const {
  for (std::size_t i = 0; i < kernel_->params.size(); ++i) {
    if (&kernel_->params[i] == &param) return block_->data() + layout_.offsets[i];
  }
  return nullptr;
}

std::uint64_t Interpreter::Address(const Operand& operand) const {
  const ptx::AddressOperand& address = *operand.address;
  const Operand& base = address.base.at(0);
  const std::uint64_t from =
      base.kind == OperandKind::kSymbol ? reinterpret_cast<std::uint64_t>(globals_.at(base.variable).data()) : Value(base);
  return from + static_cast<std::uint64_t>(address.offset);
}

void Interpreter::Load(const Instruction& instruction) {
  const unsigned bytes = ptx::BytesOf(instruction.type());
  std::uint64_t value = 0;
  if (instruction.space() == StateSpace::kParam) {
    const ptx::Variable& param = *instruction.operands[1].address->base.at(0).variable;
    const std::byte* const in_block = ParamBytes(param);
    if (in_block != nullptr) std::memcpy(&value, in_block, bytes);
    else value = params_[&param];
  } else {
    std::memcpy(&value, reinterpret_cast<const void*>(Address(instruction.operands[1])), bytes);
  }
  Set(instruction.operands[0], Cut(value, bytes * 8));
}

void Interpreter::Store(const Instruction& instruction) {
  const std::uint64_t value = Value(instruction.operands[1]);
  if (instruction.space() == StateSpace::kParam) {
    params_[instruction.operands[0].address->base.at(0).variable] = value;
    return;
  }
  std::memcpy(reinterpret_cast<void*>(Address(instruction.operands[0])), &value, ptx::BytesOf(instruction.type()));
}

std::uint64_t Interpreter::Special(std::string_view name) const {
  const char component = name.back();
  const std::size_t i = component == 'y' ? 1 : component == 'z' ? 2 : 0;
  if (name.starts_with("%ctaid.")) return place_.cta[i];
  if (name.starts_with("%nctaid.")) return place_.grid[i];
  if (name == "%tid.x") return place_.tid;
  if (name == "%ntid.x") return place_.ntid;
  if (name == "%gridid") return place_.grid_id;
  Unknown(std::string(name));
}

std::uint64_t Interpreter::Value(const Operand& operand) const {
  switch (operand.kind) {
    case OperandKind::kInt: return operand.int_literal.value;
    case OperandKind::kSpecial: return Special(operand.text);
    case OperandKind::kRegister: {
      const auto it = registers_.find({operand.variable, operand.index * std::uint64_t{8}});
      const std::uint64_t value = it == registers_.end() ? 0 : it->second;
      return operand.negated ? value == 0 : value;
    }
    default: Unknown("operand " + ptx::PrintOperand(operand));
  }
}

void Interpreter::Set(const Operand& operand, std::uint64_t value) {
  if (operand.kind != OperandKind::kRegister || operand.element != 0) Unknown("destination " + ptx::PrintOperand(operand));
  registers_[{operand.variable, operand.index * std::uint64_t{8}}] = value;
}

}  // namespace gridloom::test
