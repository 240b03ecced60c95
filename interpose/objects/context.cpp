#include "interpose/objects/context.h"

#include <algorithm>

#include "interpose/base/thread_end.h"
#include "interpose/base/thread_state.h"
#include "interpose/objects/device.h"

namespace gridloom::session {
namespace {

std::atomic<std::uint64_t> g_next_id{1};

constinit std::span<const ContextFollower> g_followers;

template <typename Object>
void Tell(void (*ContextFollower::*what)(Object&), Object& object) {
  for (const ContextFollower& follower : g_followers) {
    if (follower.*what != nullptr) (follower.*what)(object);
  }
}

/// What is unfinished in no stream.
std::vector<TaskPtr> OutOfStreams(const Context& context) {
  std::vector<TaskPtr> tasks;
  for (const ContextFollower& follower : g_followers) {
    if (follower.unfinished == nullptr) continue;
    for (TaskPtr& task : follower.unfinished(context)) tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace

using namespace cuda;

void SetContextFollowers(std::span<const ContextFollower> followers) { g_followers = followers; }

std::uint64_t NextContextId() { return g_next_id.fetch_add(1, std::memory_order_relaxed); }

Stream::Stream(Context& context, Kind kind, int priority, std::shared_ptr<GreenContext> green)
    : context_(context),
      kind_(kind),
      green_(std::move(green)),
      priority_(priority),
      id_(g_next_id.fetch_add(1, std::memory_order_relaxed)) {}

CUstream Stream::handle() const {
  if (kind_ == Kind::kLegacy) return reinterpret_cast<CUstream>(kStreamLegacy);
  if (kind_ == Kind::kPerThread) return reinterpret_cast<CUstream>(kStreamPerThread);
  return reinterpret_cast<CUstream>(const_cast<Stream*>(this));
}

Context::Context(Device& device, bool primary)
    : process_(device.process()),
      device_(device),
      primary_(primary),
      id_(g_next_id.fetch_add(1, std::memory_order_relaxed)) {
  api_version = kDriverVersion;
  legacy_ = std::make_shared<Stream>(*this, Stream::Kind::kLegacy, 0);
  device.SetDefaultLimits(*this);
  Tell(&ContextFollower::made, *this);
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
    WatchThreadEnd();
    stream = std::make_shared<Stream>(*this, Stream::Kind::kPerThread, 0);
    streams_.push_back(stream);
  }
  return stream;
}

StreamPtr Context::CreateStream(Stream::Kind kind, int priority, std::shared_ptr<GreenContext> green) {
  auto stream = std::make_shared<Stream>(*this, kind, priority, std::move(green));
  const std::lock_guard lock(queue_mutex_);
  streams_.push_back(stream);
  by_handle_[stream->handle()] = stream;
  return stream;
}

std::vector<StreamPtr> Context::Streams(const GreenContext* green) {
  const std::lock_guard lock(queue_mutex_);
  std::vector<StreamPtr> streams;
  for (const StreamPtr& stream : streams_) {
    if (green == nullptr || stream->green() == green) streams.push_back(stream);
  }
  if (green == nullptr) streams.push_back(legacy_);
  return streams;
}

std::vector<EventPtr> Context::Gates(const GreenContext* green) const {
  const std::lock_guard lock(queue_mutex_);
  std::vector<EventPtr> gates;
  for (const auto& [of, event] : gates_) {
    if (of == nullptr || of == green) gates.push_back(event);
  }
  return gates;
}

void Context::SetGate(const GreenContext* green, EventPtr event) {
  const std::lock_guard lock(queue_mutex_);
  if (event != nullptr) gates_[green] = std::move(event);
  else gates_.erase(green);
}

std::size_t Context::created_streams() const {
  const std::lock_guard lock(queue_mutex_);
  return by_handle_.size();
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

namespace {

/// A GPU's driver takes about a thousand operations in advance; then a launch waits. Without a bound a program that
/// launches faster than its kernels run fills the host's memory, and who waits for the device, cudaFree for one, waits
/// for ever more. The same holds for operations of one stream, and for destroyed streams with work.
constexpr std::uint64_t kQueueDepth = 1024;

bool IsDone(const TaskPtr& tail) { return tail == nullptr || tail->done(); }

}  // namespace

TaskPtr Context::ForgetStream(const StreamPtr& stream) {
  const std::lock_guard lock(queue_mutex_);
  CloseBatch(*stream);
  by_handle_.erase(stream->handle());
  std::erase(streams_, stream);
  if (IsDone(stream->tail_)) return nullptr;
  if (ending_.size() >= most_ending_) {
    std::erase_if(ending_, [](const StreamPtr& one) { return IsDone(one->tail_); });
    most_ending_ = std::clamp<std::size_t>(2 * ending_.size(), 64, kQueueDepth);
  }
  ending_.push_back(stream);
  return ending_.size() > kQueueDepth ? ending_.front()->tail_ : nullptr;
}

void Context::ForgetThread(std::uint64_t thread) {
  StreamPtr stream;
  {
    const std::lock_guard lock(queue_mutex_);
    const auto found = per_thread_.find(thread);
    if (found == per_thread_.end()) return;
    stream = std::move(found->second);
    per_thread_.erase(found);
  }
  Tell(&ContextFollower::thread_ended, *stream);
  ForgetStream(stream);
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
  if (!IsDone(stream.tail_)) tasks.push_back(stream.tail_);
  if (stream.kind() == Stream::Kind::kLegacy) AddTails(true, tasks);
  else if (stream.blocking() && !IsDone(legacy_->tail_)) tasks.push_back(legacy_->tail_);
  return tasks;
}

void Context::AddTails(bool blocking, std::vector<TaskPtr>& tasks) const {
  for (const auto* const streams : {&streams_, &ending_}) {
    for (const StreamPtr& stream : *streams) {
      if ((stream->blocking() || !blocking) && !IsDone(stream->tail_)) tasks.push_back(stream->tail_);
    }
  }
}

TaskPtr Context::Append(Stream& stream, const TaskPtr& task, std::vector<TaskPtr> after) {
  TaskPool::Get().Submit(task, after);
  stream.tail_ = task;
  return Count(stream, 1);
}

TaskPtr Context::Count(Stream& stream, std::uint64_t operations) {
  stream.unmarked_ += operations;
  if (stream.unmarked_ < kQueueDepth / 2) return nullptr;
  stream.unmarked_ = 0;
  TaskPtr oldest = std::exchange(stream.marks_[0], std::move(stream.marks_[1]));
  stream.marks_[1] = stream.tail_;
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

// ---- launches that wait for others

void Context::EnqueueInBatch(Stream& stream, const std::function<bool(std::shared_ptr<StreamBatch>& open)>& add) {
  TaskPtr oldest;
  {
    const std::lock_guard lock(queue_mutex_);
    CloseOthers(stream);
    if (add(stream.open_)) oldest = CloseBatch(stream);
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
      MakeTask(Lane(stream), [this, batch = std::exchange(stream.open_, nullptr)] { batch->Run(*this); });
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

bool Context::AppendOrClaim(Stream& stream, const TaskPtr& task, TaskPtr* oldest) {
  const std::lock_guard lock(queue_mutex_);
  const bool claimed = TaskPool::Get().SubmitOrClaim(task, Predecessors(stream, {}));
  stream.tail_ = task;
  if (!claimed) *oldest = Count(stream, 1);
  return claimed;
}

void Context::EnqueueOrRun(Stream& stream, const TaskPtr& task) {
  TaskPtr oldest;
  if (AppendOrClaim(stream, task, &oldest)) TaskPool::Get().RunHere(task);
  else if (oldest != nullptr) TaskPool::Get().Wait(oldest);
}

void Context::EnqueueAndWait(Stream& stream, const TaskPtr& task) {
  TaskPtr oldest;
  if (AppendOrClaim(stream, task, &oldest)) TaskPool::Get().RunHere(task);
  if (!task->done()) TaskPool::Get().Wait(task);
}

TaskPtr Context::EnqueueGroup(Stream& stream, const Group& group, std::span<const TaskPtr> after) {
  const std::lock_guard lock(queue_mutex_);
  TaskPool::Get().Submit(group.first, Predecessors(stream, after));
  const std::vector<TaskPtr> leaves = group.submit();
  TaskPool::Get().Submit(group.last, leaves);
  stream.tail_ = group.last;
  return Count(stream, group.operations);
}

bool Context::Idle(Stream& stream) {
  const std::lock_guard lock(queue_mutex_);
  CloseAll();
  return IsDone(stream.tail_) && (stream.kind() != Stream::Kind::kLegacy || Tails(stream).empty());
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
    else if (!IsDone(stream.tail_)) tasks.push_back(stream.tail_);
  }
  for (const TaskPtr& task : tasks) TaskPool::Get().Wait(task);
  Tell(&ContextFollower::host_waited, stream);
}

void Context::WaitForTasks() {
  std::vector<TaskPtr> tasks;
  {
    const std::lock_guard lock(queue_mutex_);
    CloseAll();
    if (!IsDone(legacy_->tail_)) tasks.push_back(legacy_->tail_);
    std::erase_if(ending_, [](const StreamPtr& stream) { return IsDone(stream->tail_); });
    AddTails(false, tasks);
  }
  for (const TaskPtr& task : tasks) TaskPool::Get().Wait(task);
  for (const TaskPtr& task : OutOfStreams(*this)) TaskPool::Get().Wait(task);
}

void Context::WaitAll() {
  WaitForTasks();
  Tell(&ContextFollower::host_waited_for_all, *this);
}

std::vector<TaskPtr> Context::Unfinished() {
  std::vector<TaskPtr> tasks = OutOfStreams(*this);
  const std::lock_guard lock(queue_mutex_);
  CloseAll();
  if (!IsDone(legacy_->tail_)) tasks.push_back(legacy_->tail_);
  AddTails(false, tasks);
  return tasks;
}

bool Context::AllIdle() {
  const std::lock_guard lock(queue_mutex_);
  CloseAll();
  const auto idle = [](const StreamPtr& stream) { return IsDone(stream->tail_); };
  return idle(legacy_) && std::ranges::all_of(streams_, idle) && std::ranges::all_of(ending_, idle) &&
         OutOfStreams(*this).empty();
}

void Context::Destroy() {
  WaitForTasks();
  Tell(&ContextFollower::work_over, *this);
  decltype(storage_) storage;
  {
    const std::lock_guard lock(storage_mutex_);
    storage.swap(storage_);
  }
  for (const auto& [key, entry] : storage) {
    if (entry.destructor != nullptr) entry.destructor(handle(), key, entry.value);
  }
  Tell(&ContextFollower::destroyed, *this);
  const std::lock_guard lock(queue_mutex_);
  streams_.clear();
  ending_.clear();
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

void Context::Renew() {
  flags = 0;
  api_version = kDriverVersion;
  cache_config = CU_FUNC_CACHE_PREFER_NONE;
  shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  id_.store(g_next_id.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
  Revive();
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

}  // namespace gridloom::session
