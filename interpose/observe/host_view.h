// When a program's host may look at what its works have done: after a wait behind which there is something new in the
// host's memory.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

namespace gridloom::session {

/// Works are numbered in the order of the program's calls. In doubt the host looks.
class HostView {
 public:
  /// Where a work was put.
  struct Lane {
    const void* context = nullptr;
    std::uint64_t stream = 0;
    bool blocking = false;  ///< the legacy stream, or one that it waits for
  };
  /// A work writes memory of the host's.
  void Writes(const Lane& lane, std::uint64_t work);
  /// A work that can be waited for alone: an event.
  void Marks(const Lane& lane, std::uint64_t work);
  /// Kernels reach memory of the host's from now on: every wait may be followed by a look.
  void Shares() { shares_ = true; }
  bool shares() const { return shares_; }

  /// Whether it may look when it goes on, if it waits now.
  bool Sees() const { return shares_ || !unseen_.empty(); }
  /// The host has waited for these works: what they wrote is not unseen any more.
  void WaitedFor(std::uint64_t mark);
  void WaitedForStream(const void* context, std::uint64_t stream, bool legacy);
  void WaitedForAll(const void* context);

 private:
  /// Works of one stream that the host has not waited for.
  struct Unseen {
    bool blocking = false;
    std::uint64_t last = 0;           ///< that writes memory of the host's
    std::deque<std::uint64_t> marks;  ///< behind the first one that does
  };
  static constexpr std::size_t kMostMarks = 4096;  ///< of a stream; a wait for an older one counts for nothing

  bool shares_ = false;
  std::map<std::pair<const void*, std::uint64_t>, Unseen> unseen_;
};

}  // namespace gridloom::session
