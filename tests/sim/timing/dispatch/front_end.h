// What the classes behind a Dispatcher share, so that each of them can be tried without the others.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/policy/builtin.h"
#include "sim/timing/dispatch/code_table.h"
#include "sim/timing/dispatch/hardware_queues.h"
#include "sim/timing/dispatch/work_reports.h"
#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {

struct FrontEnd {
  explicit FrontEnd(const sim::DeviceSpec& device = TestDevice("v100")) : parameters(Derive(device).value()) {}

  /// A kernel of a stream, of CTAs of one warp that do nothing.
  WorkId AddKernel(std::uint32_t stream, Cycle submitted = 0, std::vector<WorkId> after = {},
                   std::uint32_t tenant = 0) {
    WorkState work;
    work.order = {.stream = stream, .submitted = submitted, .after = std::move(after)};
    work.kernel.ctas = work.result.ctas = 4;
    work.kernel.needs = {.warps = 1, .registers = 32, .shared_bytes = 0};
    work.kernel.owner.tenant = tenant;
    return works.Append(std::move(work)).value();
  }
  /// A kernel with a source of its own.
  WorkId AddKernel(std::shared_ptr<trace::CtaSource> source) {
    WorkState work;
    work.order.stream = next_stream++;
    work.result.name = source->code().name;
    work.kernel.ctas = work.result.ctas = source->shape().ctas;
    work.kernel.code = codes.DecodedOf(source->code()).value();
    work.kernel.needs = {.warps = 1, .registers = 512, .shared_bytes = 0};
    work.kernel.source = std::move(source);
    return works.Append(std::move(work)).value();
  }
  WorkId AddCopy(std::uint32_t stream, WorkKind kind, Cycle submitted = 0, std::uint64_t bytes = 1000) {
    WorkState work;
    work.kind = work.result.kind = kind;
    work.order = {.stream = stream, .submitted = submitted, .after = {}};
    work.result.bytes = bytes;
    return works.Append(std::move(work)).value();
  }
  bool Runs(WorkId id) const { return works.at(id).stage == WorkState::Stage::kRunning; }
  /// The works that run, of the first ones.
  std::vector<WorkId> Running(WorkId given) const {
    std::vector<WorkId> running;
    for (WorkId id = 0; id < given; ++id) {
      if (Runs(id)) running.push_back(id);
    }
    return running;
  }

  const Parameters parameters;
  Ports ports;
  std::unique_ptr<policy::Policy> policy = policy::MakePolicy("leftover").value();
  StreamOrder works{parameters, ports, true};
  DispatchEvents events;
  ParkingLot lot{works, ports, events};
  CodeTable codes{parameters.device};
  DeviceLaunches launches;
  WorkReports reports{works, launches};
  CtaPlacement placement{parameters, ports};
  ReadyKernels ready{parameters, *policy, ports, works, placement};
  std::uint32_t next_stream = 1000;
};

/// A device on which launches take no time, so that a kernel is ready when it may begin.
inline sim::DeviceSpec QuickDevice() {
  sim::DeviceSpec device = TestDevice("v100");
  device.timing.launch.kernel_cycles = 0;
  device.timing.launch.dependent_cycles = 0;
  return device;
}

/// CTAs of one warp that execute one instruction.
inline std::shared_ptr<trace::CtaSource> OneInstruction(std::uint64_t ctas, const std::string& name = "one",
                                                        std::uint16_t destination = 1) {
  CodeBuilder code(name);
  code.Block();
  code.Op(trace::OpClass::kInt, {destination}, {1});
  CtaBuilder cta;
  cta.Warp();
  cta.Visit(0);
  return SameCtas(code.code(), {.ctas = ctas, .threads_per_cta = 32, .registers_per_thread = 16}, cta.Finish());
}

}  // namespace gridloom::timing
