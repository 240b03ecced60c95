#include "sim/exec/runtime/fault.h"

#include <cstdio>
#include <utility>

#include "sim/exec/contract/code_lines.h"
#include "sim/exec/memcheck.h"
#include "sim/exec/runtime/unit.h"
#include "sim/exec/runtime/worker.h"

namespace gridloom::exec {
namespace {

std::string Hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string Triple(const Dim3& d) {
  return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
}

/// Where a shared or local address lies beside the memory that the access may touch; other addresses beside the
/// allocations.
std::string DescribeIn(Space space, const Launch& launch, const Warp* warp, std::uint32_t lane, std::uint64_t address) {
  if (warp && space == Space::kShared) {
    const CtaCtx& cta = warp->cta->ctx;
    const std::uint32_t bytes = launch.ctas_per_unit == 1 ? launch.ctx.total_shared_bytes : cta.shared_bytes;
    return DescribeMiss(address, 1, cta.shared_base, bytes,
                        "the CTA's " + std::to_string(bytes) + " bytes of shared memory");
  }
  if (warp && space == Space::kLocal && lane < kWarpSize) {
    const WarpCtx& ctx = warp->ctx;
    return DescribeMiss(address, 1, ctx.local_base + std::uint64_t{ctx.local_stride} * lane, ctx.local_bytes,
                        "the thread's " + std::to_string(ctx.local_bytes) + " bytes of local memory");
  }
  return launch.services && launch.services->memory ? DescribeAddress(*launch.services->memory, address) : Hex(address);
}

bool HasAddress(FaultKind kind) { return kind == FaultKind::kIllegalAddress || kind == FaultKind::kMisalignedAddress; }

}  // namespace

std::uint32_t PtxLineOf(const Launch& launch, std::uint32_t line) {
  if (line == 0 || !launch.program || launch.info == nullptr) return line;
  return CodeLines(launch.program->module(), *launch.info->function).PtxLine(line);
}

std::string DescribeAddress(const DeviceMemory& memory, std::uint64_t address) {
  std::string text = Hex(address);
  const auto nearest = memory.FindNearest(address);
  if (!nearest) return text + ": nothing is allocated";
  const Allocation& allocation = nearest->allocation;
  const std::string what =
      "the allocation of " + std::to_string(allocation.bytes) + " bytes at " + Hex(allocation.base);
  if (nearest->distance == 0) return text + ": in " + what;
  if (nearest->distance > 0)
    return text + ": " + std::to_string(nearest->distance - 1) + " bytes past the end of " + what;
  return text + ": " + std::to_string(-nearest->distance) + " bytes before " + what;
}

void RecordFault(Launch& launch, const Warp* warp, FaultKind kind, std::uint32_t lane, std::uint64_t address,
                 std::uint32_t line, std::string text, std::uintptr_t pc, Space space) {
  {
    const std::lock_guard lock(launch.fault_mutex);
    if (launch.fault.kind == FaultKind::kNone) {
      LaunchFault& fault = launch.fault;
      fault.kind = kind;
      fault.kernel = launch.kernel_name;
      fault.address = address;
      fault.ptx_line = line;
      std::string place = "kernel " + fault.kernel;
      if (warp) {
        fault.cta = PlaceInGrid(*warp->cta);
        const std::uint32_t at = lane < kWarpSize ? lane : 0;
        fault.thread = {warp->ctx.tid[0][at], warp->ctx.tid[1][at], warp->ctx.tid[2][at]};
        place += ", CTA " + Triple(fault.cta);
        place += lane < kWarpSize ? ", thread " + Triple(fault.thread) : ", warp " + std::to_string(warp->ctx.warp_id);
      }
      if (HasAddress(kind)) text += " " + DescribeIn(space, launch, warp, lane, address);
      // The engine adds the line when the grid has ended (it may have to compile to find it).
      launch.fault_pc = pc;
      launch.fault_place_bytes = place.size();
      fault.text = place + ": " + text;
    }
  }
  launch.stop.store(true, std::memory_order_release);
}

void RaiseFault(Warp& warp, FaultKind kind, std::uint32_t lane, std::uint64_t address, std::uint32_t line,
                const char* text, Space space) {
  RecordFault(*warp.cta->unit->launch, &warp, kind, lane, address, line, text, 0, space);
  LeaveStopped(warp);
}

void LeaveStopped(Warp& warp) {
  Worker& worker = warp.cta->unit->worker;
  worker.access_lane = -1;
  warp.ctx.access_lane = 0;
  LeaveWarp(warp, worker.root);
}

}  // namespace gridloom::exec
