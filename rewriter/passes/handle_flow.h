// How far the handle of one stream goes from a place in the code: which uses of it may come next.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "rewriter/passes/stream_handles.h"

namespace gridloom::passes {

class HandleFlow {
 public:
  using Register = std::pair<const ptx::Variable*, std::uint32_t>;

  /// `holders`: all registers that may ever hold the handle of `made[number]`. Nothing else does but its slot and
  /// arguments of calls.
  HandleFlow(const analysis::Cfg& cfg, ThreadMemory& memory, const std::vector<MadeStream>& made, std::size_t number,
             const std::vector<Register>& holders);

  /// Whether control may come from behind the instruction `from`, where the handle may lie wherever it ever does, to
  /// one of `uses` that gets the handle: the same one, before the stream is made again. `uses`: calls, with the number
  /// of their stream.
  bool Reaches(std::uint32_t from, const std::map<std::uint32_t, std::size_t>& uses) const;

 private:
  using State = std::vector<bool>;  ///< by location: whether the handle may lie there

  std::optional<std::size_t> LocationOf(const ptx::Operand& operand) const;
  bool Holds(const ptx::Operand& operand, const State& state) const;
  void Step(std::uint32_t at, State& state) const;

  const analysis::Cfg& cfg_;
  ThreadMemory& memory_;
  const std::vector<MadeStream>& made_;
  const MadeStream& stream_;
  std::map<Register, std::size_t> locations_;                       ///< of registers; the slot is location 0
  std::map<const ptx::Variable*, std::size_t> argument_locations_;  ///< of .param variables
  std::size_t count_ = 1;
};

}  // namespace gridloom::passes
