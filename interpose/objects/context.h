// A CUDA context: the streams, the error a kernel left behind, limits, and what must go when the context goes.
// Contexts are never freed, only marked destroyed, because threads may still have them on their stacks. One that is on
// no stack any more becomes a new context in time (Process::AddContext).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/base/task.h"
#include "interpose/objects/stream.h"
#include "sim/exec/device_memory.h"

namespace gridloom::session {

class Device;
class NarrowTasks;
class Process;

/// Allocations of a context: what cuMemAlloc and its like gave out, so that the context's end can take it back.
class ContextMemory {
 public:
  enum class Kind : std::uint8_t { kDevice, kManaged, kPinned, kRegistered };
  struct Block {
    Kind kind = Kind::kDevice;
    std::uint64_t bytes = 0;
    unsigned flags = 0;
  };
  /// `context`: whose allocations they are.
  explicit ContextMemory(Context& context) : context_(context) {}
  void Add(std::uint64_t address, Block block);
  /// Nothing when no block of one of the kinds starts there.
  std::optional<Block> Take(std::uint64_t address, std::initializer_list<Kind> kinds);
  std::optional<Block> Find(std::uint64_t address) const;
  void FreeAll(exec::DeviceMemory& memory);

 private:
  void Leave(std::uint64_t address, const Block& block);

  Context& context_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Block> blocks_;
};

/// What others do when something happens to a context: who they are is said in one place (startup.cpp). Functions that
/// have nothing to do are null.
struct ContextFollower {
  void (*made)(Context& context) = nullptr;
  /// The host has waited for all that was in the stream, or for all work of the context.
  void (*host_waited)(Stream& stream) = nullptr;
  void (*host_waited_for_all)(Context& context) = nullptr;
  /// Work of the context that is in no stream.
  std::vector<TaskPtr> (*unfinished)(const Context& context) = nullptr;
  /// The thread has ended whose default stream it was.
  void (*thread_ended)(Stream& stream) = nullptr;
  /// The context is destroyed: its work is over, and then all that belongs to it goes.
  void (*work_over)(Context& context) = nullptr;
  void (*destroyed)(Context& context) = nullptr;
};
/// Before there are contexts. The followers are never destroyed.
void SetContextFollowers(std::span<const ContextFollower> followers);

class Context final : public exec::AllocationOwner {
 public:
  Context(Device& device, bool primary);
  ~Context() override;

  Process& process() const { return process_; }
  Device& device() const { return device_; }
  bool primary() const { return primary_; }
  std::uint64_t id() const { return id_.load(std::memory_order_relaxed); }
  cuda::CUcontext handle() { return reinterpret_cast<cuda::CUcontext>(this); }

  /// The error a kernel left behind, or that the context is gone; success otherwise.
  cuda::CUresult status() const { return status_.load(std::memory_order_acquire); }
  bool failed() const { return status() != cuda::CUDA_SUCCESS; }
  /// The first failure stays.
  void Fail(cuda::CUresult status);

  std::atomic<unsigned> flags{0};
  std::atomic<int> api_version{0};
  std::atomic<cuda::CUfunc_cache> cache_config{cuda::CU_FUNC_CACHE_PREFER_NONE};
  std::atomic<cuda::CUsharedconfig> shared_config{cuda::CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE};
  static constexpr std::uint32_t kDefaultStackBytes = 1024;
  std::atomic<std::uint64_t> limits[10];
  /// The stack of a thread, in bytes.
  std::uint32_t stack_limit() const {
    return static_cast<std::uint32_t>(limits[cuda::CU_LIMIT_STACK_SIZE].load(std::memory_order_relaxed));
  }

  ContextMemory memory{*this};
  /// Runs launches of few threads; null when no policy asks for that.
  NarrowTasks* narrow_tasks() const { return narrow_tasks_.get(); }
  void set_narrow_tasks(std::shared_ptr<NarrowTasks> tasks) { narrow_tasks_ = std::move(tasks); }

  // ---- streams
  /// The default stream of the calling thread.
  StreamPtr per_thread_stream();
  /// `green`: of this context, or null.
  StreamPtr CreateStream(Stream::Kind kind, int priority, std::shared_ptr<GreenContext> green = nullptr);
  /// The streams that have not been destroyed: of one green context, or of the context and all its green ones, with the
  /// legacy stream.
  std::vector<StreamPtr> Streams(const GreenContext* green);
  /// What streams wait for that are created later, by cuCtxWaitEvent or, for those of a green context,
  /// cuGreenCtxWaitEvent.
  std::vector<EventPtr> Gates(const GreenContext* green) const;
  /// Null: for nothing any more.
  void SetGate(const GreenContext* green, EventPtr event);
  /// How many of them have not been destroyed.
  std::size_t created_streams() const;
  /// What the handle means in this context; null when it is not a stream of it.
  StreamPtr FindStream(cuda::CUstream handle);
  /// The handle means another stream in each context, or for each thread.
  static bool IsDefaultStream(cuda::CUstream handle);
  /// The stream is none any more. What is in it runs to its end, and whoever waits for the context waits for that, too.
  /// Where many such streams have work left: the last work of the oldest of them, else null.
  TaskPtr ForgetStream(const StreamPtr& stream);
  /// The thread has ended, and its default stream with it.
  void ForgetThread(std::uint64_t thread);

  /// Puts `task` behind what the stream's rules say it must follow, and behind `after`. Waits while the stream's queue
  /// is full.
  void Enqueue(Stream& stream, const TaskPtr& task, std::span<const TaskPtr> after = {});
  /// The same, and runs it on the calling thread if it can start at once.
  void EnqueueOrRun(Stream& stream, const TaskPtr& task);
  /// The same, and returns when it is done.
  void EnqueueAndWait(Stream& stream, const TaskPtr& task);
  /// Operations that stand in a stream as one.
  struct Group {
    TaskPtr first, last;
    std::uint64_t operations = 0;  ///< how many
    /// Submits the group's tasks behind `first`; `last` comes behind the tasks that it answers.
    std::function<std::vector<TaskPtr>()> submit;
  };
  /// Puts the group's tasks into the stream, behind `after`. Answers a task that the host has to wait for before it
  /// goes on, since the stream's queue is full; null: none.
  [[nodiscard]] TaskPtr EnqueueGroup(Stream& stream, const Group& group, std::span<const TaskPtr> after);
  /// Puts a launch into the stream that may wait there for others: `add` puts it into the batch that is open, or makes
  /// one where none is, and answers whether the batch is to go. Batches become tasks, too, when anything else is put
  /// into the stream, or when the host waits or asks for anything.
  void EnqueueInBatch(Stream& stream, const std::function<bool(std::shared_ptr<StreamBatch>& open)>& add);
  /// What waits in streams for more becomes tasks: the host is about to look at results.
  void CloseBatches();
  /// Everything an operation put into the stream now would wait for is done.
  bool Idle(Stream& stream);
  /// The same of a stream that is about to be idle: waits a tenth of a second for it.
  bool IdleShortly(Stream& stream);
  void Wait(Stream& stream);
  void WaitAll();
  /// The same where the program made no call that waits: nothing of it is in its timeline.
  void WaitForTasks();
  /// What WaitAll would wait for.
  std::vector<TaskPtr> Unfinished();
  bool AllIdle();
  /// Lane under which tasks of the stream may be run by waiting threads.
  static std::uint64_t Lane(const Stream& stream) { return stream.id(); }

  // ---- life
  bool destroyed() const { return destroyed_.load(std::memory_order_acquire); }
  /// Waits for all work, runs the destructors of context-local storage and gives everything back.
  void Destroy();
  /// A primary context comes back to life by cuDevicePrimaryCtxRetain.
  void Revive();
  /// A destroyed one becomes another context: as new, with a number of its own.
  void Renew();
  /// How many places of threads' stacks have it.
  std::atomic<std::uint32_t> on_stacks{0};
  int retain_count = 0;  ///< primary: guarded by the device's mutex

  // ---- context-local storage (runtime export table)
  using StorageDestructor = void (*)(cuda::CUcontext context, void* key, void* value);
  void PutStorage(void* key, void* value, StorageDestructor destructor);
  bool GetStorage(void* key, void** value) const;
  bool DeleteStorage(void* key);

 private:
  // All with the queue's mutex held.
  /// What the next task of the stream has to wait for: closes what it must not overtake.
  std::vector<TaskPtr> Predecessors(Stream& stream, std::span<const TaskPtr> after);
  /// The same of what is a task already.
  std::vector<TaskPtr> Tails(const Stream& stream) const;
  /// The stream's next task. Answers one that the host has to wait for, if any.
  TaskPtr Append(Stream& stream, const TaskPtr& task, std::vector<TaskPtr> after);
  /// Counts what the host put into the stream. Answers as Append.
  static TaskPtr Count(Stream& stream, std::uint64_t operations);
  /// Puts a task into the stream; true when nothing is in its way: then it is the caller's to run. `oldest` as Append's
  /// answer.
  bool AppendOrClaim(Stream& stream, const TaskPtr& task, TaskPtr* oldest);
  /// Makes a task of the launches that wait in the stream for more. Answers as Append.
  TaskPtr CloseBatch(Stream& stream);
  /// The tasks of streams that are not done. `blocking`: only of streams that wait for the legacy one.
  void AddTails(bool blocking, std::vector<TaskPtr>& tasks) const;
  /// CloseBatch of all streams that the next operation of `stream` has to wait for.
  void CloseOthers(const Stream& stream);
  void CloseAll();

  Process& process_;
  Device& device_;
  std::shared_ptr<NarrowTasks> narrow_tasks_;
  const bool primary_;
  std::atomic<std::uint64_t> id_;
  std::atomic<cuda::CUresult> status_{cuda::CUDA_SUCCESS};
  std::atomic<bool> destroyed_{false};

  mutable std::mutex queue_mutex_;  ///< guards every Stream::tail_ and the lists below
  StreamPtr legacy_;
  std::vector<StreamPtr> streams_;                           ///< all but the legacy one
  std::vector<StreamPtr> ending_;                            ///< destroyed ones that had work left when they were
  std::size_t most_ending_ = 64;                             ///< with so many, those that are done go
  std::unordered_map<std::uint64_t, StreamPtr> per_thread_;  ///< by thread number
  std::unordered_map<cuda::CUstream, StreamPtr> by_handle_;
  std::map<const GreenContext*, EventPtr> gates_;  ///< null: of all streams

  struct Storage {
    void* value;
    StorageDestructor destructor;
  };
  mutable std::mutex storage_mutex_;
  std::unordered_map<void*, Storage> storage_;
};

/// A number that no context and no stream has.
std::uint64_t NextContextId();

}  // namespace gridloom::session
