#include "rewriter/support/diagnostic.h"

#include <algorithm>

namespace gridloom {
namespace {

std::string_view SourceLine(std::string_view source, std::uint32_t line) {
  std::size_t begin = 0;
  for (std::uint32_t i = 1; i < line; ++i) {
    const std::size_t end = source.find('\n', begin);
    if (end == std::string_view::npos) return {};
    begin = end + 1;
  }
  std::string_view text = source.substr(std::min(begin, source.size()));
  return text.substr(0, text.find('\n'));
}

const char* SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kError: return "error";
    case Severity::kWarning: return "warning";
    case Severity::kNote: return "note";
  }
  return "error";
}

}  // namespace

void DiagnosticSink::Error(SourceLoc loc, std::string message) {
  if (++error_count_ <= kMaxErrors) diagnostics_.push_back({Severity::kError, loc, std::move(message)});
}

void DiagnosticSink::Warning(SourceLoc loc, std::string message) {
  if (diagnostics_.size() < 2 * kMaxErrors) diagnostics_.push_back({Severity::kWarning, loc, std::move(message)});
}

std::string FormatDiagnostic(const Diagnostic& diagnostic, std::string_view file, std::string_view source) {
  std::string out(file);
  if (diagnostic.loc.line != 0) {
    out += ':' + std::to_string(diagnostic.loc.line) + ':' + std::to_string(diagnostic.loc.col);
  }
  out += std::string(": ") + SeverityName(diagnostic.severity) + ": " + diagnostic.message + '\n';
  const std::string_view line = diagnostic.loc.line != 0 ? SourceLine(source, diagnostic.loc.line) : std::string_view{};
  // A caret under a line of many thousand characters helps nobody.
  if (line.empty() || line.size() > 400) return out;
  std::string text(line), caret;
  for (std::size_t i = 0; i + 1 < diagnostic.loc.col && i < text.size(); ++i) caret += text[i] == '\t' ? '\t' : ' ';
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 32 && c != '\t'; }, '?');
  return out + "    " + text + "\n    " + caret + "^\n";
}

std::string FormatDiagnostics(const DiagnosticSink& sink, std::string_view file, std::string_view source) {
  std::string out;
  for (const Diagnostic& diagnostic : sink.diagnostics()) out += FormatDiagnostic(diagnostic, file, source);
  if (sink.error_count() > DiagnosticSink::kMaxErrors) {
    out += std::string(file) + ": " + std::to_string(sink.error_count() - DiagnosticSink::kMaxErrors) +
           " further errors not shown\n";
  }
  return out;
}

}  // namespace gridloom
