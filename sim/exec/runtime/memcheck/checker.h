// memcheck: exact bounds of everything a kernel touches, and a collection of what was found. One per engine, shared by
// its workers; what belongs to one CTA is in UnitCheck. docs/memcheck.md tells what is checked and what is not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/exec/contract/abi.h"
#include "sim/exec/engine.h"
#include "sim/exec/runtime/memcheck/unit_check.h"

namespace gridloom::exec {

class DeviceHeap;
struct Launch;
struct Warp;

/// One lane's access as helpers see it.
struct LaneRequest {
  std::uint32_t lane = 0, line = 0;
  Space space = Space::kGeneric;
  std::uint64_t address = 0;  ///< host address
  std::uint32_t bytes = 0;
  AccessKind kind = AccessKind::kRead;
  bool strong = false;
  const void* value = nullptr;  ///< a store's, when it is known
  bool followed = false;        ///< the code follows what is read (invalid_values.h), valid or not, to where it is used
};

class Memcheck {
 public:
  Memcheck(const Engine::Options& options, const DeviceMemory& memory, const DeviceHeap& heap)
      : limit_(options.memcheck_limit),
        on_finding_(options.on_memcheck),
        written_(options.global_shadow),
        memory_(memory),
        heap_(heap) {}

  /// Where a lane's access may take place: its address, or a harmless place when it is bad. A bad access that would end
  /// the grid without memcheck ends it here, too: the launch is stopped, and the caller leaves with LeaveIfStopped.
  std::uint8_t* Check(Warp& warp, const LaneRequest& request);
  void LeaveIfStopped(Warp& warp);

  /// Helper::kCheckShared, apart from the usual reads (TryUsualRead), which should not pay for its registers and stack.
  /// False: the access has to go lane by lane.
  bool CheckShared(Warp& warp, std::uint32_t mask, std::uint32_t line, SharedAccessImm imm,
                   const std::uint64_t* offsets);
  /// Lets generated code do accesses of this site to the region at `address` by itself.
  void RememberSite(Warp& warp, std::uint32_t site, std::uint64_t address, std::uint32_t bytes, bool write);

  // Values from memory that nobody has written (invalid_values.h). Addresses as in the code: of shared memory, offsets.
  void LoadedBits(Warp& warp, std::uint32_t mask, ShadowImm imm, const std::uint64_t* addresses, std::uint8_t* bits);
  void StoredBits(Warp& warp, std::uint32_t mask, std::uint32_t line, ShadowImm imm, const std::uint64_t* addresses,
                  const std::uint8_t* const* bits);
  void UseInvalid(Warp& warp, std::uint32_t mask, std::uint32_t line, InvalidUse use);

  // Barriers and .sync instructions (sync_check.h).
  void EnterSync(Warp& warp, std::uint32_t mask, std::uint32_t line, SyncCheckImm imm, const std::uint32_t* members);
  void LeaveSync(Warp& warp, std::uint32_t mask);
  void PassSync(Warp& warp, std::uint32_t mask, PassSyncImm imm);

  /// A lane is about to do `op` with the mbarrier at `place`, which holds `word`.
  void CheckMbarrier(Warp& warp, std::uint32_t lane, std::uint32_t line, MbarrierOp op, const void* place,
                     std::uint64_t word, std::uint64_t operand);
  /// The lane has done `op`.
  void NoteMbarrier(Warp& warp, MbarrierOp op, const void* place, std::uint64_t word);

  // Asynchronous copies (async_copies.h); `order` is an immediate of async_copy_immediates.h.
  void BeginCopies(Warp& warp, std::uint32_t mask, std::uint32_t line, void* const* args);
  void OrderCopies(Warp& warp, std::uint32_t mask, std::uint64_t order, void* const* args);
  /// A phase of the mbarrier at `place` is over; a thread has seen that one is.
  void EndCopies(Warp& warp, const void* place);
  void SeeCopies(Warp& warp, const void* place);

  void OrderWarp(Warp& warp);
  void OrderCta(Warp& warp);
  /// free() of what is no live block of the device's heap.
  void InvalidFree(Warp& warp, std::uint32_t lane, std::uint32_t line, std::uint64_t address);

  /// Tells about what this grid was the first to find: a launch, and one more where machine code took over in it.
  void EndOfGrid(std::uint64_t first_serial, std::uint64_t last_serial);
  /// Tells about what grids that still run have found. From then on nothing is found.
  void End();
  Engine::Findings findings() const;

 private:
  struct Finding {
    MemcheckReport report;
    std::uint64_t launch = 0;  ///< serial of the one that found it first
    bool told = false;
  };
  // Kernel, kind, line, line of the other access, space.
  using Key = std::tuple<std::string, MemcheckKind, std::uint32_t, std::uint32_t, Space>;

  /// Findings that are one error: of one kind in one kernel, and `what` is the same: the source line, or where that is
  /// not known, the straight line of code with the instruction and the memory that it is near (PlaceOf).
  struct ErrorPlace {
    std::string kernel;
    MemcheckKind kind;
    std::string what, other;
    Space space;
    auto operator<=>(const ErrorPlace&) const = default;
  };

  std::uint8_t* CheckShared(Warp& warp, const LaneRequest& request, std::uint64_t offset);
  std::uint8_t* CheckLocal(Warp& warp, const LaneRequest& request);
  std::uint8_t* CheckGlobal(Warp& warp, const LaneRequest& request);
  void CheckUseOrder(Warp& warp, const LaneRequest& request, const Allocation& allocation);
  std::optional<CheckedRegion> FindRegion(Warp& warp, const LaneRequest& request);
  bool IsMapped(std::uint64_t address) const;
  std::uint8_t* Bad(Warp& warp, MemcheckKind kind, const LaneRequest& request, std::uint64_t shown, bool fatal);
  std::string Place(const Warp& warp, MemcheckKind kind, const LaneRequest& request) const;
  std::string SharedPlace(const Launch& launch, std::uint64_t offset) const;
  void NoteInvalidRead(Warp& warp, const LaneRequest& request, std::uint32_t offset);
  void CheckWritten(Warp& warp, const LaneRequest& request, const CheckedRegion& region);
  void CheckCopies(Warp& warp, const LaneRequest& request, std::uint32_t offset);
  void Race(Warp& warp, const LaneRequest& request, const SharedShadow::Finding& finding);
  void TellSync(Warp& warp, const SyncCheck::Findings& found);
  ErrorPlace PlaceOf(const Launch& launch, const MemcheckReport& report, std::uint32_t other_line) const;
  /// `fill` completes the report of what was not known before.
  using Fill = std::function<void(MemcheckReport&)>;
  void Note(Warp& warp, MemcheckKind kind, const LaneRequest& request, std::uint64_t shown, std::uint32_t other_line,
            const Fill& fill);
  MemcheckAccess Describe(const Warp& warp, std::uint32_t lane, AccessKind kind, std::uint32_t bytes,
                          std::uint32_t line) const;

  const std::uint32_t limit_;
  const std::function<void(const MemcheckReport&)> on_finding_;
  GlobalShadow* const written_;  ///< null: not looked at
  const DeviceMemory& memory_;
  const DeviceHeap& heap_;

  mutable std::mutex mutex_;
  std::map<Key, std::size_t> index_;
  std::map<ErrorPlace, std::size_t>
      by_place_;  // those of several instructions that are one error, as of an unrolled loop
  std::vector<Finding> found_;
  std::uint64_t not_kept_ = 0;
  bool ended_ = false;
};

}  // namespace gridloom::exec
