// A kind of proposed part as its file describes it: everything that the command line, device files, reports and docs
// say of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "rewriter/support/result.h"
#include "sim/timing/parameters.h"
#include "sim/timing/part.h"

namespace gridloom::hardware {

/// A key below `hardware.PART.` of a device file. Values are numbers, or one of a few names, kept as the name's number.
struct PartKey {
  std::string_view name;
  std::uint64_t value = 0;  ///< when nobody says anything
  std::uint64_t least = 0, most = 0;
  std::string_view unit;  ///< empty: none
  std::string_view meaning;
  std::span<const std::string_view> choices{};  ///< the names; least and most mean nothing then
};

/// Scheduler cycles without issue in which one of its warp gates held warps back.
struct PartStall {
  std::string_view name;   ///< of the counter: "stall_release"
  std::string_view label;  ///< in a word or two: what bounds work that spends most of its time there
  std::string_view meaning;
};

/// Values of all keys of a kind, in the order of their declaration.
using PartValues = std::span<const std::uint64_t>;

struct PartKind {
  std::string_view name;     ///< "lazy-ctas": what `proposed:` and --hardware take
  std::string_view summary;  ///< one line
  std::string_view source;   ///< who published it where
  std::span<const PartKey> keys;
  std::span<const timing::PartCounter> counters;
  std::span<const PartStall> stalls;  ///< one for each of its warp gates
  /// A new one for an engine of that device. Fails with a sentence on what its values contradict.
  Result<std::shared_ptr<timing::Part>> (*make)(const timing::Parameters& parameters, PartValues values);
};

}  // namespace gridloom::hardware
