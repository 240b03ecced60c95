// How many compile services (service.cpp) work after their programs' ends. Each of a test suite's programs leaves one
// behind, which has tens of seconds to do: as many work at a time as there are processors, some wait for their turn,
// and the others end, since later runs of their programs ask again.
#pragma once

#include <string>
#include <vector>

namespace gridloom::exec::background {

/// Below everybody else's: that of all threads, and of the session where the system shares processors among sessions
/// first (sched(7), autogroups): a service has a session of its own, in which it has nobody to be below of.
void LowerPriority();

/// Locked files in the directory of the cache: whoever is killed gives its place back.
class PlacesAfterEnd {
 public:
  enum class Place {
    kWork,  ///< or the directory cannot be written to: nobody counts then
    kWait,
    kNone,
  };
  /// `working`: how many may work at a time; twice as many may wait.
  PlacesAfterEnd(const std::string& directory, unsigned working);
  ~PlacesAfterEnd();
  PlacesAfterEnd(const PlacesAfterEnd&) = delete;
  PlacesAfterEnd& operator=(const PlacesAfterEnd&) = delete;

  /// Takes a place, for as long as the object lives.
  Place Take();
  /// From kWait to kWork. Allocates nothing: other threads may hold the heap's locks while they stand still.
  void WaitForWork();

 private:
  bool TakeOne(const std::vector<int>& files, int& taken);

  std::vector<int> work_, wait_;
  int working_ = -1, waiting_ = -1;  ///< descriptors whose locks are this object's
};

}  // namespace gridloom::exec::background
