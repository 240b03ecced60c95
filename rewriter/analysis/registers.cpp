#include "rewriter/analysis/registers.h"

namespace gridloom::analysis {

RegisterId RegisterMap::Add(const ptx::Variable& variable, std::uint32_t index) {
  const auto [it, added] = ids_.try_emplace({&variable, index}, size());
  if (added) registers_.push_back({&variable, index});
  return it->second;
}

RegisterId RegisterMap::Find(const ptx::Variable& variable, std::uint32_t index) const {
  const auto it = ids_.find({&variable, index});
  return it == ids_.end() ? kNoRegister : it->second;
}

}  // namespace gridloom::analysis
