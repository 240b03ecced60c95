#include "tests/sim/timing/random_launch.h"

#include <bit>
#include <catch2/catch.hpp>

namespace gridloom::timing {
namespace {

using trace::OpClass;
using trace::Space;

/// Numbers in [low, high].
std::uint32_t Draw(std::mt19937_64& random, std::uint32_t low, std::uint32_t high) {
  return low + static_cast<std::uint32_t>(random() % (high - low + 1));
}

template <typename T>
T Choose(std::mt19937_64& random, std::initializer_list<T> values) {
  return values.begin()[random() % values.size()];
}

constexpr std::uint16_t kRegisters = 12;

std::uint16_t RandomRegister(std::mt19937_64& random) {
  return static_cast<std::uint16_t>(Draw(random, 1, kRegisters));
}

void AddMemory(CodeBuilder& code, std::mt19937_64& random) {
  const auto space = Choose(random, {Space::kGlobal, Space::kGlobal, Space::kGlobal, Space::kShared, Space::kLocal,
                                     Space::kConstant, Space::kTexture, Space::kParameter});
  const auto width = Choose<std::uint8_t>(random, {1, 2, 4, 4, 4, 8, 16});
  const bool global = space == Space::kGlobal;
  const bool writable = global || space == Space::kShared || space == Space::kLocal;
  const unsigned load_flags =
      global ? Choose<unsigned>(random, {0, 0, 0, trace::kVolatile, trace::kCacheGlobal, trace::kReadOnly}) : 0;
  const std::uint32_t what = Draw(random, 0, 9);
  if (writable && what < 3) code.Store(space, RandomRegister(random), width);
  else if ((global || space == Space::kShared) && what == 3) code.Atomic(space, RandomRegister(random), 4);
  else if (global && what == 4) code.Store(space, RandomRegister(random), 4, trace::kAtomic);
  else code.Load(space, RandomRegister(random), width, load_flags);
}

void AddInstruction(CodeBuilder& code, std::mt19937_64& random) {
  const auto a = RandomRegister(random), b = RandomRegister(random), c = RandomRegister(random),
             d = RandomRegister(random);
  switch (Draw(random, 0, 9)) {
    case 0:
    case 1:
    case 2: return AddMemory(code, random);
    case 3: return code.Op(OpClass::kBranch, {}, {a});
    case 4: return code.Op(Choose(random, {OpClass::kFence, OpClass::kControl, OpClass::kShuffle}), {a}, {b});
    case 5:
      return code.Op(
          Choose(random, {OpClass::kFp64, OpClass::kSfu, OpClass::kIntMul, OpClass::kConvert, OpClass::kFp32Div}), {a},
          {b});
    case 6: return code.Op(OpClass::kFp32, {a, b}, {c, d, a, b, c, d, c});  // more registers than fit inline
    default: return code.Op(Choose(random, {OpClass::kInt, OpClass::kFp32, OpClass::kFp16}), {a}, {b, c, d});
  }
}

void AddAccess(CtaBuilder& cta, std::mt19937_64& random, const trace::Instruction& instruction, std::uint32_t mask) {
  const bool shared = instruction.space == Space::kShared;
  const std::uint64_t range = shared ? 4096 : Choose<std::uint64_t>(random, {2048, 65536, 1 << 22});
  const std::uint64_t width = instruction.width;
  const auto address = [&] { return random() % (range / width) * width + (shared ? 0 : 1 << 20); };
  std::uint64_t window = 0;
  if ((instruction.flags & trace::kGeneric) != 0)
    window = Choose<std::uint64_t>(random, {0, trace::MemoryAccess::kSharedWindow, trace::MemoryAccess::kLocalWindow});
  if (Draw(random, 0, 9) == 0) mask &= static_cast<std::uint32_t>(random());  // a guard
  if (Draw(random, 0, 3) == 0) {
    std::vector<std::uint64_t> lanes(static_cast<std::size_t>(std::popcount(mask)));
    for (std::uint64_t& lane : lanes) lane = window + address();
    cta.Scatter(lanes, mask);
    return;
  }
  const auto step = static_cast<std::int32_t>(Choose<std::uint64_t>(random, {0, 1, 1, 1, 2, 3, 8, 33}) * width);
  cta.Access(window + address() + 4096, Draw(random, 0, 7) == 0 && !shared ? -step : step, mask);
}

}  // namespace

std::shared_ptr<trace::CtaSource> RandomLaunch(std::mt19937_64& random) {
  CodeBuilder builder("random");
  const std::uint32_t blocks = Draw(random, 1, 5);
  for (std::uint32_t b = 0; b < blocks; ++b) {
    builder.Block();
    for (std::uint32_t i = Draw(random, 0, 6); i > 0; --i) AddInstruction(builder, random);
  }
  const std::uint32_t barrier = builder.Block();
  builder.Barrier();
  const std::uint32_t named = builder.Block();
  builder.Barrier(3, 2, false);
  trace::KernelCode code = builder.code();
  for (trace::Instruction& instruction : code.instructions) {
    if (instruction.space == Space::kGlobal && Draw(random, 0, 3) == 0) instruction.flags |= trace::kGeneric;
  }

  trace::LaunchShape shape;
  shape.ctas = Draw(random, 1, 12);
  shape.threads_per_cta = Draw(random, 1, 256);
  shape.registers_per_thread = Draw(random, 8, 40);
  shape.shared_bytes = Choose<std::uint32_t>(random, {0, 1024, 12000});
  const std::uint64_t seed = random();
  const std::uint32_t phases = Draw(random, 1, 3), visits = Draw(random, 0, 8);
  return std::make_shared<SyntheticSource>(code, shape, [=](std::uint64_t index) {
    std::mt19937_64 of_cta(seed + index);
    CtaBuilder cta;
    for (std::uint32_t w = 0; w < shape.warps_per_cta(); ++w) {
      cta.Warp();
      for (std::uint32_t phase = 0; phase < phases; ++phase) {
        for (std::uint32_t v = 0; v < visits; ++v) {
          const auto block = static_cast<std::uint32_t>(of_cta() % blocks);
          const std::uint32_t mask = Choose<std::uint32_t>(
              of_cta, {kAllLanes, kAllLanes, 1, 0xffff0000u, static_cast<std::uint32_t>(of_cta()) | 4});
          cta.Visit(block, mask);
          for (std::uint32_t i = 0; i < code.blocks[block].count; ++i) {
            const trace::Instruction& instruction = code.instructions[code.blocks[block].first + i];
            if (instruction.has_access()) AddAccess(cta, of_cta, instruction, mask);
          }
        }
        // Pairs of warps meet at a barrier of their own, all at that of the CTA; some warps leave early.
        if (w < 2 && shape.warps_per_cta() >= 2) cta.Visit(named);
        if (w % 5 == 4 && phase == 1) break;
        if (of_cta() % 4 != 0) {
          cta.Visit(barrier);
        } else {  // half of the warp first
          cta.Visit(barrier, 0xffff);
          cta.Visit(barrier, 0xffff0000);
        }
      }
    }
    return Shifted(code, cta.Finish(), index * 256);
  });
}

sim::DeviceSpec RandomDevice(std::mt19937_64& random) {
  sim::DeviceSpec device = TestDevice(
      Choose<const char*>(random, {"gtx480", "gtx680", "k20c", "v100", "h200", "crcs", "sm_52", "fermi-24"}));
  sim::TimingSpec& timing = device.timing;
  device.sm.count = Draw(random, 1, 4);
  if (Draw(random, 0, 1) == 0) device.sm.max_blocks = Draw(random, 1, 4);
  device.grid.max_resident = Draw(random, 1, 4);
  timing.sm.warp_order =
      Choose(random, {sim::WarpOrder::kLooseRoundRobin, sim::WarpOrder::kGreedyThenOldest, sim::WarpOrder::kTwoLevel});
  timing.sm.active_warps = Draw(random, 1, 4);
  timing.sm.issue_width = Draw(random, 1, 2);
  timing.sm.same_pipe_pairs = Draw(random, 0, 1) == 0;
  timing.sm.sub_cores = Draw(random, 0, 1) == 0;
  timing.sm.schedulers = Choose(random, {1u, 2u, 4u});
  for (sim::TimingSpec::Op& op : timing.op) {
    op.latency = Draw(random, 1, 90);  // beyond the wheel's 64 cycles, too
    op.interval = Draw(random, 1, 9);
  }
  timing.l1.queue = Draw(random, 1, 8);
  timing.l1.tags = Choose(random, {1u, 1u, 2u, 4u, 32u});
  timing.shared.way_cycles = Draw(random, 1, 3);
  timing.shared.twins = Draw(random, 0, 1) == 0;
  timing.l1.mshrs = Draw(random, 1, 40);
  timing.l1.merges = Draw(random, 1, 4);
  timing.l1.stores = Draw(random, 1, 16);
  timing.l1.sectored = Draw(random, 0, 1) == 0;
  timing.l1.global = Draw(random, 0, 3) != 0;
  timing.l1.local_write_back = Draw(random, 0, 1) == 0;
  timing.l1.stores_of_global = Choose(random, {sim::StorePolicy::kWriteThrough, sim::StorePolicy::kWriteEvict});
  timing.l1.size_bytes = 128 * timing.l1.ways * Draw(random, 1, 8);
  timing.l2.mshrs = Draw(random, 1, 16);
  timing.l2.atomic_interval = Draw(random, 1, 9);
  timing.l2.halves = Draw(random, 1, 2);
  timing.l2.far_cycles = Draw(random, 0, 200);
  // A small L2 evicts, and writes back.
  const std::uint32_t fewest_sets = (256 + timing.l2.slices - 1) / timing.l2.slices;
  device.l2.size_bytes =
      timing.l2.slices * timing.l2.ways * timing.l2.halves * 128 * (fewest_sets + Draw(random, 0, 20));
  device.l2.persisting_bytes = 0;
  timing.dram.queue = Draw(random, 2, 12);
  timing.launch.cta_cycles = Draw(random, 1, 70);
  timing.launch.cta_interval = Draw(random, 0, 3);
  timing.launch.kernel_cycles = Draw(random, 0, 200);
  timing.launch.dependent_cycles = Draw(random, 0, 100);
  timing.launch.queues = Draw(random, 1, 3);
  if (Draw(random, 0, 2) == 0) {
    timing.tlb.ways = Draw(random, 1, 3);
    timing.tlb.entries = timing.tlb.ways * Draw(random, 1, 3);
    timing.tlb.miss_cycles = Draw(random, 1, 400);
    device.memory.page_bytes = Choose<std::uint64_t>(random, {128, 1024, 4096});
  }
  const Status valid = sim::ValidateDevice(device);
  INFO((valid.ok() ? "" : valid.error().message));
  REQUIRE(valid.ok());
  return device;
}

}  // namespace gridloom::timing
