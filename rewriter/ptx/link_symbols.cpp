#include "rewriter/ptx/link_symbols.h"

#include <algorithm>

namespace gridloom::ptx {
namespace {

Strength StrengthOf(const Variable& variable) {
  switch (variable.linkage) {
    case Linkage::kExtern: return Strength::kDeclaration;
    case Linkage::kWeak: return Strength::kWeak;
    case Linkage::kCommon: return Strength::kCommon;
    default: return Strength::kStrong;
  }
}

Strength StrengthOf(const Function& function, bool aliased) {
  if (function.body == nullptr && !aliased) return Strength::kDeclaration;
  return function.linkage == Linkage::kWeak ? Strength::kWeak : Strength::kStrong;
}

std::unordered_set<std::string_view> Aliases(const Module& module) {
  std::unordered_set<std::string_view> names;
  for (const ModuleItem& item : module.items) {
    if (const auto* alias = std::get_if<AliasDirective>(&item)) names.insert(alias->alias);
  }
  return names;
}

}  // namespace

LinkSymbol* LinkSymbols::Lookup(const void* declaration) const {
  const auto found = by_declaration_.find(declaration);
  return found == by_declaration_.end() ? nullptr : found->second;
}

LinkSymbol* LinkSymbols::FindName(std::size_t module, std::string_view name) const {
  const auto own = internals_[module].find(name);
  if (own != internals_[module].end()) return own->second;
  const auto global = globals_.find(name);
  return global == globals_.end() ? nullptr : global->second;
}

bool LinkSymbols::IsInternal(std::size_t module, std::string_view name) const {
  return !global_names_[module].contains(name);
}

LinkSymbol& LinkSymbols::SymbolFor(std::size_t module, std::string_view name) {
  const bool internal = IsInternal(module, name);
  LinkSymbol*& slot = internal ? internals_[module][name] : globals_[name];
  if (slot == nullptr) slot = &symbols_.emplace_back(LinkSymbol{.name = name, .internal = internal, .module = module});
  return *slot;
}

void LinkSymbols::Resolve(StringPool& strings) {
  internals_.resize(inputs_.size());
  global_names_.resize(inputs_.size());
  for (std::size_t module = 0; module < inputs_.size(); ++module) CollectModule(module);
  RenameInternal(strings);
}

void LinkSymbols::CollectModule(std::size_t module) {
  Module& source = *inputs_[module].module;
  const auto aliases = Aliases(source);
  // One declaration with a linkage directive makes the name global. So does being a kernel (a driver finds it by name)
  // and being a function that only another module can define.
  std::unordered_set<std::string_view> defined;
  for (const Function& function : source.functions) {
    if (function.body != nullptr || aliases.contains(function.name)) defined.insert(function.name);
  }
  auto& global_names = global_names_[module];
  for (const Variable& variable : source.variables) {
    if (variable.linkage != Linkage::kInternal) global_names.insert(variable.name);
  }
  for (const Function& function : source.functions) {
    if (function.linkage != Linkage::kInternal || function.is_entry || !defined.contains(function.name))
      global_names.insert(function.name);
  }
  for (Variable& variable : source.variables) Add(SymbolFor(module, variable.name), module, variable);
  for (Function& function : source.functions) {
    Add(SymbolFor(module, function.name), module, function, aliases.contains(function.name));
  }
}

// Decides whether a declaration becomes the symbol's definition: `symbol.module` and `symbol.strength` change if so.
void LinkSymbols::TakeDefinition(LinkSymbol& symbol, std::size_t module, Strength strength, std::string_view kind) {
  if (symbol.strength == Strength::kStrong && strength == Strength::kStrong) {
    const std::string& first = inputs_[symbol.module].name;
    const std::string& second = inputs_[module].name;
    errors_.push_back(std::string(kind) + " '" + std::string(symbol.name) + "' is defined " +
                      (symbol.module == module ? "twice in " + first : "in " + first + " and again in " + second));
    return;
  }
  symbol.strength = strength;
  symbol.module = module;
}

void LinkSymbols::CheckSizes(const LinkSymbol& symbol, std::size_t module, const Variable& variable) {
  const Variable& other = *symbol.variable;
  const auto clash = [&](const std::string& what) {
    errors_.push_back("variable '" + std::string(symbol.name) + "' " + what + " in " + inputs_[module].name +
                      " and in " + inputs_[symbol.module].name);
  };
  if (other.space != variable.space) {
    clash("is in different state spaces (." + std::string(TextOf(variable.space)) + ", ." +
          std::string(TextOf(other.space)) + ")");
    return;
  }
  const bool sized = other.bytes() != 0 && variable.bytes() != 0;
  const bool commons = other.linkage == Linkage::kCommon && variable.linkage == Linkage::kCommon;
  if (sized && !commons && other.bytes() != variable.bytes()) {
    clash("has different sizes (" + std::to_string(variable.bytes()) + ", " + std::to_string(other.bytes()) +
          " bytes)");
  }
}

void LinkSymbols::Add(LinkSymbol& symbol, std::size_t module, Variable& variable) {
  by_declaration_[&variable] = &symbol;
  if (symbol.function != nullptr) {
    errors_.push_back("'" + std::string(symbol.name) + "' is a variable in " + inputs_[module].name +
                      " and a function in " + inputs_[symbol.module].name);
    return;
  }
  symbol.alignment = std::max(symbol.alignment, variable.align);
  const Strength strength = StrengthOf(variable);
  if (symbol.variable == nullptr) {
    symbol.variable = &variable;
    symbol.strength = strength;
    symbol.module = module;
    return;
  }
  CheckSizes(symbol, module, variable);
  const bool larger_common = strength == Strength::kCommon && symbol.strength == Strength::kCommon &&
                             variable.bytes() > symbol.variable->bytes();
  if (strength > symbol.strength || strength == Strength::kStrong || larger_common) {
    TakeDefinition(symbol, module, strength, "variable");
    if (symbol.module == module) symbol.variable = &variable;
  }
}

void LinkSymbols::Add(LinkSymbol& symbol, std::size_t module, Function& function, bool aliased) {
  by_declaration_[&function] = &symbol;
  if (symbol.variable != nullptr) {
    errors_.push_back("'" + std::string(symbol.name) + "' is a function in " + inputs_[module].name +
                      " and a variable in " + inputs_[symbol.module].name);
    return;
  }
  const Strength strength = StrengthOf(function, aliased);
  if (symbol.function == nullptr) {
    symbol.function = &function;
    symbol.strength = strength;
    symbol.module = module;
    symbol.aliased = aliased;
    return;
  }
  // A prototype of an aliased function says nothing new about it.
  if (aliased && symbol.aliased && symbol.module == module) return;
  if (strength > symbol.strength || strength == Strength::kStrong) {
    TakeDefinition(symbol, module, strength, "function");
    if (symbol.module == module && symbol.strength == strength) {
      symbol.function = &function;
      symbol.aliased = aliased;
    }
  }
}

void LinkSymbols::RenameInternal(StringPool& strings) {
  std::unordered_set<std::string_view> taken;
  for (const LinkSymbol& symbol : symbols_) {
    if (!symbol.internal) taken.insert(symbol.name);
  }
  for (LinkSymbol& symbol : symbols_) {
    if (!symbol.internal) continue;
    std::string name(symbol.name);
    for (int copy = 1; taken.contains(name); ++copy) name = std::string(symbol.name) + "$" + std::to_string(copy);
    symbol.name = strings.Intern(name);
    taken.insert(symbol.name);
  }
}

}  // namespace gridloom::ptx
