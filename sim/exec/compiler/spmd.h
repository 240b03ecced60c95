// SPMD form: the LLVM IR between the lifter and the vectoriser.
//
// A PTX function becomes an LLVM function that describes ONE thread, in plain scalar IR. What is plain computation is
// plain IR (add, fma, icmp, select, phi, br …). Everything that touches the machine (memory, thread identity, other
// lanes, the runtime) is a call of a *marker*: a declared function whose meaning is a MarkerInfo. LLVM optimises the
// scalar form with its usual passes; the vectoriser then turns it into one function per warp, giving each marker its
// 32-lane form.
//
// Rules the lifter keeps:
//  * no undef or poison: registers start as zero, shift counts are clamped, no nsw/nuw/exact/fast-math flags, float to
//    integer conversions are clamped before fptosi/fptoui, division guards its divisor;
//  * memory only through markers (allocas are for PTX registers and scalar call parameters, promoted to SSA at once);
//  * addresses are i64: generic and global ones are host addresses, shared and local ones offsets in their window;
//  * side effects under a guard predicate are put behind a branch; pure instructions use select.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/exec/compiler/record_loops.h"
#include "sim/exec/contract/abi.h"
#include "sim/exec/contract/immediates.h"
#include "sim/exec/contract/records.h"

namespace gridloom::exec {

/// Functions whose address is taken, with the number their pointers carry.
using AddressTaken = std::vector<std::pair<std::uint32_t, llvm::Function*>>;

enum class MarkerKind : std::uint8_t {
  kSpecial,      ///< special register; `special`
  kParam,        ///< load from the kernel parameter block: (i64 offset); `element`, `count`
  kSymbol,       ///< device address of module variable number `imm`: () -> i64
  kLoad,         ///< (i64 address, i32 line) -> element or {element x count}; `space`, `strong`
  kStore,        ///< (i64 address, element x count, i32 line)
  kAtomic,       ///< (i64 address, b, c, i32 line) -> old value; `space`, `imm` = AtomicImm
  kToGeneric,    ///< (i64 offset in `space`) -> i64 host address
  kFromGeneric,  ///< (i64 host address) -> i64 offset in `space`
  kIsSpace,      ///< (i64 host address) -> i1: does it lie in `space`
  kBallot,       ///< (i1) -> i32: the predicate of every active lane
  kActiveMask,   ///< () -> i32
  kShuffle,      ///< (i32 value, i32 source lane, i1 valid) -> i32: value of the source lane, own value where not valid
  kBarrier,      ///< (i32 id, i32 threads or 0, i1 predicate, i32 line) -> i32; `imm` = BarrierOp, kBarrierAligned
  kSync,  ///< (i32 membermask, inputs…, i32 line) -> what Exchange gives; `imm` = SyncImm. LowerSyncs replaces all of
          ///< them
  kWarpSync,  ///< (i32 membermask); `imm` = SyncImm. What Exchange makes of it comes right behind
  kMeet,  ///< (i32 membermask, inputs…): a kWarpSync whose members may come from elsewhere (meetings.h); ends its block
  kMet,           ///< (what Exchange gave) -> the same of the lanes that have met; `imm`: which of its results
  kGiveWay,       ///< (): the other warps of the CTA run first, each up to where it waits (give_way.h)
  kExit,          ///< () noreturn-like: the thread ends (in functions; kernels simply return)
  kRecord,        ///< (i64 address) or, of a block, (): `imm` = RecordHeader without mask
  kRecordLoop,    ///< (i64 start, i64 step, …): loop number `imm` of SpmdModule::record_loops begins
  kFetchAhead,    ///< (i64 start): lanes are about to go through memory from there; `imm`: the number of an array
                  ///< (fetch_ahead.h)
  kIndirectCall,  ///< (i64 function address, arguments…) -> result: call through a pointer
  kHelper,        ///< (inputs…, i32 line) -> output or {outputs…}: runtime helper `helper` with immediate `imm`
};

enum class Special : std::uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kNwarpId,
  kSmId,
  kNsmId,
  kGridId,
  kDynamicSharedBytes,
  kTotalSharedBytes,
  kClusterRank,
  kClusterDimX,
  kClusterDimY,
  kClusterDimZ,
  kSharedOffset,
  kSharedStride,
  kGridWorkspaceLow,
  kGridWorkspaceHigh,
  kOwnMemoryLow,
  kOwnMemoryHigh,
};

struct MarkerInfo {
  MarkerKind kind;
  Space space = Space::kGlobal;
  Special special = Special::kTidX;
  Helper helper = Helper::kCount;
  bool strong = false;            ///< volatile, relaxed or stronger: never merged, moved or dropped
  bool checked = false;           ///< of a read of shared memory: memcheck has nothing against it (read_groups.h)
  std::uint32_t count = 1;        ///< vector width of a load or store
  llvm::Type* element = nullptr;  ///< of a load, store or parameter load
  std::uint64_t imm = 0;
};

/// An LLVM module in SPMD form: the IR and what its markers mean.
class SpmdModule {
 public:
  SpmdModule(llvm::LLVMContext& context, llvm::StringRef name);

  llvm::Module& ir() { return *module_; }
  std::unique_ptr<llvm::Module> TakeIr() { return std::move(module_); }
  /// Meaning of a callee, or null when it is an ordinary function.
  const MarkerInfo* Find(const llvm::Function* callee) const;
  /// The marker declaration for `info` with that signature; made on first use, with the attributes its kind implies.
  llvm::Function* Marker(const MarkerInfo& info, llvm::Type* result, llvm::ArrayRef<llvm::Type*> args);

  RecordLoopTable record_loops;  ///< PlaceRecordLoops

 private:
  std::unique_ptr<llvm::Module> module_;
  std::map<std::string, llvm::Function*> by_name_;
  llvm::DenseMap<const llvm::Function*, MarkerInfo> info_;
};

/// Convenience for the lifter: IRBuilder plus one method per marker. `line` is the current PTX line, set per
/// instruction.
class SpmdBuilder : public llvm::IRBuilder<> {
 public:
  SpmdBuilder(SpmdModule& module) : llvm::IRBuilder<>(module.ir().getContext()), module_(module) {}

  std::uint32_t line = 0;
  Recording record = Recording::kNone;  ///< what is recorded of what comes from here on
  std::uint32_t number = 0;             ///< of the current instruction, for records
  SpmdModule& spmd() { return module_; }

  llvm::Value* SpecialReg(Special special);                          // i32 (i64 for kGridId)
  llvm::Value* LoadParam(llvm::Type* element, llvm::Value* offset);  // offset: i64
  llvm::Value* SymbolAddress(std::uint32_t index);
  /// Result is `element` for count 1, else a struct {element, …}.
  llvm::Value* LoadMem(Space space, llvm::Type* element, unsigned count, llvm::Value* address, bool strong);
  void StoreMem(Space space, llvm::ArrayRef<llvm::Value*> values, llvm::Value* address, bool strong);
  /// `c` is the swap value of compare-and-swap (b = compare), otherwise null. Old value returned in b's type.
  llvm::Value* Atomic(Space space, AtomicOp op, AtomicType type, llvm::Value* address, llvm::Value* b, llvm::Value* c,
                      bool result_unused, AtomicFlush flush = AtomicFlush::kNever);
  llvm::Value* ToGeneric(Space space, llvm::Value* offset);
  llvm::Value* FromGeneric(Space space, llvm::Value* address);
  llvm::Value* IsSpace(Space space, llvm::Value* address);
  llvm::Value* Ballot(llvm::Value* predicate);
  llvm::Value* ActiveMask();
  llvm::Value* Shuffle(llvm::Value* value, llvm::Value* source_lane, llvm::Value* valid);
  /// `flags`: kBarrierAligned or 0.
  llvm::Value* Barrier(BarrierOp op, llvm::Value* id, llvm::Value* threads, llvm::Value* predicate,
                       std::uint64_t flags = 0);
  /// A .sync instruction of `members`. Result and inputs as those of Exchange.
  llvm::Value* Sync(const SyncImm& imm, llvm::Value* members, llvm::ArrayRef<llvm::Value*> inputs);
  void WarpSync(const SyncImm& imm, llvm::Value* members);
  /// What `imm` stands for among the active lanes. Inputs and result: elect () -> i32 who is active; ballot (i1) ->
  /// i32; uni (i1) -> i1; shuffle as kShuffle; match (i64) -> as kMatchAny and kMatchAll; redux (i32) -> i32. Null for
  /// a barrier.
  llvm::Value* Exchange(const SyncImm& imm, llvm::Value* members, llvm::ArrayRef<llvm::Value*> inputs);
  void ExitThread();
  llvm::Value* IndirectCall(llvm::Type* result, llvm::Value* function, llvm::ArrayRef<llvm::Value*> args);
  /// A block begins at the current instruction.
  void RecordBlock();
  /// The current instruction accesses `bytes` at `address`. LoadMem, StoreMem and Atomic record themselves.
  void RecordAccess(AccessKind kind, Space space, std::size_t bytes, llvm::Value* address);
  /// Calls runtime helper `helper`. Outputs: none -> void, one -> that type, more -> a struct of them.
  llvm::Value* CallHelper(Helper helper, llvm::ArrayRef<llvm::Type*> outputs, llvm::ArrayRef<llvm::Value*> inputs,
                          std::uint64_t imm = 0);

 private:
  void RecordElements(AccessKind kind, Space space, llvm::Type* element, std::size_t count, llvm::Value* address);

  SpmdModule& module_;
};

}  // namespace gridloom::exec
