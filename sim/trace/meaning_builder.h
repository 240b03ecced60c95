// What instructions of PTX compute, as a trace says it (meaning.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "sim/trace/meaning.h"

namespace gridloom::trace {

/// Makes the meanings of a kernel, function by function, instruction by instruction.
class MeaningBuilder {
 public:
  MeaningBuilder() { made_.texts.emplace_back(); }

  /// Registers from here on are another function's.
  void BeginFunction();
  /// What becomes of an instruction in `entries` entries of the code: the last one writes what it writes. Where there
  /// are several, none says which instruction it is.
  void Add(const ptx::Instruction& instruction, std::size_t entries);
  /// Those of all instructions; nothing where one of them has more than 255 results or sources, or there are too many
  /// texts.
  Meanings Take() {
    const bool fits = can_say_ && made_.texts.size() <= Meanings::kMostTexts;
    return fits ? std::move(made_) : Meanings{};
  }

 private:
  Term RegisterOf(const ptx::Variable& variable, std::uint32_t index);
  Term Carry();
  std::uint32_t TextOf(std::string_view text);
  using Operands = std::unordered_set<const ptx::Operand*>;
  void AddSources(const ptx::Operand& operand, const Operands& reads, std::vector<Term>& sources);

  Meanings made_;
  bool can_say_ = true;
  std::map<std::pair<const ptx::Variable*, std::uint32_t>, std::uint32_t> registers_;  // of the function
  std::uint32_t carry_ = 0;                                                            // its flag; 0: not met yet
  std::map<std::string, std::uint32_t, std::less<>> texts_;
};

}  // namespace gridloom::trace
