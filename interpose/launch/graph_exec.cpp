#include <algorithm>

#include "interpose/launch/capture.h"
#include "interpose/launch/graph_run.h"
#include "interpose/objects/device.h"
#include "interpose/objects/graph.h"
#include "interpose/objects/process.h"
#include "interpose/observe/host_timeline.h"
#include "interpose/observe/memcheck.h"
#include "interpose/observe/observers.h"
#include "interpose/observe/work_memory.h"

namespace gridloom::session {

using namespace cuda;

CUresult GraphExec::Instantiate(const Graph& graph, std::uint64_t flags, std::shared_ptr<GraphExec>* exec) {
  const auto lock = graph.Lock();
  if (graph.HasMemoryNodes() && !graph.instance.expired()) return CUDA_ERROR_NOT_SUPPORTED;
  std::shared_ptr<const GraphPlan> plan;
  if (const auto status = GraphPlan::Make(graph, &plan); status != CUDA_SUCCESS) return status;
  *exec = std::make_shared<GraphExec>(std::move(plan), graph.memory(), flags);
  graph.instance = *exec;
  return CUDA_SUCCESS;
}

const GraphPlan::Node* GraphExec::Find(const GraphNode* origin) const {
  const auto found = std::ranges::find(plan_->nodes, origin, &GraphPlan::Node::origin);
  return found == plan_->nodes.end() ? nullptr : &*found;
}

GraphPlan::Node& GraphExec::Edit(const GraphPlan::Node& node) {
  const std::size_t place = static_cast<std::size_t>(&node - plan_->nodes.data());
  if (own_plan_ == nullptr) plan_ = own_plan_ = std::make_shared<GraphPlan>(*plan_);
  return own_plan_->nodes[place];
}

CUresult GraphExec::Update(const Graph& graph, CUgraphExecUpdateResultInfo* info) {
  const auto lock = Lock();
  std::shared_ptr<const GraphPlan> plan;
  if (const auto status = plan_->Updated(graph, info, &plan); status != CUDA_SUCCESS) return status;
  plan_ = std::move(plan);
  own_plan_ = nullptr;
  return CUDA_SUCCESS;
}

CUresult GraphExec::Launch(Stream& stream, TaskPtr* oldest) {
  const auto lock = Lock();
  if (const auto status = memory_.BeginLaunch((flags_ & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0);
      status != CUDA_SUCCESS) {
    return status;
  }
  Context& context = stream.context();
  own_plan_ = nullptr;  // from now on it is the launch's, too
  const TaskPtr first = MakeTask(0, [plan = plan_] { plan->BeginConditions(); });
  // The plan lives until the launch has ended, even if the program destroys the executable graph before.
  const TaskPtr last = MakeTask(0, [plan = plan_] {});
  const std::vector<TaskPtr> after = {last_launch_};
  Process& process = context.process();
  HostTimeline* const timeline = process.observers().timeline();
  CopiedBytes copied;
  if (timeline != nullptr) AddCopied(process.first_device().memory(), *plan_, copied);
  const std::uint64_t group = timeline != nullptr ? timeline->OpenGroup(stream, last_work_, copied) : 0;
  const WorkOriginPtr origin = process.observers().memcheck().Launched(stream, *plan_, last_origin_.get());
  const Context::Group work{first, last, plan_->operations(),
                            [&] { return SubmitPlan(context, plan_, first, group, origin); }};
  *oldest = context.EnqueueGroup(stream, work, after);
  if (timeline != nullptr) timeline->Close(group);
  last_work_ = group;
  last_launch_ = last;
  last_origin_ = origin;
  return CUDA_SUCCESS;
}

CUresult LaunchGraph(Stream& stream, const std::shared_ptr<GraphExec>& exec) {
  if (const auto status = RefuseWhileCapturing(stream); status != CUDA_SUCCESS) return status;
  TaskPtr oldest;
  if (const auto status = exec->Launch(stream, &oldest); status != CUDA_SUCCESS) return status;
  if (oldest != nullptr) TaskPool::Get().Wait(oldest);
  return CUDA_SUCCESS;
}

}  // namespace gridloom::session
