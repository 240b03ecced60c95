#include "interpose/launch/graph_run.h"

#include "interpose/launch/submit.h"
#include "interpose/objects/context.h"
#include "interpose/objects/process.h"
#include "interpose/observe/host_timeline.h"
#include "interpose/observe/memory_order.h"
#include "interpose/observe/observers.h"

namespace gridloom::session {

using namespace cuda;

namespace {

HostTimeline* TimelineOf(const Context& context) { return context.process().observers().timeline(); }

/// The task of a node that is one operation. `group` and `before`: where it stands in the program's timeline, if there
/// is one.
TaskPtr MakeNodeTask(Context& context, const std::shared_ptr<const GraphPlan>& plan, const GraphPlan::Node& node,
                     std::uint64_t group, const WorkOriginPtr& origin, std::span<const std::uint64_t> before,
                     std::uint64_t* work) {
  *work = 0;
  HostTimeline* const timeline = TimelineOf(context);
  if (timeline == nullptr && !node.enabled) return MakeTask(0, [] {});
  if (timeline == nullptr)
    return MakeTask(0, [&context, plan, &operation = node.operation, origin] { Run(context, operation, origin); });
  Operation operation = node.enabled ? node.operation : EmptyOp{};  // a copy, which gets its number
  *work = timeline->AddTo(group, before, 0, operation);
  return MakeTask(0, [&context, operation = std::move(operation), origin] { Run(context, operation, origin); });
}

WorkOriginPtr OriginOfNode(const WorkOriginPtr& of_launch, std::size_t node) {
  auto origin = std::make_shared<WorkOrigin>(*of_launch);
  origin->node = static_cast<std::uint32_t>(node);
  return origin;
}

/// One execution of a conditional node. Each step runs as a task when everything before it has ended.
class ConditionalRun : public std::enable_shared_from_this<ConditionalRun> {
 public:
  ConditionalRun(Context& context, const ConditionalOp& op, std::vector<std::shared_ptr<const GraphPlan>> bodies,
                 TaskPtr end, std::uint64_t group, WorkOriginPtr origin)
      : context_(context),
        condition_(op.condition),
        type_(op.type),
        bodies_(std::move(bodies)),
        end_(std::move(end)),
        group_(group),
        origin_(std::move(origin)) {}

  void Step() {
    const std::size_t body = Choose();
    if (body >= bodies_.size()) return End({});
    const TaskPtr begin = MakeTask(0, [] {});
    TaskPool::Get().Submit(begin, {});
    const std::vector<TaskPtr> leaves = SubmitBody(bodies_[body], begin);
    if (type_ != CU_GRAPH_COND_TYPE_WHILE) return End(leaves);
    TaskPool::Get().Submit(MakeTask(0, [self = shared_from_this()] { self->Step(); }), leaves);
  }

 private:
  std::vector<TaskPtr> SubmitBody(const std::shared_ptr<const GraphPlan>& body, const TaskPtr& begin) {
    HostTimeline* const timeline = TimelineOf(context_);
    if (timeline == nullptr) return SubmitPlan(context_, body, begin, 0, origin_, true);
    const std::uint64_t before[] = {last_step_};
    last_step_ = timeline->OpenGroup(group_, std::span(before, last_step_ != 0 ? 1 : 0));
    const std::vector<TaskPtr> leaves = SubmitPlan(context_, body, begin, last_step_, origin_, true);
    timeline->Close(last_step_);
    return leaves;
  }

  void End(std::span<const TaskPtr> leaves) {
    if (HostTimeline* const timeline = TimelineOf(context_)) timeline->Close(group_);
    TaskPool::Get().Submit(end_, leaves);
  }

  /// Number of the body to run; none when it is beyond the last. After a fault nothing runs any more, so no value
  /// changes.
  std::size_t Choose() const {
    const unsigned value = condition_->value();
    if (context_.failed()) return bodies_.size();
    switch (type_) {
      case CU_GRAPH_COND_TYPE_IF: return value != 0 ? 0 : 1;  // a second body is the "else"
      case CU_GRAPH_COND_TYPE_WHILE: return value != 0 ? 0 : bodies_.size();
      default: return value;
    }
  }

  Context& context_;
  const std::shared_ptr<Conditional> condition_;
  const CUgraphConditionalNodeType type_;
  const std::vector<std::shared_ptr<const GraphPlan>> bodies_;
  const TaskPtr end_;
  const std::uint64_t group_;
  const WorkOriginPtr origin_;
  std::uint64_t last_step_ = 0;  ///< in the program's timeline
};

/// Decides, once `begin` is done, which body runs, and submits it. The task that is returned is done when the node is.
/// `group`: number of the node in the program's timeline, if there is one.
TaskPtr RunConditional(Context& context, const ConditionalOp& op,
                       const std::vector<std::shared_ptr<const GraphPlan>>& bodies, const TaskPtr& begin,
                       std::uint64_t group, const WorkOriginPtr& origin) {
  const TaskPtr end = MakeTask(0, [] {});  // submitted by the last step; others may wait for it already
  const auto run = std::make_shared<ConditionalRun>(context, op, bodies, end, group, origin);
  TaskPool::Get().Submit(MakeTask(0, [run] { run->Step(); }), std::vector<TaskPtr>{begin});
  return end;
}

}  // namespace

std::vector<TaskPtr> SubmitPlan(Context& context, const std::shared_ptr<const GraphPlan>& plan, const TaskPtr& first,
                                std::uint64_t group, const WorkOriginPtr& origin, bool inside) {
  HostTimeline* const timeline = TimelineOf(context);
  const std::vector<GraphPlan::Node>& nodes = plan->nodes;
  std::vector<TaskPtr> ends;         // per node: the task others wait for
  std::vector<std::uint64_t> works;  // per node: its number in the timeline
  std::vector<bool> waited(nodes.size(), false);
  for (const GraphPlan::Node& node : nodes) {
    std::vector<TaskPtr> after;
    std::vector<std::uint64_t> works_before;
    const WorkOriginPtr own = origin == nullptr || inside ? origin : OriginOfNode(origin, ends.size());
    for (const std::uint32_t dependency : node.dependencies) {
      after.push_back(ends[dependency]);
      works_before.push_back(works[dependency]);
      waited[dependency] = true;
    }
    if (after.empty()) after.push_back(first);
    // An event of a node is recorded, or waited for, when the graph is launched.
    if (const auto* wait = std::get_if<EventWaitOp>(&node.operation); wait != nullptr && node.enabled) {
      after.push_back(wait->event->marker());
    }
    if (node.child != nullptr) {
      const TaskPtr begin = MakeTask(0, [] {});
      TaskPool::Get().Submit(begin, after);
      works.push_back(timeline != nullptr ? timeline->OpenGroup(group, works_before) : 0);
      const std::vector<TaskPtr> leaves = SubmitPlan(context, node.child, begin, works.back(), own, true);
      if (timeline != nullptr) timeline->Close(works.back());
      const TaskPtr end = MakeTask(0, [] {});
      TaskPool::Get().Submit(end, leaves.empty() ? std::vector<TaskPtr>{begin} : leaves);
      ends.push_back(end);
      continue;
    }
    if (const auto* conditional = std::get_if<ConditionalOp>(&node.operation)) {
      const TaskPtr begin = MakeTask(0, [] {});
      works.push_back(timeline != nullptr ? timeline->OpenGroup(group, works_before) : 0);
      ends.push_back(RunConditional(context, *conditional, node.bodies, begin, works.back(), own));
      TaskPool::Get().Submit(begin, after);
      continue;
    }
    const TaskPtr task = MakeNodeTask(context, plan, node, group, own, works_before, &works.emplace_back());
    if (const auto* record = std::get_if<EventRecordOp>(&node.operation); record != nullptr && node.enabled) {
      record->event->set_marker(task);
    }
    TaskPool::Get().Submit(task, after);
    ends.push_back(task);
  }
  std::vector<TaskPtr> leaves;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!waited[i]) leaves.push_back(ends[i]);
  }
  if (leaves.empty()) leaves.push_back(first);
  return leaves;
}

}  // namespace gridloom::session
