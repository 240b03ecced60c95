// Name lookup while a module is parsed (PTX ISA, 4.4 and 5.4.1): nested scopes, where an inner declaration hides an
// outer one, and register ranges, where `%r<10>` declares %r0 to %r9.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace gridloom::ptx {

struct Function;
struct Label;
struct LabelDirective;
struct Variable;

/// What a name stands for; exactly one pointer is set, none when the name is unknown.
struct Symbol {
  Variable* variable = nullptr;
  Function* function = nullptr;
  Label* label = nullptr;
  LabelDirective* directive = nullptr;
  std::uint32_t index = 0;  ///< element of a register range
  std::uint32_t depth = 0;  ///< scope that declares it; 0 is the module

  bool found() const { return variable != nullptr || function != nullptr || label != nullptr || directive != nullptr; }
};

class SymbolTable {
 public:
  SymbolTable();

  void PushScope() { scope_starts_.push_back(declared_.size()); }
  /// Forgets what the innermost scope declared.
  void PopScope();
  std::uint32_t depth() const { return static_cast<std::uint32_t>(scope_starts_.size()); }

  /// Declares a name in the innermost scope; a later declaration hides an earlier one. The name must outlive the table.
  void Declare(std::string_view name, Symbol symbol);
  void DeclareRange(std::string_view prefix, Variable* variable);

  /// The innermost meaning of a name, either declared as such or as an element of a range.
  Symbol Find(std::string_view name) const;
  /// The same, but elements of ranges are not found.
  Symbol FindExact(std::string_view name) const;

 private:
  static constexpr std::uint32_t kNobody = ~0u;

  struct Slot {
    std::string_view name = {};
    std::uint64_t hash = 0;
    std::uint32_t exact = kNobody, range = kNobody;  ///< innermost declaration of either sort, in declared_
  };
  struct Declaration {
    Symbol symbol;
    std::uint32_t hidden = kNobody;  ///< the declaration of the same name and sort that this one hides
    bool is_range = false;
    std::string_view name = {};
  };

  Slot& SlotFor(std::string_view name);
  const Slot* FindSlot(std::string_view name) const;
  std::size_t Probe(std::string_view name, std::uint64_t hash) const;
  void Grow();
  Symbol FindInRange(std::string_view prefix, std::string_view digits) const;

  std::vector<Slot> slots_;  ///< open addressing, a power of two
  std::size_t used_ = 0;
  std::vector<Declaration> declared_;
  std::vector<std::size_t> scope_starts_;
};

}  // namespace gridloom::ptx
