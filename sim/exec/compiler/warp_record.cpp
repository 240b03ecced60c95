// Markers of records (sim/exec/contract/records.h): which of them share a group, and a look at the room.
#include "sim/exec/compiler/warp_record.h"

#include <algorithm>

#include "sim/exec/compiler/warp_record_buffer.h"
#include "sim/exec/compiler/warp_record_group.h"
#include "sim/exec/compiler/warp_record_loop.h"

namespace gridloom::exec {

/// Words that `call` adds at most: the head of a group, and the access's slot.
std::uint32_t RecordEmitter::RecordWords(const llvm::CallInst& call, const MarkerInfo& info) {
  constexpr std::uint32_t kHead = 2;
  if (RecordHeader::Unpack(info.imm).kind == RecordKind::kBlock) return kHead;
  std::uint64_t add = 0;
  if (loop_records_.PlaceInLoop(call, add)) return kHead + 1;
  return kHead +
         std::max(record_groups_.SlotWords(call.getArgOperand(0)), record_groups_.SlotWords(RecordRoot(call).first));
}

/// The next marker of a record behind `call` in its block that belongs to the same group: null where functions come
/// between.
const llvm::CallInst* RecordEmitter::NextRecord(const llvm::CallInst& call) const {
  for (const llvm::Instruction* next = call.getNextNode(); next; next = next->getNextNode()) {
    const auto* other = llvm::dyn_cast<llvm::CallInst>(next);
    if (!other) continue;
    const MarkerInfo* const marker = module_.MarkerOf(*other);
    if (marker && marker->kind == MarkerKind::kRecord) return other;
    if (MayRecord(module_, *other)) return nullptr;
  }
  return nullptr;
}

/// Makes sure that what `call` records has room behind record_cursor_. The cursor stays in a register from the first
/// record of a block on, and one look at the limit makes room for several: as many as come before the end of the block
/// or a call of a function, which may write records, too.
void RecordEmitter::MakeRecordRoom(const llvm::CallInst& call, const MarkerInfo& info) {
  const std::uint32_t needed = RecordWords(call, info);
  if (record_buffer_.cursor && record_buffer_.room >= needed) {
    record_buffer_.room -= needed;
    return;
  }
  record_groups_.SaveRecordCursor();
  std::uint32_t words = 0;
  for (const llvm::CallInst* next = &call; next; next = NextRecord(*next)) {
    const std::uint32_t more = RecordWords(*next, *module_.MarkerOf(*next));
    if (words + more > kMaxGroupWords) break;
    words += more;
  }
  record_buffer_.TakeRecordRoom(words);
  record_buffer_.room -= needed;
}

void RecordEmitter::EmitRecord(llvm::CallInst& call, const MarkerInfo& info) {
  const RecordHeader header = RecordHeader::Unpack(info.imm);
  const bool block = header.kind == RecordKind::kBlock;
  if (!w_.divergent && loop_records_.RepeatedLoopAt(source_.order.blocks[w_.current]))
    return;  // LeaveRecordLoop tells of all rounds
  if (block) record_groups_.CloseRecordGroup();
  MakeRecordRoom(call, info);
  if (!block) {
    if (!record_groups_.open) record_groups_.OpenRecordGroup(0);
    return loop_records_.AddToRecordGroup(call, header);
  }
  const llvm::CallInst* const next = NextRecord(call);
  if (next && RecordHeader::Unpack(module_.MarkerOf(*next)->imm).kind != RecordKind::kBlock)
    return record_groups_.OpenRecordGroup(header.Pack());
  record_buffer_.Put({record_groups_.RecordHead(header)});
}

}  // namespace gridloom::exec
