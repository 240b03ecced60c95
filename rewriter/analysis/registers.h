// The registers of a function, numbered densely, so that dataflow can use plain vectors.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "rewriter/ptx/ir.h"

namespace gridloom::analysis {

using RegisterId = std::uint32_t;
inline constexpr RegisterId kNoRegister = ~0u;

/// A register: an element of a declared range, or a plain one. A vector register is one register.
struct Register {
  const ptx::Variable* variable = nullptr;
  std::uint32_t index = 0;

  bool is_predicate() const { return variable->type == ptx::ScalarType::kPred; }
  /// 32-bit units it takes; 0 for a predicate. What is narrower than 32 bits takes a whole unit.
  std::uint32_t units() const { return is_predicate() ? 0 : (variable->element_bytes() + 3) / 4; }
};

/// Numbers registers in the order of their first mention.
class RegisterMap {
 public:
  RegisterId Add(const ptx::Variable& variable, std::uint32_t index);
  /// kNoRegister when it was never added.
  RegisterId Find(const ptx::Variable& variable, std::uint32_t index) const;
  const Register& operator[](RegisterId id) const { return registers_[id]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(registers_.size()); }

 private:
  struct Key {
    const ptx::Variable* variable;
    std::uint32_t index;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.variable) * 31 + key.index * 0x9E3779B97F4A7C15u;
    }
  };

  std::unordered_map<Key, RegisterId, Hash> ids_;
  std::vector<Register> registers_;
};

}  // namespace gridloom::analysis
