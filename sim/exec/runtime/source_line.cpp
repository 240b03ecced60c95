#include "sim/exec/runtime/source_line.h"

#include <charconv>

namespace gridloom::exec {
namespace {

/// The name in the directive `.file number "name" …`.
std::string FileName(const ptx::Module& module, std::uint32_t number) {
  for (const ptx::ModuleItem& item : module.items) {
    const auto* file = std::get_if<ptx::TextDirective>(&item);
    if (!file || file->name != ".file") continue;
    std::uint32_t found = 0;
    const char* const begin = file->text.data();
    if (std::from_chars(begin, begin + file->text.size(), found).ec != std::errc() || found != number) continue;
    const std::size_t open = file->text.find('"');
    const std::size_t close = open == std::string_view::npos ? open : file->text.find('"', open + 1);
    if (close != std::string_view::npos) return std::string(file->text.substr(open + 1, close - open - 1));
  }
  return {};
}

/// The last .loc at or before `line`.
void FindLoc(const ptx::Block& block, std::uint32_t line, const ptx::LocDirective*& best) {
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* loc = std::get_if<ptx::LocDirective>(&statement)) {
      if (loc->loc.line <= line) best = loc;
    } else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) {
      FindLoc(**nested, line, best);
    }
  }
}

bool Holds(const ptx::Function& function, std::uint32_t line) {
  return function.body && function.body->loc.line <= line && line <= function.body->end_loc.line;
}

std::string SourceIn(const ptx::Module& module, const ptx::Function& function, std::uint32_t line) {
  const ptx::LocDirective* loc = nullptr;
  FindLoc(*function.body, line, loc);
  if (!loc) return {};
  const std::string file = FileName(module, loc->file);
  return file.empty() ? std::string() : file + ":" + std::to_string(loc->line);
}

}  // namespace

std::string SourceLineOf(const ptx::Module& module, const ptx::Function& preferred, std::uint32_t line) {
  if (Holds(preferred, line)) return SourceIn(module, preferred, line);
  for (const ptx::Function& function : module.functions) {
    if (Holds(function, line)) return SourceIn(module, function, line);
  }
  return {};
}

}  // namespace gridloom::exec
