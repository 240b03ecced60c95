// One grid while it runs: what is constant, what its workers share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/exec/contract/abi.h"
#include "sim/exec/engine.h"
#include "sim/exec/runtime/interpreter/undo_log.h"
#include "sim/exec/runtime/kernel_table.h"
#include "sim/exec/runtime/unit_shares.h"

namespace gridloom::exec {

class DeviceHeap;
class Memcheck;
class ParameterBuffers;
class PrintfOutput;
class ProgramImpl;

/// What helpers and workers need of the engine.
struct EngineServices {
  DeviceMemory* memory = nullptr;
  DeviceHeap* heap = nullptr;
  PrintfOutput* output = nullptr;
  ParameterBuffers* parameter_buffers = nullptr;
  const Engine* engine = nullptr;
  const HelperFn* helpers = nullptr;
  Memcheck* memcheck = nullptr;  ///< null: kernels are compiled without its checks
  double clock_ghz = 1.0;
  double watchdog_seconds = 60;
  unsigned threads = 1;
  std::atomic<std::uint32_t> running_launches{0};
  std::atomic<bool> stopped{false};  ///< Engine::Stop has been called
  Onlookers onlookers;
};

/// What cudaGetLastError says in kernels: an error per thread, where there is one.
struct DeviceErrors {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, std::uint32_t> by_thread;
};

struct Launch {
  static constexpr std::size_t kMaxParamBytes = 32764;   // sm_70+ with PTX ISA 8.1
  static constexpr std::size_t kParamSlack = 4096 + 64;  // generated code may read so far past the end

  LaunchCtx ctx{};
  std::uint64_t serial = 0;  ///< unique in the process
  const LoadedKernel* kernel = nullptr;
  const char* kernel_name = "";
  const KernelInfo* info = nullptr;
  EngineServices* services = nullptr;
  std::shared_ptr<Program> program;
  std::optional<SliceOf> slice;
  std::span<const std::uint64_t> ctas;  ///< the units, where they are not all of the grid in order
  std::span<const std::uint32_t> sms;   ///< that the CTAs run on; empty: all
  std::uint32_t sm_share = 1;           ///< how many that are
  bool in_turn = false;
  AccessObserver* observer = nullptr;
  RecordSink* records = nullptr;
  RangeSink* ranges = nullptr;
  GridChildren* children = nullptr;
  UseOrder* use_order = nullptr;
  std::string_view library;
  GridFeed* feed = nullptr;
  DeviceErrors device_errors;

  // The grid is handed out in units: a CTA, or a cluster of CTAs that run together. Where `ctas` names them, a unit's
  // index is its place there.
  std::uint64_t units = 0;
  std::uint32_t ctas_per_unit = 1;
  std::uint32_t unit_grid[3] = {1, 1, 1};
  std::uint32_t threads_per_cta = 0;
  /// Bytes of shared memory that accesses of one CTA may touch: what it asked for, as a GPU gives it out.
  std::uint32_t shared_limit = 0;
  std::uint32_t local_bytes = 0;  ///< per thread, 0: no local memory
  std::uint32_t local_stride = 0;
  std::uint32_t own_memory_bytes = 0;  ///< of each CTA, in global memory
  std::size_t recursion_bytes = 0;   ///< of a warp's stack on the host, for functions that call themselves; 0: none do
  std::uint64_t resident_limit = 1;  ///< units that may be started and not finished at the same time

  /// The number of one of the SMs of its share.
  std::uint32_t SmAt(std::uint32_t index) const { return sms.empty() ? index : sms[index]; }

  /// The number of a unit that nobody has begun, and that nobody will begin from now on; nothing where none is left, or
  /// where machine code is to run what is left.
  bool Take(std::uint64_t& unit) {
    std::uint64_t next = next_unit.load(std::memory_order_relaxed);
    do {
      if (next >= units || stop.load(std::memory_order_relaxed) || Superseded()) return false;
    } while (!next_unit.compare_exchange_weak(next, next + 1, std::memory_order_relaxed));
    unit = next;
    return true;
  }
  /// A unit's place in the grid of units.
  Dim3 PlaceOf(std::uint64_t unit) const {
    if (!ctas.empty()) unit = ctas[unit];
    const std::uint64_t row = unit / unit_grid[0], z = row / unit_grid[1];
    return {static_cast<std::uint32_t>(unit - row * unit_grid[0]), static_cast<std::uint32_t>(row - z * unit_grid[1]),
            static_cast<std::uint32_t>(z)};
  }

  /// Machine code for what is being interpreted has come: the units that are left are better run by it.
  bool Superseded() const {
    return may_be_superseded && kernel->tier->better.load(std::memory_order_relaxed) != nullptr;
  }
  bool may_be_superseded = false;
  /// Whether CTAs that are being interpreted end here, since what they have done is undone and the grid begins again as
  /// machine code. Not where a unit has ended already: then those that have begun do not take much longer.
  bool BeginsAgain() {
    if (!undo || undo->broken()) return false;
    if (undo->decided()) return true;
    if (!Superseded() || stop.load() || !DecideToBeginAgain()) return false;
    stop.store(true);
    return true;
  }
  void NoteEndedUnit() {
    if (undo && !undo->broken()) static_cast<void>(undo->Break());
  }
  /// Once it is decided, nobody who may look begins to run until services->onlookers are resumed.
  bool DecideToBeginAgain() {
    const std::lock_guard lock(decision_mutex);
    if (undo->decided()) return true;
    if (!services->onlookers.Suspend(onlookers_before)) {
      static_cast<void>(undo->Break());
      return false;
    }
    if (undo->Decide()) return true;
    services->onlookers.Resume();
    return false;
  }
  std::unique_ptr<UndoLog> undo;       ///< null: the grid cannot begin again
  std::mutex decision_mutex;           ///< of DecideToBeginAgain
  std::uint64_t onlookers_before = 0;  ///< that had entered when the grid began

  alignas(64) std::atomic<std::uint64_t> next_unit{0};
  UnitShares shares;                          ///< where units are dealt; next_unit is at the end then
  alignas(64) std::atomic<bool> stop{false};  ///< a fault or Engine::Stop has ended the grid, or it begins again
  std::atomic<std::uint64_t> resident{0};     ///< units started and not finished (spinning kernels only)
  std::atomic<std::uint64_t> progress{0};     ///< counts what cannot happen in a dead grid
  std::atomic<std::uint32_t> active_workers{0}, stuck_workers{0};
  std::uint32_t participants = 0;  ///< workers in it besides the caller; guarded by the pool's lock

  std::mutex fault_mutex;
  LaunchFault fault;
  std::uintptr_t fault_pc = 0;        ///< in generated code, where the line is not known yet
  std::size_t fault_place_bytes = 0;  ///< length of the place in fault.text

  /// The first access outside of all allocations that was let through (DeviceMemory::LetThrough); written by a fault's
  /// handler.
  struct Stray {
    std::atomic<bool> noted{false};
    std::uint64_t address = 0;
    std::uint32_t line = 0;  ///< 0: in generated code, not known
    Dim3 cta{0, 0, 0};
  } stray;

  std::span<const std::byte> param_bytes;  ///< as the program gave them
};

}  // namespace gridloom::exec
