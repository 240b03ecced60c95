// Writes the group of records that is open: its head, and a slot for each place that accesses lie at.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/exec/compiler/record_loops.h"
#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_record_buffer.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

/// A group of records being written: the block's, and accesses in the order of the code.
struct OpenGroup {
  llvm::GlobalVariable* stands_for;  ///< for the RecordGroup
  std::uint64_t block, loop;
  std::vector<RecordAccess> accesses;
  std::vector<RecordSlot> slots;
  std::vector<LanePattern> patterns;
  std::map<std::pair<const llvm::Value*, Space>, std::size_t> slot_of;  ///< by RecordRoot
  std::map<std::uint32_t, std::size_t> slot_in_loop;                    ///< by slot of the loop
};

/// The address of an access as a value of its block and a constant.
std::pair<llvm::Value*, std::uint64_t> RecordRoot(const llvm::CallInst& call);

class RecordGroups : Emitter {
 public:
  RecordGroups(WarpBuilder& w, WarpValues& values, RecordBuffer& record_buffer)
      : Emitter(w), values_(values), record_buffer_(record_buffer) {}

  void SaveRecordCursor();
  std::uint32_t SlotWords(Value* root);
  void OpenRecordGroup(std::uint64_t block, bool repeats = false);
  void CloseRecordGroup();
  RecordSlot PutSlot(Value* root, const RecordHeader& header);
  Value* RecordHead(const RecordHeader& header);

  std::optional<OpenGroup> open;

 private:
  void PutEither(Value* root, const Linear& linear);
  RecordSlot PutFound(Value* root, const RecordHeader& header);
  Value* PutNear(const FoundLanes& found);
  Value* PutDistances(Value* low, Value* distances);
  Value* ActiveAddresses(Value* address);

  WarpValues& values_;
  RecordBuffer& record_buffer_;
};

}  // namespace gridloom::exec
