#include "sim/exec/contract/layout.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "sim/exec/contract/call_depth.h"
#include "sim/exec/contract/reached.h"
#include "sim/exec/contract/stack_use.h"

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kDynamicSharedAlign = 16;

template <typename T>
constexpr T RoundUp(T value, T align) {
  return align <= 1 ? value : (value + align - 1) / align * align;
}

bool IsShared(ptx::StateSpace space) {
  return space == ptx::StateSpace::kShared || space == ptx::StateSpace::kSharedCta ||
         space == ptx::StateSpace::kSharedCluster;
}

/// Definitions behind declarations. Names are gathered when the first declaration asks: most modules have none.
class Definitions {
 public:
  explicit Definitions(const ptx::Module& module) : module_(module) {}

  /// Follows aliases and prototypes.
  const ptx::Function* Of(const ptx::Function* function) {
    if (function->body) return function;
    const ptx::Function* found = Named(function->name);
    if (found != nullptr && found->body) return found;
    if (const auto alias = aliases_.find(function->name); alias != aliases_.end()) return Named(alias->second);
    return found != nullptr ? found : function;
  }
  /// Of a module variable behind an .extern declaration. What is defined nowhere is there all the same, once and as the
  /// first declaration says: ptxas warns of it and ignores the directive.
  const ptx::Variable* Of(const ptx::Variable* variable) {
    if (variable->linkage != ptx::Linkage::kExtern) return variable;
    Gather();
    const auto found = variables_.find(variable->name);
    return found == variables_.end() ? variable : found->second;
  }

 private:
  const ptx::Function* Named(std::string_view name) {
    Gather();
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second;
  }
  /// Gathers for each name what Module::FindFunction finds: the first definition, or the last prototype.
  void Gather() {
    if (gathered_) return;
    gathered_ = true;
    for (const ptx::Function& function : module_.functions) {
      const ptx::Function*& known = functions_[function.name];
      if (known == nullptr || !known->body) known = &function;
    }
    for (const ptx::ModuleItem& item : module_.items) {
      if (const auto* alias = std::get_if<ptx::AliasDirective>(&item))
        aliases_.try_emplace(alias->alias, alias->aliasee);
    }
    for (const ptx::Variable& variable : module_.variables) {
      if (variable.linkage != ptx::Linkage::kExtern) variables_.try_emplace(variable.name, &variable);
    }
    for (const ptx::Variable& variable : module_.variables) variables_.try_emplace(variable.name, &variable);
  }

  const ptx::Module& module_;
  bool gathered_ = false;
  std::unordered_map<std::string_view, const ptx::Function*> functions_;
  std::unordered_map<std::string_view, std::string_view> aliases_;
  std::unordered_map<std::string_view, const ptx::Variable*> variables_;
};

template <typename Visitor>
void VisitOperand(const ptx::Operand& operand, Visitor& visitor) {
  if (operand.variable || operand.function) visitor.Symbol(operand);
  for (const ptx::Operand& element : operand.elements) VisitOperand(element, visitor);
  if (!operand.address) return;
  for (const ptx::Operand& base : operand.address->base) VisitOperand(base, visitor);
  for (const ptx::Operand& element : operand.address->elements) VisitOperand(element, visitor);
}

template <typename Visitor>
void VisitBlock(const ptx::Block& block, Visitor& visitor) {
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* instruction = std::get_if<ptx::Instruction>(&statement)) {
      visitor.Enter(*instruction);
      for (const ptx::Operand& operand : instruction->operands) VisitOperand(operand, visitor);
    } else if (const auto* variable = std::get_if<ptx::Variable*>(&statement)) {
      visitor.Declare(**variable);
    } else if (const auto* directive = std::get_if<std::unique_ptr<ptx::LabelDirective>>(&statement)) {
      for (const ptx::Operand& target : (*directive)->targets) VisitOperand(target, visitor);
    } else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) {
      VisitBlock(**nested, visitor);
    }
  }
}

bool ReadsReserved(const ptx::Operand& operand) {
  return operand.kind == ptx::OperandKind::kSpecial && operand.text.starts_with("%reserved_smem_offset_");
}

/// Everything a kernel can reach: functions it names (calls or takes the address of) and, once it calls indirectly,
/// functions whose address module initialisers hold.
struct Reachability {
  const ptx::Module& module;
  Definitions& definitions;
  std::unordered_set<const ptx::Function*> functions;
  std::unordered_set<const ptx::Variable*> variables;
  std::vector<const ptx::Function*> pending;
  bool initializers_done = false;
  bool reads_reserved = false;  ///< %reserved_smem_offset_*

  void Add(const ptx::Function* function) {
    function = definitions.Of(function);
    if (functions.insert(function).second && function->body) pending.push_back(function);
  }
  void Symbol(const ptx::Operand& operand) {
    if (operand.function) Add(operand.function);
    if (operand.variable && operand.variable->space != ptx::StateSpace::kReg)
      AddVariable(operand.variable);  // most are registers
  }
  void AddVariable(const ptx::Variable* variable) {
    if (variables.insert(variable).second) variables.insert(definitions.Of(variable));
  }
  void Enter(const ptx::Instruction& instruction) {
    reads_reserved |= std::ranges::any_of(instruction.operands, ReadsReserved);
    if (!instruction.Has(ptx::Trait::kCalls)) return;
    const bool indirect =
        std::any_of(instruction.operands.begin(), instruction.operands.end(),
                    [](const ptx::Operand& operand) { return operand.kind == ptx::OperandKind::kRegister; });
    if (!indirect || initializers_done) return;
    initializers_done = true;
    for (const ptx::Variable& variable : module.variables) {
      for (const ptx::Initializer& element : variable.initializer) {
        const auto* symbol = std::get_if<ptx::Operand>(&element.value);
        if (symbol && symbol->function) Add(symbol->function);
      }
    }
  }
  void Declare(const ptx::Variable&) {}
  void Run(const ptx::Function& kernel) {
    Add(&kernel);
    while (!pending.empty()) {
      const ptx::Function* function = pending.back();
      pending.pop_back();
      VisitBlock(*function->body, *this);
    }
  }
};

/// Calls `place` for every declaration of a body, outermost scope first, in source order.
template <typename Place>
struct Declarations {
  Place place;
  void Symbol(const ptx::Operand&) {}
  void Enter(const ptx::Instruction&) {}
  void Declare(const ptx::Variable& variable) { place(variable); }
};

template <typename Place>
void ForEachDeclaration(const ptx::Function& function, Place place) {
  if (!function.body) return;
  Declarations<Place> visitor{place};
  VisitBlock(*function.body, visitor);
}

}  // namespace

Reached ReachedFrom(const ptx::Module& module, const ptx::Function& kernel) {
  Definitions definitions(module);
  Reachability reach{module, definitions, {}, {}, {}};
  reach.Run(kernel);
  Reached reached{.functions = {}, .by_initializers = reach.initializers_done};
  for (const ptx::Function& function : module.functions) {
    if (reach.functions.contains(definitions.Of(&function))) reached.functions.push_back(&function);
  }
  return reached;
}

SymbolTable NumberSymbols(const ptx::Module& module) {
  Definitions definitions(module);
  SymbolTable table;
  for (const ptx::Variable& variable : module.variables) {
    if (variable.space != ptx::StateSpace::kGlobal && variable.space != ptx::StateSpace::kConst) continue;
    if (definitions.Of(&variable) == &variable) table.variables.push_back(&variable);
  }
  std::ranges::stable_sort(table.variables, {}, &ptx::Variable::order);
  for (const ptx::Variable* variable : table.variables)
    table.variable_index.emplace(variable, static_cast<std::uint32_t>(table.variable_index.size()));
  for (const ptx::Variable& variable : module.variables) {
    const auto it = table.variable_index.find(definitions.Of(&variable));
    if (it != table.variable_index.end()) table.variable_index.emplace(&variable, it->second);
  }
  for (const ptx::Function& function : module.functions) {
    if (function.body) table.functions.push_back(&function);
  }
  std::ranges::stable_sort(table.functions, {}, &ptx::Function::order);
  for (const ptx::Function* function : table.functions)
    table.function_index.emplace(function, static_cast<std::uint32_t>(table.function_index.size()));
  for (const ptx::Function& function : module.functions) {
    const auto it = table.function_index.find(definitions.Of(&function));
    if (it != table.function_index.end()) table.function_index.emplace(&function, it->second);
  }
  return table;
}

bool IsDynamicShared(const ptx::Variable& variable) {
  return IsShared(variable.space) && !variable.dims.empty() && variable.element_count() == 0;
}

std::uint32_t OwnMemoryBytes(const ptx::Function& kernel) {
  constexpr std::uint64_t kUnit = 1024, kMost = std::uint64_t{1} << 31;  // what %perctamemorysize is a multiple of
  const ptx::FunctionDirective* const least = kernel.FindDirective("minperctamemory");
  if (least == nullptr || least->values.empty()) return 0;
  const std::uint64_t bytes = std::min(std::max<std::uint64_t>(least->values[0], 1), kMost);
  return static_cast<std::uint32_t>((bytes + kUnit - 1) / kUnit * kUnit);
}

SharedLayout LayoutShared(const ptx::Module& module, const ptx::Function& kernel) {
  Definitions definitions(module);
  Reachability reach{module, definitions, {}, {}, {}};
  reach.Run(kernel);
  SharedLayout layout;
  if (reach.reads_reserved) layout.reserved_bytes = layout.static_end = kReservedSharedBytes;
  std::uint32_t dynamic_align = kDynamicSharedAlign;
  std::vector<const ptx::Variable*> dynamic;
  auto place = [&](const ptx::Variable& variable) {
    if (!IsShared(variable.space) || definitions.Of(&variable) != &variable) return;
    if (IsDynamicShared(variable)) {
      dynamic.push_back(&variable);
      dynamic_align = std::max(dynamic_align, variable.alignment());
      return;
    }
    layout.static_end = RoundUp(layout.static_end, variable.alignment());
    layout.offsets[&variable] = layout.static_end;
    layout.static_end += static_cast<std::uint32_t>(variable.bytes());
  };
  for (const ptx::ModuleItem& item : module.items) {
    if (const auto* variable = std::get_if<ptx::Variable*>(&item)) {
      if (reach.variables.contains(*variable)) place(**variable);
    } else if (const auto* function = std::get_if<ptx::Function*>(&item)) {
      if (reach.functions.contains(*function)) ForEachDeclaration(**function, place);
    }
  }
  layout.dynamic_offset = RoundUp(layout.static_end, dynamic_align);
  for (const ptx::Variable* variable : dynamic) layout.offsets[variable] = layout.dynamic_offset;
  for (const ptx::Variable* variable : reach.variables) {
    const auto it = layout.offsets.find(definitions.Of(variable));
    if (it != layout.offsets.end()) layout.offsets.emplace(variable, it->second);
  }
  return layout;
}

LocalLayout LayoutLocal(const ptx::Function& function) {
  LocalLayout layout;
  ForEachDeclaration(function, [&](const ptx::Variable& variable) {
    if (variable.space != ptx::StateSpace::kLocal) return;
    layout.bytes = RoundUp(layout.bytes, variable.alignment());
    layout.offsets[&variable] = layout.bytes;
    layout.bytes += static_cast<std::uint32_t>(variable.bytes());
  });
  return layout;
}

namespace {

/// What a body says of calls and of the stack.
struct Calls {
  std::vector<const ptx::Function*> callees;
  bool indirect = false, moves_stack = false;
  void Symbol(const ptx::Operand&) {}
  void Declare(const ptx::Variable&) {}
  void Enter(const ptx::Instruction& instruction) {
    moves_stack |= instruction.Has(ptx::Trait::kMovesStack);
    if (!instruction.Has(ptx::Trait::kCalls)) return;
    for (const ptx::Operand& operand : instruction.operands) {
      if (operand.function != nullptr) callees.push_back(operand.function);
      indirect |= operand.kind == ptx::OperandKind::kRegister;
    }
  }
};

}  // namespace

StackUse FindStackUse(const ptx::Module& module, const ptx::Function& kernel) {
  constexpr std::uint32_t kFrameAlign = 16;
  Definitions definitions(module);
  Reachability reach{module, definitions, {}, {}, {}};
  reach.Run(kernel);
  std::vector<const ptx::Function*> functions;  // that a call of no name may reach
  std::ranges::copy_if(reach.functions, std::back_inserter(functions),
                       [](const ptx::Function* one) { return !one->is_entry; });
  StackUse use;
  const CallDepth depth = DeepestCalls(&kernel, [&](const ptx::Function* function) {
    CallFrame frame;
    if (!function->body) return frame;
    Calls calls;
    VisitBlock(*function->body, calls);
    use.open |= calls.moves_stack;
    frame.bytes = RoundUp<std::uint32_t>(LayoutLocal(*function).bytes, kFrameAlign);
    for (const ptx::Function* callee : calls.callees) frame.callees.push_back(definitions.Of(callee));
    if (calls.indirect) frame.others = functions;
    return frame;
  });
  use.open |= depth.recursive;
  use.bytes = depth.bytes;
  // Frames are aligned for those below them.
  if (const std::uint32_t own = LayoutLocal(kernel).bytes; use.bytes == RoundUp<std::uint32_t>(own, kFrameAlign))
    use.bytes = own;
  return use;
}

namespace {

void AppendInstructions(const ptx::Block& block, std::vector<const ptx::Instruction*>& out) {
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* instruction = std::get_if<ptx::Instruction>(&statement)) out.push_back(instruction);
    else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement))
      AppendInstructions(**nested, out);
  }
}

}  // namespace

bool EndsBlock(const ptx::Instruction& instruction) {
  using enum ptx::Trait;
  if (instruction.Has(kBranches | kCalls | kReturns | kExits | kFaults)) return true;
  // Lanes of a warp may come to it apart, and leave it together.
  return instruction.Has(kUnaligned) && !instruction.Has(ptx::Mod::kAligned) && !instruction.Has(ptx::Mod::kCluster);
}

InstructionNumbers NumberInstructions(const ptx::Module& module, const ptx::Function& kernel) {
  InstructionNumbers numbers;
  const auto add = [&](const ptx::Function& function) {
    numbers.first[&function] = static_cast<std::uint32_t>(numbers.instructions.size());
    AppendInstructions(*function.body, numbers.instructions);
  };
  add(kernel);
  for (const ptx::Function& function : module.functions) {
    if (!function.is_entry && function.body) add(function);
  }
  return numbers;
}

}  // namespace gridloom::exec
