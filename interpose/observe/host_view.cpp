#include "interpose/observe/host_view.h"

#include <algorithm>

namespace gridloom::session {

void HostView::Writes(const Lane& lane, std::uint64_t work) {
  Unseen& unseen = unseen_[{lane.context, lane.stream}];
  unseen.blocking = lane.blocking;
  unseen.last = std::max(unseen.last, work);
}

void HostView::Marks(const Lane& lane, std::uint64_t work) {
  const auto unseen = unseen_.find({lane.context, lane.stream});
  if (unseen == unseen_.end()) return;
  unseen->second.marks.push_back(work);
  if (unseen->second.marks.size() > kMostMarks) unseen->second.marks.pop_front();
}

/// What the stream was given after the mark stays new.
void HostView::WaitedFor(std::uint64_t mark) {
  for (auto stream = unseen_.begin(); stream != unseen_.end(); ++stream) {
    std::deque<std::uint64_t>& marks = stream->second.marks;
    const auto found = std::ranges::find(marks, mark);
    if (found == marks.end()) continue;
    if (stream->second.last < mark) unseen_.erase(stream);
    else marks.erase(marks.begin(), found + 1);
    return;
  }
}

void HostView::WaitedForStream(const void* context, std::uint64_t stream, bool legacy) {
  std::erase_if(unseen_, [&](const auto& entry) {
    const auto& [lane, unseen] = entry;
    return lane.first == context && (lane.second == stream || (legacy && unseen.blocking));
  });
}

void HostView::WaitedForAll(const void* context) {
  std::erase_if(unseen_, [&](const auto& entry) { return entry.first.first == context; });
}

}  // namespace gridloom::session
