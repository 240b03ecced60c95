// Markers: those of a kind that has an emitter go there; special registers, parameters, address conversion, shuffles
// and helpers are made here.
#pragma once

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class HelperCalls;
class WarpValues;
class PlainEmitter;
class RecordBuffer;
class RecordGroups;
class LoopRecordEmitter;
class RecordEmitter;
class MemoryWindows;
class MemoryEmitter;
class MemcheckEmitter;
class AtomicEmitter;
class MeetingEmitter;
class BarrierEmitter;
class FetchAheadEmitter;
class DeviceCalls;

class MarkerEmitter : Emitter {
 public:
  MarkerEmitter(WarpBuilder& w, HelperCalls& calls, WarpValues& values, PlainEmitter& plain,
                RecordBuffer& record_buffer, RecordGroups& record_groups, LoopRecordEmitter& loop_records,
                RecordEmitter& records, MemoryWindows& windows, MemoryEmitter& memory, MemcheckEmitter& memcheck,
                AtomicEmitter& atomics, MeetingEmitter& meetings, BarrierEmitter& barriers, FetchAheadEmitter& ahead,
                DeviceCalls& device_calls)
      : Emitter(w),
        calls_(calls),
        values_(values),
        plain_(plain),
        record_buffer_(record_buffer),
        record_groups_(record_groups),
        loop_records_(loop_records),
        records_(records),
        windows_(windows),
        memory_(memory),
        memcheck_(memcheck),
        atomics_(atomics),
        meetings_(meetings),
        barriers_(barriers),
        ahead_(ahead),
        device_calls_(device_calls) {}

  void EmitMarker(llvm::CallInst& call, const MarkerInfo& info);

 private:
  void EmitSpecial(llvm::CallInst& call, Special special);
  void EmitParam(llvm::CallInst& call, const MarkerInfo& info);
  void EmitSpaceConversion(llvm::CallInst& call, const MarkerInfo& info);
  void EmitShuffle(llvm::CallInst& call);
  Value* Permute(Value* lanes, Value* index);
  void EmitMatchAny(llvm::CallInst& call);
  void EmitHelperMarker(llvm::CallInst& call, const MarkerInfo& info);

  HelperCalls& calls_;
  WarpValues& values_;
  PlainEmitter& plain_;
  RecordBuffer& record_buffer_;
  RecordGroups& record_groups_;
  LoopRecordEmitter& loop_records_;
  RecordEmitter& records_;
  MemoryWindows& windows_;
  MemoryEmitter& memory_;
  MemcheckEmitter& memcheck_;
  AtomicEmitter& atomics_;
  MeetingEmitter& meetings_;
  BarrierEmitter& barriers_;
  FetchAheadEmitter& ahead_;
  DeviceCalls& device_calls_;
};

}  // namespace gridloom::exec
