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
    else if (const auto* nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement))
      FindInBlock(**nested, line, place);
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

/// A place in the source as .loc directives name it.
struct Place {
  std::uint32_t file = 0, line = 0, column = 0;
  bool operator==(const Place&) const = default;
};

/// Where the function that a .loc speaks of was inlined.
std::optional<Place> InlinedAt(const ptx::LocDirective& loc) {
  constexpr std::string_view kWord = "inlined_at";
  const std::size_t at = loc.rest.find(kWord);
  if (at == std::string_view::npos) return std::nullopt;
  Place place;
  const char* text = loc.rest.data() + at + kWord.size();
  const char* const end = loc.rest.data() + loc.rest.size();
  for (std::uint32_t* number : {&place.file, &place.line, &place.column}) {
    while (text != end && *text == ' ') ++text;
    const auto [behind, error] = std::from_chars(text, end, *number);
    if (error != std::errc()) return std::nullopt;
    text = behind;
  }
  return place;
}

/// A .loc of the place that says where it was inlined itself, in nested blocks, too.
const ptx::LocDirective* FindInlined(const ptx::Block& block, const Place& place) {
  for (const ptx::Statement& statement : block.statements) {
    const auto* const loc = std::get_if<ptx::LocDirective>(&statement);
    if (loc && Place{loc->file, loc->line, loc->column} == place && InlinedAt(*loc)) return loc;
    const auto* const nested = std::get_if<std::unique_ptr<ptx::Block>>(&statement);
    if (const auto* const inside = nested ? FindInlined(**nested, place) : nullptr) return inside;
  }
  return nullptr;
}

/// A header of a CUDA toolkit, which the program's author has not written: in an include folder below one that is named
/// for CUDA.
bool IsToolkitHeader(const std::string& path) {
  const std::size_t include = path.rfind("/include/");
  if (include == std::string::npos) return false;
  const std::string_view before(path.data(), include);
  return before.find("/cuda") != std::string_view::npos || before.find("/nvidia/") != std::string_view::npos ||
         before.find("/targets/") != std::string_view::npos;
}

/// The place itself, or when it is in a toolkit's header the first caller outside of those, as far as functions were
/// inlined.
Place OutsideOfToolkit(const ptx::Module& module, const ptx::Block& body, const ptx::LocDirective& innermost) {
  const Place own{innermost.file, innermost.line, innermost.column};
  constexpr int kDeepest = 64;
  const ptx::LocDirective* loc = &innermost;
  for (int depth = 0; loc && depth < kDeepest; ++depth) {
    if (!IsToolkitHeader(FileName(module, loc->file))) return {loc->file, loc->line, loc->column};
    const auto caller = InlinedAt(*loc);
    if (!caller) break;
    if (!IsToolkitHeader(FileName(module, caller->file))) return *caller;
    loc = FindInlined(body, *caller);
  }
  return own;
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

std::optional<SourcePlace> FindSource(const ptx::Module& module, const ptx::Function* preferred,
                                      std::uint32_t ptx_line) {
  const ptx::Function* const function = FunctionAt(module, preferred, ptx_line);
  if (!function) return std::nullopt;
  const ptx::LocDirective* loc = nullptr;
  FindLoc(*function->body, ptx_line, loc);
  if (!loc || loc->line == 0) return std::nullopt;
  const Place place = OutsideOfToolkit(module, *function->body, *loc);
  const std::string file = FileName(module, place.file);
  if (file.empty()) return std::nullopt;
  return SourcePlace{RelativeToHere(file), place.line};
}

CodePlace FindInCode(const ptx::Module& module, const ptx::Function* preferred, std::uint32_t ptx_line) {
  CodePlace place;
  if (const ptx::Function* const function = FunctionAt(module, preferred, ptx_line))
    FindInBlock(*function->body, ptx_line, place);
  return place;
}

}  // namespace gridloom::exec
