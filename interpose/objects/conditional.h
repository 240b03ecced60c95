// Conditional nodes of graphs: bodies that run, or run again, by a value that kernels of the graph set (CUDA C++
// Programming Guide, "Conditional Graph Nodes").
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "interpose/api/cuda_types.h"

namespace gridloom::session {

struct ConditionalBodies;

/// The value behind a conditional handle. Graphs and executable graphs that use it keep it.
class Conditional {
 public:
  /// `assign_default`: every launch of the graph begins with the default value.
  static std::shared_ptr<Conditional> Make(unsigned default_value, bool assign_default);
  /// Null for a handle that nobody keeps any more.
  static std::shared_ptr<Conditional> Find(cuda::CUgraphConditionalHandle handle);
  ~Conditional();

  cuda::CUgraphConditionalHandle handle() const { return reinterpret_cast<cuda::CUgraphConditionalHandle>(this); }
  unsigned value() const { return value_.load(std::memory_order_acquire); }
  void set_value(unsigned value) { value_.store(value, std::memory_order_release); }
  /// A launch of the graph begins.
  void Begin() {
    if (assign_default_) set_value(default_value_);
  }

 private:
  Conditional(unsigned default_value, bool assign_default)
      : default_value_(default_value), assign_default_(assign_default), value_(default_value) {}

  const unsigned default_value_;
  const bool assign_default_;
  std::atomic<unsigned> value_;
};

struct ConditionalOp {
  std::shared_ptr<Conditional> condition;
  cuda::CUgraphConditionalNodeType type = cuda::CU_GRAPH_COND_TYPE_IF;
  std::shared_ptr<ConditionalBodies> bodies;
};

}  // namespace gridloom::session
