// A launch of a graph becomes tasks: one for each node, and for a conditional node those that decide.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "interpose/base/task.h"
#include "interpose/objects/graph_plan.h"

namespace gridloom::session {

/// Submits every node behind `first`; answers the tasks that nothing in the graph waits for. `group`: number of this
/// launch in the program's timeline, if there is one. `origin`: of the launch, or where the plan is one of a node, of
/// that node (`inside`); null where nobody asks.
std::vector<TaskPtr> SubmitPlan(Context& context, const std::shared_ptr<const GraphPlan>& plan, const TaskPtr& first,
                                std::uint64_t group, const WorkOriginPtr& origin, bool inside = false);

}  // namespace gridloom::session
