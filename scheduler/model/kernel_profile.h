// What the performance model, the pruning and the planning of co-schedules know of a kernel, and of the device that
// runs it. Whoever profiles fills these: from a few thread blocks on the timing model, from counters of a GPU, or from
// a table of a paper.
//
// Symbols and section numbers are those of Kernelet (Zhong and He, "Kernelet: High-Throughput GPU Kernel Executions
// with Dynamic Slicing and Scheduling"); docs/kernelet.md says how each value is meant where the paper leaves it open.
//
// Units. An instruction is a warp instruction. A cycle is a cycle of the SM's clock that SmModel uses throughout. A
// request is one access of DRAM, SmModel::request_bytes long. Rates (IPC, requests per cycle) are of one SM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/policy/policy.h"

namespace gridloom::model {

/// One kernel, launched with one block shape. PUR, MUR and IPC are of the kernel alone, on a device full of its thread
/// blocks.
struct KernelProfile {
  std::string kernel{};  ///< name

  policy::CtaNeeds needs{};  ///< of one thread block; `needs.warps` is its warps
  /// Thread blocks that an SM holds, under all limits: occupancy = this · needs.warps / SmModel::empty.free_warps.
  std::uint32_t max_resident_ctas = 0;
  double instructions_per_cta = 0;  ///< I_K (Eq. 8)

  double memory_ratio = 0;  ///< R_m, 0…1: instructions that go off the SM's core (global and local memory) of all
  double uncoalesced_share = 0;  ///< 0…1, of those instructions (section 4.4, "Uncoalesced Access")
  /// Requests that a coalesced memory instruction makes; 0.3 when two of three hit a cache.
  double coalesced_requests = 1;
  double uncoalesced_requests = 0;  ///< the same of an uncoalesced one; at most 32 on the devices of the paper

  double pur = 0;  ///< pipeline utilisation ratio (section 4.3): ipc / SmModel::peak_ipc
  /// Memory bandwidth utilisation ratio (section 4.3): requests per cycle / SmModel::requests_per_cycle.
  double mur = 0;
  double ipc = 0;  ///< IPC_i, measured alone; the denominator of CP (Eq. 1)

  /// Thread blocks of the smallest slice within the overhead limit (section 4.1, p = 2 %).
  std::uint64_t smallest_slice = 1;

  /// What an instruction takes of what an SM has in a cycle, by resource: pipes, the way into the SM, DRAM, L2. No
  /// kernel can have more IPC than 1 / the largest. All profiles of a device name the same resources in the same order;
  /// empty: nothing is known of them.
  std::vector<double> demands{};

  /// What the paper leaves out. The values given here leave its model as it is.
  struct Refinement {
    double dependency_cycles = 1;  ///< ≥ 1: from one issue of a warp to its next, memory aside (arithmetic latency)
    double instructions_per_issue = 1;  ///< 1…issue width: instructions that leave together (dual issue)
    double loads_per_stall = 1;         ///< ≥ 1: memory instructions in flight per stall of a warp
    double latency_cycles = 0;   ///< unloaded latency of this kernel's memory instructions; 0: SmModel::latency_cycles
    double coalesced_lines = 0;  ///< lines that a coalesced memory instruction asks for; 0: not known
    double uncoalesced_lines = 0;  ///< the same of an uncoalesced one
    /// 0…1: instructions that access what is in the SM's core (shared memory, constants) of all.
    double core_ratio = 0;
  } refinement{};
};

/// One SM as the model sees it (Tables 1 and 2). The scheduler does not know the timing model: who knows both converts.
struct SmModel {
  std::uint32_t sms = 0;         ///< of the device
  std::uint32_t schedulers = 1;  ///< warp schedulers of an SM; the model solves a virtual SM with one of them
  double peak_ipc = 1;           ///< what PUR is relative to: 1 for each scheduler in the paper's Table 4
  policy::SmView empty{};        ///< an SM without thread blocks: what limits residency

  std::uint32_t request_bytes = 64;
  double latency_cycles = 0;      ///< L_0: of one request on an idle device
  double requests_per_cycle = 0;  ///< B: this SM's share of the device's bandwidth, bytes per cycle / request_bytes
  double contention_slope = 1;    ///< a_0: latency grows by a_0 / B for each outstanding request of the SM
  double contention_offset = 0;   ///< b_0, cycles
  double request_interval = 1;    ///< cycles between two requests of one instruction leaving the SM
  /// From this element of KernelProfile::demands on: what accesses wait for. 0: not known.
  std::uint32_t first_memory_resource = 0;
  /// Lines that the SM can wait for; with more, memory instructions queue up, whatever they access. 0: any number.
  double lines_in_flight = 0;
};

/// One sentence about the first value that makes no sense (negative, a share above 1, not finite), if any.
Status Validate(const KernelProfile& profile);
Status Validate(const SmModel& sm);

/// Thread blocks of one kind that an SM holds.
std::uint32_t ResidentCtas(const policy::SmView& empty, const policy::CtaNeeds& needs);

}  // namespace gridloom::model
