// The data availability tracker (CRCS paper, section 3.2, Figure 5): which words of the pages that are to be copied to
// the device the host has written. Entries lie in the host's memory; those used last are on the chip.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

namespace gridloom::hardware::crcs {

class DataAvailabilityTracker {
 public:
  static constexpr std::uint32_t kWordBytes = 4;

  /// `entries`: on the chip, at least 1.
  explicit DataAvailabilityTracker(std::size_t entries) : on_chip_(entries) {}

  /// An overlapped copy reads this page of the host's memory: an entry with all words empty. Pages are numbered by
  /// whoever asks.
  void Expect(std::uint64_t page, std::uint32_t bytes);
  struct Written {
    bool full = false;  ///< all words are there: the page may be sent, its entry is gone
    bool miss = false;  ///< the entry had to be fetched
  };
  /// The host writes bytes [begin, end) of the page. Of pages that nobody expects, nothing is known.
  Written Write(std::uint64_t page, std::uint32_t begin, std::uint32_t end);

  /// Nobody will write what is missing of the page. Whether it was expected.
  bool Forget(std::uint64_t page);

  std::size_t entries() const { return entries_.size(); }
  std::size_t cached() const { return used_.size(); }

 private:
  struct Entry {
    std::uint32_t words = 0, written = 0;  ///< the write counter counts each word once
    std::vector<std::uint64_t> full;       ///< F/E bits
    std::list<std::uint64_t>::iterator use;
    bool cached = false;
  };
  bool Fetch(std::uint64_t page, Entry& entry);

  const std::size_t on_chip_;
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::list<std::uint64_t> used_;  ///< pages whose entries are on the chip, the one used last in front
};

}  // namespace gridloom::hardware::crcs
