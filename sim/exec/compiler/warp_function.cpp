#include "sim/exec/compiler/warp_function.h"

#include <llvm/IR/IntrinsicInst.h>

#include "sim/exec/compiler/warp_arms.h"
#include "sim/exec/compiler/warp_atomics.h"
#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_called_access.h"
#include "sim/exec/compiler/warp_calls.h"
#include "sim/exec/compiler/warp_control.h"
#include "sim/exec/compiler/warp_copies.h"
#include "sim/exec/compiler/warp_cta_loop.h"
#include "sim/exec/compiler/warp_dispatch.h"
#include "sim/exec/compiler/warp_fetch_ahead.h"
#include "sim/exec/compiler/warp_frame.h"
#include "sim/exec/compiler/warp_group.h"
#include "sim/exec/compiler/warp_guard.h"
#include "sim/exec/compiler/warp_halves.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_irregular.h"
#include "sim/exec/compiler/warp_lane_loop.h"
#include "sim/exec/compiler/warp_markers.h"
#include "sim/exec/compiler/warp_meeting.h"
#include "sim/exec/compiler/warp_memcheck.h"
#include "sim/exec/compiler/warp_memory.h"
#include "sim/exec/compiler/warp_places.h"
#include "sim/exec/compiler/warp_plain.h"
#include "sim/exec/compiler/warp_record.h"
#include "sim/exec/compiler/warp_record_buffer.h"
#include "sim/exec/compiler/warp_record_group.h"
#include "sim/exec/compiler/warp_record_loop.h"
#include "sim/exec/compiler/warp_rows.h"
#include "sim/exec/compiler/warp_sink.h"
#include "sim/exec/compiler/warp_slow_access.h"
#include "sim/exec/compiler/warp_source.h"
#include "sim/exec/compiler/warp_values.h"
#include "sim/exec/compiler/warp_waiting.h"
#include "sim/exec/compiler/warp_whole_condition.h"
#include "sim/exec/compiler/warp_window.h"

namespace gridloom::exec {

/// Each is made after those that it refers to.
struct WarpFunction::Emitters final : InstructionEmitter {
  Emitters(WarpModule& module, llvm::Function& function, bool is_kernel) : source(module, function, is_kernel) {}

  void EmitInstruction(llvm::Instruction& instruction) override;
  void Emit();

  WarpSource source;
  WarpBuilder w{source};
  HelperCalls calls{w};
  WarpValues values{w, *this};
  PlainEmitter plain{w, values};
  RecordBuffer record_buffer{w, calls};
  RecordGroups record_groups{w, values, record_buffer};
  LoopRecordEmitter loop_records{w, values, record_buffer, record_groups};
  RecordEmitter records{w, record_buffer, record_groups, loop_records};
  MemoryWindows windows{w, calls, values};
  HalfAccess halves{w, values};
  SlowAccess slow{w, calls, values, windows};
  IrregularPlaces places{w, values, windows};
  RowAccess rows{w, values};
  IrregularAccess irregular{w, values, windows, halves, places, rows};
  AccessCalls access_calls{w, calls, values, windows, halves, slow, places, irregular};
  AddressGuards guards{w, values, windows};
  LoadGroups load_groups{w, values, slow, places, rows, irregular, access_calls};
  MemoryEmitter memory{w,      calls, values,    windows,      halves,      slow,
                       places, rows,  irregular, access_calls, load_groups, guards};
  MemcheckEmitter memcheck{w, calls, values};
  AtomicEmitter atomics{w, calls, values, windows, places};
  WarpFrame frame{w};
  BlockCopies copies{w, calls, values, loop_records, frame, guards};
  MeetingEmitter meetings{w, calls, values, frame, copies};
  BarrierEmitter barriers{w, calls, values, record_groups, frame, copies};
  ArmEmitter arms{w, values, record_groups, copies};
  LaneLoopEmitter lane_loops{w, values, windows, slow, memory, frame, copies, guards};
  FetchAheadEmitter ahead{w, values};
  DeviceCalls device_calls{w, values, record_buffer, record_groups};
  MarkerEmitter markers{w,       calls,  values,   plain,   record_buffer, record_groups, loop_records, records,
                        windows, memory, memcheck, atomics, meetings,      barriers,      ahead,        device_calls};
  DispatchEmitter dispatcher{w, calls, frame, copies, meetings, barriers};
  CtaLoopEmitter cta_loop{w, values, record_buffer, loop_records, rows, copies};
  WholeConditions conditions{w, values};
  ControlEmitter control{w,        values,   record_buffer, record_groups, loop_records, load_groups, frame, copies,
                         meetings, barriers, arms,          lane_loops,    cta_loop,     conditions,  guards};
};

void WarpFunction::Emitters::EmitInstruction(llvm::Instruction& instruction) {
  if (llvm::isa<llvm::DbgInfoIntrinsic>(instruction)) return;
  w.b.SetCurrentDebugLocation(instruction.getDebugLoc());
  if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    if (intrinsic->isAssumeLikeIntrinsic() && instruction.getType()->isVoidTy()) return;
  }
  if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction)) {
    if (const MarkerInfo* info = w.module.MarkerOf(instruction)) return markers.EmitMarker(*call, *info);
    if (!call->getCalledFunction() || !call->getCalledFunction()->isIntrinsic()) return device_calls.EmitCall(*call);
  }
  plain.EmitPlain(instruction);
}

void WarpFunction::Emitters::Emit() {
  SinkRows(source, values);
  control.PrepareBlocks();
  access_calls.PlanAccesses();
  guards.Plan();
  control.EmitEntry();
  for (unsigned index = 0; index < source.order.blocks.size(); ++index) {
    control.EmitBlock(index, false);
    control.EmitBlock(index, true);
    if (!w.module.error.empty()) return;
  }
  dispatcher.EmitDispatch();
  meetings.LanesHaveEnded();
  meetings.EmitReleased();
  copies.ConnectDispatch();
  control.EmitEnd();
}

WarpFunction::WarpFunction(WarpModule& module, llvm::Function& source, bool is_kernel)
    : emitters_(std::make_unique<Emitters>(module, source, is_kernel)) {}

WarpFunction::~WarpFunction() = default;

void WarpFunction::SetTarget(llvm::Function& target) { emitters_->w.SetTarget(target); }

void WarpFunction::Emit() { emitters_->Emit(); }

bool WarpFunction::needs_yield() const { return emitters_->source.shapes.has_waiting_loops(); }

}  // namespace gridloom::exec
