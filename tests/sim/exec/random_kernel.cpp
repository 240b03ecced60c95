#include "tests/sim/exec/random_kernel.h"

#include <algorithm>
#include <bit>
#include <random>
#include <sstream>

namespace gridloom::test {

// Registers 0 and 1 start equal for the whole CTA, 2 for the whole grid, the others differ per thread.
RandomKernel::RandomKernel(std::uint64_t seed, const RandomKernelOptions& options) : step_limit_(options.step_limit) {
  std::mt19937_64 random(seed);
  const auto pick = [&](unsigned bound) { return static_cast<unsigned>(random() % bound); };
  blocks_.resize(options.blocks);
  for (unsigned i = 0; i < options.blocks; ++i) {
    Block& block = blocks_[i];
    const unsigned count = 1 + pick(options.operations);
    for (unsigned k = 0; k < count; ++k) {
      Operation operation{
          static_cast<Op>(pick(15)), 0, pick(kRegisters), pick(kRegisters), static_cast<std::uint32_t>(random()), pick(2) == 0};
      // Uniform registers change only through uniform ones, so that some of them stay uniform.
      operation.dst = pick(kRegisters);
      if (options.uniform_bias && operation.dst < 3) {
        operation.a %= 3;
        operation.b %= 3;
        if (operation.op == Op::kLoadThread) operation.op = Op::kAdd;
      }
      if (operation.op == Op::kShl || operation.op == Op::kShr) operation.constant &= 31;
      if (pick(3) == 0) operation.constant &= 63;
      block.operations.push_back(operation);
    }
    block.compare_a = options.uniform_bias && pick(2) == 0 ? pick(3) : pick(kRegisters);
    block.mask = (1u << (1 + pick(6))) - 1;
    block.bound = 1 + pick(block.mask);
    block.conditional = pick(5) != 0;
    // Mostly forward and near, sometimes anywhere: loops, jumps into loops, early exits.
    const auto target = [&] {
      const unsigned kind = pick(10);
      if (kind < 6) return std::min(i + 1 + pick(3), options.blocks);
      return kind < 9 ? pick(options.blocks) : pick(options.blocks + 1);
    };
    block.on_true = target();
    block.on_false = std::min(i + 1, options.blocks);
    if (pick(4) == 0) block.on_false = target();
  }
}

std::string RandomKernel::Text(const Operation& o) const {
  const auto reg = [](unsigned i) { return "%r" + std::to_string(i); };
  const std::string b = o.use_constant ? std::to_string(o.constant) : reg(o.b);
  const std::string d = reg(o.dst), a = reg(o.a);
  switch (o.op) {
    case Op::kAdd: return "add.u32 " + d + ", " + a + ", " + b + ";\n";
    case Op::kSub: return "sub.u32 " + d + ", " + a + ", " + b + ";\n";
    case Op::kMul: return "mul.lo.u32 " + d + ", " + a + ", " + b + ";\n";
    case Op::kXor: return "xor.b32 " + d + ", " + a + ", " + b + ";\n";
    case Op::kAnd: return "and.b32 " + d + ", " + a + ", " + b + ";\n";
    case Op::kShr: return "shr.u32 " + d + ", " + a + ", " + b + ";\n";
    case Op::kShl: return "shl.b32 " + d + ", " + a + ", " + b + ";\n";
    case Op::kMin: return "min.s32 " + d + ", " + a + ", " + b + ";\n";
    case Op::kSelect: return "setp.lt.s32 %q, " + a + ", " + b + ";\n selp.b32 " + d + ", " + a + ", " + b + ", %q;\n";
    case Op::kLoad:
      return "and.b32 %t, " + a + ", 63;\n mul.wide.u32 %rd3, %t, 4;\n add.u64 %rd3, %rd0, %rd3;\n ld.global.u32 " + d + ", [%rd3];\n";
    case Op::kLoadThread: return "ld.global.u32 " + d + ", [%rd2+" + std::to_string(4 * (o.b % kRegisters)) + "];\n";
    case Op::kStore: return "st.global.u32 [%rd2+" + std::to_string(4 * (o.b % kRegisters)) + "], " + a + ";\n";
    case Op::kDiv: return "or.b32 %t, " + b + ", 1;\n div.u32 " + d + ", " + a + ", %t;\n";
    case Op::kRem: return "or.b32 %t, " + b + ", 2;\n rem.s32 " + d + ", " + a + ", %t;\n";
    case Op::kPopc: return "popc.b32 " + d + ", " + a + ";\n";
  }
  return {};
}

std::string RandomKernel::Ptx() const {
  std::ostringstream out;
  out << ".version 7.5\n.target sm_75\n.address_size 64\n"
         ".visible .entry random_kernel(.param .u64 in, .param .u64 out, .param .u32 seed)\n{\n"
         ".reg .pred %p, %q, %leave;\n.reg .b32 %r<"
      << kRegisters
      << ">;\n.reg .b32 %t, %steps, %n, %c, %i;\n.reg .b64 %rd<4>;\n"
         "ld.param.u64 %rd0, [in];\nld.param.u64 %rd1, [out];\nld.param.u32 %r2, [seed];\n"
         "mov.u32 %i, %tid.x;\nmov.u32 %c, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmad.lo.u32 %t, %c, %n, %i;\n"
         "mul.wide.u32 %rd2, %t, "
      << 4 * kRegisters
      << ";\nadd.u64 %rd2, %rd1, %rd2;\n"
         "add.u32 %r0, %c, 3;\nmul.lo.u32 %r1, %c, %r2;\nmov.u32 %r3, %i;\nmul.lo.u32 %r4, %i, 2654435761;\n"
         "shr.u32 %r5, %i, 2;\nand.b32 %r6, %i, 7;\nxor.b32 %r7, %t, %r2;\nmov.u32 %steps, 0;\n";
  for (unsigned i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    const auto label = [&](unsigned to) { return to == blocks_.size() ? std::string("DONE") : "B" + std::to_string(to); };
    out << "B" << i << ":\nadd.u32 %steps, %steps, 1;\nsetp.gt.u32 %leave, %steps, " << step_limit_ << ";\n@%leave bra DONE;\n";
    for (const Operation& operation : block.operations) out << Text(operation);
    if (block.conditional) {
      out << "and.b32 %t, %r" << block.compare_a << ", " << block.mask << ";\nsetp.lt.u32 %p, %t, " << block.bound << ";\n@%p bra "
          << label(block.on_true) << ";\n";
    }
    out << "bra " << label(block.on_false) << ";\n";
  }
  out << "DONE:\n";
  for (unsigned i = 0; i < kRegisters; ++i) out << "st.global.u32 [%rd2+" << 4 * i << "], %r" << i << ";\n";
  out << "ret;\n}\n";
  return out.str();
}

void RandomKernel::LogAccess(const Operation& o, std::uint32_t a, Log& log) {
  if (o.op == Op::kLoad) log.accesses.push_back({false, true, (a & 63) * 4});
  if (o.op == Op::kLoadThread) log.accesses.push_back({false, false, 4 * (o.b % kRegisters)});
  if (o.op == Op::kStore) log.accesses.push_back({true, false, 4 * (o.b % kRegisters)});
}

std::vector<std::uint32_t> RandomKernel::Run(std::uint32_t tid, std::uint32_t ctaid, std::uint32_t ntid, std::uint32_t seed,
                                             const std::vector<std::uint32_t>& input, std::vector<std::uint32_t> mine, Log* log) const {
  const std::uint32_t linear = ctaid * ntid + tid;
  std::uint32_t r[kRegisters] = {ctaid + 3, ctaid * seed, seed, tid, tid * 2654435761u, tid >> 2, tid & 7, linear ^ seed};
  unsigned at = 0;
  for (unsigned steps = 1; at < blocks_.size() && steps <= step_limit_; ++steps) {
    const Block& block = blocks_[at];
    if (log) log->blocks.push_back(at);
    for (const Operation& o : block.operations) {
      if (log) LogAccess(o, r[o.a], *log);
      const std::uint32_t a = r[o.a], b = o.use_constant ? o.constant : r[o.b];
      const auto s = [](std::uint32_t v) { return static_cast<std::int32_t>(v); };
      switch (o.op) {
        case Op::kAdd: r[o.dst] = a + b; break;
        case Op::kSub: r[o.dst] = a - b; break;
        case Op::kMul: r[o.dst] = a * b; break;
        case Op::kXor: r[o.dst] = a ^ b; break;
        case Op::kAnd: r[o.dst] = a & b; break;
        case Op::kShr: r[o.dst] = b > 31 ? 0 : a >> b; break;
        case Op::kShl: r[o.dst] = b > 31 ? 0 : a << b; break;
        case Op::kMin: r[o.dst] = s(a) < s(b) ? a : b; break;
        case Op::kSelect: r[o.dst] = s(a) < s(b) ? a : b; break;
        case Op::kLoad: r[o.dst] = input[a & 63]; break;
        case Op::kLoadThread: r[o.dst] = mine[o.b % kRegisters]; break;
        case Op::kStore: mine[o.b % kRegisters] = a; break;
        case Op::kDiv: r[o.dst] = a / (b | 1); break;
        case Op::kRem: {
          const std::int32_t divisor = s(b | 2);
          r[o.dst] = divisor == -1 ? 0 : static_cast<std::uint32_t>(s(a) % divisor);
          break;
        }
        case Op::kPopc: r[o.dst] = static_cast<std::uint32_t>(std::popcount(a)); break;
      }
    }
    at = block.conditional && (r[block.compare_a] & block.mask) < block.bound ? block.on_true : block.on_false;
  }
  if (log && at < blocks_.size()) log->blocks.push_back(at);  // where it finds that it has made its steps
  for (unsigned i = 0; log && i < kRegisters; ++i) log->accesses.push_back({true, false, 4 * i});
  std::copy(r, r + kRegisters, mine.begin());
  return mine;
}

}  // namespace gridloom::test
