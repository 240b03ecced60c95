// What a running grid asks of whoever launched it: launches from the device and what goes with them (CUDA dynamic
// parallelism). The executor makes the calls, on the thread of the calling warp; the driver shim answers them, so that
// grids launched by grids take the same way as all others. Calls come from many threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gridloom::exec {

struct KernelInfo;
struct LaunchParams;

/// Numbers that the device runtime library translates to cudaError.
enum class DeviceStatus : std::uint32_t {
  kSuccess = 0,
  kInvalidValue = 1,
  kStartupFailure = 2,
  kInvalidDevice = 3,
  kOutOfMemory = 4,
  kDepthExceeded = 5,  ///< cudaErrorLaunchMaxDepthExceeded
  kOutOfResources = 6,
  kInvalidConfiguration = 7,
  kPendingCountExceeded = 12,  ///< cudaErrorLaunchPendingCountExceeded
  kUnsupportedLimit = 13,
};

class GridChildren {
 public:
  virtual ~GridChildren() = default;

  /// Stream handles that every grid has. All others come from CreateStream.
  static constexpr std::uint64_t kBlockStream = 0, kLegacyStream = 1, kPerThreadStream = 2, kTailLaunch = 3,
                                 kFireAndForget = 4;
  /// What kPerThreadStream is for a thread, by its number in the grid.
  static constexpr std::uint64_t kThreadStreams = std::uint64_t{1} << 63;
  static constexpr std::uint64_t StreamOfThread(std::uint64_t thread) { return kThreadStreams | thread; }

  /// `cta`: linear number of the CTA that launches. `launch` has kernel, shape, shared bytes and parameters. `number`
  /// becomes what traces call the launched grid; 0: nothing.
  virtual DeviceStatus Launch(const LaunchParams& launch, std::uint64_t cta, std::uint64_t stream,
                              std::uint64_t& number) = 0;
  /// Nothing that this CTA launched is left to finish (tail launches do not count).
  virtual bool Idle(std::uint64_t cta) = 0;
  /// A CTA begins to wait for that, and has ended to.
  virtual void BeginWait() = 0;
  virtual void EndWait() = 0;

  virtual DeviceStatus CreateStream(std::uint64_t* stream) = 0;
  virtual DeviceStatus DestroyStream(std::uint64_t stream) = 0;
  virtual DeviceStatus CreateEvent(std::uint64_t* event) = 0;
  virtual DeviceStatus DestroyEvent(std::uint64_t event) = 0;
  virtual DeviceStatus RecordEvent(std::uint64_t event, std::uint64_t cta, std::uint64_t stream) = 0;
  virtual DeviceStatus WaitEvent(std::uint64_t event, std::uint64_t cta, std::uint64_t stream) = 0;

  /// cudaGraphSetConditional: what the nodes with that handle go by. False when no graph has the handle.
  virtual bool SetConditional(std::uint64_t handle, std::uint32_t value) = 0;

  virtual DeviceStatus Attribute(int attribute, int device, int* value) = 0;
  virtual DeviceStatus Limit(unsigned limit, std::uint64_t* value) = 0;
};

}  // namespace gridloom::exec
