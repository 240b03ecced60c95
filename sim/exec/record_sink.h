// Takes the records of a launch (records.h) while it runs: the way to traces and to the timing model.
#pragma once

#include <cstdint>
#include <span>

#include "sim/exec/dim3.h"

namespace gridloom::exec {

/// Whose records they are, and where its private windows lie. Addresses of Space::kShared and kLocal are offsets in them; generic
/// ones may point into them.
struct RecordPlace {
  Dim3 cta;
  std::uint64_t cta_index = 0;  ///< linear, x fastest
  std::uint32_t warp = 0;       ///< in the CTA
  std::uint64_t shared_base = 0, shared_bytes = 0;
  std::uint64_t local_base = 0;
  std::uint32_t local_stride = 0;  ///< bytes between two lanes' local memories
};

class RecordSink {
 public:
  virtual ~RecordSink() = default;
  /// The next records of a warp, in the order in which it made them; none are left out. `ended`: they are its last. Called from
  /// several host threads at once, for one CTA from one at a time. The words are gone when it returns.
  virtual void OnRecords(const RecordPlace& place, std::span<const std::uint64_t> words, bool ended) = 0;
};

}  // namespace gridloom::exec
