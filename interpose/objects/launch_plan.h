// What the stages of a launch (launch/stages.def) leave in its description for one another.
#pragma once

#include <cstdint>
#include <memory>

namespace gridloom::trace {
class CtaSink;
}

namespace gridloom::session {

struct TaskKernel;
struct WorkOrigin;
using WorkOriginPtr = std::shared_ptr<const WorkOrigin>;

struct LaunchPlan {
  bool in_slices = false;                ///< Kernel::Bound::sliced runs it
  std::shared_ptr<TaskKernel> task;      ///< it runs as a task of a MasterKernel's; null: as a grid
  std::uint64_t task_number = 0;         ///< of the task
  std::uint64_t work = 0;                ///< its number in the program's timeline; 0: nobody keeps one
  std::shared_ptr<trace::CtaSink> ctas;  ///< takes what its CTAs do to the timing model; null: it is not simulated
  WorkOriginPtr origin;  ///< of the call that launched it, or of its parent; null unless memcheck wants it
};

}  // namespace gridloom::session
