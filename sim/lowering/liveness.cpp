#include "sim/lowering/liveness.h"

#include <bit>

namespace gridloom::lowering {

Liveness::Liveness(const Kernel& kernel) : everywhere_(!kernel.has_meanings) {
  if (everywhere_) return;
  FindShared(kernel);
  Propagate(kernel);
}

void Liveness::FindShared(const Kernel& kernel) {
  number_.assign(kernel.registers + 1, kNone);
  const auto share = [&](Register reg) {
    if (number_[reg] != kNone) return;
    number_[reg] = static_cast<std::uint32_t>(shared_.size());
    shared_.push_back(reg);
  };
  std::vector<std::uint32_t> home(kernel.registers + 1, kNone);  // the block that writes it before it reads it
  for (std::uint32_t b = 0; b < kernel.blocks.size(); ++b) {
    for (const Node& node : kernel.blocks[b].nodes) {
      VisitReads(node, [&](Register reg) {
        if (home[reg] != b) share(reg);
      });
      VisitRegisters(node.results, [&](Register reg) {
        if (home[reg] == kNone && !node.partial()) home[reg] = b;
        if (home[reg] != b) share(reg);
      });
    }
  }
}

void Liveness::Propagate(const Kernel& kernel) {
  const std::size_t words = (shared_.size() + 63) / 64, blocks = kernel.blocks.size();
  in_.assign(blocks, Words(words));
  out_.assign(blocks, Words(words));
  std::vector<Words> kills(blocks, Words(words));
  std::vector<std::vector<std::uint32_t>> before(blocks);
  for (std::uint32_t b = 0; b < blocks; ++b) {
    for (const std::uint32_t next : kernel.blocks[b].next) before[next].push_back(b);
    for (const Node& node : kernel.blocks[b].nodes) {
      const auto read = [&](Register reg) {
        const std::uint32_t n = number_[reg];
        if (n != kNone && (kills[b][n / 64] >> n % 64 & 1) == 0) in_[b][n / 64] |= std::uint64_t{1} << n % 64;
      };
      VisitReads(node, read);
      if (node.partial()) VisitRegisters(node.results, read);
      VisitRegisters(node.results, [&](Register reg) {
        const std::uint32_t n = number_[reg];
        if (n != kNone) kills[b][n / 64] |= std::uint64_t{1} << n % 64;
      });
    }
  }
  std::vector<std::uint32_t> work;
  std::vector<bool> waits(blocks, true);
  for (std::uint32_t b = 0; b < blocks; ++b) work.push_back(b);
  while (!work.empty()) {
    const std::uint32_t b = work.back();
    work.pop_back();
    waits[b] = false;
    bool grows = false;
    for (const std::uint32_t next : kernel.blocks[b].next) {
      for (std::size_t w = 0; w < words; ++w) out_[b][w] |= in_[next][w];
    }
    for (std::size_t w = 0; w < words; ++w) {
      const std::uint64_t more = out_[b][w] & ~kills[b][w] & ~in_[b][w];
      in_[b][w] |= more;
      grows |= more != 0;
    }
    if (!grows) continue;
    for (const std::uint32_t earlier : before[b]) {
      if (!waits[earlier]) work.push_back(earlier);
      waits[earlier] = true;
    }
  }
}

bool Liveness::Has(const std::vector<Words>& of, std::size_t block, Register reg) const {
  if (everywhere_) return true;
  const std::uint32_t n = number_[reg];
  return n != kNone && (of[block][n / 64] >> n % 64 & 1) != 0;
}

std::vector<Register> Liveness::List(const std::vector<Words>& of, std::size_t block) const {
  std::vector<Register> list;
  if (everywhere_) return list;
  for (std::size_t w = 0; w < of[block].size(); ++w) {
    for (std::uint64_t bits = of[block][w]; bits != 0; bits &= bits - 1)
      list.push_back(shared_[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))]);
  }
  return list;
}

}  // namespace gridloom::lowering
