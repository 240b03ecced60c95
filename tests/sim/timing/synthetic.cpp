#include "tests/sim/timing/synthetic.h"

#include <algorithm>

namespace gridloom::timing {

using trace::OpClass;
using trace::Space;

std::uint32_t CodeBuilder::Block() {
  code_.blocks.push_back({static_cast<std::uint32_t>(code_.instructions.size()), 0});
  return static_cast<std::uint32_t>(code_.blocks.size() - 1);
}

trace::Instruction& CodeBuilder::Add(OpClass op, Registers destinations, Registers sources) {
  trace::Instruction instruction;
  instruction.op = op;
  instruction.destinations = static_cast<std::uint8_t>(destinations.size());
  instruction.sources = static_cast<std::uint8_t>(sources.size());
  instruction.operands = static_cast<std::uint32_t>(code_.operands.size());
  for (const Registers& registers : {destinations, sources}) {
    for (const std::uint16_t number : registers) {
      code_.operands.push_back(number);
      code_.register_count = std::max<std::uint32_t>(code_.register_count, number);
    }
  }
  ++code_.blocks.back().count;
  code_.instructions.push_back(instruction);
  return code_.instructions.back();
}

void CodeBuilder::Op(OpClass op, Registers destinations, Registers sources) { Add(op, destinations, sources); }

void CodeBuilder::Load(Space space, std::uint16_t destination, std::uint8_t width, unsigned flags,
                       std::uint16_t address) {
  trace::Instruction& load = Add(OpClass::kMemory, {destination}, {address});
  load.space = space;
  load.width = width;
  load.flags = static_cast<std::uint8_t>(flags);
}

void CodeBuilder::Store(Space space, std::uint16_t value, std::uint8_t width, unsigned flags) {
  trace::Instruction& store = Add(OpClass::kMemory, {}, {value});
  store.space = space;
  store.width = width;
  store.flags = static_cast<std::uint8_t>(flags | trace::kStore);
}

void CodeBuilder::Atomic(Space space, std::uint16_t destination, std::uint8_t width) {
  Load(space, destination, width, trace::kAtomic);
}

void CodeBuilder::Barrier(std::uint8_t number, std::uint8_t warps, bool arrive) {
  trace::Instruction& barrier = Add(OpClass::kBarrier, {}, {});
  barrier.barrier = number;
  barrier.barrier_warps = warps;
  barrier.flags = arrive ? trace::kArrive : 0;
}

void CtaBuilder::Warp() {
  cta_.warps.push_back({.first_visit = static_cast<std::uint32_t>(cta_.visits.size()),
                        .visit_count = 0,
                        .first_access = static_cast<std::uint32_t>(cta_.accesses.size()),
                        .access_count = 0});
}

void CtaBuilder::Visit(std::uint32_t block, std::uint32_t mask, std::uint32_t times) {
  for (std::uint32_t i = 0; i < times; ++i) cta_.visits.push_back({block, mask});
  cta_.warps.back().visit_count += times;
}

void CtaBuilder::Access(std::uint64_t base, std::int32_t stride, std::uint32_t mask) {
  cta_.accesses.push_back({base, stride, mask});
  ++cta_.warps.back().access_count;
}

void CtaBuilder::Repeat(std::uint32_t visits, std::uint32_t accesses, std::uint64_t more) {
  const trace::WarpTrace& warp = cta_.warps.back();
  cta_.repeats.push_back({.warp = static_cast<std::uint32_t>(cta_.warps.size() - 1),
                          .visit = warp.visit_count - visits,
                          .visit_count = visits,
                          .access = warp.access_count - accesses,
                          .access_count = accesses,
                          .more = more});
}

void CtaBuilder::Scatter(const std::vector<std::uint64_t>& addresses, std::uint32_t mask) {
  Access(trace::AppendLanes(addresses, cta_.lanes), trace::MemoryAccess::kScattered, mask);
}

trace::LoadedCta Shifted(const trace::KernelCode& code, std::shared_ptr<const trace::CtaTrace> cta,
                         std::uint64_t shift) {
  trace::LoadedCta shifted{std::move(cta), {}};
  std::uint64_t* next = shifted.shifts.Renew(trace::AccessCount(code));
  for (const trace::Instruction& instruction : code.instructions) {
    if (instruction.has_access()) *next++ = instruction.space == trace::Space::kShared ? 0 : shift;
  }
  return shifted;
}

std::shared_ptr<trace::CtaSource> SameCtas(trace::KernelCode code, trace::LaunchShape shape,
                                           std::shared_ptr<const trace::CtaTrace> cta, std::uint64_t shift) {
  return std::make_shared<SyntheticSource>(code, shape, [code, cta = std::move(cta), shift](std::uint64_t index) {
    return Shifted(code, cta, index * shift);
  });
}

}  // namespace gridloom::timing
