// Everything the shim knows in this process, or owns for those who do: handed down from the entry points, where
// Process::Get() is asked for, to whoever needs it. Never destroyed: the CUDA runtime calls the driver from its own
// exit handlers.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/base/once.h"
#include "interpose/objects/context.h"
#include "interpose/objects/device.h"
#include "interpose/objects/handle_table.h"
#include "interpose/objects/program_handles.h"
#include "interpose/objects/stream.h"

namespace gridloom::session {

class GreenContext;
struct Launches;
class Observers;
class Summary;

/// What the management library tells of a GPU.
struct VisibleDevice {
  sim::DeviceSpec spec;
  std::uint64_t memory_bytes = 0, used_bytes = 0;  ///< of this process's use
  pid_t user = 0;  ///< this process, or the parent that it is a copy of, where that uses the GPU; else 0
};

class Process {
 public:
  /// For entry points alone, which have nobody to get it from: the program's calls, the process's begin, forks and end.
  /// The rooms below do not link with it.
  static Process& Get();

  /// cuInit: reads the settings, looks at the program and makes the devices. Later calls repeat the first answer.
  cuda::CUresult Init();
  /// CUDA_SUCCESS once Init succeeded in this very process; NOT_INITIALIZED in a child forked after it.
  cuda::CUresult init_status() const { return status_.load(std::memory_order_acquire); }

  /// The GPU as it is, or as Init would make it now, without initialising anything: children forked later may still
  /// call cuInit. `shared`: the device that a broker gives, which before Init the caller has to know; empty: none, or
  /// it is not known. The first call counts. Nothing when there is no device.
  std::optional<VisibleDevice> LookAtDevice(const std::string& shared = {});

  /// All that the program does with its devices is over: its grids end, and its calls answer `status` from now on.
  void Terminate(cuda::CUresult status);

  std::size_t device_count() const { return devices_.size(); }
  Device* FindDevice(cuda::CUdevice ordinal) const;
  /// The device whose memory the pointer points into; the first one when none.
  Device& first_device() const { return *devices_.front(); }
  bool eager_loading() const { return eager_loading_; }
  bool launch_blocking() const { return launch_blocking_; }

  // ---- what rooms keep for the whole process; those below the room know it by name alone
  /// Which kernels ran.
  Summary& summary();
  /// Who looks at what the program does.
  Observers& observers() const { return *observers_; }
  /// What its launches have in common.
  Launches& launches() const { return *launches_; }

  Context& AddContext(Device& device);
  /// A context other than a primary one was destroyed.
  void ShelveContext(Context& context);
  /// The thread of that number has ended.
  void ForgetThread(std::uint64_t thread);
  /// Null for a handle that was never a context. A green context's primary one for what it was converted to.
  Context* FindContext(cuda::CUcontext handle) const;
  /// The green context that was converted to `handle`; null: none was.
  std::shared_ptr<GreenContext> FindGreen(cuda::CUcontext handle) const;
  /// A green context was destroyed: for a while its handle is known as that of a destroyed one.
  void ShelveGreen(GreenContext& green);
  /// The context that a module's program was loaded in; null when none has asked for it yet.
  Context* FindContext(const exec::Program& program) const;
  template <typename Function>
  void ForEachContext(Function function) const {
    contexts_.ForEach([&](const std::shared_ptr<Context>& context) { function(*context); });
  }
  /// A stream that was created, of whatever context; null for any other handle.
  StreamPtr FindStream(cuda::CUstream handle) const;

  ProgramHandles handles;

  /// What belongs to a context and goes with it: modules, events, arrays, memory.
  void ReleaseContextObjects(Context& context);

  /// True in a process that was forked by one that had called cuInit.
  static bool child_of_user();

  /// Around each fork of the program. A fork waits until another thread's cuInit has ended: what it is in the midst of
  /// would stay so in the child for ever.
  static void BeforeFork();
  static void AfterForkInParent();
  static void AfterForkInChild();

 private:
  Process() = default;
  ~Process() = delete;
  cuda::CUresult MakeDevices();

  Once<Summary> summary_;
  Observers* observers_ = nullptr;  ///< set by Get, like launches_, and not null for anybody else
  Launches* launches_ = nullptr;
  std::mutex init_mutex_;
  std::atomic<cuda::CUresult> status_{cuda::CUDA_ERROR_NOT_INITIALIZED};
  bool initialised_ = false;
  pid_t maker_ = 0;                        ///< the process that has called Init
  std::optional<VisibleDevice> expected_;  ///< before Init; guarded by init_mutex_
  std::vector<std::unique_ptr<Device>> devices_;
  bool eager_loading_ = false;
  bool launch_blocking_ = false;
  HandleTable<Context, cuda::CUcontext> contexts_;
  std::mutex shelf_mutex_;
  std::deque<Context*> shelf_;                ///< destroyed ones that can become others, the oldest first
  std::deque<cuda::CUgreenCtx> green_shelf_;  ///< destroyed ones that are still in `handles.greens`, the oldest first
};

}  // namespace gridloom::session
