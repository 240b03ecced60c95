// Located messages about a text: file:line:col, the source line, a caret and what was expected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gridloom {

/// A place in a source text. Lines and columns count from 1; 0 means unknown.
struct SourceLoc {
  std::uint32_t line = 0;
  std::uint32_t col = 0;
  friend bool operator==(const SourceLoc&, const SourceLoc&) = default;
};

enum class Severity : std::uint8_t { kError, kWarning, kNote };

struct Diagnostic {
  Severity severity = Severity::kError;
  SourceLoc loc;
  std::string message;
};

/// Collects diagnostics of one text. After `kMaxErrors` errors further ones are counted but not kept.
class DiagnosticSink {
 public:
  static constexpr std::size_t kMaxErrors = 20;

  void Error(SourceLoc loc, std::string message);
  void Warning(SourceLoc loc, std::string message);

  bool has_errors() const { return error_count_ != 0; }
  std::size_t error_count() const { return error_count_; }
  bool full() const { return error_count_ >= kMaxErrors; }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
  std::size_t error_count_ = 0;
};

/// One diagnostic as a compiler prints it:
///   kernel.ptx:12:9: error: expected ']' after address
///       ld.global.u32 %r1, [%rd1;
///                              ^
std::string FormatDiagnostic(const Diagnostic& diagnostic, std::string_view file, std::string_view source);

/// All diagnostics of a sink, one after the other, with a closing line when some were left off.
std::string FormatDiagnostics(const DiagnosticSink& sink, std::string_view file, std::string_view source);

}  // namespace gridloom
