#include <algorithm>

#include "interpose/session/capture.h"
#include "interpose/session/graph.h"
#include "interpose/session/host_timeline.h"
#include "interpose/session/process.h"
#include "interpose/session/work_memory.h"

namespace gridloom::session {

using namespace cuda;

namespace {

bool HasKind(const Graph& graph, CUgraphNodeType type) {
  return std::ranges::any_of(graph.nodes(), [type](const auto& node) { return node->type() == type; });
}

}  // namespace

CUresult GraphExec::Instantiate(const Graph& graph, std::uint64_t flags, std::shared_ptr<GraphExec>* exec) {
  const auto lock = graph.Lock();
  auto made = std::make_shared<GraphExec>();
  made->flags_ = flags;
  std::vector<GraphNode*> order;
  if (!graph.Order(&order)) return CUDA_ERROR_INVALID_VALUE;
  std::unordered_map<const GraphNode*, std::uint32_t> place;
  for (GraphNode* node : order) {
    Node entry;
    entry.operation = node->operation;
    entry.origin = node;
    for (const GraphNode* dependency : node->dependencies) entry.dependencies.push_back(place.at(dependency));
    if (const auto* child = std::get_if<ChildOp>(&node->operation)) {
      if (const auto status = Instantiate(*child->graph, flags, &entry.child); status != CUDA_SUCCESS) return status;
    }
    if (const auto* conditional = std::get_if<ConditionalOp>(&node->operation)) {
      for (const auto& body : conditional->bodies->graphs) {
        if (const auto status = Instantiate(*body, flags, &entry.bodies.emplace_back()); status != CUDA_SUCCESS) return status;
      }
    }
    place[node] = static_cast<std::uint32_t>(made->nodes_.size());
    made->nodes_.push_back(std::move(entry));
  }
  made->user_objects_ = graph.user_objects;
  for (const auto& [object, count] : made->user_objects_) object->Retain(count);
  if (HasKind(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC)) made->kept_.push_back(graph.shared_from_this());
  *exec = std::move(made);
  return CUDA_SUCCESS;
}

GraphExec::~GraphExec() { ReleaseAll(user_objects_); }

GraphExec::Node* GraphExec::Find(const GraphNode* origin) {
  const auto found = std::ranges::find(nodes_, origin, &Node::origin);
  return found == nodes_.end() ? nullptr : &*found;
}

CUresult GraphExec::Update(const Graph& graph, CUgraphExecUpdateResultInfo* info) {
  const auto graph_lock = graph.Lock();
  const auto lock = Lock();
  const auto fail = [info](CUgraphExecUpdateResult result, GraphNode* node) {
    *info = {result, node == nullptr ? nullptr : node->handle(), nullptr};
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  };
  // Nodes correspond in the order in which they were added, as captures of the same code give them.
  std::vector<GraphNode*> order;
  if (!graph.Order(&order) || order.size() != nodes_.size()) return fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
  std::unordered_map<const GraphNode*, std::uint32_t> place;
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::uint32_t>(i);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i]->operation.index() != nodes_[i].operation.index()) {
      return fail(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, order[i]);
    }
    std::vector<std::uint32_t> dependencies;
    for (const GraphNode* dependency : order[i]->dependencies) dependencies.push_back(place.at(dependency));
    auto known = nodes_[i].dependencies;
    std::ranges::sort(dependencies);
    std::ranges::sort(known);
    if (dependencies != known) return fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, order[i]);
    if (std::holds_alternative<AllocOp>(order[i]->operation) || std::holds_alternative<FreeOp>(order[i]->operation)) {
      return fail(CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, order[i]);
    }
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (const auto* child = std::get_if<ChildOp>(&order[i]->operation)) {
      if (const auto status = nodes_[i].child->Update(*child->graph, info); status != CUDA_SUCCESS) return status;
    }
    if (const auto* conditional = std::get_if<ConditionalOp>(&order[i]->operation)) {
      const auto& graphs = conditional->bodies->graphs;
      if (graphs.size() != nodes_[i].bodies.size()) return fail(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, order[i]);
      for (std::size_t body = 0; body < graphs.size(); ++body) {
        if (const auto status = nodes_[i].bodies[body]->Update(*graphs[body], info); status != CUDA_SUCCESS) return status;
      }
    }
    nodes_[i].operation = order[i]->operation;
  }
  *info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  return CUDA_SUCCESS;
}

std::vector<TaskPtr> GraphExec::SubmitNodes(Context& context, const TaskPtr& first, std::uint64_t group) {
  HostTimeline* const timeline = HostTimeline::Get();
  std::vector<TaskPtr> ends;         // per node: the task others wait for
  std::vector<std::uint64_t> works;  // per node: its number in the timeline
  std::vector<bool> waited(nodes_.size(), false);
  for (const Node& node : nodes_) {
    std::vector<TaskPtr> after;
    std::vector<std::uint64_t> works_before;
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
      const std::vector<TaskPtr> leaves = node.child->SubmitNodes(context, begin, works.back());
      if (timeline != nullptr) timeline->Close(works.back());
      const TaskPtr end = MakeTask(0, [] {});
      TaskPool::Get().Submit(end, leaves.empty() ? std::vector<TaskPtr>{begin} : leaves);
      ends.push_back(end);
      continue;
    }
    if (const auto* conditional = std::get_if<ConditionalOp>(&node.operation)) {
      const TaskPtr begin = MakeTask(0, [] {});
      works.push_back(timeline != nullptr ? timeline->OpenGroup(group, works_before) : 0);
      ends.push_back(RunConditional(context, *conditional, node.bodies, begin, works.back()));
      TaskPool::Get().Submit(begin, after);
      continue;
    }
    Operation operation = node.enabled ? node.operation : EmptyOp{};
    works.push_back(timeline != nullptr ? timeline->AddTo(group, works_before, 0, operation) : 0);
    const TaskPtr task = MakeTask(0, [&context, operation = std::move(operation)] { Run(context, operation); });
    if (const auto* record = std::get_if<EventRecordOp>(&node.operation); record != nullptr && node.enabled) {
      record->event->set_marker(task);
    }
    TaskPool::Get().Submit(task, after);
    ends.push_back(task);
  }
  std::vector<TaskPtr> leaves;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!waited[i]) leaves.push_back(ends[i]);
  }
  if (leaves.empty()) leaves.push_back(first);
  return leaves;
}

void GraphExec::BeginConditions() {
  for (const Node& node : nodes_) {
    if (const auto* conditional = std::get_if<ConditionalOp>(&node.operation)) conditional->condition->Begin();
    if (node.child != nullptr) node.child->BeginConditions();
    for (const auto& body : node.bodies) body->BeginConditions();
  }
}

/// Without those of conditional nodes' bodies: how often these run is not known before.
void GraphExec::AddCopies(CopiedBytes& copied) const {
  for (const Node& node : nodes_) {
    if (node.child != nullptr) node.child->AddCopies(copied);
    if (node.enabled) AddCopied(node.operation, copied);
  }
}

CUresult GraphExec::Launch(Stream& stream) {
  const auto lock = Lock();
  Context& context = stream.context();
  const TaskPtr first = MakeTask(0, [this] { BeginConditions(); });
  // The executable graph lives until its last launch has ended, even if the program destroys it before.
  const TaskPtr last = MakeTask(0, [self = shared_from_this()] {});
  const std::vector<TaskPtr> after = {last_launch_};
  HostTimeline* const timeline = HostTimeline::Get();
  CopiedBytes copied;
  if (timeline != nullptr) AddCopies(copied);
  const std::uint64_t group = timeline != nullptr ? timeline->OpenGroup(stream, last_work_, copied) : 0;
  context.EnqueueGroup(
      stream, first, last, [&] { return SubmitNodes(context, first, group); }, after);
  if (timeline != nullptr) timeline->Close(group);
  last_work_ = group;
  last_launch_ = last;
  return CUDA_SUCCESS;
}

CUresult LaunchGraph(Stream& stream, const std::shared_ptr<GraphExec>& exec) {
  if (const auto status = RefuseWhileCapturing(stream); status != CUDA_SUCCESS) return status;
  return exec->Launch(stream);
}

}  // namespace gridloom::session
