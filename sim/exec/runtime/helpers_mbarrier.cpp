// mbarrier objects (PTX ISA, 9.7.13.15): 64 bits in shared memory.
//   bits 0-19 arrivals still missing, 20-39 arrivals of the next phase, 40 parity of the current phase,
//   41 whether its layout is v1 (which has reports, and nothing here makes any), 42-63 transaction bytes still to come
//   (signed).
// All CTAs of a cluster run on one thread, so plain accesses are atomic enough.
#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/exec/memcheck.h"
#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/memcheck/checker.h"

namespace gridloom::exec {
namespace {

constexpr std::uint64_t kCountMask = 0xfffff;

struct Barrier64 {
  std::uint64_t missing = 0, expected = 0, parity = 0, layout = 0;
  std::int64_t bytes = 0;

  static Barrier64 Read(std::uint64_t word) {
    return {word & kCountMask, word >> 20 & kCountMask, word >> 40 & 1, word >> 41 & 1,
            static_cast<std::int64_t>(word) >> 42};
  }
  std::uint64_t Word() const {
    return (missing & kCountMask) | (expected & kCountMask) << 20 | (parity & 1) << 40 | (layout & 1) << 41 |
           static_cast<std::uint64_t>(bytes) << 42;
  }
  /// Ends the phase when nothing is missing.
  bool CompleteIfDone() {
    if (missing != 0 || bytes != 0) return false;
    parity ^= 1;
    missing = expected;
    return true;
  }
};

bool Tests(MbarrierOp op) { return op == MbarrierOp::kTestState || op == MbarrierOp::kTestParity; }

/// Whether the phase with this parity is over for a lane that asks. `current`: the parity of the phase that the object
/// is in.
bool IsOver(Warp& warp, std::uint32_t lane, const void* place, bool current, bool parity) {
  MbarrierWaits& waits = warp.cta->unit->mbarrier_waits;
  const bool ended_since = !waits.empty() && waits.Take(warp, lane, place, parity);
  if (ended_since || current != parity) {
    warp.polls = false;
    return true;
  }
  warp.polls = true;
  waits.Add(warp, lane, place, parity);
  return false;
}

/// An operation of one lane on the mbarrier at `place`: what it gives. `over`: a phase has ended with it.
std::uint64_t Operate(Warp& warp, std::uint32_t lane, MbarrierOp op, void* place, Barrier64& barrier,
                      std::uint64_t operand, const std::uint64_t* seconds, bool& over) {
  const std::uint64_t before = barrier.Word();
  switch (op) {
    case MbarrierOp::kInit: barrier = {operand, operand, 0, seconds[lane], 0}; break;
    // What becomes of its bits is not defined. They stay, since threads that end the object without waiting for the
    // others are common at the ends of kernels, and on a GPU those others still arrive, or find the phase over.
    case MbarrierOp::kInvalidate: break;
    case MbarrierOp::kArriveExpectTx:
    case MbarrierOp::kArriveDropExpectTx: barrier.bytes += static_cast<std::int64_t>(seconds[lane]); [[fallthrough]];
    case MbarrierOp::kArrive:
    case MbarrierOp::kArriveDrop:
      if (op == MbarrierOp::kArriveDrop || op == MbarrierOp::kArriveDropExpectTx) barrier.expected -= operand;
      if (operand > barrier.missing)
        RaiseFault(warp, FaultKind::kIllegalInstruction, lane, 0, warp.line,
                   "more arrivals at an mbarrier than it expects");
      barrier.missing -= operand;
      over = barrier.CompleteIfDone();
      break;
    case MbarrierOp::kExpectTx: barrier.bytes += static_cast<std::int64_t>(operand); break;
    case MbarrierOp::kCompleteTx:
      barrier.bytes -= static_cast<std::int64_t>(operand);
      over = barrier.CompleteIfDone();
      break;
    case MbarrierOp::kTestState: return IsOver(warp, lane, place, barrier.parity != 0, (operand >> 40 & 1) != 0);
    case MbarrierOp::kTestParity: return IsOver(warp, lane, place, barrier.parity != 0, (operand & 1) != 0);
    case MbarrierOp::kCheckLayout: return barrier.layout == operand;
    case MbarrierOp::kPendingCount: break;
  }
  return before;
}

}  // namespace

std::string MbarrierWaits::Describe(const Warp& warp) const {
  const auto found = std::ranges::find(waits_, &warp, &Wait::warp);
  if (found == waits_.end()) return {};
  std::uint64_t word;
  std::memcpy(&word, found->place, sizeof word);
  const Barrier64 barrier = Barrier64::Read(word);
  std::string text =
      " at shared " + HexAddress(reinterpret_cast<std::uint64_t>(found->place) - warp.cta->ctx.shared_base);
  if (barrier.missing != 0)
    text += ", of which " + std::to_string(barrier.missing) +
            (barrier.missing == 1 ? " arrival is missing" : " arrivals are missing");
  if (barrier.bytes != 0) text += ", of which " + std::to_string(barrier.bytes) + " bytes are missing";
  return text;
}

void Helper_kMbarrier(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  auto* const out = static_cast<std::uint64_t*>(args[0]);
  const auto* const addresses = static_cast<const std::uint64_t*>(args[1]);
  const auto* const operands = static_cast<const std::uint64_t*>(args[2]);
  const auto* const seconds = static_cast<const std::uint64_t*>(args[3]);
  const auto op = static_cast<MbarrierOp>(imm);
  Memcheck* const memcheck = ServicesOf(warp).memcheck;
  warp.line = line;
  if (!Tests(op)) warp.polls = false;
  ForEachLane(mask, [&](std::uint32_t lane) {
    const std::uint64_t operand = operands[lane];
    if (op == MbarrierOp::kPendingCount) {
      out[lane] = operand & kCountMask;
      return;
    }
    const AccessKind kind = op == MbarrierOp::kInit ? AccessKind::kWrite : AccessKind::kAtomic;
    // memcheck tells of one that nobody has begun by itself.
    auto* const place =
        CheckedAddress(warp, lane, line, Space::kShared, addresses[lane], 8, kind, false, nullptr, true);
    std::uint64_t word;
    std::memcpy(&word, place, sizeof word);
    if (memcheck) memcheck->CheckMbarrier(warp, lane, line, op, place, word, operand);
    Barrier64 barrier = Barrier64::Read(word);
    bool over = false;
    const std::uint64_t result = Operate(warp, lane, op, place, barrier, operand, seconds, over);
    if (memcheck && over) memcheck->EndCopies(warp, place);
    if (memcheck && Tests(op) && result != 0) memcheck->SeeCopies(warp, place);
    if (over && !warp.cta->unit->mbarrier_waits.empty()) warp.cta->unit->mbarrier_waits.EndPhase(place);
    word = barrier.Word();
    if (memcheck) memcheck->NoteMbarrier(warp, op, place, word);
    if (!Tests(op)) std::memcpy(place, &word, sizeof word);
    out[lane] = result;
  });
  // Who polls something else as well waits for more than the mbarrier.
  if (Tests(op) && std::exchange(warp.looks_elsewhere, false)) warp.polls = false;
  if (memcheck) memcheck->OrderCta(warp);
  EndOfAccesses(warp, mask);
}

}  // namespace gridloom::exec
