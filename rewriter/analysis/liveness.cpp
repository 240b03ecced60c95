#include "rewriter/analysis/liveness.h"

#include <algorithm>

#include "rewriter/ptx/defuse.h"

namespace gridloom::analysis {

Liveness::Liveness(const Cfg& cfg) : cfg_(cfg), live_in_(cfg.blocks().size()), live_out_(cfg.blocks().size()) {
  Collect();
  Propagate();
  pressure_.resize(cfg.instructions().size());
  std::vector<bool> live(registers_.size(), false);
  for (BlockId block = 0; block < cfg.blocks().size(); ++block) MeasureBlock(block, live);
}

void Liveness::Collect() {
  ranges_.reserve(cfg_.instructions().size());
  for (const CfgInstruction& at : cfg_.instructions()) {
    const ptx::Instruction& instruction = *at.instruction;
    Range range;
    range.begin = static_cast<std::uint32_t>(accesses_.size());
    VisitDefs(instruction, [&](const ptx::Operand& operand) {
      if (operand.variable == nullptr) return;
      const bool whole = operand.element == 0 && operand.selector.empty();
      accesses_.push_back({registers_.Add(*operand.variable, operand.index), whole && !instruction.guard});
    });
    range.reads = static_cast<std::uint32_t>(accesses_.size());
    VisitUses(instruction, [&](const ptx::Operand& operand) {
      if (operand.variable != nullptr) accesses_.push_back({registers_.Add(*operand.variable, operand.index)});
    });
    VisitGuard(instruction, [&](const ptx::Variable& variable, std::uint32_t index) {
      accesses_.push_back({registers_.Add(variable, index)});
    });
    range.end = static_cast<std::uint32_t>(accesses_.size());
    ranges_.push_back(range);
  }
}

template <typename OnWrite, typename OnRead>
void Liveness::StepBack(std::uint32_t instruction, const OnWrite& on_write, const OnRead& on_read) const {
  const Range& range = ranges_[instruction];
  for (std::uint32_t i = range.begin; i < range.reads; ++i) on_write(accesses_[i]);
  for (std::uint32_t i = range.reads; i < range.end; ++i) on_read(accesses_[i]);
}

// From each block that reads a register before writing it, back along the edges to the writes: the work is the size of
// the result, however many registers there are.
void Liveness::Propagate() {
  struct BlockRegister {
    BlockId block;
    RegisterId id;
  };
  const auto blocks = static_cast<BlockId>(cfg_.blocks().size());
  std::vector<std::vector<BlockId>> read_first(registers_.size()), killed_in(registers_.size());
  std::vector<BlockId> killed(registers_.size(), kNoBlock), read(registers_.size(), kNoBlock);
  for (BlockId block = 0; block < blocks; ++block) {
    const BasicBlock& range = cfg_.blocks()[block];
    for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
      for (std::uint32_t k = ranges_[i].reads; k < ranges_[i].end; ++k) {
        const RegisterId id = accesses_[k].id;
        if (killed[id] != block && read[id] != block) read_first[id].push_back(block);
        read[id] = block;
      }
      for (std::uint32_t k = ranges_[i].begin; k < ranges_[i].reads; ++k) {
        const RegisterId id = accesses_[k].id;
        if (!accesses_[k].kills || killed[id] == block) continue;
        killed[id] = block;
        killed_in[id].push_back(block);
      }
    }
  }
  std::vector<RegisterId> in(blocks, kNoRegister), out(blocks, kNoRegister), kills(blocks, kNoRegister);
  std::vector<BlockId> work;
  for (RegisterId id = 0; id < registers_.size(); ++id) {
    for (const BlockId block : killed_in[id]) kills[block] = id;
    work = read_first[id];
    for (const BlockId block : work) {
      in[block] = id;
      live_in_[block].push_back(id);
    }
    while (!work.empty()) {
      const BlockId block = work.back();
      work.pop_back();
      for (const BlockId predecessor : cfg_.graph().predecessors[block]) {
        if (out[predecessor] == id) continue;
        out[predecessor] = id;
        live_out_[predecessor].push_back(id);
        if (kills[predecessor] == id || in[predecessor] == id) continue;
        in[predecessor] = id;
        live_in_[predecessor].push_back(id);
        work.push_back(predecessor);
      }
    }
  }
}

void Liveness::MeasureBlock(BlockId block, std::vector<bool>& live) {
  Pressure now;
  std::vector<RegisterId> touched;
  const auto add = [&](RegisterId id) {
    if (live[id]) return;
    live[id] = true;
    touched.push_back(id);
    now.units += registers_[id].units();
    now.predicates += registers_[id].is_predicate();
  };
  const auto remove = [&](RegisterId id) {
    if (!live[id]) return;
    live[id] = false;
    now.units -= registers_[id].units();
    now.predicates -= registers_[id].is_predicate();
  };
  const auto most = [](Pressure a, Pressure b) {
    return Pressure{std::max(a.units, b.units), std::max(a.predicates, b.predicates)};
  };
  for (const RegisterId id : live_out_[block]) add(id);
  const BasicBlock& range = cfg_.blocks()[block];
  for (std::uint32_t i = range.first + range.count; i-- > range.first;) {
    std::vector<RegisterId> only_here;  // written and never read
    const auto write = [&](const Access& access) {
      if (!live[access.id]) only_here.push_back(access.id);
      add(access.id);
    };
    StepBack(i, write, [](const Access&) {});
    const Pressure after = now;
    for (const RegisterId id : only_here) remove(id);
    const auto kill = [&](const Access& access) {
      if (access.kills) remove(access.id);
    };
    StepBack(i, kill, [&](const Access& access) { add(access.id); });
    pressure_[i] = most(after, now);
    max_pressure_ = most(max_pressure_, pressure_[i]);
  }
  for (const RegisterId id : touched) live[id] = false;
}

bool Liveness::IsLiveIn(BlockId block, RegisterId id) const {
  return std::binary_search(live_in_[block].begin(), live_in_[block].end(), id);
}

std::vector<RegisterId> Liveness::LiveBefore(std::uint32_t instruction) const {
  const BlockId block = cfg_.instructions()[instruction].block;
  const BasicBlock& range = cfg_.blocks()[block];
  std::vector<bool> live(registers_.size(), false);
  for (const RegisterId id : live_out_[block]) live[id] = true;
  for (std::uint32_t i = range.first + range.count; i-- > instruction;) {
    const auto kill = [&](const Access& access) {
      if (access.kills) live[access.id] = false;
    };
    StepBack(i, kill, [&](const Access& access) { live[access.id] = true; });
  }
  std::vector<RegisterId> result;
  for (RegisterId id = 0; id < registers_.size(); ++id) {
    if (live[id]) result.push_back(id);
  }
  return result;
}

}  // namespace gridloom::analysis
