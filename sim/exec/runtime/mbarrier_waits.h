// Lanes that have asked in vain whether a phase of an mbarrier is over. On a GPU try_wait suspends them and the end of
// the phase wakes them, whatever becomes of the object right after; here they ask again when it is their warp's turn,
// and until then a warp that went on may have begun the object anew. So the end of a phase is kept for those who waited
// for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gridloom::exec {

struct Warp;

/// What the warps of one unit wait for; touched by its worker's thread alone.
class MbarrierWaits {
 public:
  /// The phase that `parity` names, the current one of the object at `place`, is not over for this lane of `warp`.
  void Add(const Warp& warp, std::uint32_t lane, const void* place, bool parity);
  /// The current phase of the object at `place` is over.
  void EndPhase(const void* place);
  /// True where the phase has ended since the lane asked for it; it is then forgotten.
  bool Take(const Warp& warp, std::uint32_t lane, const void* place, bool parity);
  /// " at shared 0x40, of which 1 arrival is missing": of the first that lanes of the warp wait for; empty when they
  /// wait for none.
  std::string Describe(const Warp& warp) const;
  /// The warp has ended.
  void Forget(const Warp& warp);
  void Clear() { waits_.clear(); }
  bool empty() const { return waits_.empty(); }

 private:
  struct Wait {
    const void* place;
    const Warp* warp;
    std::uint32_t waiting, over;  ///< lanes; none is in both
    bool parity;
  };
  Wait* Find(const Warp& warp, const void* place, bool parity);

  std::vector<Wait> waits_;
  std::size_t last_ = 0;  ///< number of the one found last: lanes of a warp ask one after the other
};

}  // namespace gridloom::exec
