// First half of linking: which declarations of the modules mean the same thing, and which of them is the definition.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rewriter/ptx/linker.h"

namespace gridloom::ptx {

/// How much a declaration counts against others of the same name.
enum class Strength : std::uint8_t { kDeclaration, kWeak, kCommon, kStrong };

/// One name of the linked module: a global one with its declarations in all modules, or a module's own.
struct LinkSymbol {
  std::string_view name;  ///< in the linked module
  bool internal = false;
  Strength strength = Strength::kDeclaration;
  std::size_t module = 0;              ///< of the definition, else of the first declaration
  Variable* variable = nullptr;        ///< the definition, else the first declaration
  Function* function = nullptr;        ///< the definition, else the first declaration
  const Function* original = nullptr;  ///< `function` where it stood in its own module
  bool aliased = false;                ///< `.alias name, …` defines it
  std::uint32_t alignment = 0;         ///< largest explicit alignment of its variables

  bool defined() const { return strength != Strength::kDeclaration; }
};

class LinkSymbols {
 public:
  explicit LinkSymbols(std::vector<LinkInput>& inputs) : inputs_(inputs) {}

  /// Groups, picks definitions and gives every internal symbol a name of its own. New names are interned in `strings`.
  void Resolve(StringPool& strings);

  /// What a module-level declaration stands for; null for one that is local to a function.
  LinkSymbol* Find(const Variable* variable) const { return Lookup(variable); }
  LinkSymbol* Find(const Function* function) const { return Lookup(function); }
  LinkSymbol* FindName(std::size_t module, std::string_view name) const;
  std::deque<LinkSymbol>& symbols() { return symbols_; }
  std::vector<std::string>& errors() { return errors_; }

 private:
  LinkSymbol* Lookup(const void* declaration) const;
  bool IsInternal(std::size_t module, std::string_view name) const;
  LinkSymbol& SymbolFor(std::size_t module, std::string_view name);
  void CollectModule(std::size_t module);
  void Add(LinkSymbol& symbol, std::size_t module, Variable& variable);
  void Add(LinkSymbol& symbol, std::size_t module, Function& function, bool aliased);
  void TakeDefinition(LinkSymbol& symbol, std::size_t module, Strength strength, std::string_view kind);
  void CheckSizes(const LinkSymbol& symbol, std::size_t module, const Variable& variable);
  void RenameInternal(StringPool& strings);

  std::vector<LinkInput>& inputs_;
  std::deque<LinkSymbol> symbols_;
  std::unordered_map<std::string_view, LinkSymbol*> globals_;
  std::vector<std::unordered_map<std::string_view, LinkSymbol*>> internals_;  // by module
  std::vector<std::unordered_set<std::string_view>> global_names_;            // by module
  std::unordered_map<const void*, LinkSymbol*> by_declaration_;
  std::vector<std::string> errors_;
};

}  // namespace gridloom::ptx
