#include "interpose/launch/device_launch.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "interpose/base/log.h"
#include "interpose/launch/make_kernel.h"
#include "interpose/launch/stages.h"
#include "interpose/objects/context.h"
#include "interpose/objects/device.h"
#include "interpose/objects/process.h"
#include "interpose/observe/host_timeline.h"
#include "interpose/observe/observers.h"

namespace gridloom::session {

using exec::DeviceStatus;
using namespace cuda;

namespace {

constexpr std::uint64_t kFirstHandle = 0x1000;  // of streams and events
constexpr unsigned kManyUnfinished = 16384;
constexpr std::chrono::milliseconds kAwaitRoom{5};
constexpr std::size_t kMaxHandles = 1U << 20U;  // a thousand for each block that a large GPU holds

DeviceStatus StatusOfLaunch(CUresult status) {
  switch (status) {
    case CUDA_SUCCESS: return DeviceStatus::kSuccess;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: return DeviceStatus::kOutOfResources;
    case CUDA_ERROR_OUT_OF_MEMORY: return DeviceStatus::kOutOfMemory;
    default: return DeviceStatus::kInvalidConfiguration;
  }
}

}  // namespace

/// Everything that one launch by the host brings about, with one lock for all of it.
class LaunchTree : public std::enable_shared_from_this<LaunchTree> {
 public:
  explicit LaunchTree(Context& context) : context_(context) {}

  // All but Finish with the mutex held.
  void Push(DeviceChildPtr child);
  void Waiting(int more);
  void AwaitRoom(std::unique_lock<std::mutex>& lock, const DeviceGrid& root);
  void HasRun(DeviceGrid& grid);
  void Finish(DeviceGrid& root);

  std::mutex mutex;
  std::uint64_t next_handle = kFirstHandle;
  unsigned tails = 0;  ///< tail launches whose turn has not come

 private:
  void Help();
  void Drain(std::unique_lock<std::mutex>& lock);
  void CompleteIfOver(DeviceGrid& grid);
  void Complete(DeviceChild& child);

  Context& context_;
  std::condition_variable changed_, room_;
  std::deque<DeviceChildPtr> ready_;
  unsigned helpers_ = 0;  ///< threads of the task pool that work for this tree
  unsigned waiting_ = 0;  ///< CTAs that wait for their children, each perhaps keeping a thread busy
};

DeviceChild::DeviceChild(DeviceGrid& parent_grid, std::shared_ptr<DeviceChild> parent_child, KernelOp operation,
                         std::uint64_t launching_cta, std::uint64_t launching_stream)
    : op(std::move(operation)),
      parent(parent_grid),
      keeps_parent(std::move(parent_child)),
      cta(launching_cta),
      stream(launching_stream),
      grid(std::make_unique<DeviceGrid>(parent_grid.context_, op, parent_grid.origin_)) {
  grid->tree_ = parent.tree_;
  grid->self_ = this;
  grid->depth_ = parent.depth_ + 1;
  work = op.plan.work;
}
DeviceChild::~DeviceChild() = default;

// ---- the tree

void LaunchTree::Push(DeviceChildPtr child) {
  ready_.push_back(std::move(child));
  changed_.notify_one();
  Help();
}

/// Sees to it that enough threads work: as many as there are cores, and one more for each that may be kept by a waiting
/// CTA.
void LaunchTree::Help() {
  static const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  if (ready_.empty() || helpers_ >= cores + waiting_) return;
  ++helpers_;
  TaskPool::Get().Submit(MakeTask(0,
                                  [tree = shared_from_this()] {
                                    std::unique_lock lock(tree->mutex);
                                    tree->Drain(lock);
                                    --tree->helpers_;
                                  }),
                         {});
}

void LaunchTree::Waiting(int more) {
  waiting_ += static_cast<unsigned>(more);
  Help();
}

/// A grid of the host's that launches faster than the launched grids run waits a moment, since each takes a kilobyte
/// until it has run. Only a moment, as they may wait for what it does next; and only the first grid, so that those who
/// run the others never wait for each other.
void LaunchTree::AwaitRoom(std::unique_lock<std::mutex>& lock, const DeviceGrid& root) {
  if (root.unfinished_ >= kManyUnfinished)
    room_.wait_for(lock, kAwaitRoom, [&] { return root.unfinished_ <= kManyUnfinished / 2; });
}

void LaunchTree::Drain(std::unique_lock<std::mutex>& lock) {
  while (!ready_.empty()) {
    const DeviceChildPtr child = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    RunChild(context_, child->op, *child->grid);
    lock.lock();
    HasRun(*child->grid);
  }
}

void LaunchTree::HasRun(DeviceGrid& grid) {
  grid.has_run_ = true;
  CompleteIfOver(grid);
}

/// Tail launches run one after the other, when the grid and everything else it launched is complete.
void LaunchTree::CompleteIfOver(DeviceGrid& grid) {
  if (!grid.has_run_ || grid.unfinished_ != 0) return;
  if (!grid.tails_.empty()) {
    DeviceChildPtr tail = std::move(grid.tails_.front());
    grid.tails_.pop_front();
    --tails;
    ++grid.unfinished_;
    return Push(std::move(tail));
  }
  grid.complete_ = true;
  // Children hold their parent; here the circle is broken.
  grid.cta_streams_.clear();
  grid.thread_streams_.clear();
  grid.streams_.clear();
  grid.events_.clear();
  if (grid.self_ != nullptr) return Complete(*grid.self_);
  changed_.notify_all();
}

void LaunchTree::Complete(DeviceChild& child) {
  child.complete = true;
  EndLaunch(context_, child.op, true);
  child.op = {};
  for (DeviceChildPtr& successor : std::exchange(child.successors, {})) {
    if (--successor->waits == 0) Push(std::move(successor));
  }
  DeviceGrid& parent = child.parent;
  if (--parent.unfinished_ == kManyUnfinished / 2) room_.notify_all();
  if (const auto found = parent.unfinished_by_cta_.find(child.cta);
      found != parent.unfinished_by_cta_.end() && --found->second == 0)
    parent.unfinished_by_cta_.erase(found);
  parent.ForgetStream(child);
  CompleteIfOver(parent);
}

void LaunchTree::Finish(DeviceGrid& root) {
  std::unique_lock lock(mutex);
  HasRun(root);
  while (!root.complete_) {
    Drain(lock);
    if (!root.complete_ && ready_.empty()) changed_.wait(lock);
  }
}

// ---- a grid

DeviceGrid::~DeviceGrid() = default;

void DeviceGrid::Finish() {
  if (tree_ != nullptr) tree_->Finish(*this);
}

LaunchTree& DeviceGrid::Tree() {
  const std::lock_guard lock(tree_mutex_);
  if (tree_ == nullptr) tree_ = std::make_shared<LaunchTree>(context_);
  return *tree_;
}

bool DeviceGrid::IsStream(std::uint64_t stream) const {
  return stream <= kLegacyStream || (stream & kThreadStreams) != 0 || streams_.contains(stream);
}

/// Launches into the NULL stream are in order for a block, whichever of its threads made them.
DeviceGrid::DeviceStream& DeviceGrid::StreamOf(std::uint64_t cta, std::uint64_t stream) {
  if (stream <= kLegacyStream) return cta_streams_[cta];
  return (stream & kThreadStreams) != 0 ? thread_streams_[stream] : streams_[stream];
}

/// What the next launch in a stream has to wait for: nothing, as long as there was none.
std::vector<DeviceChildPtr> DeviceGrid::LastOf(std::uint64_t cta, std::uint64_t stream) const {
  const bool of_cta = stream <= kLegacyStream;
  const auto& streams = of_cta ? cta_streams_ : (stream & kThreadStreams) != 0 ? thread_streams_ : streams_;
  const auto found = streams.find(of_cta ? cta : stream);
  return found != streams.end() ? found->second.last : std::vector<DeviceChildPtr>();
}

/// Blocks and threads have streams of their own, millions of them: one whose work is complete is as one that was never
/// used. In the program's timeline later work names what was before it, complete or not.
void DeviceGrid::ForgetStream(const DeviceChild& child) {
  if (child.work != 0) return;
  const bool of_thread = (child.stream & kThreadStreams) != 0;
  if (!of_thread && child.stream > kLegacyStream) return;
  auto& streams = of_thread ? thread_streams_ : cta_streams_;
  const auto found = streams.find(of_thread ? child.stream : child.cta);
  if (found != streams.end() &&
      std::ranges::all_of(found->second.last, [](const DeviceChildPtr& c) { return c->complete; }))
    streams.erase(found);
}

/// Streams and events that a grid has at a time take memory of the host's.
bool DeviceGrid::MayCreate() const { return streams_.size() + events_.size() < kMaxHandles; }

DeviceStatus DeviceGrid::Launch(const exec::LaunchParams& launch, std::uint64_t cta, std::uint64_t stream,
                                std::uint64_t& number) {
  const auto code = kernel_->code();
  std::shared_ptr<Kernel> kernel;
  if (code == nullptr || code->FindKernel(launch.kernel->name, &context_, &kernel) != CUDA_SUCCESS)
    return DeviceStatus::kInvalidValue;
  // The Programming Guide names 24 levels; an H100 took as many as launches may be pending
  // (tests/data/gpu/apps-native.txt).
  if (depth_ >= context_.limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT]) return DeviceStatus::kPendingCountExceeded;
  LaunchRequest request;
  request.function = kernel->function_handle();
  request.grid = launch.grid;
  request.block = launch.block;
  request.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  request.block_of_params = launch.params;
  request.from_device = true;
  KernelOp op;
  if (const auto status = MakeKernelOp(context_, request, &op); status != CUDA_SUCCESS) return StatusOfLaunch(status);

  LaunchTree& tree = Tree();
  std::unique_lock lock(tree.mutex);
  if (self_ == nullptr) tree.AwaitRoom(lock, *this);
  // Only tail launches are sure to pile up until the grid ends; all others begin while it runs.
  if (stream == kTailLaunch && tree.tails >= context_.limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT])
    return DeviceStatus::kPendingCountExceeded;
  const bool ordered = stream != kTailLaunch && stream != kFireAndForget;
  if (ordered && !IsStream(stream)) return DeviceStatus::kInvalidValue;
  if (HostTimeline* const timeline = context_.process().observers().timeline(); timeline != nullptr && work_ != 0) {
    Operation operation = std::move(op);
    timeline->AddTo(work_, WorksBefore(cta, stream), stream == kTailLaunch ? HostTimeline::kLastRank : cta, operation);
    op = std::get<KernelOp>(std::move(operation));
    number = op.plan.work;
  }
  const auto child = std::make_shared<DeviceChild>(*this, self_ != nullptr ? self_->shared_from_this() : nullptr,
                                                   std::move(op), cta, stream);
  if (stream == kTailLaunch) {
    ++tree.tails;
    tails_.push_back(child);
    return DeviceStatus::kSuccess;
  }
  if (ordered) {
    DeviceStream& order = StreamOf(cta, stream);
    for (const DeviceChildPtr& before : order.last) {
      if (before->complete) continue;
      before->successors.push_back(child);
      ++child->waits;
    }
    order.last.assign(1, child);
  }
  ++unfinished_;
  ++unfinished_by_cta_[cta];
  if (child->waits == 0) tree.Push(child);
  return DeviceStatus::kSuccess;
}

/// In the program's timeline: what a launch into the device stream has to wait for.
std::vector<std::uint64_t> DeviceGrid::WorksBefore(std::uint64_t cta, std::uint64_t stream) {
  std::vector<std::uint64_t> works;
  if (stream == kTailLaunch || stream == kFireAndForget) return works;
  for (const DeviceChildPtr& before : LastOf(cta, stream)) works.push_back(before->work);
  return works;
}

bool DeviceGrid::Idle(std::uint64_t cta) {
  LaunchTree& tree = Tree();
  const std::lock_guard lock(tree.mutex);
  return !unfinished_by_cta_.contains(cta);
}

void DeviceGrid::BeginWait() {
  LaunchTree& tree = Tree();
  const std::lock_guard lock(tree.mutex);
  tree.Waiting(1);
}

void DeviceGrid::EndWait() {
  LaunchTree& tree = Tree();
  const std::lock_guard lock(tree.mutex);
  tree.Waiting(-1);
}

DeviceStatus DeviceGrid::CreateStream(std::uint64_t* stream) {
  LaunchTree& tree = Tree();
  const std::lock_guard lock(tree.mutex);
  if (!MayCreate()) return DeviceStatus::kOutOfMemory;
  *stream = tree.next_handle++;
  streams_.emplace(*stream, DeviceStream{});
  return DeviceStatus::kSuccess;
}

DeviceStatus DeviceGrid::DestroyStream(std::uint64_t stream) {
  LaunchTree& tree = Tree();
  const std::lock_guard lock(tree.mutex);
  return streams_.erase(stream) != 0 ? DeviceStatus::kSuccess : DeviceStatus::kInvalidValue;  // its work goes on
}

DeviceStatus DeviceGrid::CreateEvent(std::uint64_t* event) {
  LaunchTree& tree = Tree();
  const std::lock_guard lock(tree.mutex);
  if (!MayCreate()) return DeviceStatus::kOutOfMemory;
  *event = tree.next_handle++;
  events_.try_emplace(*event);
  return DeviceStatus::kSuccess;
}

DeviceStatus DeviceGrid::DestroyEvent(std::uint64_t event) {
  LaunchTree& tree = Tree();
  const std::lock_guard lock(tree.mutex);
  return events_.erase(event) != 0 ? DeviceStatus::kSuccess : DeviceStatus::kInvalidValue;
}

DeviceStatus DeviceGrid::RecordEvent(std::uint64_t event, std::uint64_t cta, std::uint64_t stream) {
  LaunchTree& tree = Tree();
  const std::lock_guard lock(tree.mutex);
  const auto found = events_.find(event);
  if (found == events_.end() || !IsStream(stream)) return DeviceStatus::kInvalidValue;
  found->second = LastOf(cta, stream);
  return DeviceStatus::kSuccess;
}

DeviceStatus DeviceGrid::WaitEvent(std::uint64_t event, std::uint64_t cta, std::uint64_t stream) {
  LaunchTree& tree = Tree();
  const std::lock_guard lock(tree.mutex);
  const auto found = events_.find(event);
  if (found == events_.end() || !IsStream(stream)) return DeviceStatus::kInvalidValue;
  for (const DeviceChildPtr& child : found->second) {
    if (child->complete) continue;
    std::vector<DeviceChildPtr>& last = StreamOf(cta, stream).last;
    if (!std::ranges::count(last, child)) last.push_back(child);
  }
  return DeviceStatus::kSuccess;
}

bool DeviceGrid::SetConditional(std::uint64_t handle, std::uint32_t value) {
  const auto condition = Conditional::Find(handle);
  if (condition != nullptr) condition->set_value(value);
  return condition != nullptr;
}

DeviceStatus DeviceGrid::Attribute(int attribute, int device, int* value) {
  if (device != 0) return DeviceStatus::kInvalidDevice;  // a grid sees the device it runs on
  *value = context_.device().Attribute(static_cast<CUdevice_attribute>(attribute));
  return DeviceStatus::kSuccess;
}

DeviceStatus DeviceGrid::Limit(unsigned limit, std::uint64_t* value) {
  if (limit >= std::size(context_.limits)) return DeviceStatus::kUnsupportedLimit;
  *value = context_.limits[limit];
  return DeviceStatus::kSuccess;
}

}  // namespace gridloom::session
