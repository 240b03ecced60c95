#include "sim/exec/runtime/code_key.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string_view>
#include <type_traits>
#include <variant>

#include "sim/exec/contract/code_lines.h"
#include "sim/exec/contract/reached.h"

namespace gridloom::exec {
namespace {

/// XXH3 128 of numbers and texts. Texts have their length before them, so that no two sequences are the same bytes.
class Hasher {
 public:
  Hasher() { XXH3_128bits_reset(&state_); }

  void Add(std::uint64_t number) { XXH3_128bits_update(&state_, &number, sizeof number); }
  void Add(std::string_view text) {
    Add(std::uint64_t{text.size()});
    XXH3_128bits_update(&state_, text.data(), text.size());
  }
  template <typename Items>
  void AddAll(const Items& items) {
    Add(std::uint64_t{items.size()});
    for (const auto& item : items) Add(item);
  }
  ProgramKey Key() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
    return {hash.low64, hash.high64};
  }

 private:
  XXH3_state_t state_;
};

/// Whether the compiler knows functions by such a name, even those with a body.
bool IsKnownByName(std::string_view name) {
  return name.starts_with("gridloom_") || name.starts_with("cuda") || name.starts_with("__cuda");
}

template <typename Symbol>
bool IsPrivate(const Symbol& symbol) {
  return symbol.linkage == ptx::Linkage::kInternal && !IsKnownByName(symbol.name);
}

ptx::SymbolNames PrivateNames(const ptx::Module& module, const SymbolTable& symbols) {
  ptx::SymbolNames names;
  for (const ptx::Function& function : module.functions) {
    const auto found = symbols.function_index.find(&function);
    if (found == symbols.function_index.end() || !IsPrivate(*symbols.functions[found->second])) continue;
    names.emplace(&function, "\1f" + std::to_string(found->second));
  }
  std::size_t place = 0;
  for (const ptx::Variable& variable : module.variables) {
    if (IsPrivate(variable)) names.emplace(&variable, "\1v" + std::to_string(place));
    ++place;
  }
  return names;
}

template <typename Map, typename Symbol>
std::uint64_t NumberOf(const Map& numbers, const Symbol* symbol) {
  const auto found = numbers.find(symbol);
  return found != numbers.end() ? found->second : ~std::uint64_t{0};
}

void AddHeader(const ptx::Module& module, Hasher& hasher) {
  hasher.Add(std::uint64_t{module.version_major});
  hasher.Add(std::uint64_t{module.version_minor});
  hasher.Add(std::uint64_t{module.address_size});
  hasher.AddAll(module.targets);
  for (const ptx::ModuleItem& item : module.items) {
    if (const auto* const alias = std::get_if<ptx::AliasDirective>(&item)) {
      hasher.Add(alias->alias);
      hasher.Add(alias->aliasee);
    } else if (const auto* const text = std::get_if<ptx::TextDirective>(&item)) {
      if (text->name == ".file" || text->name == ".section" || text->name == ".nv_intermediate_source_section")
        continue;
      hasher.Add(text->name);
      hasher.Add(text->text);
    }
  }
}

void AddVariable(const ptx::Variable& variable, const SymbolTable& symbols, const ptx::SymbolNames& names,
                 Hasher& hasher) {
  const auto other = names.find(&variable);
  hasher.Add(other != names.end() ? std::string_view(other->second) : variable.name);
  for (const auto number :
       {static_cast<std::uint64_t>(variable.space), static_cast<std::uint64_t>(variable.type),
        std::uint64_t{variable.vector}, std::uint64_t{variable.align}, std::uint64_t{variable.range_count},
        static_cast<std::uint64_t>(variable.linkage), std::uint64_t{variable.has_initializer},
        std::uint64_t{variable.initializer.size()}, NumberOf(symbols.variable_index, &variable)})
    hasher.Add(number);
  hasher.AddAll(variable.dims);
  hasher.AddAll(variable.attributes);
  hasher.AddAll(variable.sub_spaces);
}

/// Lines within the function, as CodeLines numbers them.
void AddLines(const ptx::Block& block, std::uint32_t first, Hasher& hasher) {
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* const nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement))
      AddLines(**nested, first, hasher);
    const auto* const instruction = std::get_if<ptx::Instruction>(&statement);
    if (instruction == nullptr) continue;
    hasher.Add(instruction->loc.line == 0 ? ~std::uint64_t{0} : std::uint64_t{instruction->loc.line - first});
  }
}

void AddFunction(const ptx::Function& function, const SymbolTable& symbols, const ptx::SymbolNames& names,
                 Hasher& hasher) {
  hasher.Add(NumberOf(symbols.function_index, &function));
  hasher.Add(std::uint64_t{function.target_sm});
  hasher.Add(ptx::PrintFunctionCode(function, names));
  if (function.body) AddLines(*function.body, LinesOf(function).first, hasher);
}

/// Functions that initialisers name, for a kernel that may call them.
void AddNamedByInitializers(const ptx::Module& module, const SymbolTable& symbols, Hasher& hasher) {
  for (const ptx::Variable& variable : module.variables) {
    for (const ptx::Initializer& element : variable.initializer) {
      const auto* const symbol = std::get_if<ptx::Operand>(&element.value);
      if (symbol != nullptr && symbol->function != nullptr)
        hasher.Add(NumberOf(symbols.function_index, symbol->function));
    }
  }
}

}  // namespace

SharedCode SharedCodeOf(const ptx::Module& module, const SymbolTable& symbols) {
  SharedCode shared{.key = {}, .names = PrivateNames(module, symbols)};
  Hasher hasher;
  AddHeader(module, hasher);
  for (const ptx::Variable& variable : module.variables) AddVariable(variable, symbols, shared.names, hasher);
  shared.key = hasher.Key();
  return shared;
}

ProgramKey CodeKey(const ptx::Module& module, const SymbolTable& symbols, const SharedCode& shared,
                   const ptx::Function& kernel, bool recorded) {
  Hasher hasher;
  hasher.AddAll(shared.key);
  hasher.Add(NumberOf(symbols.function_index, &kernel));
  const Reached reached = ReachedFrom(module, kernel);
  const InstructionNumbers numbers = recorded ? NumberInstructions(module, kernel) : InstructionNumbers();
  for (const ptx::Function* const function : reached.functions) {
    AddFunction(*function, symbols, shared.names, hasher);
    if (recorded) hasher.Add(NumberOf(numbers.first, function));
  }
  if (reached.by_initializers) AddNamedByInitializers(module, symbols, hasher);
  return hasher.Key();
}

}  // namespace gridloom::exec
