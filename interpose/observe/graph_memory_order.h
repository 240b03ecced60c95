// What memory a graph allocates and frees, and which of its nodes come between the two (memcheck, memory_order.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace gridloom::session {

struct GraphPlan;

/// What one launch of a graph allocates and frees, and which of its nodes come between the two.
class GraphMemoryOrder {
 public:
  explicit GraphMemoryOrder(const GraphPlan& plan);

  struct Lifetime {
    std::optional<std::uint32_t> allocates, frees;  ///< nodes of the graph
    std::vector<bool> after_allocation;             ///< by node
    std::vector<bool> before_free, after_free;
  };
  const std::map<std::uint64_t, Lifetime>& lifetimes() const { return lifetimes_; }
  const Lifetime* Find(std::uint64_t address) const;

 private:
  std::map<std::uint64_t, Lifetime> lifetimes_;  ///< by address
};

}  // namespace gridloom::session
