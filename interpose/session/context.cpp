#include "interpose/session/context.h"

#include <algorithm>

#include "interpose/session/device.h"
#include "interpose/session/host_timeline.h"
#include "interpose/session/narrow_tasks.h"
#include "interpose/session/process.h"
#include "interpose/session/reordering.h"
#include "interpose/session/spawned_tasks.h"
#include "interpose/session/thread_state.h"

namespace gridloom::session {
namespace {

std::atomic<std::uint64_t> g_next_id{1};

}  // namespace

using namespace cuda;

Stream::Stream(Context& context, Kind kind, int priority)
    : context_(context), kind_(kind), priority_(priority), id_(g_next_id.fetch_add(1, std::memory_order_relaxed)) {}

CUstream Stream::handle() const {
  if (kind_ == Kind::kLegacy) return reinterpret_cast<CUstream>(kStreamLegacy);
  if (kind_ == Kind::kPerThread) return reinterpret_cast<CUstream>(kStreamPerThread);
  return reinterpret_cast<CUstream>(const_cast<Stream*>(this));
}

Context::Context(Device& device, bool primary)
    : device_(device),
      narrow_tasks_(NarrowTasks::MakeFor(*this)),
      primary_(primary),
      id_(g_next_id.fetch_add(1, std::memory_order_relaxed)) {
  api_version = kDriverVersion;
  legacy_ = std::make_shared<Stream>(*this, Stream::Kind::kLegacy, 0);
  device.SetDefaultLimits(*this);
}

Context::~Context() = default;

void Context::Fail(CUresult status) {
  CUresult expected = CUDA_SUCCESS;
  status_.compare_exchange_strong(expected, status, std::memory_order_acq_rel);
}

StreamPtr Context::per_thread_stream() {
  const std::uint64_t thread = ThreadNumber();
  const std::lock_guard lock(queue_mutex_);
  StreamPtr& stream = per_thread_[thread];
  if (stream == nullptr) {
    stream = std::make_shared<Stream>(*this, Stream::Kind::kPerThread, 0);
    streams_.push_back(stream);
  }
  return stream;
}

StreamPtr Context::CreateStream(Stream::Kind kind, int priority) {
  auto stream = std::make_shared<Stream>(*this, kind, priority);
  const std::lock_guard lock(queue_mutex_);
  streams_.push_back(stream);
  by_handle_[stream->handle()] = stream;
  return stream;
}

StreamPtr Context::FindStream(CUstream handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value == 0) return t_state.per_thread_default_stream ? per_thread_stream() : legacy_;
  if (value == kStreamLegacy) return legacy_;
  if (value == kStreamPerThread) return per_thread_stream();
  const std::lock_guard lock(queue_mutex_);
  const auto found = by_handle_.find(handle);
  return found == by_handle_.end() ? nullptr : found->second;
}

bool Context::IsDefaultStream(CUstream handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  return value == 0 || value == kStreamLegacy || value == kStreamPerThread;
}

void Context::ForgetStream(const StreamPtr& stream) {
  const std::lock_guard lock(queue_mutex_);
  CloseBatch(*stream);
  by_handle_.erase(stream->handle());
  // Work still queued goes on; the legacy stream must keep waiting for it.
  if (stream->blocking() && stream->tail_ != nullptr && !stream->tail_->done()) return;
  std::erase(streams_, stream);
}

std::vector<TaskPtr> Context::Predecessors(Stream& stream, std::span<const TaskPtr> after) {
  CloseOthers(stream);
  CloseBatch(stream);
  std::vector<TaskPtr> tasks = Tails(stream);
  tasks.insert(tasks.end(), after.begin(), after.end());
  return tasks;
}

std::vector<TaskPtr> Context::Tails(const Stream& stream) const {
  std::vector<TaskPtr> tasks;
  const auto add = [&tasks](const TaskPtr& tail) {
    if (tail != nullptr && !tail->done()) tasks.push_back(tail);
  };
  add(stream.tail_);
  if (stream.kind() == Stream::Kind::kLegacy) {
    for (const StreamPtr& other : streams_) {
      if (other->blocking()) add(other->tail_);
    }
  } else if (stream.blocking()) {
    add(legacy_->tail_);
  }
  return tasks;
}

TaskPtr Context::Append(Stream& stream, const TaskPtr& task, std::vector<TaskPtr> after) {
  // A GPU's driver takes about a thousand operations in advance; then a launch waits. Without a bound a program that launches
  // faster than its kernels run fills the host's memory, and who waits for the device, cudaFree for one, waits for ever more.
  constexpr std::uint64_t kQueueDepth = 1024;
  TaskPool::Get().Submit(task, after);
  stream.tail_ = task;
  if (++stream.enqueued_ % (kQueueDepth / 2) != 0) return nullptr;
  TaskPtr oldest = std::exchange(stream.marks_[0], std::move(stream.marks_[1]));
  stream.marks_[1] = task;
  return oldest;
}

void Context::Enqueue(Stream& stream, const TaskPtr& task, std::span<const TaskPtr> after) {
  TaskPtr oldest;
  {
    const std::lock_guard lock(queue_mutex_);
    oldest = Append(stream, task, Predecessors(stream, after));
  }
  if (oldest != nullptr) TaskPool::Get().Wait(oldest);
}

// ---- launches that wait for others -------------------------------------------------------------------------------------

void Context::EnqueueInBatch(Stream& stream, KernelOp launch, bool last) {
  TaskPtr oldest;
  {
    const std::lock_guard lock(queue_mutex_);
    CloseOthers(stream);
    if (stream.open_ == nullptr) {
      stream.open_ = std::make_shared<LaunchBatch>();
      stream.open_->number = Reordering::Get()->NextBatch();
    }
    stream.open_->launches.push_back(std::move(launch));
    if (last || stream.open_->launches.size() == LaunchBatch::kMost) oldest = CloseBatch(stream);
  }
  if (oldest != nullptr) TaskPool::Get().Wait(oldest);
}

void Context::CloseOthers(const Stream& stream) {
  if (!stream.blocking()) return;
  if (stream.kind() != Stream::Kind::kLegacy) return static_cast<void>(CloseBatch(*legacy_));
  for (const StreamPtr& other : streams_) {
    if (other->blocking()) CloseBatch(*other);
  }
}

TaskPtr Context::CloseBatch(Stream& stream) {
  if (stream.open_ == nullptr) return nullptr;
  const TaskPtr task =
      MakeTask(Lane(stream), [this, batch = std::exchange(stream.open_, nullptr)] { Reordering::Get()->Run(*this, *batch); });
  return Append(stream, task, Tails(stream));
}

void Context::CloseAll() {
  CloseBatch(*legacy_);
  for (const StreamPtr& stream : streams_) CloseBatch(*stream);
}

void Context::CloseBatches() {
  const std::lock_guard lock(queue_mutex_);
  CloseAll();
}

bool Context::EnqueueOrRun(Stream& stream, const TaskPtr& task) {
  bool claimed = false;
  {
    const std::lock_guard lock(queue_mutex_);
    claimed = TaskPool::Get().SubmitOrClaim(task, Predecessors(stream, {}));
    stream.tail_ = task;
  }
  if (claimed) TaskPool::Get().RunHere(task);
  return claimed;
}

void Context::EnqueueAndWait(Stream& stream, const TaskPtr& task) {
  if (!EnqueueOrRun(stream, task) || !task->done()) TaskPool::Get().Wait(task);
}

void Context::EnqueueGroup(Stream& stream, const TaskPtr& first, const TaskPtr& last, const std::function<std::vector<TaskPtr>()>& submit,
                           std::span<const TaskPtr> after) {
  const std::lock_guard lock(queue_mutex_);
  TaskPool::Get().Submit(first, Predecessors(stream, after));
  const std::vector<TaskPtr> leaves = submit();
  TaskPool::Get().Submit(last, leaves);
  stream.tail_ = last;
}

bool Context::Idle(Stream& stream) {
  const std::lock_guard lock(queue_mutex_);
  CloseAll();
  return (stream.tail_ == nullptr || stream.tail_->done()) && (stream.kind() != Stream::Kind::kLegacy || Tails(stream).empty());
}

bool Context::IdleShortly(Stream& stream) {
  TaskPtr tail;
  {
    const std::lock_guard lock(queue_mutex_);
    tail = stream.tail_;
  }
  return TaskPool::Get().WaitShortly(tail) && Idle(stream);
}

void Context::Wait(Stream& stream) {
  std::vector<TaskPtr> tasks;
  {
    const std::lock_guard lock(queue_mutex_);
    CloseAll();
    if (stream.kind() == Stream::Kind::kLegacy) tasks = Tails(stream);
    else if (stream.tail_ != nullptr && !stream.tail_->done()) tasks.push_back(stream.tail_);
  }
  for (const TaskPtr& task : tasks) TaskPool::Get().Wait(task);
  if (HostTimeline* const timeline = HostTimeline::Get()) timeline->Wait(stream);
}

void Context::WaitAll() {
  std::vector<TaskPtr> tasks;
  {
    const std::lock_guard lock(queue_mutex_);
    CloseAll();
    if (legacy_->tail_ != nullptr) tasks.push_back(legacy_->tail_);
    std::erase_if(streams_, [&](const StreamPtr& stream) {
      const bool idle = stream->tail_ == nullptr || stream->tail_->done();
      if (!idle) tasks.push_back(stream->tail_);
      // Destroyed streams were kept only for the work they still had.
      return idle && stream->kind() != Stream::Kind::kPerThread && !by_handle_.contains(stream->handle());
    });
  }
  for (const TaskPtr& task : tasks) TaskPool::Get().Wait(task);
  WaitForSpawnedTasks(*this);
  if (HostTimeline* const timeline = HostTimeline::Get()) timeline->WaitAll(*this);
}

bool Context::AllIdle() {
  const std::lock_guard lock(queue_mutex_);
  CloseAll();
  const auto idle = [](const StreamPtr& stream) { return stream->tail_ == nullptr || stream->tail_->done(); };
  return idle(legacy_) && std::ranges::all_of(streams_, idle) && SpawnedTasksAreOver(*this);
}

void Context::Destroy() {
  WaitAll();
  if (narrow_tasks_ != nullptr) narrow_tasks_->End();
  decltype(storage_) storage;
  {
    const std::lock_guard lock(storage_mutex_);
    storage.swap(storage_);
  }
  for (const auto& [key, entry] : storage) {
    if (entry.destructor != nullptr) entry.destructor(handle(), key, entry.value);
  }
  Process::Get().ReleaseContextObjects(*this);
  const std::lock_guard lock(queue_mutex_);
  streams_.clear();
  per_thread_.clear();
  by_handle_.clear();
  legacy_ = std::make_shared<Stream>(*this, Stream::Kind::kLegacy, 0);
  destroyed_.store(true, std::memory_order_release);
  status_.store(CUDA_ERROR_CONTEXT_IS_DESTROYED, std::memory_order_release);
}

void Context::Revive() {
  destroyed_.store(false, std::memory_order_release);
  status_.store(CUDA_SUCCESS, std::memory_order_release);
  device_.SetDefaultLimits(*this);
}

void Context::PutStorage(void* key, void* value, StorageDestructor destructor) {
  const std::lock_guard lock(storage_mutex_);
  storage_[key] = {value, destructor};
}

bool Context::GetStorage(void* key, void** value) const {
  const std::lock_guard lock(storage_mutex_);
  const auto found = storage_.find(key);
  if (found == storage_.end()) return false;
  *value = found->second.value;
  return true;
}

bool Context::DeleteStorage(void* key) {
  const std::lock_guard lock(storage_mutex_);
  return storage_.erase(key) != 0;
}

// ---- the thread's stack ------------------------------------------------------------------------------------------------

thread_local constinit ThreadState t_state __attribute__((tls_model("initial-exec"))) = {};

std::uint64_t ThreadNumber() {
  static std::atomic<std::uint64_t> next{1};
  if (t_state.thread_id == 0) t_state.thread_id = next.fetch_add(1, std::memory_order_relaxed);
  return t_state.thread_id;
}

Context* CurrentContext() {
  const std::uint32_t depth = t_state.depth;
  if (depth == 0) return nullptr;
  return depth <= ThreadState::kInlineDepth ? t_state.stack[depth - 1] : t_state.overflow->back();
}

Context& ThisContext() { return *CurrentContext(); }

void PushContext(Context* context) {
  if (t_state.depth < ThreadState::kInlineDepth) {
    t_state.stack[t_state.depth] = context;
  } else {
    if (t_state.overflow == nullptr) t_state.overflow = new std::vector<Context*>;
    t_state.overflow->push_back(context);
  }
  ++t_state.depth;
}

Context* PopContext() {
  Context* const top = CurrentContext();
  if (t_state.depth == 0) return nullptr;
  --t_state.depth;
  if (t_state.overflow != nullptr && t_state.depth >= ThreadState::kInlineDepth) {
    t_state.overflow->pop_back();
    if (t_state.overflow->empty()) delete std::exchange(t_state.overflow, nullptr);
  }
  return top;
}

void SetContext(Context* context) {
  PopContext();
  if (context != nullptr) PushContext(context);
}

}  // namespace gridloom::session
