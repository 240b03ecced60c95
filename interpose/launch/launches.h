// What the launches of a process have in common, beyond their contexts: its Process owns it and hands it down with
// itself. Each part belongs to the file that is named beside it, which makes it when it is first needed.
#pragma once

#include "interpose/base/once.h"

namespace gridloom::session {

class LaunchWays;
class Reordering;
class SpawnedTasks;

struct Launches {
  Once<LaunchWays> ways;             ///< stages.cpp
  Once<Reordering> reordering;       ///< reordering.cpp
  Once<SpawnedTasks> spawned_tasks;  ///< spawned_tasks.cpp
};

}  // namespace gridloom::session
