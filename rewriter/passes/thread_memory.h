// The memory that a function has for its own thread: .local variables and the .param variables of its calls. Which
// instructions access which bytes of them, and whether others may.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "rewriter/analysis/cfg.h"
#include "rewriter/analysis/registers.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

/// A byte of a variable.
struct Place {
  const ptx::Variable* variable = nullptr;
  std::int64_t offset = 0;

  auto operator<=>(const Place&) const = default;
};

/// A .param variable in the lists of a call.
struct CallArgument {
  std::uint32_t call = 0;  ///< Cfg::instructions()
  bool result = false;     ///< of its results, not its arguments
  std::size_t number = 0;
};

/// Bytes of a .local variable that an instruction accesses, or the function that it calls.
struct PlaceAccess {
  std::uint32_t instruction = 0;
  std::int64_t offset = 0;
  std::uint32_t bytes = 0;
  bool writes = false;
  bool whole = false;  ///< one value, not the parts of a vector
};

/// An access somewhere in a .local variable, through a pointer that is computed.
struct LooseAccess {
  std::uint32_t instruction = 0;
  std::set<std::int64_t> from;  ///< offsets in the variable from which the pointer was computed
  std::uint32_t bytes = 0;
  bool writes = false;
};

class ThreadMemory {
 public:
  /// How many bytes a callee writes where its n-th argument points; nothing when that is not known.
  using Written = std::optional<std::uint32_t> (*)(const ptx::Function& callee, std::size_t argument);

  ThreadMemory(const analysis::Cfg& cfg, Written written);

  /// What a register or symbol points to, where that is the same whenever it is used.
  std::optional<Place> PointsTo(const ptx::Operand& value) const { return PointsTo(value, kDepth); }
  /// What the address operand of a load or store names: a .local variable or a call's .param variable.
  std::optional<Place> Named(const ptx::Instruction& access) const;

  /// The calls that have a .param variable in their lists.
  const std::vector<CallArgument>& CallsWith(const ptx::Variable& param) const;

  struct Use {
    std::vector<PlaceAccess> accesses;  ///< in the order of the instructions
    std::vector<LooseAccess> loose;
    /// An instruction that makes a pointer into the variable do what is not followed: it may be accessed anywhere, by
    /// anybody. Null when there is none.
    const ptx::Instruction* wild = nullptr;
  };
  /// How a .local variable is used.
  const Use& UseOf(const ptx::Variable& variable);

  /// Instructions that write a register, in their order.
  const std::vector<std::uint32_t>& Writers(const ptx::Operand& reg) const;

 private:
  static constexpr int kDepth = 16;  // of a chain of definitions

  /// By register: where in the variable the pointers that it may hold come from.
  using Pointers = std::vector<std::set<std::int64_t>>;

  std::optional<Place> PointsTo(const ptx::Operand& value, int depth) const;
  analysis::RegisterId IdOf(const ptx::Operand& reg) const;
  Use Follow(const ptx::Variable& variable) const;
  bool FollowOperands(std::uint32_t at, const ptx::Variable& variable, Pointers& pointers, Use& use) const;
  void FollowAccess(std::uint32_t at, const ptx::Operand& address, const ptx::Variable& variable,
                    const Pointers& pointers, Use& use) const;
  bool FollowSum(const ptx::Instruction& instruction, const ptx::Variable& variable, const std::set<std::int64_t>& from,
                 Pointers& pointers, Use& use) const;
  std::set<std::int64_t> From(const ptx::Operand& operand, const ptx::Variable& variable,
                              const Pointers& pointers) const;
  bool PassesKnown(std::uint32_t call, std::size_t argument, const ptx::Operand& pointer, const ptx::Variable& variable,
                   Use& use) const;

  const analysis::Cfg& cfg_;
  const Written written_;
  analysis::RegisterMap registers_;
  std::vector<std::vector<std::uint32_t>> writers_;  ///< by register
  std::map<const ptx::Variable*, std::vector<CallArgument>> calls_with_;
  std::map<const ptx::Variable*, Use> uses_;
};

/// The operand of a call that is its n-th argument, or null.
const ptx::Operand* ArgumentOf(const ptx::Instruction& call, std::size_t number);
/// The list behind the callee, or null.
const ptx::Operand* ArgumentsOf(const ptx::Instruction& call);
const ptx::Operand* ResultsOf(const ptx::Instruction& call);

}  // namespace gridloom::passes
