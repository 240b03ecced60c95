// Records of a warp that goes round a loop and does the same each time, as one that waits for the host does: equal
// words, turn after turn. Some turns stay; the others are only counted, while they come in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gridloom::trace {

/// kKeptTurns equal turns of `period` words each lie from word `at` on, and `more` such turns have come behind them.
/// Where in the loop a turn begins, and whether at the beginning of a record, is chance.
struct WordTurns {
  static constexpr std::size_t kKeptTurns = 4;
  std::size_t at = 0, period = 0;
  std::uint64_t more = 0;
};

/// Finds them in the words of one buffer, which grow at their end only.
class TurnFinder {
 public:
  void Clear();
  bool empty() const { return turns_.empty() && !open_; }
  /// Whether words that come next may go on with a turn.
  bool open() const { return open_; }
  /// How many of the next words go on with the turn, and are not to be kept. If that is not all of them, End is to be
  /// called first.
  std::size_t Continue(std::span<const std::uint64_t> kept, std::span<const std::uint64_t> next);
  /// What has come of a turn that is not whole, to be kept behind `kept`.
  std::span<const std::uint64_t> End(std::span<const std::uint64_t> kept);
  /// Looks whether the last words are equal turns. If so it is open, and only so many words are to be kept; else all of
  /// them.
  std::size_t Look(std::span<const std::uint64_t> kept);

  /// In their order; none is open.
  std::span<const WordTurns> turns() const { return turns_; }

 private:
  static constexpr std::size_t kMostPeriod = 128,
                               kLeastWords = 512;  // of a turn; that are equal to those a turn before
  static constexpr unsigned kLongestPause = 16;
  std::vector<WordTurns> turns_;
  bool open_ = false;
  WordTurns now_;                    ///< if open
  std::uint64_t counted_ = 0;        ///< words behind the kept turns
  unsigned pause_ = 0, looked_ = 0;  ///< calls of Look that do not look, after one that found nothing
};

}  // namespace gridloom::trace
