// When the works of a host ended, as long as somebody may ask.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/timing/cycle.h"

namespace gridloom::timing {

/// In chunks of works that were given one after the other. A chunk whose works have all ended before the host's time is
/// let go, unless a program may ask for one of its times: that of an event.
class HostEnds {
 public:
  static constexpr std::size_t kChunk = 4096;

  /// The next work. `asked_for`: its time stays.
  void Add(bool asked_for) {
    if (given_ % kChunk == 0) chunks_.push_back({.ends = std::make_unique<Ends>()});
    Chunk& chunk = chunks_.back();
    chunk.keep |= asked_for;
    (*chunk.ends)[given_++ % kChunk] = kNever;
  }
  std::size_t size() const { return given_; }

  /// 0 when it is not known any more.
  Cycle operator[](std::size_t work) const {
    const Chunk& chunk = chunks_[work / kChunk];
    return chunk.ends != nullptr ? (*chunk.ends)[work % kChunk] : 0;
  }
  bool known(std::size_t work) const { return chunks_[work / kChunk].ends != nullptr; }
  void Set(std::size_t work, Cycle end) {
    Chunk& chunk = chunks_[work / kChunk];
    (*chunk.ends)[work % kChunk] = end;
    chunk.last = std::max(chunk.last, end);
    last_ = std::max(last_, end);
    if (++chunk.ended == kChunk && !chunk.keep) complete_.push_back(work / kChunk);
  }
  Cycle last() const { return last_; }

  /// Lets go what a host at that time does not care for.
  void LetGo(Cycle time) {
    std::erase_if(complete_, [&](std::size_t at) {
      if (chunks_[at].last > time) return false;
      chunks_[at].ends.reset();
      return true;
    });
  }
  bool has_complete() const { return !complete_.empty(); }
  /// Times that are kept.
  std::size_t kept() const {
    std::size_t kept = 0;
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      if (chunks_[c].ends != nullptr) kept += std::min(kChunk, given_ - c * kChunk);
    }
    return kept;
  }
  void Clear() { *this = {}; }

 private:
  using Ends = std::array<Cycle, kChunk>;
  struct Chunk {
    std::unique_ptr<Ends> ends;
    std::size_t ended = 0;
    Cycle last = 0;
    bool keep = false;
  };
  std::vector<Chunk> chunks_;
  std::vector<std::size_t> complete_;  ///< chunks that may be let go
  std::size_t given_ = 0;
  Cycle last_ = 0;
};

}  // namespace gridloom::timing
