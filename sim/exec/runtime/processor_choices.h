// What generated code does in one of several ways because processors differ: results are the same, times are not. It is
// chosen by short measurements on the processor itself, once for each kind of processor: the compiler's name for it
// says little about what its gathers cost (Zen 3, 4 and 5 differ), and new ones have no name yet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rewriter/support/result.h"
#include "sim/exec/compiler/compiler.h"

namespace gridloom::exec {

class CodeCache;

/// Times of one way by times of the other.
struct ProcessorTimes {
  double ahead_gain = 1;  ///< rows that lanes walk through: without fetching ahead, by with
  double few_gain = 1;    ///< 12 lanes of 32 that go on through rows: by gathers, by one lane after the other
  double all_gain = 1;    ///< likewise all 32
  bool halves = false;    ///< AVX-512: loops also run as half warps, which makes gathers of few lanes cheaper

  /// A line, as the cache keeps it.
  std::string Text() const;
  static std::optional<ProcessorTimes> Parse(std::string_view text);
};

struct ProcessorChoices {
  bool fetch_ahead = false;    ///< CompileOptions
  std::uint8_t few_lanes = 8;  ///< likewise

  bool operator==(const ProcessorChoices&) const = default;
};

ProcessorChoices ChoicesOf(const ProcessorTimes& times);

/// Measures for some tens of milliseconds. Without gathers (AVX2) there is nothing to choose.
ProcessorTimes MeasureProcessor();

/// What a user wants instead (GRIDLOOM_CODE): "fetch-ahead=yes|no" and "few-lanes=8|16|32", separated by commas; what
/// is not named is left as it is.
Status ApplyChoices(std::string_view text, ProcessorChoices& choices);

struct KnownProcessor {
  ProcessorTimes times;
  bool measured_now = false;  ///< else the cache had them
};
/// From the cache, or measured and kept there. Thread-safe.
KnownProcessor KnowProcessor(CodeCache& cache);

}  // namespace gridloom::exec
