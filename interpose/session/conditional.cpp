#include "interpose/session/conditional.h"

#include <mutex>
#include <unordered_map>

#include "interpose/session/context.h"
#include "interpose/session/graph.h"
#include "interpose/session/host_timeline.h"
#include "interpose/session/process.h"

namespace gridloom::session {

using namespace cuda;

namespace {

/// Kernels name conditions by number, so a stale number must be told from a live one.
struct Registry {
  std::mutex mutex;
  std::unordered_map<CUgraphConditionalHandle, std::weak_ptr<Conditional>> live;
};
Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
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
    HostTimeline* const timeline = HostTimeline::Get();
    if (timeline == nullptr) return SubmitPlan(context_, body, begin, 0, origin_, true);
    const std::uint64_t before[] = {last_step_};
    last_step_ = timeline->OpenGroup(group_, std::span(before, last_step_ != 0 ? 1 : 0));
    const std::vector<TaskPtr> leaves = SubmitPlan(context_, body, begin, last_step_, origin_, true);
    timeline->Close(last_step_);
    return leaves;
  }

  void End(std::span<const TaskPtr> leaves) {
    if (HostTimeline* const timeline = HostTimeline::Get()) timeline->Close(group_);
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

}  // namespace

std::shared_ptr<Conditional> Conditional::Make(unsigned default_value, bool assign_default) {
  const std::shared_ptr<Conditional> made(new Conditional(default_value, assign_default));
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.live[made->handle()] = made;
  return made;
}

std::shared_ptr<Conditional> Conditional::Find(CUgraphConditionalHandle handle) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.live.find(handle);
  return found == registry.live.end() ? nullptr : found->second.lock();
}

Conditional::~Conditional() {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.live.erase(handle());
}

ConditionalBodies::ConditionalBodies(unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    graphs.push_back(std::make_shared<Graph>());
    handles.push_back(Process::Get().graphs.Add(graphs.back()));
  }
}

ConditionalBodies::ConditionalBodies(const ConditionalBodies& other) {
  for (const auto& graph : other.graphs) {
    graphs.push_back(graph->Clone());
    handles.push_back(Process::Get().graphs.Add(graphs.back()));
  }
}

ConditionalBodies::~ConditionalBodies() {
  for (const CUgraph handle : handles) Process::Get().graphs.Remove(handle);
}

TaskPtr RunConditional(Context& context, const ConditionalOp& op,
                       const std::vector<std::shared_ptr<const GraphPlan>>& bodies, const TaskPtr& begin,
                       std::uint64_t group, const WorkOriginPtr& origin) {
  const TaskPtr end = MakeTask(0, [] {});  // submitted by the last step; others may wait for it already
  const auto run = std::make_shared<ConditionalRun>(context, op, bodies, end, group, origin);
  TaskPool::Get().Submit(MakeTask(0, [run] { run->Step(); }), std::vector<TaskPtr>{begin});
  return end;
}

}  // namespace gridloom::session
