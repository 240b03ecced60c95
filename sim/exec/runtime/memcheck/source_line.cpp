#include "sim/exec/runtime/memcheck/source_line.h"

#include <charconv>
#include <filesystem>
#include <string_view>

namespace gridloom::exec {
namespace {

/// The last .loc at or before `line`; a body is in order of lines, nested blocks included.
const ptx::LocDirective* LastLoc(const ptx::Block& block, std::uint32_t line, const ptx::LocDirective* last) {
  for (const ptx::Statement& statement : block.statements) {
    if (const auto* loc = std::get_if<ptx::LocDirective>(&statement)) {
      if (loc->loc.line > line) return last;
      last = loc;
    } else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement)) {
      last = LastLoc(**nested, line, last);
    }
  }
  return last;
}

/// `.file 1 "path"{, timestamp, size}`.
std::string FileName(const ptx::Module& module, std::uint32_t number) {
  for (const ptx::ModuleItem& item : module.items) {
    const auto* directive = std::get_if<ptx::TextDirective>(&item);
    if (!directive || directive->name != ".file") continue;
    std::uint32_t found = 0;
    const std::string_view text = directive->text;
    if (std::from_chars(text.data(), text.data() + text.size(), found).ec != std::errc() || found != number) continue;
    const auto begin = text.find('"'), end = text.rfind('"');
    if (begin == std::string_view::npos || end <= begin) continue;
    return std::string(text.substr(begin + 1, end - begin - 1));
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

}  // namespace

std::optional<SourcePlace> FindSource(const ptx::Module& module, std::uint32_t ptx_line) {
  for (const ptx::Function& function : module.functions) {
    if (!function.body || ptx_line < function.body->loc.line || ptx_line > function.body->end_loc.line) continue;
    const ptx::LocDirective* const loc = LastLoc(*function.body, ptx_line, nullptr);
    if (!loc || loc->line == 0) return std::nullopt;
    std::string file = FileName(module, loc->file);
    if (file.empty()) return std::nullopt;
    return SourcePlace{RelativeToHere(file), loc->line};
  }
  return std::nullopt;
}

}  // namespace gridloom::exec
