// Which copies touch the same memory of the host's: what a copy, or the program that fills its source, finds there from
// earlier ones.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/trace/trace_file.h"

namespace gridloom::session {

/// The copies of one program, whose works are numbered in the order of its calls.
class HostReuse {
 public:
  struct Memory {
    std::uint64_t begin = 0, bytes = 0;
  };
  /// The copies that have touched some of the memory, but for those that something has waited for which touched it
  /// later.
  std::vector<trace::HostAction::Reuse> Find(const Memory& memory) const;
  /// A copy touches the memory. `waits`: for those of Find; else they stay beside it.
  void Add(const Memory& memory, std::uint64_t work, bool waits);
  /// Nobody has touched the memory.
  void Forget(const Memory& memory);

 private:
  struct Copy {
    std::uint64_t work = 0, begin = 0;
  };
  struct Piece {
    std::uint64_t end = 0;
    std::vector<Copy> copies;
  };
  using Pieces = std::map<std::uint64_t, Piece>;
  /// Copies that are kept of a piece. An older one has long been done when so many have come after it.
  static constexpr std::size_t kMostCopies = 64;
  static constexpr std::size_t kMostPieces = 100'000;

  void SplitAt(std::uint64_t address);
  std::pair<Pieces::iterator, Pieces::iterator> PiecesIn(const Memory& memory);
  Pieces pieces_;  ///< by their begin; they do not overlap
};

}  // namespace gridloom::session
