// Barriers, .sync instructions and mbarriers (sync_check.h).
#include <cstdio>

#include "sim/exec/runtime/helpers.h"
#include "sim/exec/runtime/memcheck/check_support.h"

namespace gridloom::exec {
namespace {

std::string HexMask(std::uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

std::string NameThread(const Warp& warp, std::uint32_t lane) {
  const auto& tid = warp.ctx.tid;
  return "thread (" + std::to_string(tid[0][lane]) + "," + std::to_string(tid[1][lane]) + "," +
         std::to_string(tid[2][lane]) + ")";
}

std::string DescribeSync(const SyncCheck::Finding& finding, const Warp& other) {
  if (finding.kind == MemcheckKind::kSyncMask)
    return "its mask " + HexMask(finding.members) + " does not hold its own lane, " +
           std::to_string(finding.thread.lane);
  const std::string who = NameThread(other, finding.other.lane);
  const bool waits = finding.other_line != 0;
  if (finding.kind == MemcheckKind::kSyncMissing)
    return "its mask " + HexMask(finding.members) + " names lanes that did not come, " + HexMask(finding.missing) +
           ": " + who + (waits ? " waits at another place" : " has passed it by");
  return who + (waits ? " of the same warp waits at another barrier" : " has passed it by");
}

}  // namespace

void Memcheck::TellSync(Warp& warp, const SyncCheck::Findings& found) {
  for (const SyncCheck::Finding& finding : found) {
    Warp* const warps = warp.cta->unit->warps;
    const LaneRequest request{.lane = finding.thread.lane, .line = finding.line, .space = Space::kShared};
    Note(warps[finding.thread.warp], finding.kind, request, 0, finding.other_line, [&](MemcheckReport& report) {
      const Warp& other = warps[finding.other.warp];
      report.place = DescribeSync(finding, other);
      if (finding.other_line != 0)
        report.other = Describe(other, finding.other.lane, AccessKind::kRead, 0, finding.other_line);
    });
  }
}

void Memcheck::EnterSync(Warp& warp, std::uint32_t mask, std::uint32_t line, SyncCheckImm imm,
                         const std::uint32_t* members) {
  SyncCheck::Findings found;
  SyncCheck& sync = CheckOf(warp).sync;
  sync.Enter(NumberOf(warp), mask, line, imm, members, found);
  warp.ctx.sync_waits = sync.Waits(NumberOf(warp));
  TellSync(warp, found);
}

void Memcheck::LeaveSync(Warp& warp, std::uint32_t mask) {
  SyncCheck::Findings found;
  SyncCheck& sync = CheckOf(warp).sync;
  sync.Leave(NumberOf(warp), mask, found);
  warp.ctx.sync_waits = sync.Waits(NumberOf(warp));
  TellSync(warp, found);
}

void Memcheck::PassSync(Warp& warp, std::uint32_t mask, PassSyncImm imm) {
  SyncCheck::Findings found;
  CheckOf(warp).sync.Pass(NumberOf(warp), mask, imm, found);
  TellSync(warp, found);
}

namespace {

constexpr std::uint64_t kMostArrivals = (1u << 20) - 1, kMostBytes = (1u << 20) - 1;

/// What is wrong with an operation on an mbarrier; empty: nothing. `known`: what is known of the object, null if nobody
/// has begun it.
std::string DescribeMisuse(MbarrierOp op, const std::optional<std::uint64_t>* known, std::uint64_t word,
                           std::uint64_t operand) {
  if (op == MbarrierOp::kInit) {
    if (operand == 0 || operand > kMostArrivals)
      return "initialised for " + WithCommas(operand) + " arrivals, not 1 to 1,048,575";
    // Memory that has been used for something else in between holds no object any more.
    if (known && *known == word) return "initialised again without mbarrier.inval";
    return {};
  }
  if (op == MbarrierOp::kPendingCount) return {};
  if (!known) return "used before mbarrier.init";
  if (*known && *known != word && op != MbarrierOp::kInvalidate)
    return "used after something else was written to its memory";
  if ((op == MbarrierOp::kExpectTx || op == MbarrierOp::kCompleteTx) && operand > kMostBytes)
    return "given " + WithCommas(operand) + " bytes, more than 1,048,575";
  return {};
}

}  // namespace

void Memcheck::CheckMbarrier(Warp& warp, std::uint32_t lane, std::uint32_t line, MbarrierOp op, const void* place,
                             std::uint64_t word, std::uint64_t operand) {
  const auto& known = CheckOf(warp).mbarriers;
  const auto found = known.find(place);
  const std::string wrong = DescribeMisuse(op, found == known.end() ? nullptr : &found->second, word, operand);
  if (wrong.empty()) return;
  const std::uint64_t offset = reinterpret_cast<std::uint64_t>(place) - warp.cta->ctx.shared_base;
  Note(warp, MemcheckKind::kMbarrier, {.lane = lane, .line = line, .space = Space::kShared}, offset, 0,
       [&](MemcheckReport& report) {
         const std::string where = SharedPlace(LaunchOf(warp), offset);
         report.place = "the mbarrier at shared " + HexAddress(offset) + (where.empty() ? "" : " (" + where + ")") +
                        " is " + wrong;
       });
}

void Memcheck::NoteMbarrier(Warp& warp, MbarrierOp op, const void* place, std::uint64_t word) {
  auto& known = CheckOf(warp).mbarriers;
  if (op == MbarrierOp::kInvalidate) {
    known[place].reset();
  } else if (op == MbarrierOp::kInit) {
    known[place] = word;
  } else if (const auto found = known.find(place); found != known.end() && found->second) {
    found->second = word;
  }
}

}  // namespace gridloom::exec
