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

[[noreturn]] void Unknown(const std::string& what) {
  throw std::runtime_error("the interpreter does not know " + what);
}

std::uint64_t Cut(std::uint64_t value, unsigned bits) {
  return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}
std::int64_t Signed(std::uint64_t value, unsigned bits) {
  return static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits);
}

bool Compare(const Instruction& setp, std::uint64_t a, std::uint64_t b) {
  const unsigned bits = ptx::BitsOf(setp.type());
  if (setp.Has(Mod::kEq)) return Cut(a, bits) == Cut(b, bits);
  if (setp.Has(Mod::kNe)) return Cut(a, bits) != Cut(b, bits);
  const bool is_signed = ptx::IsSigned(setp.type());
  const auto less = [&](std::uint64_t x, std::uint64_t y) {
    return is_signed ? Signed(x, bits) < Signed(y, bits) : Cut(x, bits) < Cut(y, bits);
  };
  if (setp.Has(Mod::kLt)) return less(a, b);
  if (setp.Has(Mod::kGt)) return less(b, a);
  if (setp.Has(Mod::kLe)) return !less(b, a);
  if (setp.Has(Mod::kGe)) return !less(a, b);
  Unknown(ptx::PrintInstruction(setp));
}

/// Of operands extended to 64 bits by their type's sign.
std::uint64_t SignedArithmetic(const Instruction& instruction, std::int64_t a, std::int64_t b) {
  switch (instruction.opcode) {
    case Opcode::kShr:
      return static_cast<std::uint64_t>(a >> std::min<std::uint64_t>(static_cast<std::uint64_t>(b), 63));
    case Opcode::kMin: return static_cast<std::uint64_t>(std::min(a, b));
    case Opcode::kMax: return static_cast<std::uint64_t>(std::max(a, b));
    case Opcode::kDiv: return b == -1 ? 0 - static_cast<std::uint64_t>(a) : static_cast<std::uint64_t>(a / b);
    case Opcode::kRem: return b == -1 ? 0 : static_cast<std::uint64_t>(a % b);
    default: Unknown(ptx::PrintInstruction(instruction));
  }
}

/// Of operands extended to 64 bits, by their type's sign or with zeros; the result is cut by the caller.
std::uint64_t Arithmetic(const Instruction& instruction, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const unsigned bits = ptx::BitsOf(instruction.type());
  switch (instruction.opcode) {
    case Opcode::kAdd: return a + b;
    case Opcode::kSub: return a - b;
    case Opcode::kMul:  // .hi of 32 bits only
      if (instruction.Has(Mod::kHi) && bits != 32) Unknown(ptx::PrintInstruction(instruction));
      return instruction.Has(Mod::kHi) ? (a * b) >> 32 : a * b;
    case Opcode::kMad: return a * b + c;
    case Opcode::kXor: return a ^ b;
    case Opcode::kAnd: return a & b;
    case Opcode::kOr: return a | b;
    case Opcode::kNot: return instruction.type() == ptx::ScalarType::kPred ? a == 0 : ~a;
    case Opcode::kAbs: return static_cast<std::int64_t>(a) < 0 ? 0 - a : a;
    case Opcode::kShl: return b >= bits ? 0 : a << b;
    case Opcode::kPopc: return static_cast<std::uint64_t>(std::popcount(a));
    case Opcode::kSelp: return c != 0 ? a : b;
    case Opcode::kCvta: return a;
    case Opcode::kNeg: return 0 - a;
    case Opcode::kClz: return static_cast<std::uint64_t>(std::countl_zero(a)) - (64 - bits);
    case Opcode::kBfe:
      if (ptx::IsSigned(instruction.type())) Unknown(ptx::PrintInstruction(instruction));
      return (b & 0xFF) >= bits ? 0 : Cut(a >> (b & 0xFF), static_cast<unsigned>(c & 0xFF));
    case Opcode::kBrev: {
      std::uint64_t turned = 0;
      for (unsigned bit = 0; bit < bits; ++bit) turned |= (a >> bit & 1) << (bits - 1 - bit);
      return turned;
    }
    case Opcode::kBfind:
      if (!instruction.Has(Mod::kShiftamt)) Unknown(ptx::PrintInstruction(instruction));
      return static_cast<std::uint64_t>(std::countl_zero(a)) - (64 - bits);
    default: break;
  }
  if (ptx::IsSigned(instruction.type()))
    return SignedArithmetic(instruction, static_cast<std::int64_t>(a), static_cast<std::int64_t>(b));
  switch (instruction.opcode) {
    case Opcode::kShr: return b >= bits ? 0 : a >> b;
    case Opcode::kMin: return std::min(a, b);
    case Opcode::kMax: return std::max(a, b);
    case Opcode::kDiv: return a / b;
    case Opcode::kRem: return a % b;
    default: Unknown(ptx::PrintInstruction(instruction));
  }
}

}  // namespace

Interpreter::Interpreter(const ptx::Module& module, InterpreterWatcher* watcher) : module_(module), watcher_(watcher) {
  for (const ptx::Variable& variable : module.variables) {
    std::vector<std::uint64_t>& words = globals_[&variable];
    words.resize(variable.element_count());  // 64-bit elements: tables of functions
    for (const ptx::Initializer& element : variable.initializer) {
      words[element.element] = FunctionAddress(*std::get<Operand>(element.value).function);
    }
  }
}

std::uint64_t Interpreter::FunctionAddress(const ptx::Function& function) const {
  const ptx::Function* const definition = module_.FindFunction(function.name);
  const auto it = std::ranges::find_if(module_.functions, [&](const ptx::Function& one) { return &one == definition; });
  return (static_cast<std::uint64_t>(it - module_.functions.begin()) + 1) * kFunctionStep;
}

const ptx::Function& Interpreter::FunctionAt(std::uint64_t address) const {
  return module_.functions.at(address / kFunctionStep - 1);
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

std::vector<std::pair<std::uint64_t, std::uint64_t>> Interpreter::Globals() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> globals;
  for (const auto& [variable, words] : globals_)
    globals.emplace_back(reinterpret_cast<std::uint64_t>(words.data()), variable->bytes());
  return globals;
}

void Interpreter::RunCta(const ptx::Function& kernel, const std::vector<std::byte>& params, const CtaPlace& place) {
  block_ = &params;
  kernel_ = &kernel;
  layout_ = ptx::LayoutParams(kernel);
  place_ = place;
  shared_.clear();
  std::vector<Thread> threads(std::size_t{place.block[0]} * place.block[1] * place.block[2]);
  for (std::uint32_t i = 0; i < threads.size(); ++i)
    threads[i].tid = {i % place.block[0], i / place.block[0] % place.block[1], i / place.block[0] / place.block[1]};
  const Code& code = CodeOf(kernel);
  for (bool any = true; any;) {  // a round is what lies between two barriers
    any = false;
    for (Thread& thread : threads) {
      if (thread.ended) continue;
      thread_ = &thread;
      RunThread(code);
      any |= !thread.ended;
    }
  }
}

void Interpreter::RunThread(const Code& code) {
  std::size_t& at = thread_->at;
  while (at < code.instructions.size()) {
    std::size_t next = at + 1;
    const Flow flow = Step(*code.instructions[at], code, next);
    at = next;
    if (flow == Flow::kBarrier) return;
    if (flow != Flow::kNext) break;
  }
  thread_->ended = true;
}

Interpreter::Flow Interpreter::RunFunction(const ptx::Function& function) {
  const Code& code = CodeOf(function);
  for (std::size_t at = 0; at < code.instructions.size();) {
    std::size_t next = at + 1;
    const Flow flow = Step(*code.instructions[at], code, next);
    if (flow == Flow::kBarrier) Unknown("barriers in functions");
    if (flow == Flow::kExit) return flow;
    if (flow == Flow::kReturn) break;
    at = next;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Step(const Instruction& instruction, const Code& code, std::size_t& next) {
  if (instruction.guard) {
    const bool holds = thread_->registers[{instruction.guard->predicate, instruction.guard->index * 8}] != 0;
    if (holds == instruction.guard->negated) return Flow::kNext;
  }
  switch (instruction.opcode) {
    case Opcode::kBra: next = code.labels.at(instruction.operands[0].label); return Flow::kNext;
    case Opcode::kRet: return Flow::kReturn;
    case Opcode::kExit: return Flow::kExit;
    case Opcode::kCall: return Call(instruction);
    case Opcode::kBar: return instruction.Has(Mod::kWarp) ? Flow::kNext : Flow::kBarrier;
    case Opcode::kTrap: throw std::runtime_error("the kernel traps");
    case Opcode::kActivemask:
    case Opcode::kMatch:
    case Opcode::kShfl:
    case Opcode::kVote: Set(instruction.operands[0], Alone(instruction)); return Flow::kNext;
    case Opcode::kMembar: return Flow::kNext;
    case Opcode::kAtom:
    case Opcode::kRed: Add(instruction); return Flow::kNext;
    case Opcode::kMov: Move(instruction); return Flow::kNext;
    case Opcode::kLd: Load(instruction); return Flow::kNext;
    case Opcode::kSt: Store(instruction); return Flow::kNext;
    default: Compute(instruction); return Flow::kNext;
  }
}

Interpreter::Flow Interpreter::Call(const Instruction& call) {
  const Operand* const target = analysis::CallTargetOf(call);
  const ptx::Function* callee = target->function;
  if (callee == nullptr) callee = &FunctionAt(Value(*target));
  callee = module_.FindFunction(callee->name);
  const std::size_t at = static_cast<std::size_t>(target - call.operands.data());
  const bool has_arguments = at + 1 < call.operands.size() && call.operands[at + 1].kind == OperandKind::kList;
  const std::size_t arguments = has_arguments ? call.operands[at + 1].elements.size() : 0;
  if (arguments != callee->params.size())
    throw std::runtime_error("wrong number of arguments: " + ptx::PrintInstruction(call));
  for (std::size_t i = 0; i < arguments; ++i) {
    const Operand& argument = call.operands[at + 1].elements[i];
    if (argument.kind == OperandKind::kSymbol) CopyParam(*argument.variable, callee->params[i]);
    else thread_->params[{&callee->params[i], 0}] = Value(argument);
  }
  if (callee->body == nullptr || (watcher_ != nullptr && watcher_->Replaces(callee->name))) {
    if (watcher_ == nullptr) Unknown("the function " + std::string(callee->name));
    std::vector<std::uint64_t> values;
    for (const ptx::Variable& param : callee->params) {
      for (std::uint64_t at = 0; at < (param.bytes() == 12 ? 12u : 1u); at += 4)
        values.push_back(thread_->params[{&param, at}]);
    }
    watcher_->OnCall(callee->name, values);
    if (at == 1 && !call.operands[0].elements.empty())
      thread_->params[{call.operands[0].elements[0].variable, 0}] = watcher_->Result();
    return Flow::kNext;
  }
  const Flow flow = RunFunction(*callee);
  if (at == 1) {
    for (std::size_t i = 0; i < callee->returns.size(); ++i)
      CopyParam(callee->returns[i], *call.operands[0].elements[i].variable);
  }
  return flow;
}

void Interpreter::CopyParam(const ptx::Variable& from, const ptx::Variable& to) {
  for (std::uint64_t at = 0; at < std::max<std::uint64_t>(from.bytes(), 1); at += 4)
    thread_->params[{&to, at}] = thread_->params[{&from, at}];
}

std::uint64_t Interpreter::Lane() const {
  return ((std::uint64_t{thread_->tid[2]} * place_.block[1] + thread_->tid[1]) * place_.block[0] + thread_->tid[0]) %
         32;
}

std::uint64_t Interpreter::Alone(const Instruction& of_warp) {
  const std::uint64_t self = std::uint64_t{1} << Lane();
  switch (of_warp.opcode) {
    case Opcode::kShfl: return Value(of_warp.operands[1]);
    case Opcode::kVote: return Value(of_warp.operands[1]) != 0 ? self : 0;
    default: return self;
  }
}

void Interpreter::Compute(const Instruction& instruction) {
  const auto& operands = instruction.operands;
  const auto value = [&](std::size_t i) { return i < operands.size() ? Value(operands[i]) : 0; };
  if (instruction.opcode == Opcode::kSetp) {
    const bool holds = Compare(instruction, value(1), value(2));
    if (operands.size() > 3 && instruction.Has(Mod::kOr)) return Set(operands[0], holds || value(3) != 0);
    if (operands.size() > 3 && !instruction.Has(Mod::kAnd)) Unknown(ptx::PrintInstruction(instruction));
    return Set(operands[0], holds && (operands.size() <= 3 || value(3) != 0));
  }
  const auto extended = [&](std::uint64_t number, ptx::ScalarType type) {
    const unsigned bits = ptx::BitsOf(type);
    return ptx::IsSigned(type) ? static_cast<std::uint64_t>(Signed(number, bits)) : Cut(number, bits);
  };
  const ptx::ScalarType type = instruction.type();
  if (type == ptx::ScalarType::kPred)
    return Set(operands[0], Arithmetic(instruction, value(1), value(2), value(3)) & 1);
  if (instruction.opcode == Opcode::kCvt)
    return Set(operands[0], Cut(extended(value(1), instruction.type(1)), ptx::BitsOf(type)));
  const bool wide = instruction.Has(Mod::kWide),
             shift = instruction.opcode == Opcode::kShl || instruction.opcode == Opcode::kShr;
  const std::uint64_t a = extended(value(1), type), b = shift ? value(2) : extended(value(2), type);
  const std::uint64_t c = wide ? value(3) : instruction.opcode == Opcode::kSelp ? value(3) : extended(value(3), type);
  Set(operands[0], Cut(Arithmetic(instruction, a, b, c), ptx::BitsOf(type) * (wide ? 2 : 1)));
}

void Interpreter::Move(const Instruction& instruction) {
  const Operand &to = instruction.operands[0], &from = instruction.operands[1];
  if (from.kind == OperandKind::kVector) {  // the lower half first
    const unsigned bits = ptx::BitsOf(instruction.type()) / static_cast<unsigned>(from.elements.size());
    std::uint64_t whole = 0;
    for (std::size_t i = from.elements.size(); i-- > 0;) whole = whole << bits | Cut(Value(from.elements[i]), bits);
    return Set(to, whole);
  }
  if (to.kind == OperandKind::kVector && from.kind == OperandKind::kRegister) {
    const unsigned bits = ptx::BitsOf(instruction.type()) / static_cast<unsigned>(to.elements.size());
    for (std::size_t i = 0; i < to.elements.size(); ++i) Set(to.elements[i], Cut(Value(from) >> (bits * i), bits));
    return;
  }
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

std::uint64_t Interpreter::AddressOf(const ptx::Variable& variable) {
  Memory& memory = variable.space == StateSpace::kShared  ? shared_
                   : variable.space == StateSpace::kLocal ? thread_->local
                                                          : globals_;
  std::vector<std::uint64_t>& words = memory[&variable];
  if (words.empty()) words.resize((variable.bytes() + 7) / 8);
  return reinterpret_cast<std::uint64_t>(words.data());
}

std::uint64_t Interpreter::Address(const Operand& operand) {
  const ptx::AddressOperand& address = *operand.address;
  const Operand& base = address.base.at(0);
  return (base.kind == OperandKind::kSymbol ? AddressOf(*base.variable) : Value(base)) +
         static_cast<std::uint64_t>(address.offset);
}

void Interpreter::Tell(const Instruction& access, std::uint64_t address, bool reads, bool writes) const {
  if (watcher_ != nullptr && access.space() == StateSpace::kGlobal)
    watcher_->OnAccess(address, ptx::BytesOf(access.type()), reads, writes);
}

void Interpreter::Add(const Instruction& atomic) {
  const unsigned bytes = ptx::BytesOf(atomic.type());
  if (!atomic.Has(Mod::kAdd) && !atomic.Has(Mod::kExch) && !atomic.Has(Mod::kCas))
    Unknown(ptx::PrintInstruction(atomic));
  const std::size_t at = atomic.opcode == Opcode::kAtom ? 1 : 0;
  const std::uint64_t address = Address(atomic.operands[at]);
  Tell(atomic, address, true, true);
  std::uint64_t word = 0;
  std::memcpy(&word, reinterpret_cast<const void*>(address), bytes);
  const std::uint64_t value = Value(atomic.operands[at + 1]);
  std::uint64_t next = atomic.Has(Mod::kAdd) ? word + value : value;
  if (atomic.Has(Mod::kCas)) next = word == value ? Value(atomic.operands[at + 2]) : word;
  if (at == 1) Set(atomic.operands[0], word);
  std::memcpy(reinterpret_cast<void*>(address), &next, bytes);
}

void Interpreter::Load(const Instruction& instruction) {
  const unsigned bytes = ptx::BytesOf(instruction.type());
  const Operand& to = instruction.operands[0];
  const unsigned count = instruction.vector_width();
  for (unsigned i = 0; i < count; ++i) {
    std::uint64_t value = 0;
    if (instruction.space() == StateSpace::kParam) {
      const ptx::AddressOperand& place = *instruction.operands[1].address;
      const ptx::Variable& param = *place.base.at(0).variable;
      const std::uint64_t offset = static_cast<std::uint64_t>(place.offset) + i * bytes;
      const std::byte* const in_block = ParamBytes(param);
      if (in_block != nullptr) std::memcpy(&value, in_block + offset, bytes);
      else value = thread_->params[{&param, offset}];
    } else {
      const std::uint64_t address = Address(instruction.operands[1]) + i * bytes;
      Tell(instruction, address, true, false);
      std::memcpy(&value, reinterpret_cast<const void*>(address), bytes);
    }
    Set(count > 1 ? to.elements[i] : to, Cut(value, bytes * 8));
  }
}

void Interpreter::Store(const Instruction& instruction) {
  const Operand& from = instruction.operands[1];
  const unsigned count = instruction.vector_width(), bytes = ptx::BytesOf(instruction.type());
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t value = Value(count > 1 ? from.elements[i] : from);
    if (instruction.space() == StateSpace::kParam) {
      const ptx::AddressOperand& place = *instruction.operands[0].address;
      thread_->params[{place.base.at(0).variable, static_cast<std::uint64_t>(place.offset) + i * bytes}] = value;
      continue;
    }
    const std::uint64_t address = Address(instruction.operands[0]) + i * bytes;
    Tell(instruction, address, false, true);
    std::memcpy(reinterpret_cast<void*>(address), &value, bytes);
  }
}

std::uint64_t Interpreter::Special(std::string_view name) const {
  const char component = name.back();
  const std::size_t i = component == 'y' ? 1 : component == 'z' ? 2 : 0;
  if (name.starts_with("%ctaid.")) return place_.cta[i];
  if (name.starts_with("%nctaid.")) return place_.grid[i];
  if (name.starts_with("%tid.")) return thread_->tid[i];
  if (name.starts_with("%ntid.")) return place_.block[i];
  if (name == "%gridid") return place_.grid_id;
  if (name == "%laneid") return Lane();
  if (name == "%lanemask_lt") return (std::uint64_t{1} << Lane()) - 1;
  Unknown(std::string(name));
}

std::uint64_t Interpreter::Value(const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::kInt: return operand.int_literal.value;
    case OperandKind::kSpecial: return Special(operand.text);
    case OperandKind::kRegister: {
      const auto it = thread_->registers.find({operand.variable, operand.index * std::uint64_t{8}});
      const std::uint64_t value = it == thread_->registers.end() ? 0 : it->second;
      return operand.negated ? value == 0 : value;
    }
    case OperandKind::kSymbol:
      if (operand.variable != nullptr) return AddressOf(*operand.variable) + static_cast<std::uint64_t>(operand.offset);
      if (operand.function != nullptr) return FunctionAddress(*operand.function);
      Unknown("operand " + ptx::PrintOperand(operand));
    default: Unknown("operand " + ptx::PrintOperand(operand));
  }
}

void Interpreter::Set(const Operand& operand, std::uint64_t value) {
  if (operand.kind != OperandKind::kRegister || operand.element != 0)
    Unknown("destination " + ptx::PrintOperand(operand));
  thread_->registers[{operand.variable, operand.index * std::uint64_t{8}}] = value;
}

}  // namespace gridloom::test
