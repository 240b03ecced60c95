#include "tests/sim/exec/random_kernel.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <random>
#include <sstream>
#include <utility>

namespace gridloom::test {

std::uint64_t RandomKernels(std::uint64_t by_default) {
  const char* const text = std::getenv("GRIDLOOM_TEST_KERNELS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : by_default;
}

// Registers 0 and 1 start equal for the whole CTA, 2 for the whole grid, the others differ per thread.
RandomKernel::RandomKernel(std::uint64_t seed, const RandomKernelOptions& options)
    : step_limit_(options.step_limit), grid_reads_(options.grid_reads) {
  std::mt19937_64 random(seed);
  const auto pick = [&](unsigned bound) { return static_cast<unsigned>(random() % bound); };
  blocks_.resize(options.blocks);
  for (unsigned i = 0; i < options.blocks; ++i) {
    Block& block = blocks_[i];
    const unsigned count = 1 + pick(options.operations);
    for (unsigned k = 0; k < count; ++k) {
      Operation operation{static_cast<Op>(pick(options.grid_reads ? kPlainOps + 5 : kPlainOps)),
                          0,
                          pick(kRegisters),
                          pick(kRegisters),
                          static_cast<std::uint32_t>(random()),
                          pick(2) == 0};
      if (!options.data_addresses && operation.op == Op::kLoad) operation.op = Op::kLoadThread;
      // Uniform registers change only through uniform ones, so that some of them stay uniform.
      operation.dst = pick(kRegisters);
      if (options.uniform_bias && operation.dst < 3) {
        operation.a %= 3;
        operation.b %= 3;
        if (operation.op == Op::kLoadThread) operation.op = Op::kAdd;
        if (operation.op == Op::kExit || operation.op == Op::kExitCall) operation.op = Op::kGrid;
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
      return "and.b32 %t, " + a + ", 63;\n mul.wide.u32 %rd3, %t, 4;\n add.u64 %rd3, %rd0, %rd3;\n ld.global.u32 " + d +
             ", [%rd3];\n";
    case Op::kLoadThread: return "ld.global.u32 " + d + ", [%rd2+" + std::to_string(4 * (o.b % kRegisters)) + "];\n";
    case Op::kStore: return "st.global.u32 [%rd2+" + std::to_string(4 * (o.b % kRegisters)) + "], " + a + ";\n";
    case Op::kDiv: return "or.b32 %t, " + b + ", 1;\n div.u32 " + d + ", " + a + ", %t;\n";
    case Op::kRem: return "or.b32 %t, " + b + ", 2;\n rem.s32 " + d + ", " + a + ", %t;\n";
    case Op::kPopc: return "popc.b32 " + d + ", " + a + ";\n";
    default: return GridText(o);
  }
}

namespace {

/// The six values a thread can ask for, as PTX names them.
constexpr const char* kGridValues[] = {"%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z"};

/// The number of the one that an operation asks for.
unsigned GridValue(std::uint32_t constant) { return constant % 6; }

/// Threads leave by an exit when the low bits of a register say so: few do.
constexpr std::uint32_t kExitMask = 63;

}  // namespace

unsigned RandomKernel::GridAnswer(const Operation& o) { return GridValue(o.constant); }

std::string RandomKernel::GridText(const Operation& o) {
  const std::string d = "%r" + std::to_string(o.dst), a = "%r" + std::to_string(o.a);
  const unsigned which = GridValue(o.constant);
  const std::string special = kGridValues[which], vector = special.substr(0, special.find('.'));
  const std::string leave = std::to_string(o.constant & kExitMask);
  switch (o.op) {
    case Op::kGrid:
      switch (o.b % 4) {
        case 0: return "mov.u32 " + d + ", " + special + ";\n";
        case 1: return "cvt.u64.u32 %rd3, " + special + ";\ncvt.u32.u64 " + d + ", %rd3;\n";
        case 2:
          return "mov.v4.u32 {%v0, %v1, %v2, %v3}, " + vector + ";\nmov.u32 " + d + ", %v" + std::to_string(which % 3) +
                 ";\n";
        default:  // under a guard that holds for all threads, in a scope that hides a name
          return "setp.eq.u32 %q, " + a + ", " + a + ";\n{\n.reg .b32 %t;\n@%q mov.u32 %t, " + special + ";\nmov.u32 " +
                 d + ", %t;\n}\n";
      }
    case Op::kGridCall:
    case Op::kGridPointer: {
      const bool pointer = o.op == Op::kGridPointer;
      std::string text =
          "{\n.param .b32 which;\n.param .b32 value;\nst.param.b32 [which], " + std::to_string(which) + ";\n";
      if (pointer) text += "ld.global.u64 %rd3, [table+" + std::to_string(which % 2 * 8) + "];\n";
      text += pointer ? "call (value), %rd3, (which), prototype;\n" : "call (value), grid_value, (which);\n";
      return text + "ld.param.b32 " + d + ", [value];\n}\n";
    }
    case Op::kExit:
      return "and.b32 %t, " + a + ", " + std::to_string(kExitMask) + ";\nsetp.eq.u32 %q, %t, " + leave +
             ";\n@%q exit;\n";
    case Op::kExitCall:
      return "{\n.param .b32 low;\nand.b32 %t, " + a + ", " + std::to_string(kExitMask) + ";\nsub.u32 %t, %t, " +
             leave + ";\nst.param.b32 [low], %t;\ncall leave_if_zero, (low);\n}\n";
    default: return {};
  }
}

// One function asks itself, the other asks the first one; both are in a table, too.
std::string RandomKernel::Functions() const {
  if (!grid_reads_) return {};
  std::string text =
      ".func (.param .b32 value) grid_value(.param .b32 which)\n{\n.reg .pred %p;\n.reg .b32 %r<3>;\nld.param.b32 %r0, "
      "[which];\n";
  for (unsigned i = 0; i < 6; ++i) {
    const std::string number = std::to_string(i);
    text += "setp.ne.u32 %p, %r0, " + number + ";\n@%p bra NOT" + number + ";\nmov.u32 %r1, " + kGridValues[i] +
            ";\nNOT" + number + ":\n";
  }
  return text +
         "st.param.b32 [value], %r1;\nret;\n}\n"
         ".func (.param .b32 value) grid_value_by_call(.param .b32 which)\n{\n.reg .b32 %r;\nld.param.b32 %r, "
         "[which];\n"
         "{\n.param .b32 w;\n.param .b32 v;\nst.param.b32 [w], %r;\ncall (v), grid_value, (w);\nld.param.b32 %r, "
         "[v];\n}\n"
         "st.param.b32 [value], %r;\nret;\n}\n"
         ".func leave_if_zero(.param .b32 low)\n{\n.reg .pred %p;\n.reg .b32 %r;\nld.param.b32 %r, [low];\n"
         "setp.eq.u32 %p, %r, 0;\n@%p exit;\nret;\n}\n"
         ".global .u64 table[2] = {grid_value, grid_value_by_call};\n";
}

std::string RandomKernel::Ptx() const {
  std::ostringstream out;
  out << ".version 7.5\n.target sm_75\n.address_size 64\n"
      << Functions()
      << ".visible .entry random_kernel(.param .u64 in, .param .u64 out, .param .u32 seed)\n{\n"
         ".reg .pred %p, %q, %leave;\n.reg .b32 %r<"
      << kRegisters
      << ">;\n.reg .b32 %t, %steps, %n, %c, %i;\n.reg .b64 %rd<4>;\n"
         "ld.param.u64 %rd0, [in];\nld.param.u64 %rd1, [out];\nld.param.u32 %r2, [seed];\n"
         "mov.u32 %i, %tid.x;\nmov.u32 %c, %ctaid.x;\nmov.u32 %n, %ntid.x;\n";
  if (grid_reads_) {
    out << ".reg .b32 %v<4>;\nprototype: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
           "mov.u32 %v0, %ctaid.z;\nmov.u32 %v1, %nctaid.y;\nmov.u32 %v2, %ctaid.y;\nmad.lo.u32 %v0, %v0, %v1, %v2;\n"
           "mov.u32 %v1, %nctaid.x;\nmad.lo.u32 %c, %v0, %v1, %c;\n";
  }
  out << "mad.lo.u32 %t, %c, %n, %i;\n"
         "mul.wide.u32 %rd2, %t, "
      << 4 * kRegisters
      << ";\nadd.u64 %rd2, %rd1, %rd2;\n"
         "add.u32 %r0, %c, 3;\nmul.lo.u32 %r1, %c, %r2;\nmov.u32 %r3, %i;\nmul.lo.u32 %r4, %i, 2654435761;\n"
         "shr.u32 %r5, %i, 2;\nand.b32 %r6, %i, 7;\nxor.b32 %r7, %t, %r2;\nmov.u32 %steps, 0;\n";
  for (unsigned i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    const auto label = [&](unsigned to) {
      return to == blocks_.size() ? std::string("DONE") : "B" + std::to_string(to);
    };
    out << "B" << i << ":\nadd.u32 %steps, %steps, 1;\nsetp.gt.u32 %leave, %steps, " << step_limit_
        << ";\n@%leave bra DONE;\n";
    for (const Operation& operation : block.operations) out << Text(operation);
    if (block.conditional) {
      out << "and.b32 %t, %r" << block.compare_a << ", " << block.mask << ";\nsetp.lt.u32 %p, %t, " << block.bound
          << ";\n@%p bra " << label(block.on_true) << ";\n";
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

std::vector<std::uint32_t> RandomKernel::Run(std::uint32_t tid, std::uint32_t ctaid, std::uint32_t ntid,
                                             std::uint32_t seed, const std::vector<std::uint32_t>& input,
                                             std::vector<std::uint32_t> mine, Log* log) const {
  return Run({.tid = tid, .ntid = ntid, .cta = {ctaid, 0, 0}, .grid = {ctaid + 1, 1, 1}}, seed, input, std::move(mine),
             log);
}

std::vector<std::uint32_t> RandomKernel::Run(const RandomPlace& place, std::uint32_t seed,
                                             const std::vector<std::uint32_t>& input, std::vector<std::uint32_t> mine,
                                             Log* log) const {
  const std::uint32_t tid = place.tid, ctaid = place.cta_number(), linear = ctaid * place.ntid + tid;
  const std::uint32_t grid_values[] = {place.cta[0],  place.cta[1],  place.cta[2],
                                       place.grid[0], place.grid[1], place.grid[2]};
  std::uint32_t r[kRegisters] = {ctaid + 3,         ctaid * seed, seed,    tid,
                                 tid * 2654435761u, tid >> 2,     tid & 7, linear ^ seed};
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
        case Op::kGrid:
        case Op::kGridCall:
        case Op::kGridPointer: r[o.dst] = grid_values[GridAnswer(o)]; break;
        case Op::kExit:
        case Op::kExitCall:
          if ((a & kExitMask) == (o.constant & kExitMask)) return mine;
          break;
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
