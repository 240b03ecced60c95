#include "rewriter/machine/slice/scratch.h"

#include <algorithm>
#include <string>

#include "rewriter/machine/slice/kernel_parts.h"

namespace gridloom::machine {
namespace {

constexpr std::uint32_t kGranularity = 8;  // registers are given to threads by so many
constexpr std::uint32_t kMostInUse = 2;    // of those that are added

}  // namespace

std::uint32_t GivenRegisters(std::uint32_t count) { return (count + kGranularity - 1) / kGranularity * kGranularity; }

ScratchRegisters::ScratchRegisters(const FlowGraph& flow, std::uint32_t count, std::uint32_t limit)
    : flow_(flow), count_(count), limit_(limit) {
  for (std::uint32_t at = 0; at < flow.instructions().size(); ++at)
    used_ |= flow.UseAt(at).read.general | flow.UseAt(at).written.general;
}

std::vector<unsigned> ScratchRegisters::Unused(unsigned wanted) const {
  std::vector<unsigned> found;
  for (unsigned number = 0; number + kReservedRegisters < count_ && found.size() < wanted; ++number) {
    if (!used_[number]) found.push_back(number);
  }
  return found;
}

void ScratchRegisters::SpreadTouched() {
  const auto instructions = flow_.instructions();
  touched_.resize(instructions.size());
  std::vector<std::uint32_t> open;
  for (std::uint32_t at = 0; at < instructions.size(); ++at) open.push_back(at);
  std::ranges::reverse(open);
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    const RegisterUse& use = flow_.UseAt(at);
    const Registers after = touched_[at] | use.read.general | use.written.general;
    for (const std::uint32_t next : flow_.Next(at)) {
      if ((after & ~touched_[next]).none()) continue;
      touched_[next] |= after;
      open.push_back(next);
    }
  }
}

std::vector<unsigned> ScratchRegisters::Untouched(std::uint32_t at, unsigned wanted) {
  if (touched_.empty()) SpreadTouched();
  const RegisterUse& own = flow_.UseAt(at);
  const Registers taken = touched_[at] | flow_.LiveBefore(at).general | own.read.general | own.written.general;
  std::vector<unsigned> found;
  for (unsigned number = 0; number + kReservedRegisters < count_ && found.size() < wanted; ++number) {
    if (!taken[number]) found.push_back(number);
  }
  return found;
}

bool ScratchRegisters::Grow(std::uint32_t to) {
  if (to > limit_) return false;
  count_ = std::max(count_, to);
  return true;
}

Result<std::vector<unsigned>> ScratchRegisters::Take(std::uint32_t at, unsigned wanted) {
  auto found = Unused(wanted);
  if (found.size() == wanted) return found;
  const std::uint32_t grown = count_ + wanted - static_cast<std::uint32_t>(found.size());
  if (GivenRegisters(grown) != GivenRegisters(count_) || grown > limit_) {
    if (auto dead = Untouched(at, wanted); dead.size() == wanted) return dead;
  }
  // What is added may be in use: by a file that lies about its count, or as far as the table tells, which does not know
  // the length of each vector of textures.
  for (std::uint32_t count = grown; count <= grown + kMostInUse && found.size() < wanted && Grow(count); ++count)
    found = Unused(wanted);
  if (found.size() == wanted) return found;
  return Error{"it has no register left (" + std::to_string(count_) + " of at most " + std::to_string(limit_) + ")"};
}

}  // namespace gridloom::machine
