#include "sim/exec/contract/code_lines.h"

#include <algorithm>

#include "sim/exec/contract/reached.h"

namespace gridloom::exec {
namespace {

void Widen(const ptx::Block& block, FunctionLines& lines) {
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* const nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) Widen(**nested, lines);
    const auto* const instruction = std::get_if<ptx::Instruction>(&statement);
    if (instruction == nullptr || instruction->loc.line == 0) continue;
    lines.first = lines.first == 0 ? instruction->loc.line : std::min(lines.first, instruction->loc.line);
    lines.last = std::max(lines.last, instruction->loc.line);
  }
}

}  // namespace

FunctionLines LinesOf(const ptx::Function& function) {
  FunctionLines lines;
  if (function.body) Widen(*function.body, lines);
  return lines;
}

CodeLines::CodeLines(const ptx::Module& module, const ptx::Function& kernel) {
  std::uint32_t next = 1;
  std::vector<const ptx::Function*> functions = ReachedFrom(module, kernel).functions;
  std::ranges::stable_sort(functions, {},
                           &ptx::Function::order);  // where they lie, text that was printed and read tells otherwise
  for (const ptx::Function* const function : functions) {
    const FunctionLines lines = LinesOf(*function);
    if (lines.count() == 0) continue;
    piece_of_.emplace(function, pieces_.size());
    pieces_.push_back({next, lines});
    next += lines.count();
  }
}

std::uint32_t CodeLines::Begin(const ptx::Function& function) const {
  const auto found = piece_of_.find(&function);
  return found == piece_of_.end() ? 0 : pieces_[found->second].begin;
}

std::uint32_t CodeLines::Of(const ptx::Function& function, std::uint32_t ptx_line) const {
  const auto found = piece_of_.find(&function);
  if (found == piece_of_.end() || ptx_line == 0) return 0;
  const Piece& piece = pieces_[found->second];
  return piece.begin + (ptx_line - piece.lines.first);
}

std::uint32_t CodeLines::PtxLine(std::uint32_t line) const {
  const auto behind = std::ranges::upper_bound(pieces_, line, {}, &Piece::begin);
  if (behind == pieces_.begin()) return 0;
  const Piece& piece = *(behind - 1);
  const std::uint32_t at = line - piece.begin;
  return at < piece.lines.count() ? piece.lines.first + at : 0;
}

}  // namespace gridloom::exec
