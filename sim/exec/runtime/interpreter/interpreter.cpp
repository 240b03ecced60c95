#include "sim/exec/runtime/interpreter/interpreter.h"

#include <alloca.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/interpreter/check_bytecode.h"
#include "sim/exec/simd.h"

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kFuel = 64;  // trips of a loop that waits, before others have their turn: as in warp_copies.h
constexpr std::size_t kFrameReserve = 4096;  // of the host's stack, beside registers: the interpreter's own functions

StepFn Resolve(const ByteStep& step) {
  StepFn found = UsableSimd() == SimdLevel::kBaseline ? PlainStepBaseline(step) : PlainStepAvx2(step);
  if (!found) found = MemoryStep(step);
  if (!found) found = CheckStep(step);
  return found ? found : MachineStep(step);
}

/// Bytes of the registers, the sets of blocks, and what meetings need.
std::size_t FrameBytes(const ByteFunction& form) {
  const std::size_t blocks = form.blocks.size(), words = (blocks + 63) / 64;
  return form.frame_bytes + words * 16 + blocks * 4 + (form.has_meetings ? sizeof(WarpMeetings) : 0) + 128 +
         kMostRegisterBytes;
}

/// Helpers that change nothing but registers and the warp's own CTA, and wait for nobody outside of it. A fence is not
/// among them: what comes before it may be looked at by whoever sees what comes after it, the host for one.
bool StaysInCta(Helper helper) {
  switch (helper) {
    case Helper::kTrap:
    case Helper::kInvalidCall:
    case Helper::kF64Rounded:
    case Helper::kTexture:
    case Helper::kTextureGather:
    case Helper::kImageQuery:
    case Helper::kSurfaceLoad:
    case Helper::kMma:
    case Helper::kScaledMma:
    case Helper::kTransposeMatrix:
    case Helper::kLoadRows:
    case Helper::kMatrixLoad:
    case Helper::kMatchAny:
    case Helper::kMatchAll:
    case Helper::kRedux: return true;
    default: return false;
  }
}

bool CanBeUndone(const ByteStep& step) {
  switch (step.code) {
    case ByteCode::kAtomic: return AtomicSpace(step) == Space::kShared;
    case ByteCode::kLoad:
    case ByteCode::kStore: return !IsStrong(step) || SpaceOf(step) == Space::kShared || SpaceOf(step) == Space::kLocal;
    case ByteCode::kHelper: return StaysInCta(static_cast<Helper>(step.a));
    case ByteCode::kGiveWay:
    case ByteCode::kCheckedLoad:  // what memcheck has found is not taken back
    case ByteCode::kCheckedStore:
    case ByteCode::kCheckedAtomic: return false;
    default: return true;
  }
}

bool CanBeUndone(const ByteFunction& form) {
  return std::ranges::all_of(form.steps, [](const ByteStep& step) { return CanBeUndone(step); }) &&
         std::ranges::none_of(form.blocks, [](const ByteBlock& block) { return block.waits; });
}

/// Blocks with lanes that wait for their turn.
class Lanes {
 public:
  explicit Lanes(Frame& frame) : f_(frame) {}

  bool AnyUpTo(std::uint32_t block) const {
    for (std::uint32_t word = 0; word < block / 64; ++word)
      if (f_.pending[word] != 0) return true;
    const std::uint32_t bit = block % 64;
    return (f_.pending[block / 64] & (bit == 63 ? ~std::uint64_t{0} : (std::uint64_t{2} << bit) - 1)) != 0;
  }
  bool Any() const { return AnyIn(f_.pending); }
  bool AnyParked() const { return AnyIn(f_.parked); }
  void Pend(std::uint32_t block, std::uint32_t mask) { WaitIn(f_.pending, block, mask); }
  void Park(std::uint32_t block, std::uint32_t mask) { WaitIn(f_.parked, block, mask); }
  void ReleaseParked() {
    for (std::uint32_t word = 0; word < f_.words; ++word) f_.pending[word] |= std::exchange(f_.parked[word], 0);
  }
  /// The earliest, or after `current` going round, `but_not` last; there is one.
  std::uint32_t Earliest() const {
    std::uint32_t word = 0;
    while (f_.pending[word] == 0) ++word;
    return word * 64 + static_cast<std::uint32_t>(std::countr_zero(f_.pending[word]));
  }
  std::uint32_t NextAfter(std::uint32_t current, std::uint32_t but_not) const {
    const std::uint32_t blocks = f_.words * 64;
    for (std::uint32_t i = 1; i <= blocks; ++i) {
      const std::uint32_t block = (current + i) % blocks;
      if (block != but_not && (f_.pending[block / 64] >> (block % 64) & 1) != 0) return block;
    }
    return but_not;
  }
  std::uint32_t Take(std::uint32_t block) {
    f_.pending[block / 64] &= ~(std::uint64_t{1} << (block % 64));
    return std::exchange(f_.pending_masks[block], 0);
  }

 private:
  bool AnyIn(const std::uint64_t* set) const {
    for (std::uint32_t word = 0; word < f_.words; ++word)
      if (set[word] != 0) return true;
    return false;
  }
  void WaitIn(std::uint64_t* set, std::uint32_t block, std::uint32_t mask) {
    f_.pending_masks[block] |= mask;
    set[block / 64] |= std::uint64_t{1} << (block % 64);
  }
  Frame& f_;
};

/// The way of a warp through a function, block by block.
class Walk {
 public:
  explicit Walk(Frame& frame)
      : f_(frame),
        launch_(LaunchOf(WarpOf(frame.warp))),
        lanes_(frame),
        form_(frame.function->form),
        steps_(frame.function->steps.data()) {}

  void Run() {
    bool on = true;
    while (on) {
      const ByteBlock& block = form_.blocks[f_.current];
      Steps(block.first, block.last);
      on = End(block);
    }
  }

 private:
  void Steps(std::uint32_t first, std::uint32_t last) {
    for (const DecodedStep *step = steps_ + first, *const end = steps_ + last; step != end; ++step)
      step->run(f_, step->step);
  }
  void Copy(const ByteEdge& edge, std::uint32_t mask) {
    if (edge.first == edge.last) return;
    f_.mask = mask;
    Steps(edge.first, edge.last);
  }
  /// Carries on at `block`. True: always.
  bool Go(std::uint32_t block, std::uint32_t mask) {
    f_.current = block;
    f_.mask = mask;
    return true;
  }

  /// Whoever can run does, the earliest block first. False when nobody is left.
  bool Dispatch() {
    for (;;) {
      if (lanes_.Any()) {
        const std::uint32_t block = lanes_.Earliest(), mask = lanes_.Take(block);
        if (mask == 0) continue;  // those that had parked in front of it went on with others that came there
        return Go(block, mask);
      }
      // Whom those at a meeting wait for waits, too, or never comes.
      if (f_.meetings && f_.meetings->waiting != 0) {
        MeetAgain(true);
        continue;
      }
      if (!lanes_.AnyParked()) return false;
      Helper_kBarrierWait(f_.warp, ~0u, 0, 0, nullptr);
      lanes_.ReleaseParked();
    }
  }

  /// Lanes have ended, or come back from nowhere.
  bool Ended() {
    if (f_.meetings && f_.meetings->waiting != 0) MeetAgain(false);
    return Dispatch();
  }

  void MeetAgain(bool none_can_run) {
    void* const args[] = {f_.meetings};
    Helper_kMeetAgain(f_.warp, 0, 0, none_can_run ? 1 : 0, args);
    TakeReleased();
  }
  void TakeReleased() {
    for (std::uint32_t i = 0; i < f_.meetings->released_count; ++i)
      lanes_.Pend(f_.meetings->released[i].block, f_.meetings->released[i].lanes);
  }

  bool Jump(const ByteBlock& block, const ByteEdge& edge, std::uint32_t mask) {
    Copy(edge, mask);
    return Arrive(block, edge.block, mask);
  }

  bool Arrive(const ByteBlock& block, std::uint32_t to, std::uint32_t mask) {
    if (to <= f_.current) {  // always latch to header: nothing of the loop is pending
      if (launch_.stop.load(std::memory_order_relaxed) || launch_.BeginsAgain()) LeaveStopped(WarpOf(f_.warp));
      if (!block.waits || --f_.fuel != 0) return Go(to, mask);
      f_.fuel = kFuel;
      Helper_kWarpYield(f_.warp, mask, 0, 0, nullptr);
      if (!lanes_.Any()) return Go(to, mask);
      lanes_.Pend(to, mask);
      const std::uint32_t next = lanes_.NextAfter(f_.current, to);
      return Go(next, lanes_.Take(next));
    }
    if (!lanes_.AnyUpTo(to)) return Go(to, mask);
    lanes_.Pend(to, mask);
    return Dispatch();
  }

  bool Branch(const ByteBlock& block) {
    const std::uint32_t mask = f_.mask, taken = f_.BitsIn(block.condition) & mask;
    if (taken == mask) return Jump(block, block.edges[0], mask);
    if (taken == 0) return Jump(block, block.edges[1], mask);
    const bool true_first = block.edges[0].block < block.edges[1].block;
    const ByteEdge &first = block.edges[true_first ? 0 : 1], &later = block.edges[true_first ? 1 : 0];
    const std::uint32_t first_mask = true_first ? taken : mask ^ taken;
    Copy(later, mask ^ first_mask);
    Copy(first, first_mask);
    lanes_.Pend(later.block, mask ^ first_mask);
    return Arrive(block, first.block, first_mask);
  }

  /// EmitMeet of warp_meeting.cpp.
  bool Meet(const ByteBlock& block) {
    const std::uint32_t mask = f_.mask;
    const std::uint32_t* const inputs = form_.lists.data() + block.list;
    const auto* const members = f_.In<std::uint32_t>(inputs[0]);
    std::uint32_t missing = 0;
    ForEachLane(mask, [&](std::uint32_t lane) { missing |= members[lane] & ~mask; });
    if (missing == 0 || (!lanes_.Any() && f_.meetings->waiting == 0)) return Jump(block, block.edges[0], mask);
    void* args[1 + ByteBlock::kMostMeetInputs] = {f_.meetings};
    for (std::uint32_t i = 0; i < block.count; ++i)
      args[1 + i] = const_cast<std::uint8_t*>(f_.In<std::uint8_t>(inputs[i]));
    Helper_kMeet(f_.warp, mask, block.edges[0].block, block.imm, args);
    TakeReleased();
    return Dispatch();
  }

  /// EmitBarrierEnd of warp_waiting.cpp.
  bool Barrier(const ByteBlock& block) {
    const auto op = static_cast<BarrierOp>(block.imm);
    const std::uint32_t* const operands = form_.lists.data() + block.list;
    void* args[4];
    for (std::uint32_t i = 0; i < 4; ++i) args[i] = const_cast<std::uint8_t*>(f_.In<std::uint8_t>(operands[i]));
    const std::uint32_t mask = f_.mask;
    if (op == BarrierOp::kSync || op == BarrierOp::kWarpGroup) {
      if (lanes_.Any() || lanes_.AnyParked() || (f_.meetings && f_.meetings->waiting != 0)) {
        Helper_kBarrier(f_.warp, mask, block.line, block.imm | kBarrierArriveOnly, args);
        Copy(block.edges[0], mask);
        lanes_.Park(block.edges[0].block, mask);
        return Dispatch();
      }
    }
    Helper_kBarrier(f_.warp, mask, block.line, block.imm, args);
    Steps(block.after_first, block.after_last);
    return Jump(block, block.edges[0], mask);
  }

  bool End(const ByteBlock& block) {
    switch (block.end) {
      case ByteBlock::End::kJump: return Jump(block, block.edges[0], f_.mask);
      case ByteBlock::End::kBranch: return Branch(block);
      case ByteBlock::End::kMeet: return Meet(block);
      case ByteBlock::End::kBarrier: return Barrier(block);
      case ByteBlock::End::kDropEnded: {
        const std::uint32_t left = f_.mask & ~f_.warp->exited_mask;
        return left == 0 ? Ended() : Jump(block, block.edges[0], left);
      }
      case ByteBlock::End::kReturn:
      case ByteBlock::End::kEnded: break;
    }
    return Ended();
  }

  Frame& f_;
  Launch& launch_;
  Lanes lanes_;
  const ByteFunction& form_;
  const DecodedStep* steps_;
};

}  // namespace

Result<std::shared_ptr<const InterpretedCode>> InterpretedCode::Load(Bytecode code) {
  GL_TRY_STATUS(CheckBytecode(code));
  auto loaded = std::make_shared<InterpretedCode>();
  loaded->pointers_ = std::move(code.pointers);
  for (ByteFunction& form : code.functions) {
    DecodedFunction& function = loaded->functions_.emplace_back();
    function.form = std::move(form);
    for (const ByteStep& step : function.form.steps) {
      const StepFn run = Resolve(step);
      if (!run) {
        return Error{"no step " + std::to_string(static_cast<int>(step.code)) + " from type " +
                     std::to_string(static_cast<int>(step.from)) + " to " +
                     std::to_string(static_cast<int>(step.type))};
      }
      function.steps.push_back({run, step});
    }
    const std::vector<std::uint8_t>& constants = function.form.constants;
    function.constant_memory = std::make_unique<std::uint8_t[]>(constants.size() + 64 + kMostRegisterBytes);
    std::uint8_t* const at =
        function.constant_memory.get() + (64 - reinterpret_cast<std::uintptr_t>(function.constant_memory.get()) % 64);
    if (!constants.empty()) std::memcpy(at, constants.data(), constants.size());
    function.constants = at;
  }
  loaded->can_begin_again_ =
      std::ranges::all_of(loaded->functions_, [](const DecodedFunction& one) { return CanBeUndone(one.form); });
  return std::shared_ptr<const InterpretedCode>(std::move(loaded));
}

std::size_t InterpretedCode::stack_bytes() const {
  std::size_t bytes = 0;
  for (const DecodedFunction& function : functions_) bytes += FrameBytes(function.form) + kFrameReserve;
  return bytes;
}

InterpretedCode::Size InterpretedCode::size() const {
  Size size;
  for (const DecodedFunction& function : functions_) {
    size.steps += function.form.steps.size();
    size.blocks += function.form.blocks.size();
    size.accesses += static_cast<std::uint64_t>(std::count_if(
        function.form.steps.begin(), function.form.steps.end(),
        [](const ByteStep& step) { return step.code >= ByteCode::kLoad && step.code <= ByteCode::kCheckedAtomic; }));
  }
  return size;
}

std::uint32_t InterpretedCode::check_sites() const {
  std::uint64_t sites = 0;
  for (const DecodedFunction& function : functions_)
    for (const ByteStep& step : function.form.steps) sites = std::max(sites, CheckSiteOf(step) + 1);
  return static_cast<std::uint32_t>(sites);
}

bool InterpretedCode::has_loops() const {
  for (const DecodedFunction& function : functions_) {
    for (std::uint32_t i = 0; i < function.form.blocks.size(); ++i) {
      const ByteBlock& block = function.form.blocks[i];
      if (block.end != ByteBlock::End::kReturn && block.end != ByteBlock::End::kEnded && block.edges[0].block <= i)
        return true;
    }
  }
  return false;
}

const DecodedFunction* InterpretedCode::At(std::uint64_t pointer, std::uint32_t signature) const {
  for (const Bytecode::Pointer& one : pointers_)
    if (one.value == pointer && one.signature == signature) return &functions_[one.function];
  return nullptr;
}

void InterpretFunction(WarpCtx* warp, const InterpretedCode& code, const DecodedFunction& function, std::uint32_t mask,
                       const Frame* caller, const std::uint32_t* results, const std::uint32_t* arguments) {
  const ByteFunction& form = function.form;
  const auto blocks = static_cast<std::uint32_t>(form.blocks.size());
  Frame frame;
  frame.warp = warp;
  frame.code = &code;
  frame.function = &function;
  frame.constants = function.constants;
  frame.lists = form.lists.data();
  frame.mask = mask;
  frame.fuel = kFuel;
  frame.words = (blocks + 63) / 64;
  const std::size_t sets = std::size_t{frame.words} * 16 + std::size_t{blocks} * 4;
  const std::size_t bytes = FrameBytes(form);
  if (const auto* const here = static_cast<const std::byte*>(__builtin_frame_address(0));
      caller && here - bytes - kFrameReserve < static_cast<const std::byte*>(warp->stack_limit)) {
    RaiseFault(WarpOf(warp), FaultKind::kStackOverflow, kNoLane, reinterpret_cast<std::uint64_t>(here), 0,
               "stack overflow: the calls of device functions nest too deeply");
  }
  // On the warp's stack: a fault leaves it without a destructor, and the watchdog looks there for what changes.
  auto at = (reinterpret_cast<std::uintptr_t>(alloca(bytes)) + 63) / 64 * 64;
  frame.registers = reinterpret_cast<std::uint8_t*>(at);
  at += form.frame_bytes;
  if (form.has_meetings) {
    frame.meetings = reinterpret_cast<WarpMeetings*>(at);
    at += sizeof(WarpMeetings);
  }
  frame.pending = reinterpret_cast<std::uint64_t*>(at);
  frame.parked = frame.pending + frame.words;
  frame.pending_masks = reinterpret_cast<std::uint32_t*>(frame.parked + frame.words);
  std::memset(frame.pending, 0, sets);
  if (frame.meetings) {
    frame.meetings->waiting = frame.meetings->met = 0;
    frame.meetings->blocks = blocks;
    frame.meetings->pending_masks = frame.pending_masks;
  }
  for (std::size_t i = 0; caller && i < form.parameters.size(); ++i)
    std::memcpy(frame.registers + form.parameters[i], caller->In<std::uint8_t>(arguments[i]),
                RegisterBytes(form.parameter_types[i]));
  Walk(frame).Run();
  for (std::size_t i = 0; caller && i < form.results.size(); ++i)
    std::memcpy(caller->Out<std::uint8_t>(results[i]), frame.registers + form.results[i],
                RegisterBytes(form.result_types[i]));
}

void InterpretWarp(WarpCtx* warp) {
  const InterpretedCode& code = *LaunchOf(WarpOf(warp)).kernel->interpreted;
  InterpretFunction(warp, code, code.function(0), warp->initial_mask, nullptr, nullptr, nullptr);
}

}  // namespace gridloom::exec
