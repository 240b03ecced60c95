// Who still uses which of the host's memory: copies, until their pages have been sent, or have come and, where they go
// to storage, been written there. Whoever writes to that memory after them, the program that fills it anew or a later
// copy to the host, waits for them page by page. So the order of a program's calls holds in the host's memory, too,
// although its host does not wait for its copies.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/timing/work.h"

namespace gridloom::hardware::crcs {

/// Bytes from `begin` on, up to `end`.
struct ByteRange {
  std::uint64_t begin = 0, end = 0;
};

/// Where the bytes lie that a copy over PCIe moves: on the device, and as many bytes further on in the host's memory.
/// Rows that lie apart count as bytes spread evenly.
struct Extent {
  std::uint64_t address = 0, span = 0;  ///< on the device
  std::uint64_t bytes = 0;              ///< that are moved
  std::uint64_t host_span = 0;          ///< in the host's memory

  std::uint64_t FirstPage(unsigned shift) const { return address >> shift; }
  std::uint64_t Pages(unsigned shift) const {
    return span == 0 ? 0 : ((address + span - 1) >> shift) - FirstPage(shift) + 1;
  }
  /// The part of `span` that lies in one of its pages, counted from the first.
  ByteRange PartIn(std::uint64_t page, unsigned shift) const;
  /// Bytes that are moved for a part: fewer, where rows lie apart.
  std::uint64_t BytesOf(const ByteRange& part) const;
  /// Where a part of `span`, or of `bytes`, lies in the host's memory.
  ByteRange OnHost(const ByteRange& part, std::uint64_t of) const;
};

class HostPages {
 public:
  using Reuses = std::shared_ptr<const std::vector<timing::HostReuse>>;
  struct Page {
    timing::WorkId user = 0;
    std::uint64_t number = 0;  ///< counted from its first
    auto operator<=>(const Page&) const = default;
  };

  explicit HostPages(unsigned shift) : shift_(shift) {}
  /// The work uses all of the memory from now on.
  void Use(timing::WorkId user, const Extent& extent);
  /// A page that is used in the way of those bytes of the memory of a work with such reuses; none: it may write there.
  std::optional<Page> InTheWay(const Reuses& reuses, const ByteRange& on_host) const;
  /// The page of a copy waits for a used one.
  void Wait(const Page& used, const Page& waiting) { waiting_[used].push_back(waiting); }
  /// The page is not used any more. Those that have waited for it.
  std::vector<Page> Leave(const Page& used);
  /// The work uses none any more. Those that have waited for them.
  std::vector<Page> LeaveAll(timing::WorkId user);

 private:
  struct User {
    Extent extent;
    std::vector<bool> used;  ///< by page
    std::uint64_t left = 0;
  };
  const unsigned shift_;
  std::unordered_map<timing::WorkId, User> users_;
  std::map<Page, std::vector<Page>> waiting_;
};

}  // namespace gridloom::hardware::crcs
