#include "interpose/launch/master.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "interpose/base/log.h"
#include "interpose/base/summary.h"
#include "interpose/objects/errors.h"
#include "interpose/objects/process.h"
#include "rewriter/passes/master_kernel.h"
#include "rewriter/support/demangle.h"
#include "rewriter/support/own_thread.h"

namespace gridloom::session {
namespace {

constexpr std::int64_t kAwakeNs = 30'000;  // a master looks for work so long before it sleeps

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

exec::Dim3 PlaceOf(std::uint64_t number, const exec::Dim3& in) {
  return {static_cast<std::uint32_t>(number % in.x), static_cast<std::uint32_t>(number / in.x % in.y),
          static_cast<std::uint32_t>(number / in.x / in.y)};
}

std::string Triple(const exec::Dim3& d) { return Format("(%u,%u,%u)", d.x, d.y, d.z); }

}  // namespace

// ---- LaunchedTask, TaskQueue

void LaunchedTask::Run() noexcept {
  if (!queue_.Put(shared_from_this())) TaskPool::Get().Finish(shared_from_this());
}

bool TaskQueue::Put(LaunchedTaskPtr task) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    tasks_.push_back(std::move(task));
    size_.store(tasks_.size(), std::memory_order_release);
    wake = sleeping_ != 0;
  }
  if (wake) there_.notify_one();
  return true;
}

void TaskQueue::Take(std::size_t most, std::vector<LaunchedTaskPtr>& to) {
  const std::lock_guard lock(mutex_);
  for (; most != 0 && !tasks_.empty(); --most) {
    to.push_back(std::move(tasks_.front()));
    tasks_.pop_front();
  }
  size_.store(tasks_.size(), std::memory_order_release);
}

void TaskQueue::PutBack(std::vector<LaunchedTaskPtr>& tasks) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.insert(tasks_.begin(), std::make_move_iterator(tasks.begin()), std::make_move_iterator(tasks.end()));
    size_.store(tasks_.size(), std::memory_order_release);
  }
  there_.notify_one();
}

void TaskQueue::Wait(const std::atomic<bool>& over) {
  const std::int64_t end = TaskPool::NowNs() + kAwakeNs;
  do {
    for (int i = 0; i < 32; ++i) {
      if (size() != 0 || over.load(std::memory_order_acquire)) return;
      Pause();
    }
  } while (TaskPool::NowNs() < end);
  std::unique_lock lock(mutex_);
  ++sleeping_;
  there_.wait(lock, [&] { return !tasks_.empty() || over.load(std::memory_order_acquire); });
  --sleeping_;
}

std::deque<LaunchedTaskPtr> TaskQueue::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  size_.store(0, std::memory_order_release);
  return std::exchange(tasks_, {});
}

void TaskQueue::Open() {
  const std::lock_guard lock(mutex_);
  closed_ = false;
}

void TaskQueue::WakeAll() {
  { const std::lock_guard lock(mutex_); }
  there_.notify_all();
}

// ---- Master

Master::Master(Context& context, std::shared_ptr<const MasterCode> code, const tasks::TableShape& shape,
               TaskQueue& queue, unsigned masters)
    : context_(context), code_(std::move(code)), shape_(shape), queue_(queue), masters_(masters), table_(shape, *this) {
  const std::uint64_t bytes = shape.bytes() + passes::task::Control::BytesFor(1, shape.warps + 1);
  memory_ = context.device().memory().Allocate(bytes, 256, exec::MemoryKind::kInternal);
  if (memory_ == 0) throw std::bad_alloc();
  control_ = memory_ + shape.bytes();
  std::memset(reinterpret_cast<void*>(memory_), 0, bytes);
  // Signals are for the program's own threads; only faults must arrive here.
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  try {
    thread_ = std::thread([this] {
      BecomeOwnThread();
      Main();
    });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    context.device().memory().Free(memory_);
    throw;
  }
  pthread_setname_np(thread_.native_handle(), "gridloom-master");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Master::~Master() {
  End();
  thread_.join();
  context_.device().memory().Free(memory_);
}

void Master::End() {
  ending_.store(true, std::memory_order_release);
  queue_.WakeAll();
}

void Master::Write(std::uint64_t offset, std::span<const std::byte> bytes) {
  std::memcpy(reinterpret_cast<void*>(memory_ + offset), bytes.data(), bytes.size());
}

void Master::Read(std::uint64_t offset, std::span<std::byte> bytes) {
  std::memcpy(bytes.data(), reinterpret_cast<const void*>(memory_ + offset), bytes.size());
}

void Master::Main() {
  std::vector<std::byte> params(code_->master->params.bytes);
  const auto put = [&](std::size_t index, std::uint64_t value) {
    std::memcpy(params.data() + code_->master->params.offsets[index], &value, code_->master->param_bytes[index]);
  };
  put(0, memory_);
  put(1, control_);
  put(2, shape_.rows);
  put(3, shape_.entry_bytes);
  put(4, shape_.pool_bytes);
  exec::LaunchParams launch;
  launch.program = code_->program;
  launch.kernel = code_->master;
  launch.grid = launch.cluster = {1, 1, 1};
  launch.block = {(shape_.warps + 1) * 32, 1, 1};
  launch.dynamic_shared_bytes = shape_.pool_bytes;
  launch.stack_bytes = context_.stack_limit();
  launch.params = params;
  launch.feed = this;
  const exec::LaunchFault fault = context_.device().engine().Run(launch);
  if (fault.kind != exec::FaultKind::kNone) Fail(fault);
  // Without a kernel, launches end as they do after an error.
  while (!ending_.load(std::memory_order_acquire)) {
    queue_.Wait(ending_);
    queue_.Take(~std::size_t{0}, taken_);
    for (const LaunchedTaskPtr& task : taken_) Close(*task, false);
    taken_.clear();
  }
  ended_.store(true, std::memory_order_release);
}

bool Master::Feed() {
  if (table_.running() != 0) {
    table_.Look();
    if (table_.running() != running_.size()) {
      for (auto& [id, task] : running_) {
        if (table_.Ended(id)) Close(*std::exchange(task, nullptr), true);
      }
      std::erase_if(running_, [](const auto& one) { return one.second == nullptr; });
    }
  }
  const bool ending = ending_.load(std::memory_order_acquire);
  if (const std::size_t waiting = queue_.size(); waiting != 0 && !ending && !table_.full()) {
    // A share of what there is, so that other masters have something to do, too.
    queue_.Take(std::min<std::size_t>(shape_.entries() - table_.running(), waiting / masters_ + 1), taken_);
    // What was put there after a larger MasterKernel had begun is not for this one.
    if (ending_.load(std::memory_order_acquire)) queue_.PutBack(taken_), taken_.clear();
    for (LaunchedTaskPtr& task : taken_) {
      if (context_.failed()) Close(*task, false);
      else Spawn(std::move(task));
    }
    taken_.clear();
  }
  if (ending && table_.running() == 0 && !std::exchange(told_to_end_, true)) {
    const std::uint32_t end = 1;
    std::memcpy(reinterpret_cast<void*>(control_), &end, sizeof end);
  }
  return ending || table_.running() != 0;
}

void Master::Wait() { queue_.Wait(ending_); }

void Master::Spawn(LaunchedTaskPtr task) {
  const KernelOp& op = task->op;
  const MasterCode::Facts* const known = code_->Find(*task->kernel);
  // Its context has ended since it was launched, and with it the MasterKernel that had its kernel.
  if (known == nullptr) return Close(*task, false);
  const MasterCode::Facts& facts = *known;
  task->spawned_ns = TaskPool::NowNs();
  const auto id = table_.Spawn({.kernel = facts.number,
                                .grid = {op.grid.x, op.grid.y, op.grid.z},
                                .block = {op.block.x, op.block.y, op.block.z},
                                .static_bytes = facts.needs.static_bytes,
                                .dynamic_bytes = op.dynamic_shared_bytes,
                                .barrier = facts.needs.barrier,
                                .full_warps = facts.needs.full_warps,
                                .full_rows = facts.needs.full_rows,
                                .params = op.params});
  table_.TryFlush();  // nothing is on its way: the next one need not come for this one to begin
  running_.emplace_back(*id, std::move(task));
}

void Master::Close(LaunchedTask& task, bool ran) {
  if (ran) {
    const std::uint64_t ctas = task.op.grid.count();
    context_.process().summary().Add(task.kernel->info->name,
                                     {.ctas = ctas,
                                      .warps = ctas * ((task.op.block.count() + 31) / 32),
                                      .seconds = static_cast<double>(TaskPool::NowNs() - task.spawned_ns) * 1e-9},
                                     0);
  }
  TaskPool::Get().Finish(task.shared_from_this());
}

std::string Master::NameOf(const exec::LaunchFault& fault) const {
  const auto name = [](const LaunchedTask& task) {
    return Format("%llu (kernel %s, stream %llu)", static_cast<unsigned long long>(task.op.plan.task_number),
                  DemangledName(task.kernel->info->name).c_str(), static_cast<unsigned long long>(task.op.stream));
  };
  passes::task::Control::Warp warp;
  std::memcpy(&warp,
              reinterpret_cast<const void*>(control_ + sizeof(passes::task::Control) +
                                            std::uint64_t{fault.thread.x / 32} * sizeof warp),
              sizeof warp);
  for (const auto& [id, task] : running_) {
    if (warp.row == 0 || id.entry != warp.row - 1) continue;
    return "task " + name(*task) + ", CTA " + Triple(PlaceOf(warp.block, task->op.grid)) + ", thread " +
           Triple(PlaceOf(warp.first_thread + fault.thread.x % 32, task->op.block));
  }
  std::string text = "one of the tasks";
  for (const auto& [id, task] : running_) text += " " + name(*task) + ",";
  text.pop_back();
  return running_.empty() ? "the MasterKernel" : text;
}

void Master::Fail(const exec::LaunchFault& fault) {
  const std::size_t place = fault.text.find(": ");
  const std::size_t line = fault.text.find(", PTX line ");
  std::string text = NameOf(fault);
  if (line != std::string::npos && line < place) text += fault.text.substr(line, place - line);
  text += place == std::string::npos ? ": " + fault.text : fault.text.substr(place);
  Log(LogLevel::kError, Format("%s: ", session::NameOf(StatusOf(fault.kind))) + text);
  context_.Fail(StatusOf(fault.kind));
  for (auto& [id, task] : running_) Close(*task, false);
  running_.clear();
}

}  // namespace gridloom::session
