// Memory and calls, as a walk over a function meets them: accesses to global memory, loads, parameters, inlined
// callees.
#include <algorithm>

#include "rewriter/analysis/walker.h"
#include "rewriter/ptx/defuse.h"

namespace gridloom::analysis {

using ptx::Instruction;
using ptx::Operand;
using ptx::OperandKind;
using ptx::StateSpace;

void Walker::WalkMemory(const Instruction& instruction) {
  AccessClass access = ClassifyAccess(instruction);
  if (!access.unknown.empty()) Obstruct("of " + instruction.FullName() + ": " + access.unknown, instruction.loc);
  for (const MemoryAccess& memory : access.accesses) {
    ValueRef address = AddressOf(*memory.address);
    const bool elsewhere = !address->IsData() && std::ranges::any_of(address->number.terms(), [&](const Term& term) {
      const Symbol* symbol = term.monomial.degree() == 1 ? &math_.pool()[term.monomial.symbols[0]] : nullptr;
      return symbol != nullptr && (symbol->kind == SymbolKind::kElsewhere ||
                                   (symbol->kind == SymbolKind::kAddress && symbol->space == StateSpace::kConst));
    });
    if (memory.generic && elsewhere) continue;
    if (memory.rows > 1) address = RowsFrom(memory, address);
    context_.result.accesses.push_back({&instruction, memory.reads, memory.writes, memory.bytes, memory.generic,
                                        address, TestedHere(), PassedBy(instruction)});
  }
}

/// The address of any row of a matrix.
ValueRef Walker::RowsFrom(const MemoryAccess& memory, const ValueRef& address) {
  const ValueRef stride = memory.stride == nullptr ? Number(Polynomial::Constant(memory.default_stride), 64)
                                                   : math_.Exact(ValueOf(*memory.stride, 32), true);
  if (address->IsData() || stride->IsData()) return address->IsData() ? address : stride;
  const SymbolId row = math_.pool().Any(32, loop_);
  math_.pool().at(row).bounds = {0, memory.rows - 1};
  const auto offset = stride->number.Times(memory.element_bytes).Times(Polynomial::Of(row));
  if (!offset) return math_.Any(64, loop_);
  return Number(address->number.Plus(*offset), 64, Union(address->assumptions, stride->assumptions));
}

bool Walker::Unconditional(const Instruction& instruction) const {
  return place_.always && !context_.exits_in_callees && !instruction.guard && post_dominators_.PostDominates(block_, 0);
}

void Walker::WalkLoad(const Instruction& instruction) {
  if (instruction.operands.size() < 2 || instruction.operands[1].address == nullptr) {
    return DefineAll(instruction, math_.Data("is loaded in an unknown way", instruction.loc, 32));
  }
  const ptx::AddressOperand& address = *instruction.operands[1].address;
  const StateSpace space = instruction.space();
  const bool is_param =
      space == StateSpace::kParam || space == StateSpace::kParamEntry || space == StateSpace::kParamFunc;
  std::uint32_t element = 0;
  VisitDefs(instruction, [&](const Operand& operand) {
    const unsigned bits = BitsOf(operand);
    ValueRef value;
    if (is_param) {
      value = LoadParam(instruction, address, element, bits);
    } else if (space == StateSpace::kConst || space == StateSpace::kGlobal || space == StateSpace::kNone) {
      value = LoadElement(instruction, AddressOf(address), element, bits);
    } else {
      value = math_.Data("is loaded from " + std::string(TextOf(space)) + " memory", instruction.loc, bits);
    }
    ++element;
    const RegisterId id =
        operand.variable == nullptr ? kNoRegister : liveness_.registers().Find(*operand.variable, operand.index);
    if (id != kNoRegister && instruction.guard && current_[id] != nullptr)
      value = math_.Choice({current_[id], value}, loop_);
    Define(operand, value);
  });
}

ValueRef Walker::LoadElement(const Instruction& instruction, const ValueRef& address, std::uint32_t element,
                             unsigned bits) {
  const bool constant = instruction.space() == StateSpace::kConst;
  const auto data = [&] {
    return math_.Data("is loaded from " + std::string(constant ? "constant" : "global") + " memory", instruction.loc,
                      bits);
  };
  if (address->IsData() || !math_.pool().IsUniform(address->number) || !address->assumptions.empty()) return data();
  const bool plain = !instruction.Has(ptx::Mod::kVolatile) && !instruction.Has(ptx::Mod::kRelaxed) &&
                     !instruction.Has(ptx::Mod::kAcquire);
  const bool mixed = !constant && std::ranges::any_of(address->number.terms(), [&](const Term& term) {
    return term.monomial.degree() == 1 && math_.pool()[term.monomial.symbols[0]].space == StateSpace::kConst;
  });
  if (mixed) return data();
  const bool stays = constant || (plain && (instruction.Has(ptx::Mod::kNc) || !context_.writes_global));
  if (!stays || !Unconditional(instruction) || ptx::BitsOf(instruction.type()) > bits) return data();
  Symbol symbol;
  symbol.kind = SymbolKind::kLoad;
  symbol.bits = static_cast<std::uint8_t>(bits);
  symbol.uniform = true;
  symbol.type = instruction.type();
  symbol.space = instruction.space();
  const bool narrow = ptx::BitsOf(symbol.type) < bits;
  symbol.bounds = narrow ? RangeOfType(ptx::BitsOf(symbol.type), ptx::IsSigned(symbol.type)) : RangeOfType(bits, true);
  symbol.operands.push_back(
      Number(address->number.Plus(Polynomial::Constant(element * ptx::BytesOf(symbol.type))), 64));
  return Number(Polynomial::Of(math_.pool().Share(std::move(symbol))), bits);
}

/// The variable and byte that an address in .param space names; no variable when it cannot be told.
std::int64_t Walker::NewOffset(const ptx::AddressOperand& address, const ptx::Variable*& variable) {
  const ValueRef value = AddressOf(address);
  if (value->IsData()) return 0;
  const std::int64_t offset = value->number.constant();
  const auto symbol = value->number.Plus(Polynomial::Constant(-offset)).AsSymbol();
  if (symbol && math_.pool()[*symbol].kind == SymbolKind::kElsewhere) variable = math_.pool()[*symbol].variable;
  return offset;
}

ValueRef Walker::LoadParam(const Instruction& instruction, const ptx::AddressOperand& address, std::uint32_t element,
                           unsigned bits) {
  const auto type = instruction.type();
  const ptx::Variable* variable = nullptr;
  const std::int64_t offset = NewOffset(address, variable) + static_cast<std::int64_t>(element * ptx::BytesOf(type));
  const auto data = [&] {
    return math_.Data("is loaded from parameter memory in an unknown way", instruction.loc, bits);
  };
  if (variable == nullptr || ptx::BitsOf(type) > bits) return data();
  const bool narrow = ptx::BitsOf(type) < bits;
  const bool own =
      std::ranges::any_of(function_.params, [&](const ptx::Variable& param) { return &param == variable; });
  if (own && function_.is_entry) {
    Symbol symbol;
    symbol.kind = SymbolKind::kParam;
    symbol.bits = static_cast<std::uint8_t>(bits);
    symbol.uniform = true;
    symbol.variable = variable;
    symbol.offset = static_cast<std::uint32_t>(offset);
    symbol.type = type;
    symbol.is_pointer = variable->is_pointer;
    symbol.bounds = narrow ? RangeOfType(ptx::BitsOf(type), ptx::IsSigned(type)) : RangeOfType(bits, true);
    return Number(Polynomial::Of(math_.pool().Share(std::move(symbol))), bits);
  }
  const ParamValues& values = own ? arguments_ : slots_;
  const auto it = values.find({variable, offset});
  if (it == values.end()) return data();
  const ValueRef& value = it->second;
  if (value->IsData()) return value;
  if (value->bits != ptx::BytesOf(type) * 8) return data();
  return narrow ? Number(math_.Exact(value, ptx::IsSigned(type))->number, bits,
                         math_.Exact(value, ptx::IsSigned(type))->assumptions)
                : value;
}

namespace {

/// The places of one variable: between many calls there are many.
auto PlacesOf(ParamValues& values, const ptx::Variable* variable) {
  return std::pair(values.lower_bound({variable, INT64_MIN}), values.upper_bound({variable, INT64_MAX}));
}

}  // namespace

void Walker::WalkStoreParam(const Instruction& instruction) {
  const StateSpace space = instruction.space();
  if (space != StateSpace::kParam && space != StateSpace::kParamFunc) return;
  if (instruction.operands.size() < 2 || instruction.operands[0].address == nullptr) return slots_.clear();
  const ptx::Variable* variable = nullptr;
  std::int64_t offset = NewOffset(*instruction.operands[0].address, variable);
  if (variable == nullptr) return slots_.clear();
  const std::int64_t bytes = ptx::BytesOf(instruction.type());
  const auto store = [&](const Operand& operand) {
    ValueRef value = ValueOf(operand, static_cast<unsigned>(bytes * 8));
    if (!value->IsData())
      value = Number(value->number, static_cast<unsigned>(std::min<std::int64_t>(bytes * 8, 64)), value->assumptions);
    const auto it = slots_.find({variable, offset});
    if (instruction.guard)
      value = it == slots_.end() ? math_.Data("is set under a condition", instruction.loc, 32)
                                 : math_.Choice({it->second, value}, loop_);
    auto [slot, end] = PlacesOf(slots_, variable);
    while (slot != end) {
      const std::int64_t begin = slot->first.second, size = std::max<std::int64_t>(1, slot->second->bits / 8);
      slot = begin < offset + bytes && offset < begin + size ? slots_.erase(slot) : std::next(slot);
    }
    slots_[{variable, offset}] = std::move(value);
    offset += bytes;
  };
  const Operand& source = instruction.operands[1];
  if (source.elements.empty()) return store(source);
  for (const Operand& element : source.elements) store(element);
}

void Walker::WalkReturn() {
  ParamValues values;
  for (const auto& [place, value] : slots_) {
    const bool is_return =
        std::ranges::any_of(function_.returns, [&](const ptx::Variable& v) { return &v == place.first; });
    if (is_return) values.insert({place, value});
  }
  returned_.push_back(std::move(values));
}

// ---------------------------------------------------------------------------------------------------------------------
// Calls
// ---------------------------------------------------------------------------------------------------------------------

/// The function, or what it may come to call, accesses memory of the program's.
bool Walker::Touches(NodeId function) {
  if (!context_.touching) {
    const CallGraph& calls = context_.calls;
    std::vector<bool> touches(calls.size());
    for (NodeId node = 0; node < calls.size(); ++node) {
      touches[node] = !calls.function(node).body || std::ranges::any_of(calls.calls(node), &CallSite::unknown_target);
      if (touches[node]) continue;
      const Cfg cfg(calls.function(node));
      touches[node] = std::ranges::any_of(cfg.instructions(), [](const CfgInstruction& at) {
        const AccessClass access = ClassifyAccess(*at.instruction);
        return !access.accesses.empty() || !access.unknown.empty();
      });
    }
    context_.touching = calls.Reaching(touches);
  }
  return (*context_.touching)[function];
}

namespace {

/// Functions of the system that touch no memory of the program's.
bool IsHarmless(std::string_view name) {
  static constexpr std::string_view kNames[] = {"__assertfail",
                                                "free",
                                                "gridloom_release_range",
                                                "gridloom_release_strided",
                                                "gridloom_set_range",
                                                "gridloom_set_strided",
                                                "malloc",
                                                "vprintf"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

}  // namespace

void Walker::WalkCall(const Instruction& instruction) {
  const ptx::Function* named = CalleeOf(instruction);
  const NodeId node = named == nullptr ? kNoNode : context_.calls.NodeOf(*named);
  const ptx::Function* callee = node == kNoNode ? named : &context_.calls.function(node);
  // call (results), function, (arguments)
  const Operand* target = CallTargetOf(instruction);
  const Operand *results = nullptr, *arguments = nullptr;
  for (const Operand& operand : instruction.operands) {
    if (operand.kind != OperandKind::kList) continue;
    (target != nullptr && &operand < target ? results : arguments) = &operand;
  }
  ParamValues returned;
  const std::string name = callee == nullptr ? "" : std::string(callee->name);
  if (callee == nullptr) {
    Obstruct("it calls a function through a pointer", instruction.loc);
  } else if (!callee->body) {
    if (!IsHarmless(name)) Obstruct("it calls " + name + ", which is not in the module", instruction.loc);
  } else if (context_.calls.IsRecursive(node) || context_.depth >= WalkContext::kMaxDepth) {
    if (Touches(node)) Obstruct("it calls " + name + ", which is recursive", instruction.loc);
  } else if (context_.instructions <= WalkContext::kMaxInstructions) {
    ParamValues values;
    for (std::size_t i = 0; arguments != nullptr && i < arguments->elements.size() && i < callee->params.size(); ++i) {
      const Operand& argument = arguments->elements[i];
      const ptx::Variable* param = &callee->params[i];
      if (argument.kind == OperandKind::kSymbol) {
        const auto [begin, end] = PlacesOf(slots_, argument.variable);
        for (auto slot = begin; slot != end; ++slot) values[{param, slot->first.second}] = slot->second;
      } else {
        values[{param, 0}] = ValueOf(argument, param->element_bytes() * 8);
      }
    }
    ++context_.depth;
    returned =
        Walker(context_, *callee, std::move(values), {loop_, Unconditional(instruction), PassedBy(instruction)}).Run();
    --context_.depth;
  }
  for (std::size_t i = 0; results != nullptr && i < results->elements.size(); ++i) {
    const Operand& result = results->elements[i];
    const auto [begin, end] = PlacesOf(slots_, result.variable);
    slots_.erase(begin, end);
    if (result.kind == OperandKind::kRegister)
      Define(result, math_.Data("is returned by " + name, instruction.loc, BitsOf(result)));
    if (result.kind != OperandKind::kSymbol || callee == nullptr || i >= callee->returns.size() || instruction.guard)
      continue;
    for (const auto& [place, value] : returned) {
      if (place.first == &callee->returns[i]) slots_[{result.variable, place.second}] = value;
    }
  }
}

}  // namespace gridloom::analysis
