// Grids launched by grids (CUDA dynamic parallelism). A launch from the device is checked and described by MakeKernelOp
// like any other, waits for what its device stream says, and then runs on a thread of the task pool, or on the one that
// ran the grid the host launched. A grid is complete when it has run and all it launched is complete; only then goes on
// what waits for it, in a device stream or, for the first grid of all, in the host's stream.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "interpose/objects/operation.h"
#include "sim/exec/grid_children.h"

namespace gridloom::session {

class DeviceGrid;
class LaunchTree;

/// A grid launched from the device.
struct DeviceChild : std::enable_shared_from_this<DeviceChild> {
  DeviceChild(DeviceGrid& parent, std::shared_ptr<DeviceChild> parent_child, KernelOp operation,
              std::uint64_t launching_cta, std::uint64_t launching_stream);
  ~DeviceChild();

  KernelOp op;
  DeviceGrid& parent;
  const std::shared_ptr<DeviceChild> keeps_parent;  ///< null when the host launched the parent
  const std::uint64_t cta;                          ///< of the parent, that launched it
  const std::uint64_t stream;                       ///< the device stream, as Launch was told
  std::unique_ptr<DeviceGrid> grid;                 ///< what it launches itself
  unsigned waits = 0;                               ///< launches before it that are not complete
  bool complete = false;
  std::uint64_t work = 0;  ///< in the program's timeline, if there is one
  std::vector<std::shared_ptr<DeviceChild>> successors;
};
using DeviceChildPtr = std::shared_ptr<DeviceChild>;

/// One running grid, as its threads see it when they launch.
class DeviceGrid final : public exec::GridChildren {
 public:
  /// `origin`: of the launch by the host that it comes from; null where nobody asks.
  DeviceGrid(Context& context, const KernelOp& op, WorkOriginPtr origin)
      : context_(context), kernel_(op.kernel), origin_(std::move(origin)), work_(op.plan.work) {}
  ~DeviceGrid() override;
  const WorkOriginPtr& origin() const { return origin_; }

  /// The host's thread, after the grid has run: runs what it launched as far as nobody else does, and returns when all
  /// of it is complete.
  void Finish();

  exec::DeviceStatus Launch(const exec::LaunchParams& launch, std::uint64_t cta, std::uint64_t stream,
                            std::uint64_t& number) override;
  bool Idle(std::uint64_t cta) override;
  void BeginWait() override;
  void EndWait() override;
  exec::DeviceStatus CreateStream(std::uint64_t* stream) override;
  exec::DeviceStatus DestroyStream(std::uint64_t stream) override;
  exec::DeviceStatus CreateEvent(std::uint64_t* event) override;
  exec::DeviceStatus DestroyEvent(std::uint64_t event) override;
  exec::DeviceStatus RecordEvent(std::uint64_t event, std::uint64_t cta, std::uint64_t stream) override;
  exec::DeviceStatus WaitEvent(std::uint64_t event, std::uint64_t cta, std::uint64_t stream) override;
  bool SetConditional(std::uint64_t handle, std::uint32_t value) override;
  exec::DeviceStatus Attribute(int attribute, int device, int* value) override;
  exec::DeviceStatus Limit(unsigned limit, std::uint64_t* value) override;

 private:
  friend class LaunchTree;
  friend struct DeviceChild;
  /// A device stream: what the next launch in it must wait for.
  struct DeviceStream {
    std::vector<DeviceChildPtr> last;
  };

  LaunchTree& Tree();
  bool IsStream(std::uint64_t stream) const;
  DeviceStream& StreamOf(std::uint64_t cta, std::uint64_t stream);
  std::vector<DeviceChildPtr> LastOf(std::uint64_t cta, std::uint64_t stream) const;
  void ForgetStream(const DeviceChild& child);
  bool MayCreate() const;
  std::vector<std::uint64_t> WorksBefore(std::uint64_t cta, std::uint64_t stream);

  Context& context_;
  const std::shared_ptr<Kernel> kernel_;
  const WorkOriginPtr origin_;
  const std::uint64_t work_;          ///< of the launch in the program's timeline, if there is one
  std::mutex tree_mutex_;             ///< for the first launch of the host's grid
  std::shared_ptr<LaunchTree> tree_;  ///< null until something is launched
  DeviceChild* self_ = nullptr;       ///< null for the host's grid
  unsigned depth_ = 0;

  // Guarded by the tree's mutex.
  std::unordered_map<std::uint64_t, unsigned> unfinished_by_cta_;
  std::unordered_map<std::uint64_t, DeviceStream> cta_streams_, thread_streams_, streams_;
  std::unordered_map<std::uint64_t, std::vector<DeviceChildPtr>> events_;
  std::deque<DeviceChildPtr> tails_;
  unsigned unfinished_ = 0;
  bool has_run_ = false, complete_ = false;
};

}  // namespace gridloom::session
