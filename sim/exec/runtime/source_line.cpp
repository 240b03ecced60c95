#include "sim/exec/runtime/source_line.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

namespace gridloom::exec {
namespace {

/// The last .loc at or before `line`, in nested blocks, too.
void FindLoc(const ptx::Block& block, std::uint32_t line, const ptx::LocDirective*& best) {
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* loc = std::get_if<ptx::LocDirective>(&statement)) {
      if (loc->loc.line <= line) best = loc;
    } else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) {
      FindLoc(**nested, line, best);
    }
  }
}

void FindInBlock(const ptx::Block& block, std::uint32_t line, CodePlace& place) {
  const auto begins = [&](std::uint32_t at) {
    if (at < line) place.begin = std::max(place.begin, at);
  };
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* label = std::get_if<ptx::Label*>(&statement)) begins((*label)->loc.line);
    else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) FindInBlock(**nested, line, place);
    const auto* instruction = std::get_if<ptx::Instruction>(&statement);
    if (!instruction) continue;
    if (instruction->Has(ptx::Trait::kBranches)) begins(instruction->loc.line);
    if (instruction->loc.line == line) place.opcode = instruction->FullName();
  }
}

/// The name in the directive `.file number "name"{, timestamp, size}`.
std::string FileName(const ptx::Module& module, std::uint32_t number) {
  for (const ptx::ModuleItem& item : module.items) {
    const auto* directive = std::get_if<ptx::TextDirective>(&item);
    if (!directive || directive->name != ".file") continue;
    const std::string_view text = directive->text;
    std::uint32_t found = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), found).ec != std::errc() || found != number) continue;
    const std::size_t open = text.find('"');
    const std::size_t close = open == std::string_view::npos ? open : text.find('"', open + 1);
    if (close != std::string_view::npos) return std::string(text.substr(open + 1, close - open - 1));
  }
  return {};
}

std::string RelativeToHere(const std::string& path) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error || path.empty() || path[0] != '/') return path;
  const std::filesystem::path relative = std::filesystem::path(path).lexically_relative(here);
  return relative.empty() || relative.native().starts_with("..") ? path : relative.native();
}

bool Holds(const ptx::Function& function, std::uint32_t line) {
  return function.body && function.body->loc.line <= line && line <= function.body->end_loc.line;
}

const ptx::Function* FunctionAt(const ptx::Module& module, const ptx::Function* preferred, std::uint32_t line) {
  if (preferred && Holds(*preferred, line)) return preferred;
  for (const ptx::Function& function : module.functions) {
    if (Holds(function, line)) return &function;
  }
  return nullptr;
}

}  // namespace

std::optional<SourcePlace> FindSource(const ptx::Module& module, const ptx::Function* preferred, std::uint32_t ptx_line) {
  const ptx::Function* const function = FunctionAt(module, preferred, ptx_line);
  if (!function) return std::nullopt;
  const ptx::LocDirective* loc = nullptr;
  FindLoc(*function->body, ptx_line, loc);
  if (!loc || loc->line == 0) return std::nullopt;
  const std::string file = FileName(module, loc->file);
  if (file.empty()) return std::nullopt;
  return SourcePlace{RelativeToHere(file), loc->line};
}

CodePlace FindInCode(const ptx::Module& module, const ptx::Function* preferred, std::uint32_t ptx_line) {
  CodePlace place;
  if (const ptx::Function* const function = FunctionAt(module, preferred, ptx_line)) FindInBlock(*function->body, ptx_line, place);
  return place;
}

}  // namespace gridloom::exec
