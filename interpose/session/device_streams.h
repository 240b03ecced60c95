// What the next launch into each of many device streams has to wait for. There may be a stream for each thread that ever launched: those
// whose launches are complete are forgotten, so that no more are kept than twice as many as have launches that are not, and a few.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace gridloom::session {

/// `Launch`: points to something with a member `complete`. Guarded by whoever has it.
template <class Launch>
class DeviceStreams {
 public:
  struct Stream {
    std::vector<Launch> last;
  };

  /// The stream of that number. What was got before may be gone. `keeps`: none is forgotten, since somebody wants to know what was
  /// complete.
  Stream& Get(std::uint64_t number, bool keeps) {
    if (!keeps && streams_.size() >= look_at_) Forget();
    return streams_[number];
  }
  std::size_t size() const { return streams_.size(); }
  void clear() { streams_.clear(); }

 private:
  static constexpr std::size_t kFew = 1024;

  void Forget() {
    std::erase_if(streams_, [](const auto& entry) {
      return std::ranges::all_of(entry.second.last, [](const Launch& launch) { return launch->complete; });
    });
    look_at_ = std::max(kFew, 2 * streams_.size());
  }

  std::unordered_map<std::uint64_t, Stream> streams_;
  std::size_t look_at_ = kFew;
};

}  // namespace gridloom::session
