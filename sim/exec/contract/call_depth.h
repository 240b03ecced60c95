// The deepest chain of calls below a function. Goes down without the host's stack: chains may be as long as a module.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rewriter/ptx/ir.h"

namespace gridloom::exec {

/// What a function takes of the stack, and what it calls.
struct CallFrame {
  std::uint32_t bytes = 0;
  std::vector<const ptx::Function*> callees;
  std::span<const ptx::Function* const> others{};  ///< that it may call, too; stays where it is
};

struct CallDepth {
  std::uint32_t bytes = 0;  ///< of the frames of the deepest chain; a function that is on it already counts as nothing
  bool recursive = false;   ///< some function is reached from itself
};

/// `frame_of(function)`: its CallFrame. Called once for each function.
template <typename FrameOf>
CallDepth DeepestCalls(const ptx::Function* from, const FrameOf& frame_of) {
  struct Open {
    const ptx::Function* function = nullptr;
    CallFrame frame;
    std::size_t next = 0;  ///< of its callees and others
    std::uint32_t below = 0;
    const ptx::Function* Callee(std::size_t i) const {
      return i < frame.callees.size() ? frame.callees[i] : frame.others[i - frame.callees.size()];
    }
    bool done() const { return next == frame.callees.size() + frame.others.size(); }
  };
  CallDepth depth;
  std::unordered_map<const ptx::Function*, std::optional<std::uint32_t>> known;  // null: on the path
  std::vector<Open> path;
  const auto begin = [&](const ptx::Function* function) {
    known.emplace(function, std::nullopt);
    path.push_back({.function = function, .frame = frame_of(function)});
  };
  begin(from);
  while (true) {
    Open& open = path.back();
    if (!open.done()) {
      const ptx::Function* const callee = open.Callee(open.next++);
      const auto seen = known.find(callee);
      if (seen == known.end()) begin(callee);
      else if (seen->second) open.below = std::max(open.below, *seen->second);
      else depth.recursive = true;
      continue;
    }
    const std::uint32_t bytes = open.frame.bytes + open.below;
    known[open.function] = bytes;
    path.pop_back();
    if (path.empty()) {
      depth.bytes = bytes;
      return depth;
    }
    path.back().below = std::max(path.back().below, bytes);
  }
}

}  // namespace gridloom::exec
