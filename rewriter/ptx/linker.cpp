#include "rewriter/ptx/linker.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_set>

#include "rewriter/ptx/link_symbols.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::ptx {
namespace {

/// "sm_90a" -> 90 and "a"; nothing for target options such as "debug".
struct TargetArch {
  unsigned number = 0;
  std::string_view suffix;
};

std::optional<TargetArch> ParseTargetArch(std::string_view target) {
  const std::size_t prefix = target.starts_with("sm_") ? 3 : target.starts_with("compute_") ? 8 : 0;
  if (prefix == 0) return std::nullopt;
  TargetArch arch;
  const char* end = target.data() + target.size();
  const auto [rest, error] = std::from_chars(target.data() + prefix, end, arch.number);
  if (error != std::errc()) return std::nullopt;
  arch.suffix = {rest, static_cast<std::size_t>(end - rest)};
  return arch;
}

class Linker {
 public:
  Linker(std::vector<LinkInput>& inputs, const IsProvided& is_provided)
      : inputs_(inputs), is_provided_(is_provided), symbols_(inputs), linked_(std::make_unique<Module>()) {}

  Result<std::unique_ptr<Module>> Link() {
    LinkHeaders();
    symbols_.Resolve(linked_->strings);
    // Contradictions leave declarations without a meaning: report them before anything is moved.
    if (!errors().empty()) return Failure();
    NumberFiles();
    MoveDeclarations();
    for (LinkSymbol& symbol : symbols_.symbols()) RewriteDefinition(symbol);
    CheckDefined();
    if (!errors().empty()) return Failure();
    for (std::size_t module = 0; module < inputs_.size(); ++module) EmitItems(module);
    for (LinkInput& input : inputs_) linked_->strings.Absorb(std::move(input.module->strings));
    return std::move(linked_);
  }

 private:
  std::vector<std::string>& errors() { return symbols_.errors(); }
  Error Failure();

  void LinkHeaders();
  void LinkTarget(const LinkInput& input);
  void NumberFiles();

  void MoveDeclarations();
  void RewriteDefinition(LinkSymbol& symbol);
  void RewriteBody(Block& block, std::uint32_t first_file);
  void Retarget(Operand& operand);
  std::unordered_set<const LinkSymbol*> Reached();
  void CheckDefined();

  void EmitItems(std::size_t module);
  void EmitFunction(std::size_t module, const Function& original);
  void EmitVariable(LinkSymbol& symbol);
  void EmitPrototype(LinkSymbol& symbol);
  void EmitAlias(std::size_t module, AliasDirective alias);
  void EmitText(std::size_t module, TextDirective text);

  std::vector<LinkInput>& inputs_;
  const IsProvided& is_provided_;
  LinkSymbols symbols_;
  std::unique_ptr<Module> linked_;
  std::optional<TargetArch> arch_;
  std::string_view arch_text_;
  std::string arch_source_;                                 // the input that gave it
  std::vector<std::uint32_t> first_file_;                   // by module: added to its file numbers
  std::unordered_map<const void*, LinkSymbol*> by_linked_;  // declaration in the linked module -> symbol
  std::unordered_set<const LinkSymbol*> emitted_, prototyped_;
};

Error Linker::Failure() {
  std::string message;
  for (const std::string& error : errors()) message += (message.empty() ? "" : "\n") + error;
  return Error{std::move(message)};
}

// ---------------------------------------------------------------------------------------------------------------------
// Headers
// ---------------------------------------------------------------------------------------------------------------------

void Linker::LinkHeaders() {
  const bool all_stand_in = std::ranges::all_of(inputs_, &LinkInput::stands_in);
  for (const LinkInput& input : inputs_) {
    const Module& module = *input.module;
    const Module& first = *inputs_.front().module;
    if (module.address_size != first.address_size) {
      errors().push_back(input.name + " has " + std::to_string(module.address_size) + "-bit addresses and " +
                         inputs_.front().name + " " + std::to_string(first.address_size) + "-bit ones");
    }
    const auto version = std::pair(module.version_major, module.version_minor);
    if (version > std::pair(linked_->version_major, linked_->version_minor)) {
      linked_->version_major = module.version_major;
      linked_->version_minor = module.version_minor;
    }
    linked_->address_size = module.address_size;
    linked_->has_address_size |= module.has_address_size;
    if (!input.stands_in || all_stand_in) LinkTarget(input);
    for (Function& function : input.module->functions) {
      if (function.target_sm == 0) function.target_sm = module.sm();
    }
  }
  if (!arch_text_.empty()) linked_->targets.insert(linked_->targets.begin(), arch_text_);
}

void Linker::LinkTarget(const LinkInput& input) {
  for (const std::string_view target : input.module->targets) {
    const auto arch = ParseTargetArch(target);
    if (!arch) {
      // `debug` promises DWARF sections, which are left out.
      const bool dropped = target == "debug" && inputs_.size() > 1;
      const bool known = std::ranges::find(linked_->targets, target) != linked_->targets.end();
      if (!known && !dropped) linked_->targets.push_back(linked_->strings.Intern(target));
      continue;
    }
    // Code for sm_90a runs on 9.0 only, so nothing newer can be linked to it.
    const auto exact_below = [](const TargetArch& a, const TargetArch& b) {
      return a.suffix == "a" && a.number < b.number;
    };
    if (arch_ && (exact_below(*arch_, *arch) || exact_below(*arch, *arch_))) {
      errors().push_back("no device runs both " + std::string(arch_text_) + " (" + arch_source_ + ") and " +
                         std::string(target) + " (" + input.name + ")");
    }
    const bool higher = !arch_ || arch->number > arch_->number ||
                        (arch->number == arch_->number && arch_->suffix != "a" && !arch->suffix.empty());
    if (!higher) continue;
    arch_text_ = linked_->strings.Intern(target);
    arch_ = ParseTargetArch(arch_text_);
    arch_source_ = input.name;
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Declarations
// ---------------------------------------------------------------------------------------------------------------------

/// Number of a .file directive's text, `1 "a.cu", …`; `rest` gets what follows it.
std::uint32_t FileNumber(std::string_view text, std::string_view& rest) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return error == std::errc() ? number : 0;
}

void Linker::NumberFiles() {
  std::uint32_t next = 0;
  for (const LinkInput& input : inputs_) {
    const std::uint32_t first = next;
    first_file_.push_back(first);
    for (const ModuleItem& item : input.module->items) {
      const auto* text = std::get_if<TextDirective>(&item);
      if (text == nullptr || text->name != ".file") continue;
      std::string_view rest;
      next = std::max(next, first + FileNumber(text->text, rest));
    }
  }
}

// Moves one declaration per symbol into the linked module: its definition, or a declaration of what stays undefined.
// What is inside a function keeps its address; only module-level declarations get a new one.
void Linker::MoveDeclarations() {
  for (LinkSymbol& symbol : symbols_.symbols()) {
    if (symbol.variable != nullptr) {
      symbol.variable = &linked_->variables.emplace_back(std::move(*symbol.variable));
      symbol.variable->name = symbol.name;
      symbol.variable->align = std::max(symbol.variable->align, symbol.alignment);
      by_linked_[symbol.variable] = &symbol;
    } else {
      symbol.original = symbol.function;
      symbol.function = &linked_->functions.emplace_back(std::move(*symbol.function));
      symbol.function->name = symbol.name;
      by_linked_[symbol.function] = &symbol;
    }
  }
}

void Linker::Retarget(Operand& operand) {
  const LinkSymbol* symbol = nullptr;
  if (operand.variable != nullptr) symbol = symbols_.Find(operand.variable);
  if (operand.function != nullptr) symbol = symbols_.Find(operand.function);
  if (symbol == nullptr) return;  // local to a function
  operand.variable = symbol->variable;
  operand.function = symbol->function;
  const bool ranged = symbol->variable != nullptr && symbol->variable->range_count != 0;
  operand.text =
      ranged ? linked_->strings.Intern(std::string(symbol->name) + std::to_string(operand.index)) : symbol->name;
}

void Linker::RewriteDefinition(LinkSymbol& symbol) {
  const auto retarget = [this](Operand& operand) { Retarget(operand); };
  if (symbol.variable != nullptr) VisitOperands(*symbol.variable, retarget);
  else if (symbol.function->body != nullptr) RewriteBody(*symbol.function->body, first_file_[symbol.module]);
}

void Linker::RewriteBody(Block& block, std::uint32_t first_file) {
  VisitOperands(block, [this](Operand& operand) { Retarget(operand); });
  VisitStatements(block, [&](Statement& statement) {
    if (auto* instruction = std::get_if<Instruction>(&statement)) {
      if (!instruction->guard || instruction->guard->predicate == nullptr) return;
      // A predicate declared at module level, which old PTX allows.
      Operand predicate;
      predicate.variable = instruction->guard->predicate;
      predicate.index = instruction->guard->index;
      predicate.text = instruction->guard->text;
      Retarget(predicate);
      instruction->guard->predicate = predicate.variable;
      instruction->guard->text = predicate.text;
    } else if (auto* loc = std::get_if<LocDirective>(&statement); loc != nullptr && inputs_.size() > 1) {
      loc->file += first_file;
      loc->rest = {};  // refers to labels in DWARF sections, which are left out
    }
  });
}

/// What kernels come to, by calls and by addresses that they take, and what variables have addresses of, which are
/// placed in any case. The rest is dead: a compiler for one source file cannot know what the others leave unused.
std::unordered_set<const LinkSymbol*> Linker::Reached() {
  std::unordered_map<const LinkSymbol*, const LinkSymbol*> aliasees;
  for (std::size_t module = 0; module < inputs_.size(); ++module) {
    for (const ModuleItem& item : inputs_[module].module->items) {
      if (const auto* alias = std::get_if<AliasDirective>(&item))
        aliasees.emplace(symbols_.FindName(module, alias->alias), symbols_.FindName(module, alias->aliasee));
    }
  }
  std::unordered_set<const LinkSymbol*> reached;
  std::vector<const LinkSymbol*> pending;
  const auto add = [&](const LinkSymbol* symbol) {
    if (symbol != nullptr && reached.insert(symbol).second) pending.push_back(symbol);
  };
  const auto add_operand = [&](const Operand& operand) {
    const void* const named =
        operand.variable != nullptr ? static_cast<const void*>(operand.variable) : operand.function;
    if (const auto found = by_linked_.find(named); found != by_linked_.end()) add(found->second);
  };
  for (const LinkSymbol& symbol : symbols_.symbols()) {
    if (symbol.defined() && (symbol.variable != nullptr || symbol.function->is_entry)) add(&symbol);
  }
  while (!pending.empty()) {
    const LinkSymbol& symbol = *pending.back();
    pending.pop_back();
    if (symbol.variable != nullptr) VisitOperands(*symbol.variable, add_operand);
    else if (symbol.function->body != nullptr) VisitOperands(*symbol.function->body, add_operand);
    if (const auto alias = aliasees.find(&symbol); alias != aliasees.end()) add(alias->second);
  }
  return reached;
}

void Linker::CheckDefined() {
  const std::unordered_set<const LinkSymbol*> reached = Reached();
  for (const LinkSymbol& symbol : symbols_.symbols()) {
    if (symbol.defined() || !reached.contains(&symbol)) continue;
    const bool dynamic_shared = symbol.variable != nullptr && symbol.variable->space == StateSpace::kShared;
    const bool provided = symbol.function != nullptr && is_provided_ && is_provided_(symbol.name);
    if (dynamic_shared || provided) continue;
    errors().push_back(std::string(symbol.variable != nullptr ? "variable '" : "function '") +
                       std::string(symbol.name) + "' is used in " + inputs_[symbol.module].name +
                       " but defined nowhere");
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Items: every name is declared before it is used, as ptxas wants it
// ---------------------------------------------------------------------------------------------------------------------

void Linker::EmitItems(std::size_t module) {
  for (const ModuleItem& item : inputs_[module].module->items) {
    if (const auto* variable = std::get_if<Variable*>(&item)) EmitVariable(*symbols_.Find(*variable));
    else if (const auto* function = std::get_if<Function*>(&item)) EmitFunction(module, **function);
    else if (const auto* alias = std::get_if<AliasDirective>(&item)) EmitAlias(module, *alias);
    else EmitText(module, std::get<TextDirective>(item));
  }
}

// A definition stands where any module first declares the variable, after what its initialiser refers to, and what that
// refers to: chains may be as long as a module.
void Linker::EmitVariable(LinkSymbol& first) {
  struct Open {
    LinkSymbol* symbol = nullptr;
    std::vector<const Operand*> operands;  // of the initialiser
    std::size_t next = 0;
  };
  std::vector<Open> path;
  const auto begin = [&](LinkSymbol& symbol) {
    if (!emitted_.insert(&symbol).second) return;
    Open& open = path.emplace_back(Open{.symbol = &symbol, .operands = {}});
    VisitOperands(*symbol.variable, [&](Operand& operand) { open.operands.push_back(&operand); });
  };
  begin(first);
  while (!path.empty()) {
    Open& open = path.back();
    if (open.next == open.operands.size()) {
      linked_->items.emplace_back(open.symbol->variable);
      path.pop_back();
      continue;
    }
    const Operand& operand = *open.operands[open.next++];
    if (operand.function != nullptr) EmitPrototype(*by_linked_.at(operand.function));
    if (operand.variable != nullptr) begin(*by_linked_.at(operand.variable));
  }
}

// `original` is the function where it stood in its module: the definition that was taken, one that lost, or a
// prototype.
void Linker::EmitFunction(std::size_t module, const Function& original) {
  LinkSymbol& symbol = *symbols_.Find(&original);
  const bool is_definition =
      symbol.defined() && !symbol.aliased && symbol.module == module && symbol.original == &original;
  if (!is_definition) {
    EmitPrototype(symbol);
    return;
  }
  emitted_.insert(&symbol);
  linked_->items.emplace_back(symbol.function);
}

void Linker::EmitPrototype(LinkSymbol& symbol) {
  if (emitted_.contains(&symbol) || !prototyped_.insert(&symbol).second) return;
  const Function& definition = *symbol.function;
  if (definition.body == nullptr) {
    linked_->items.emplace_back(symbol.function);
    return;
  }
  Function& prototype = linked_->functions.emplace_back();
  prototype.loc = definition.loc;
  prototype.name = definition.name;
  prototype.is_entry = definition.is_entry;
  prototype.linkage = definition.linkage;
  prototype.noreturn = definition.noreturn;
  prototype.attributes = definition.attributes;
  prototype.returns = definition.returns;
  prototype.params = definition.params;
  prototype.variadic_param = definition.variadic_param;
  linked_->items.emplace_back(&prototype);
}

void Linker::EmitAlias(std::size_t module, AliasDirective alias) {
  const auto linked_name = [&](std::string_view name) {
    const LinkSymbol* symbol = symbols_.FindName(module, name);
    return symbol != nullptr ? symbol->name : name;
  };
  const LinkSymbol* symbol = symbols_.FindName(module, alias.alias);
  // Another module's definition was taken.
  if (symbol != nullptr && (!symbol->aliased || symbol->module != module)) return;
  alias.alias = linked_name(alias.alias);
  alias.aliasee = linked_name(alias.aliasee);
  linked_->items.emplace_back(alias);
}

void Linker::EmitText(std::size_t module, TextDirective text) {
  if (inputs_.size() > 1 && text.name == ".section") return;
  if (text.name == ".file" && first_file_[module] != 0) {
    std::string_view rest;
    const std::uint32_t number = first_file_[module] + FileNumber(text.text, rest);
    text.text = linked_->strings.Intern(std::to_string(number) + std::string(rest));
  }
  linked_->items.emplace_back(text);
}

}  // namespace

Result<std::unique_ptr<Module>> LinkModules(std::vector<LinkInput> inputs, const IsProvided& is_provided) {
  if (inputs.empty()) return Error{"there is nothing to link"};
  return Linker(inputs, is_provided).Link();
}

}  // namespace gridloom::ptx
