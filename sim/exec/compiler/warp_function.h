// Emits the warp form of one SPMD function. Internal to the vectoriser: vectorizer.cpp drives it; control flow is in
// warp_control.cpp (blocks and branches), warp_meeting.cpp (.sync instructions), warp_arms.cpp (short ifs),
// warp_lane_loop.cpp, warp_half_loop.cpp, warp_dispatch.cpp and warp_waiting.cpp; values and plain instructions in
// warp_values.cpp, what is computed once per warp in warp_entry.cpp; loads and stores in warp_memory.cpp, those without
// a pattern in warp_irregular.cpp, warp_rows.cpp, warp_group.cpp and warp_called_access.cpp, those that fail the check
// in warp_slow_access.cpp and warp_rare_call.cpp; atomics in warp_atomics.cpp; records in warp_record.cpp and
// warp_record_loop.cpp; the rest in warp_markers.cpp.
#pragma once

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>

#include <array>
#include <functional>
#include <map>
#include <optional>

#include "sim/exec/compiler/block_order.h"
#include "sim/exec/compiler/shape.h"
#include "sim/exec/compiler/thread_ends.h"
#include "sim/exec/compiler/vectorizer.h"

namespace gridloom::exec {

/// What the functions of one module share while it is vectorised.
struct WarpModule {
  WarpModule(SpmdModule& spmd, const CompileOptions& options, const AddressTaken& address_taken,
             const ThreadEnds& thread_ends)
      : spmd(spmd), options(options), address_taken(address_taken), thread_ends(thread_ends) {}

  SpmdModule& spmd;
  const CompileOptions& options;
  const AddressTaken& address_taken;
  const ThreadEnds& thread_ends;
  llvm::DenseMap<const llvm::Function*, llvm::Function*> warp_of;  ///< device function -> its warp form
  std::uint32_t static_shared_bytes = 0;
  bool simple_barriers = true;
  bool avx512 = false;
  unsigned few_lanes = 8;  ///< CompileOptions::few_lanes
  unsigned pieces = 1;     ///< machine vectors that 16 words take
  bool by_cta = false;     ///< the kernel's warp form is a CtaEntry
  bool gives_way = false;  ///< some warp gives way between barriers (give_way.h)
  std::string error;
  std::uint32_t check_sites = 1;                                 ///< memcheck: the next number of a global access
  llvm::DenseMap<const llvm::CallInst*, std::uint32_t> site_of;  ///< both copies of a block share it

  const MarkerInfo* MarkerOf(const llvm::Instruction& instruction) const;
};

/// The 32-lane type of a thread's value: <32 x T>; <32*k x T> for a small vector; struct by element. The same for fewer
/// lanes.
llvm::Type* WarpType(llvm::Type* type, unsigned lanes = kWarpSize);
/// The type in which a value is kept in memory between blocks: masks as i32.
llvm::Type* StorageType(llvm::Type* warp_type);

class WarpFunction {
 public:
  WarpFunction(WarpModule& module, llvm::Function& source, bool is_kernel);
  ~WarpFunction();
  /// The warp form to fill, before Emit.
  void SetTarget(llvm::Function& target);
  void Emit();
  bool needs_yield() const { return shapes_->has_waiting_loops(); }

 private:
  using Value = llvm::Value;

  // --- control (warp_control.cpp) ---
  void PrepareBlocks();
  void EmitEntry();
  void EmitBlock(unsigned index, bool divergent);
  void EmitTerminator(llvm::Instruction& terminator);
  void EmitReturn(llvm::ReturnInst& ret);
  llvm::BasicBlock* ExitOneByOne(const llvm::BranchInst& branch) const;
  void EmitLeaving(const llvm::BranchInst& branch, llvm::BasicBlock* exit, Value* taken);
  void EmitDivergentBranch(llvm::BranchInst& branch);
  void EmitEdge(llvm::BasicBlock* to, Value* mask);
  bool RunsTogether(const llvm::Loop& loop) const;
  void CopyPhis(llvm::BasicBlock* to, Value* mask);
  bool RunsByCta() const { return is_kernel_ && module_.by_cta; }
  void EmitLoopHead();
  void EmitLoopEnd();
  void KeepSlotsInMemory();

  // --- pending lanes and the dispatcher (warp_dispatch.cpp) ---
  static constexpr std::uint32_t kFuel = 64;  ///< trips of a waiting loop before others have their turn
  Value* PendingWord(unsigned word);
  void SetPendingWord(unsigned word, Value* value);
  Value* AnyPendingUpTo(unsigned from, unsigned to);
  Value* AnyPending();
  void AddLanesAt(unsigned block, Value* mask);
  void Pend(unsigned block, Value* mask);
  void PendIfAny(unsigned block, Value* mask);
  llvm::BasicBlock* EntryTo(unsigned block);
  llvm::BasicBlock* SlowArrival(unsigned block);
  void Arrive(unsigned to, Value* mask);
  void ArriveBack(unsigned to, Value* mask);
  void BurnFuel(Value* mask, llvm::BasicBlock* next);
  void TakePending(Value* index);
  void SetPendingBit(Value* index, bool pending);
  void EmitDispatch();
  void ConnectDispatch();

  // --- lanes that wait for the rest of their warp, or have ended (warp_waiting.cpp) ---
  Value* AnyIn(llvm::AllocaInst* set);
  void WaitIn(llvm::AllocaInst* set, llvm::BasicBlock* to);
  void ReleaseAll(llvm::AllocaInst* set);
  void DropEndedLanes(llvm::BasicBlock* to);
  void EmitFullBarrier();
  void EmitBarrierEnd(const llvm::CallInst& call, const MarkerInfo& info);

  // --- .sync instructions whose members come from different places (warp_meeting.cpp) ---
  Value* MeetingField(std::size_t offset);
  Value* WaitingLanes();
  void BeginMeetings();
  void BeginMet();
  void EmitMeet(const llvm::CallInst& meet, const MarkerInfo& info, llvm::BasicBlock* to);
  void EmitMet(llvm::CallInst& met, const MarkerInfo& info);
  Value* MetResult(unsigned index, Value* given);
  void MeetAgain(bool none_can_run);
  void EmitReleased();
  void LanesHaveEnded();

  // --- small arms (warp_arms.cpp) ---
  bool RunsThrough(const llvm::Instruction& instruction) const;
  bool IsSmallArm(const llvm::BasicBlock* block, const llvm::BasicBlock* from) const;
  llvm::BasicBlock* JoinOfArms(const llvm::BranchInst& branch) const;
  void EmitArm(llvm::BasicBlock* arm, llvm::BasicBlock* join, Value* mask, bool surely);
  void EmitArms(const llvm::BranchInst& branch, llvm::BasicBlock* join, Value* taken, bool both);

  // --- loops run lane by lane (warp_lane_loop.cpp) ---
  bool RunsLaneByLane(const llvm::Loop& loop);
  bool AlwaysRunsLaneByLane(const llvm::BasicBlock* block);
  bool IsSameAllAlong(const Value* value);
  bool IsLiveIn(const llvm::Loop& loop, const Value* value);
  struct LiveIn {
    std::vector<Value*> lanes;    ///< header phis and what the loop uses, where lanes differ
    std::vector<Value*> uniform;  ///< the rest
  };
  LiveIn LiveInOf(const llvm::Loop& loop);
  void EmitLaneLoop(const llvm::Loop& loop);
  std::vector<Value*> EmitLanesInTurn(const llvm::Loop& loop, const LiveIn& live_in,
                                      const std::vector<Value*>& results);
  void EmitLane(const llvm::Loop& loop, const std::function<Value*(Value*)>& outside,
                const std::function<Value*(Value*)>& begin, const std::function<void(llvm::PHINode&, Value*)>& leave);
  Value* EmitLaneAccess(llvm::CallInst& call, const MarkerInfo& info, const std::function<Value*(Value*)>& scalar);

  // --- half warps (warp_half_loop.cpp) ---
  bool half_warp() const { return width_ != kWarpSize; }
  llvm::Type* LanesType(llvm::Type* type) const { return WarpType(type, width_); }
  Value* PlacesOf(Value* mask);
  void BeginHalfWarp();
  void PackLiveIn(const llvm::Loop& loop, const LiveIn& live_in);
  Value* Pack(Value* lanes);
  Value* Unpack(Value* packed);
  Value* UnpackMask(Value* mask);
  Value* WarpMask() { return half_warp() ? UnpackMask(mask_) : mask_; }
  bool RunsAsHalf(const llvm::Loop& loop);
  std::vector<Value*> EmitHalfLoop(const llvm::Loop& loop, const LiveIn& live_in);
  Value* EmitHalfIteration(const llvm::Loop& loop, Value* active, std::vector<Value*>& results,
                           const std::function<llvm::BasicBlock*()>& left);
  /// For code that deals with the whole warp while a half is being emitted.
  class WholeWarp {
   public:
    explicit WholeWarp(WarpFunction& function)
        : function_(function), width_(function.width_), mask_(function.mask_), mask_lanes_(function.mask_lanes_) {
      if (!function.half_warp()) return;
      function.mask_ = function.WarpMask();
      function.mask_lanes_ = nullptr;
      std::swap(function.lanes_cache_, lanes_);
      function.width_ = kWarpSize;
    }
    ~WholeWarp() {
      if (width_ == kWarpSize) return;
      function_.lanes_cache_ = std::move(lanes_);
      function_.width_ = width_;
      function_.mask_ = mask_;
      function_.mask_lanes_ = mask_lanes_;
    }
    WholeWarp(const WholeWarp&) = delete;
    WholeWarp& operator=(const WholeWarp&) = delete;

   private:
    WarpFunction& function_;
    unsigned width_;
    Value *mask_, *mask_lanes_;
    llvm::DenseMap<const Value*, Value*> lanes_;
  };

  // --- values (warp_values.cpp) ---
  const Shape& ShapeOf(const Value* value);
  Value* Base(Value* value);   ///< the scalar of a uniform, affine or indexed value
  Value* Lanes(Value* value);  ///< all 32 lanes
  Value* Materialize(Value* value, const Shape& shape);
  void Define(llvm::Instruction* instruction, Value* value);  ///< scalar or lanes, as its shape says
  llvm::AllocaInst* SlotOf(const llvm::Instruction* instruction);
  Value* LoadSlot(const llvm::Instruction* instruction);
  void StoreSlot(const llvm::Instruction* instruction, Value* value, Value* mask);
  static bool UsedOutside(const llvm::Instruction& instruction);
  void EmitInstruction(llvm::Instruction& instruction);
  Value* EmitScalar(llvm::Instruction& instruction);
  Value* EmitAffineBase(llvm::Instruction& instruction, const Shape& shape);
  Value* EmitLanes(llvm::Instruction& instruction);
  Value* EmitLanesBinary(llvm::BinaryOperator& op);
  Value* EmitDivision(unsigned opcode, Value* a, Value* b);
  Value* EmitReciprocal(Value* x);
  void EmitRoundedF64(llvm::CallInst& call, std::uint64_t imm);  // warp_reciprocal.cpp
  Value* EmitLanesIntrinsic(llvm::CallInst& call);
  Value* EmitSmallVectorOp(llvm::Instruction& instruction);
  Value* SelectLanes(Value* lanes, Value* chosen, Value* otherwise);
  Value* Splat(Value* scalar);
  Value* PatternVector(const LanePattern& pattern, llvm::Type* element);

  // --- entry values (warp_entry.cpp) ---
  bool IsEntryValue(const Value* value);
  Value* EntryBase(llvm::Instruction* instruction);

  // --- memory (warp_memory.cpp) ---
  struct Window {
    Value* low;    ///< subtracted from the address before the check (null: 0)
    Value* limit;  ///< bytes
    Value* host;   ///< added to the address to get a host address (null: it is one)
    unsigned key;
    bool changes = false;  ///< low and limit are of this moment (memcheck)
  };
  struct Access {
    llvm::Type* element;
    unsigned count, element_bytes, bytes, align;  ///< align: what the program promises, a power of two
    Space space;
    bool strong;
    Value* line;
    std::uint32_t site = 0;  ///< memcheck's number of a global access
    Value* imm = nullptr;    ///< SlowAccessImm where it is not known at compile time
  };
  /// A scalar base plus a constant lane pattern; `valid` (i1 or null) says whether the lanes really are that.
  struct Linear {
    Value* base;
    LanePattern pattern;
    Value* valid;
  };
  enum class HalfKind { kConsecutive, kSame, kOther };
  static bool LeftToHelper(const Access& access);
  Window WindowOf(Space space);
  Window WindowOf(const llvm::CallInst& call, Access& access);
  Value* ScaledLimit(const Window& window, unsigned shift, std::uint64_t span);
  std::optional<LanePattern> PatternOf(Value* address);
  bool InRows(Value* address, const Access& access, bool store);
  bool InRowsOfWhole(Value* address, const Access& access, bool store);
  std::optional<Linear> AsLinear(Value* address);
  bool ProvenInRange(const Value* address, const Access& access) const;
  Value* LinearInRange(const Linear& linear, const Access& access, const Window& window);
  Value* HostLanes(Value* addresses, const Access& access, const Window& window);
  static HalfKind Classify(const LanePattern& pattern, unsigned half, unsigned bytes);
  using Parts = std::function<std::vector<Value*>()>;
  std::vector<Value*> FastOrSlow(Value* ok, const Parts& fast, const Parts& slow);
  void EmitLoad(llvm::CallInst& call, const MarkerInfo& info);
  void EmitStore(llvm::CallInst& call, const MarkerInfo& info);
  Value* LoadScalar(Value* address, Value* ok, const Access& access, const Window& window, llvm::Type* type);
  void EmitUniformLoad(llvm::CallInst& call, const Access& access, const Window& window);
  Value* LoadHalf(Value* base, std::int64_t offset, HalfKind kind, unsigned half, const Access& access);
  std::vector<Value*> LoadHalves(const Linear& linear, const Access& access, const Window& window);
  /// Host addresses for a slow path: base + scale * index, or lane by lane.
  struct SlowPlace {
    Value* lanes = nullptr;  ///< i64 each; null where there is an index
    Value* base = nullptr;   ///< i64
    Value* index = nullptr;  ///< i32 each
    std::int64_t scale = 1;
    bool index_signed = true;
  };
  bool SwitchesInLine() const;
  SlowPlace SlowPlaceOf(Value* address, const Access& access, const Window& window);
  llvm::Function* SlowFunction(const char* what, const SlowPlace& place, unsigned bytes, unsigned lines,
                               llvm::Type* result, llvm::Type* data, bool& made);
  llvm::SmallVector<Value*, 12> SlowArguments(const SlowPlace& place, const Access& access,
                                              llvm::ArrayRef<Value*> lines);
  Value* SlowAddresses(llvm::Function* function, const SlowPlace& place);
  void WithPackedOf(llvm::Function* function, const SlowPlace& place, const std::function<void()>& body);
  llvm::Function* SlowLoadFunction(const SlowPlace& place, unsigned bytes, unsigned lines);
  llvm::Function* SlowLoadOneFunction(unsigned bytes);
  llvm::Function* SlowStoreFunction(const SlowPlace& place, unsigned bytes);
  Value* CallRarely(llvm::Function* function, llvm::ArrayRef<Value*> arguments);  // warp_rare_call.cpp
  Value* SlowImm(const Access& access);
  std::vector<Value*> SlowLoad(Value* host, const Access& access);
  std::vector<Value*> SlowLoads(SlowPlace place, const Access& access, llvm::ArrayRef<Value*> lines);
  std::vector<Value*> SlowLoadOne(Value* host, const Access& access);
  void StoreHalf(Value* at, unsigned half, const Access& access, const std::vector<Value*>& values);
  void StoreHalves(const Linear& linear, const Access& access, const Window& window, const std::vector<Value*>& values);
  void SlowStore(SlowPlace place, const Access& access, std::vector<Value*> values);
  std::vector<Value*> Deinterleave(Value* wide, unsigned count);
  Value* Interleave(const std::vector<Value*>& parts);
  Value* HalfMask(unsigned half, unsigned count);
  Value* ActiveLanes();
  void CompilerFence();

  // --- memcheck (warp_memcheck.cpp) ---
  bool EmitSyncCheck(const llvm::CallInst& call, const MarkerInfo& info);
  bool memcheck() const { return module_.options.memcheck; }
  Window SiteWindow(const llvm::CallInst& call, Access& access);
  Value* SharedChecked(Value* address, const Access& access, AccessKind kind);
  llvm::Function* SharedCheckFunction(llvm::Type* offsets_type);
  void CheckOrder(std::uint64_t among);
  void EmitLoadedBits(llvm::CallInst& call, const MarkerInfo& info);
  void EmitStoredBits(llvm::CallInst& call, const MarkerInfo& info);
  void EmitUseInvalid(llvm::CallInst& call, const MarkerInfo& info);
  llvm::Function* LoadedBitsFunction(llvm::Type* element);
  llvm::Function* StoredBitsFunction(llvm::Type* bits, unsigned count);
  llvm::Function* UseInvalidFunction();
  void IfAny(Value* lanes, const std::function<void()>& then);
  Access AccessOf(const llvm::CallInst& call, const MarkerInfo& info);

  // --- records (warp_record.cpp) ---
  /// A group of records being written: the block's, and accesses in the order of the code. Zeros come from emplace():
  /// with initialisers here clang has no default constructor for an optional in the same class.
  struct OpenGroup {
    llvm::GlobalVariable* stands_for;  ///< for the RecordGroup
    std::uint64_t block, loop;
    std::vector<RecordAccess> accesses;
    std::vector<RecordSlot> slots;
    std::vector<LanePattern> patterns;
    std::map<std::pair<const Value*, Space>, std::size_t> slot_of;  ///< by RecordRoot
    std::map<std::uint32_t, std::size_t> slot_in_loop;              ///< by slot of the loop
  };
  void EmitRecord(llvm::CallInst& call, const MarkerInfo& info);
  void MakeRecordRoom(const llvm::CallInst& call, const MarkerInfo& info);
  void TakeRecordRoom(std::uint32_t words);
  Value* RecordCursorOf(Value* warp);
  Value* FlushRecordsBeyondLimit(Value* cursor);
  void SaveRecordCursor();
  void EndWarpRecords();
  void TakeRecordCursor();
  void ReturnRecordCursor();
  std::uint32_t RecordWords(const llvm::CallInst& call, const MarkerInfo& info);
  std::uint32_t SlotWords(Value* root);
  const llvm::CallInst* NextRecord(const llvm::CallInst& call) const;
  bool MayRecord(const llvm::CallInst& call) const;
  void OpenRecordGroup(std::uint64_t block, bool repeats = false);
  void CloseRecordGroup();
  static std::pair<Value*, std::uint64_t> RecordRoot(const llvm::CallInst& call);
  void AddToRecordGroup(llvm::CallInst& call, const RecordHeader& header);
  RecordSlot PutSlot(Value* root, const RecordHeader& header);
  void PutEither(Value* root, const Linear& linear);
  /// Lanes that only the run tells.
  struct FoundLanes {
    Value* root;
    Value* lanes;           ///< <32 x i64> addresses; or with a base <32 x i32>, an index
    Value* base = nullptr;  ///< i64
    std::int64_t unit = 1;  ///< of the index, in bytes
    bool index_signed = false;
  };
  FoundLanes FoundLanesOf(Value* root);
  RecordSlot PutFound(Value* root, const RecordHeader& header);
  Value* PutNear(const FoundLanes& found);
  Value* PutDistances(Value* low, Value* distances);
  Value* ActiveLanes(Value* address);
  llvm::AllocaInst* FetchedUntil(std::uint64_t array);
  std::pair<Value*, Value*> ExtentOf(Value* address);
  void FetchAhead(const llvm::CallInst& call, std::uint64_t array);
  Value* PutWords(Value* cursor, llvm::ArrayRef<Value*> words);
  Value* RecordHead(const RecordHeader& header);
  llvm::Function* RecordHelper(const char* name, Helper helper);

  // --- records of loops (warp_record_loop.cpp) ---
  /// What is made of a loop of SpmdModule::record_loops.
  struct LoopOfRecords {
    std::vector<std::int32_t> places;    ///< of its slots, in the group that begins it; -1: none
    std::uint32_t words = 0;             ///< of that group, at most
    bool told = false;                   ///< it has such places, or repeats
    bool repeats = false;                ///< where all lanes run it, one record tells all rounds
    llvm::AllocaInst* rounds = nullptr;  ///< that have ended, i64
  };
  LoopOfRecords& RecordLoopAt(std::uint32_t number);
  LoopOfRecords PlanRecordLoop(const RecordLoop& from);
  bool RepeatsRecords(const llvm::Loop& loop, const std::vector<std::int32_t>& places);
  std::optional<std::uint32_t> RecordLoopOf(const llvm::Loop* loop) const;
  std::optional<std::uint32_t> RepeatedLoopAt(const llvm::BasicBlock* block);
  void BeginRecordLoop(std::uint32_t number);
  void CountRound(const llvm::BasicBlock* to);
  void LeaveRecordLoop(const llvm::BasicBlock* to);
  std::optional<std::uint32_t> PlaceInLoop(const llvm::CallInst& call, std::uint64_t& add);
  std::optional<std::size_t> SlotInLoop(const llvm::CallInst& call, std::uint64_t& add);
  std::size_t PutRounds(Value* rounds);

  // --- irregular accesses (warp_irregular.cpp) ---
  /// The lanes' addresses: 64 bits each, or the scalar of `address` plus (index * factor) << shift.
  struct Irregular {
    Value* address;
    Value* lanes;  ///< <32 x i64>, null when indexed
    Value* index;  ///< <32 x i32>, null when not
    std::int64_t factor;
    unsigned shift;
    bool index_signed;
  };
  struct IndexBounds {
    Value *low, *steps;
  };
  struct Split {
    llvm::BasicBlock *rows, *same, *others, *joined;  ///< rows, same: null when they cannot be
  };
  Irregular IrregularOf(Value* address, const Access& access);
  IndexBounds MakeBounds(const Irregular& at, llvm::ArrayRef<Value*> bases, const Access& access, const Window& window);
  static unsigned BoundsRotation(const Irregular& at, const Access& access);
  IndexBounds BoundsOf(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window);
  Value* IrregularInRange(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window);
  Value* ScaledIndex(const Irregular& at);
  Value* HostBase(const Irregular& at, const Window& window);
  Value* HostPointers(const Irregular& at, const Access& access, const Window& window);
  Value* SpillPointers(const Irregular& at, const Access& access, const Window& window);
  Value* LanePointer(const Irregular& at, Value* spilled, const Window& window, Value* lane);
  void WhileLanesAreLeft(const std::function<Value*(Value* left)>& body);
  void ForEachActiveLane(const std::function<void(Value* lane)>& body);
  Value* HalvesInStep(Value* lanes, std::int64_t step);
  Value* HalfAddress(const Irregular& at, unsigned half, const Window& window);
  Split SplitByRows(const Irregular& at, const Access& access, bool with_same);
  Value* GatherSmall(const Irregular& at, const Access& access, const Window& window);
  Value* GatherWhole(const Irregular& at, const Access& access, const Window& window);
  struct PieceLoads {
    Value* offsets = nullptr;  ///< where they lie, one a lane
    llvm::Type* offset_type = nullptr;
    unsigned shift = 0;  ///< offsets from `starts` are in units of 1 << shift bytes
    llvm::Type* piece = nullptr;
    llvm::Align align{};
    std::vector<Value*> starts{};  ///< by place; empty: offsets are addresses
  };
  PieceLoads PiecesAt(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window);
  Value* OffsetOf(const PieceLoads& pieces, unsigned lane);
  Value* LoadPiece(const PieceLoads& pieces, std::size_t place, Value* offset);
  Value* LoadFour(const PieceLoads& pieces, std::size_t place, llvm::ArrayRef<Value*> offsets);
  std::vector<Value*> LoadQuads(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window);
  std::vector<Value*> LoadPairs(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window);
  Value* Concatenate(Value* a, Value* b);
  std::array<Value*, 4> Transpose(const std::array<Value*, 4>& rows);
  std::vector<Value*> Gather(llvm::ArrayRef<Irregular> places, const Access& access, const Window& window);
  std::vector<Value*> LoadIrregularGroup(llvm::ArrayRef<Irregular> places, const Access& whole, const Access& row,
                                         const Window& window, llvm::AllocaInst* in_rows);
  static std::int64_t RowStep(const Irregular& at, const Access& access);
  llvm::AllocaInst* RowNote(const llvm::CallInst& load, const Irregular& at, const Access& access);
  Value* RowsSeen(const llvm::CallInst& store, const Irregular& at, const Access& access);
  void Scatter(const Irregular& at, const Access& access, const Window& window, const std::vector<Value*>& values);
  void StoreIrregular(const Irregular& at, const Access& access, const Window& window,
                      const std::vector<Value*>& values, Value* rows);
  void StoreSame(Value* base, const Access& access, const Window& window, const std::vector<Value*>& values);

  // --- accesses by call (warp_called_access.cpp) ---
  class Nested;
  bool IsIrregular(const llvm::CallInst& call, const MarkerInfo& info);
  void PlanAccesses();
  bool ByCall(const llvm::CallInst& call) const;
  Irregular PassedAs(const Irregular& at);
  llvm::Function* AccessFunction(const char* what, const Irregular& at, const Access& access, llvm::Type* result,
                                 llvm::ArrayRef<llvm::Type*> more, bool& made);
  Irregular PlaceIn(llvm::Function* function, const Irregular& at);
  llvm::SmallVector<Value*, 8> AccessArguments(const Irregular& at, const Access& access);
  Value* HostAddresses(const Irregular& at, const Access& access, const Window& window);
  void NoteAccessLine(Value* line);
  std::vector<Value*> CallLoad(const Irregular& place, const Access& whole, const Access& row,
                               llvm::ArrayRef<Value*> lines);
  void EmitLoadFunction(llvm::Function* function, const Irregular& passed, Access whole, Access row, unsigned lines);
  void CallStore(const Irregular& place, const Access& access, const std::vector<Value*>& values);
  void EmitStoreFunction(llvm::Function* function, const Irregular& passed, Access access);

  // --- groups of loads (warp_group.cpp) ---
  using LoadGroup = std::vector<llvm::CallInst*>;
  std::vector<llvm::CallInst*> LoadsAfter(const llvm::CallInst& call) const;
  bool MayJoin(const llvm::CallInst& load, const MarkerInfo& info, const Access& access) const;
  LoadGroup GroupFrom(llvm::CallInst& call, const Access& access);
  bool MakeReady(Value* value, const llvm::Instruction& at);
  std::vector<LoadGroup> GroupsFrom(llvm::CallInst& call, const Access& access);
  bool MayGroup(const Access& access) const;
  void CallGroup(const LoadGroup& group, const Access& single);
  void DefineGroup(const LoadGroup& group, llvm::ArrayRef<Value*> parts, bool first_is_current);
  void EmitGroups(const std::vector<LoadGroup>& groups, const Access& single, const Window& window);

  // --- atomics (warp_atomics.cpp) ---
  void EmitAtomic(llvm::CallInst& call, const MarkerInfo& info);
  void SlowAtomic(Value* host, const Access& access, std::uint64_t imm, Value* out, Value* b, Value* c);
  Value* FlushesAt(std::uint64_t imm, Space space, Value* pointer);
  Value* LaneAtomic(std::uint64_t imm, Space space, Value* pointer, Value* b, Value* c);
  void AtomicLoop(std::uint64_t imm, const Irregular& at, const Access& access, const Window& window, Value* out,
                  Value* b, Value* same_b, Value* c);

  // --- markers (warp_markers.cpp) ---
  void EmitMarker(llvm::CallInst& call, const MarkerInfo& info);
  void EmitSpecial(llvm::CallInst& call, Special special);
  void EmitParam(llvm::CallInst& call, const MarkerInfo& info);
  void EmitSpaceConversion(llvm::CallInst& call, const MarkerInfo& info);
  void EmitShuffle(llvm::CallInst& call);
  Value* Permute(Value* lanes, Value* index);
  void EmitHelperMarker(llvm::CallInst& call, const MarkerInfo& info);
  void EmitCall(llvm::CallInst& call);
  void EmitIndirectCall(llvm::CallInst& call);
  llvm::Function* IndirectTarget(llvm::FunctionType* warp_type);
  /// Calls a runtime helper. Pointers in `args` are to 32-lane arrays.
  void CallHelper(Helper helper, Value* mask, Value* line, std::uint64_t imm, llvm::ArrayRef<Value*> args);
  llvm::Function* OutOfLine(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> more,
                            llvm::Type* addresses = nullptr);
  static Value* AlignedAlloca(llvm::IRBuilder<>& b, llvm::Type* type);
  static void CallHelperFrom(llvm::IRBuilder<>& b, llvm::Function* function, Helper helper, llvm::ArrayRef<Value*> args,
                             Value* line = nullptr);
  Value* Scratch(unsigned slot, unsigned bytes);  ///< stack buffer shared by all helper calls of the function
  Value* SpillLanes(unsigned slot, Value* lanes);
  Value* ReloadLanes(Value* buffer, llvm::Type* warp_type);
  void EmitRingSwitch();

  // --- context (warp_markers.cpp) ---
  Value* ExitedMask();  ///< where the warp keeps it
  Value* WarpField(std::size_t offset, llvm::Type* type);
  Value* LaunchField(std::size_t offset, llvm::Type* type);
  Value* CtaField(std::size_t offset, llvm::Type* type);
  static std::string FieldKey(char which, std::size_t offset) { return std::string(1, which) + std::to_string(offset); }
  Value* FieldOf(Value* base, char which, std::size_t offset, llvm::Type* type);
  /// A value computed once, in the entry block, and remembered by `key`.
  Value* AtEntry(const std::string& key, const std::function<Value*()>& make);

  /// What is loaded or materialised while a side block is emitted must not be used after it: it does not dominate.
  class Scope {
   public:
    explicit Scope(WarpFunction& function)
        : function_(function),
          base_(function.base_cache_),
          lanes_(function.lanes_cache_),
          mask_lanes_(function.mask_lanes_) {}
    ~Scope() {
      function_.base_cache_ = std::move(base_);
      function_.lanes_cache_ = std::move(lanes_);
      function_.mask_lanes_ = mask_lanes_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    WarpFunction& function_;
    llvm::DenseMap<const Value*, Value*> base_, lanes_;
    Value* mask_lanes_;
  };

  Value* MaskLanes();
  Value* ToLaneMask(Value* mask);
  Value* ToBits(Value* lane_mask);
  llvm::BasicBlock* NewBlock(const char* name);
  llvm::MDNode* Unlikely();
  llvm::MDNode* Likely();

  WarpModule& module_;
  llvm::Function& source_;
  llvm::Function* target_ = nullptr;
  bool is_kernel_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;

  std::unique_ptr<llvm::DominatorTree> dominators_;
  std::unique_ptr<llvm::LoopInfo> loops_;
  BlockOrder order_;
  std::unique_ptr<ShapeAnalysis> shapes_;

  llvm::Value* warp_ = nullptr;
  llvm::PHINode* trail_ = nullptr;  ///< of a CtaEntry: its trail plus the number of the warp
  llvm::BasicBlock* entry_ = nullptr;
  llvm::BasicBlock* head_ = nullptr;  ///< where a warp starts: the entry, or the head of the loop over the CTA's warps
  std::map<std::string, Value*> entry_values_;
  std::vector<llvm::BasicBlock*> converged_, divergent_blocks_, slow_arrivals_, entries_;
  llvm::DenseSet<const llvm::BasicBlock*> arms_;  ///< small arms of divergent branches: no divergent copy of their own
  llvm::BasicBlock* dispatch_ = nullptr;
  llvm::BasicBlock* done_ = nullptr;
  llvm::BasicBlock* unreachable_ = nullptr;
  llvm::AllocaInst* mask_slot_ = nullptr;
  llvm::AllocaInst* pending_ = nullptr;        ///< words of the pending set
  llvm::AllocaInst* parked_ = nullptr;         ///< same, lanes waiting at a barrier
  llvm::AllocaInst* pending_masks_ = nullptr;  ///< mask per block
  llvm::AllocaInst* return_slot_ = nullptr;
  llvm::AllocaInst* fuel_slot_ = nullptr;
  unsigned pending_words_ = 1;
  unsigned barriers_ = 0;                               ///< instructions
  llvm::DenseSet<const llvm::BasicBlock*> met_blocks_;  ///< those that follow a meeting
  llvm::AllocaInst* meetings_ = nullptr;                ///< a WarpMeetings; null without meetings
  llvm::BasicBlock* released_ = nullptr;                ///< makes the lanes pending that a helper has released
  llvm::BasicBlock* ended_ = nullptr;                   ///< where lanes end
  llvm::MapVector<const llvm::Instruction*, llvm::AllocaInst*> slots_;  ///< in an order that no address decides
  std::map<unsigned, std::pair<llvm::AllocaInst*, unsigned>> scratch_;

  struct RowNoteOf {
    const Value* index;
    std::int64_t step;
    llvm::AllocaInst* in_rows;  ///< i1
  };
  llvm::MapVector<const llvm::CallInst*, RowNoteOf> row_notes_;  ///< by load
  llvm::DenseMap<const Value*, llvm::SmallVector<const llvm::CallInst*, 2>> row_notes_by_index_;

  llvm::DenseSet<const llvm::CallInst*> in_line_;  ///< irregular accesses that are never made by call
  bool has_many_accesses_ = false;                 ///< irregular ones

  // The block copy being emitted.
  unsigned current_ = 0;
  bool divergent_ = false;
  bool divergent_copy_ = false;  ///< of the block; a small arm is divergent in either
  Value* mask_ = nullptr;        ///< active mask (i32); constant -1 in the converged copy
  Value* mask_lanes_ = nullptr;
  Value* met_ = nullptr;   ///< behind a meeting, in the divergent copy: active lanes that have results to take (i32)
  Value* here_ = nullptr;  ///< with it: all active lanes
  unsigned width_ = kWarpSize;  ///< lanes of a value; half of that in a half warp, whose mask_ has as many bits
  Value* packed_ = nullptr;     ///< half warp: which lanes of the warp it consists of (i32)
  Value* places_ = nullptr;     ///< half warp: their numbers, <16 x i32>
  llvm::DenseMap<const Value*, Value*> base_cache_, lanes_cache_;
  llvm::DenseSet<const llvm::Instruction*> grouped_;  ///< loads that are already done
  llvm::AllocaInst* record_cursor_slot_ = nullptr;    ///< where the next record goes, between blocks
  Value* record_cursor_ = nullptr;                    ///< the same in the block; null: as the slot says
  std::uint32_t record_room_ = 0;                     ///< words for which there is room from there on
  std::optional<OpenGroup> record_group_;
  std::map<std::uint32_t, LoopOfRecords> record_loops_;       ///< by number
  std::map<std::uint64_t, llvm::AllocaInst*> fetched_until_;  ///< by array
  llvm::DenseMap<const Value*, Shape> shape_cache_;
  llvm::DenseMap<const Value*, bool> is_entry_value_;
};

}  // namespace gridloom::exec
