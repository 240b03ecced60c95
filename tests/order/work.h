// What kernels and host functions do, and the records, in the host's pinned memory, that tell them.
#pragma once

#include <cstdint>

#include "model.h"

namespace order {

inline constexpr int kWords = 4;  ///< of a cell
inline constexpr int kMostReads = 6, kMostBlocks = 8;

/// One run of a work. Filled in before it is launched; the work notes the first thing that it did not expect.
struct Record {
  struct Read {
    const std::uint32_t* cell;
    std::uint32_t base, step;
  };
  Read reads[kMostReads];
  std::uint32_t read_count;
  std::uint32_t* own;        ///< null: it writes nothing
  std::uint32_t base, step;  ///< what it writes
  std::uint32_t checks_before, before_base, before_step;
  std::uint32_t spin;

  enum Fault : std::uint32_t { kNone, kRead, kOwnBefore, kOwnMeanwhile };
  std::uint32_t fault, fault_read, fault_word, fault_late, seen;
  std::uint32_t runs[kMostBlocks];  ///< how often each block of threads has run
  std::uint32_t sink[kMostBlocks];
};

/// A graph's node over all its runs.
struct NodeRuns {
  Record* const* records;
  std::uint32_t count, overrun;
  std::uint32_t next[kMostBlocks];
};

/// A kernel that sets a condition.
struct ConditionRuns {
  const std::uint8_t* values;
  std::uint32_t count, overrun, next;
};

}  // namespace order
