// What CTAs report of their memory, against what they touch, byte by byte: the range functions and the accesses of
// interpreted kernels (interpreter.h). Stricter than pages: a range that is one byte too short is found.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rewriter/passes/range_calls.h"
#include "tests/rewriter/passes/interpreter.h"

namespace gridloom::test {

/// A call of a range function: array, base, stride, count, width, flags. A plain range is one piece.
using RangeCallWords = std::array<std::uint64_t, 6>;

class RangeWatcher final : public InterpreterWatcher {
 public:
  void OnAccess(std::uint64_t address, unsigned bytes, bool reads, bool writes) override;
  void OnCall(std::string_view function, std::span<const std::uint64_t> arguments) override;

  /// What follows belongs to the next CTA.
  void Begin();
  /// Calls of the CTA, sorted.
  std::vector<RangeCallWords> Sets() const { return Sorted(sets_); }
  std::vector<RangeCallWords> Releases() const { return Sorted(releases_); }
  /// Empty when each byte touched lies in a range of `calls` for that use, in the allocation of its array, and nothing
  /// was touched after the first release. `allocations`: address and bytes.
  std::string Check(const std::vector<RangeCallWords>& calls,
                    const std::vector<std::pair<std::uint64_t, std::uint64_t>>& allocations) const;

 private:
  struct Access {
    std::uint64_t address;
    unsigned bytes;
    std::uint64_t flags;
    bool operator==(const Access&) const = default;
    auto operator<=>(const Access&) const = default;
  };
  static std::vector<RangeCallWords> Sorted(std::vector<RangeCallWords> calls) {
    std::ranges::sort(calls);
    return calls;
  }

  std::vector<Access> accesses_;
  std::vector<RangeCallWords> sets_, releases_;
  bool late_ = false;
};

}  // namespace gridloom::test
