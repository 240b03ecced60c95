// Micro-benchmarks of latency: a dependent chain takes what the device file says, to the cycle.
#include <catch2/catch.hpp>

#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {
namespace {

using trace::OpClass;
using trace::Space;

constexpr trace::LaunchShape kOneWarp{
    .ctas = 1, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 1024};

/// One warp whose only block is `code`, each instruction waiting for the one before through register 1, and a last one
/// that ends the kernel when the chain is done.
template <typename Fill>
Cycle ChainCycles(const sim::DeviceSpec& device, const Fill& fill) {
  CodeBuilder code("chain");
  CtaBuilder cta;
  code.Block();
  cta.Warp();
  cta.Visit(0);
  fill(code, cta);
  code.Op(OpClass::kControl, {}, {1});
  return KernelCycles(RunLaunch(device, SameCtas(code.code(), kOneWarp, cta.Finish())));
}

/// Loads of the addresses, each address known when the load before it is done.
Cycle Chase(const sim::DeviceSpec& device, Space space, const std::vector<std::uint64_t>& addresses,
            unsigned flags = 0) {
  return ChainCycles(device, [&](CodeBuilder& code, CtaBuilder& cta) {
    for (const std::uint64_t address : addresses) {
      code.Load(space, 1, 4, flags, 1);
      cta.Access(address, 0, 1);
    }
  });
}

const std::vector<std::string> kDevices = {"gtx480",         "c2050", "gtx680", "k20c",
                                           "titanx-maxwell", "v100",  "a100",   "h200"};

TEST_CASE("Chain_OfEachClass_TakesItsLatency") {
  for (const std::string& name : kDevices) {
    const sim::DeviceSpec device = TestDevice(name);
    for (const OpClass op :
         {OpClass::kInt, OpClass::kIntMul, OpClass::kFp32, OpClass::kFp64, OpClass::kSfu, OpClass::kShuffle}) {
      INFO(name << ", class " << static_cast<int>(op));
      const Cycle cycles = ChainCycles(device, [&](CodeBuilder& code, CtaBuilder&) {
        for (int i = 0; i < 100; ++i) code.Op(op, {1}, {1, 2});
      });
      const sim::TimingSpec::Op& spec = device.timing.of(op);
      CHECK(cycles == 100 * std::max(spec.latency, 1u));
    }
  }
}

TEST_CASE("SharedLoads_WithConflicts_TakeTheirWaysLonger") {
  for (const std::string& name : kDevices) {
    const sim::DeviceSpec device = TestDevice(name);
    const auto cycles = [&](std::int32_t words) {
      return ChainCycles(device, [&](CodeBuilder& code, CtaBuilder& cta) {
        for (int i = 0; i < 20; ++i) {
          code.Load(Space::kShared, 1, 4, 0, 1);
          cta.Access(0, words * static_cast<std::int32_t>(device.timing.shared.bank_bytes));
        }
      });
    };
    INFO(name);
    const Cycle alone = cycles(1);
    CHECK(cycles(2) - alone == 20 * device.timing.shared.way_cycles);
    CHECK(cycles(8) - alone == 20 * 7 * device.timing.shared.way_cycles);
  }
  CHECK(TestDevice("h200").timing.shared.way_cycles == 2);  // tests/data/gpu/timing-probes.txt
}

TEST_CASE("PointerChase_InL1_TakesL1Latency") {
  for (const std::string& name : kDevices) {
    const sim::DeviceSpec device = TestDevice(name);
    if (!device.timing.l1.global) continue;
    INFO(name);
    CHECK(Chase(device, Space::kGlobal, std::vector<std::uint64_t>(21, 4096)) - Chase(device, Space::kGlobal, {4096}) ==
          20 * device.timing.l1.latency);
  }
}

TEST_CASE("PointerChase_InL2_TakesL2Latency") {
  for (const std::string& name : kDevices) {
    const sim::DeviceSpec device = TestDevice(name);
    INFO(name);
    CHECK(Chase(device, Space::kGlobal, std::vector<std::uint64_t>(21, 4096), trace::kCacheGlobal) -
              Chase(device, Space::kGlobal, {4096}, trace::kCacheGlobal) ==
          20 * device.timing.l2.latency);
  }
}

/// From Volta on a kernel's first parameters come from L2 to each SM; those of its later reads are there.
TEST_CASE("Parameters_OfALaunch_ComeFromL2Once") {
  for (const std::string& name : kDevices) {
    const sim::DeviceSpec device = TestDevice(name);
    INFO(name);
    const auto cycles = [&](int loads) {
      return ChainCycles(device, [&](CodeBuilder& code, CtaBuilder&) {
        for (int i = 0; i < loads; ++i) code.Load(Space::kParameter, 1, 4, 0, 1);
      });
    };
    const std::uint32_t hit = device.timing.constant.latency;
    const std::uint32_t first = device.compute_capability.sm() >= 70 ? device.timing.l2.latency : hit;
    CHECK(cycles(1) == first);
    CHECK(cycles(11) == first + 10 * hit);
  }
}

/// A warp that stores `words` floats of a sector, one after the other, and then reads the sector.
Outcome StoreAndRead(const sim::DeviceSpec& device, std::uint32_t words) {
  CodeBuilder code("parts");
  CtaBuilder cta;
  code.Block();
  cta.Warp();
  cta.Visit(0);
  for (std::uint32_t word = 0; word < words; ++word) {
    code.Store(Space::kGlobal, 1, 4, trace::kCacheGlobal);
    cta.Access(4096 + 4 * word, 0, 1);
    code.Op(OpClass::kFence, {}, {});
  }
  code.Load(Space::kGlobal, 1, 4, trace::kCacheGlobal);
  cta.Access(4096, 0, 1);
  code.Op(OpClass::kControl, {}, {1});
  return RunLaunch(device, SameCtas(code.code(), kOneWarp, cta.Finish()));
}

TEST_CASE("Sector_WhoseWordsWereAllStored_IsNotReadFromDram") {
  for (const std::string& name : kDevices) {
    INFO(name);
    CHECK(StoreAndRead(TestDevice(name), 7).counters.memory.dram_reads == 1);
    CHECK(StoreAndRead(TestDevice(name), 8).counters.memory.dram_reads == 0);
  }
}

/// The half beside an SM gets a copy with the first read, and loses it with a store.
TEST_CASE("L2_OfTheOtherHalf_IsFartherAway") {
  sim::DeviceSpec device = TestDevice("h200");
  device.sm.count = 2;
  const std::uint32_t far = device.timing.l2.far_cycles;
  REQUIRE(far > 0);
  // SM 0 brings the line from DRAM, waits, reads it twice; what it takes more there than in one half.
  const auto more = [&](std::uint64_t address, bool stores) {
    const auto cycles = [&](std::uint32_t extra) {
      device.timing.l2.far_cycles = extra;
      return ChainCycles(device, [&](CodeBuilder& code, CtaBuilder& cta) {
        for (int i = 0; i < 3; ++i) {
          code.Load(Space::kGlobal, 1, 4, trace::kCacheGlobal, 1);
          cta.Access(address, 0, 1);
          if (i != 1 || !stores) continue;
          code.Store(Space::kGlobal, 1, 4, trace::kCacheGlobal);
          cta.Access(address, 0, 1);
          code.Op(OpClass::kFence, {}, {});
        }
      });
    };
    return cycles(far) - cycles(0);
  };
  std::uint32_t near_lines = 0, far_lines = 0;
  for (std::uint64_t line = 0; line < 64; ++line) {
    const Cycle read = more(line * 4096, false), stored = more(line * 4096, true);
    CHECK(read == 0);  // latencies of DRAM are those of both halves, and the copy is there then
    near_lines += stored == 0 ? 1 : 0;
    far_lines += stored == 2 * far ? 1 : 0;
  }
  CHECK(near_lines + far_lines == 64);
  CHECK(near_lines > 16);
  CHECK(far_lines > 16);
}

TEST_CASE("PointerChase_OverMorePagesThanTheTlbKnows_TakesItsMissesLonger") {
  sim::DeviceSpec device = TestDevice("v100");
  constexpr std::uint32_t kMiss = 1530;  // whole cycles of DRAM, too
  std::vector<std::uint64_t> near, far;  // twice over 16 lines of one page, of 16 pages
  for (std::uint64_t i = 0; i < 32; ++i)
    near.push_back(i % 16 * 128), far.push_back(i % 16 * device.memory.page_bytes + i % 16 * 128);
  const auto chase = [&](const std::vector<std::uint64_t>& lines, std::uint32_t entries) {
    device.timing.tlb = {.entries = entries, .ways = 8, .miss_cycles = kMiss};
    return Chase(device, Space::kGlobal, lines, trace::kCacheGlobal);
  };
  CHECK(chase(near, 0) + kMiss == chase(near, 8));
  CHECK(chase(far, 0) + 16 * kMiss == chase(far, 64));  // the second time they are known
  CHECK(chase(far, 0) + 32 * kMiss == chase(far, 8));   // one set, too small: none is ever known
}

TEST_CASE("PointerChase_OfClosedBanks_TakesDramLatency") {
  for (const std::string& name : kDevices) {
    const sim::DeviceSpec device = TestDevice(name);
    INFO(name);
    const Cycle cycles = Chase(device, Space::kGlobal, {1 << 20}, trace::kCacheGlobal);
    CHECK(cycles >= device.timing.dram.latency);
    // The command clock begins its cycles where it does, not where the request comes.
    CHECK(cycles <= device.timing.dram.latency + 1 + device.timing.clock.sm_mhz / device.timing.clock.dram_mhz);
  }
}

TEST_CASE("PointerChase_WithUnequalClocks_IsAtMostACycleOfEachClockOff") {
  const sim::DeviceSpec device = TestDevice("crcs");  // L2 at 924 MHz, SMs at 700
  const Cycle l2 = Chase(device, Space::kGlobal, std::vector<std::uint64_t>(21, 4096), trace::kCacheGlobal) -
                   Chase(device, Space::kGlobal, {4096}, trace::kCacheGlobal);
  CHECK(l2 >= 20 * (device.timing.l2.latency - 1));
  CHECK(l2 <= 20 * (device.timing.l2.latency + 1));
}

TEST_CASE("Chase_OfSharedConstantAndTexture_TakesTheirLatencies") {
  for (const std::string& name : kDevices) {
    const sim::DeviceSpec device = TestDevice(name);
    INFO(name);
    CHECK(Chase(device, Space::kShared, std::vector<std::uint64_t>(10, 64)) == 10 * device.timing.shared.latency);
    const auto warm = [&](Space space) {
      return Chase(device, space, std::vector<std::uint64_t>(11, 4096)) - Chase(device, space, {4096});
    };
    CHECK(warm(Space::kConstant) == 10 * device.timing.constant.latency);
    const bool own = device.timing.texture.size_bytes > 0;
    CHECK(warm(Space::kTexture) == 10 * (own ? device.timing.texture.latency : device.timing.l1.latency));
  }
}

TEST_CASE("SharedLoad_WithAnNWayConflict_TakesNMinusOneMoreCycles") {
  const sim::DeviceSpec device = TestDevice("v100");
  for (std::int32_t ways = 1; ways <= 32; ways *= 2) {
    INFO(ways << " ways");
    const Cycle cycles = ChainCycles(device, [&](CodeBuilder& code, CtaBuilder& cta) {
      for (int i = 0; i < 10; ++i) {
        code.Load(Space::kShared, 1, 4, 0, 1);
        cta.Access(0, 4 * ways);
      }
    });
    CHECK(cycles == 10 * (device.timing.shared.latency + static_cast<Cycle>(ways) - 1));
  }
}

/// As many lines as ways: words so far apart lie in as many banks less.
TEST_CASE("Scatter_OverNLinesOfL1_TakesNMinusOneMoreCycles") {
  const sim::DeviceSpec device = TestDevice("v100");
  const auto chase = [&](std::int32_t stride, int loads) {
    return ChainCycles(device, [&](CodeBuilder& code, CtaBuilder& cta) {
      for (int i = 0; i < loads; ++i) {
        code.Load(Space::kGlobal, 1, 4, 0, 1);
        cta.Access(1 << 16, stride);
      }
    });
  };
  for (const int lines : {1, 2, 8, 32}) {
    INFO(lines << " lines");
    const auto expected = static_cast<Cycle>(10 * (device.timing.l1.latency + static_cast<unsigned>(lines) - 1));
    CHECK(chase(4 * lines, 11) - chase(4 * lines, 1) == expected);
  }
}

TEST_CASE("AtomicChain_OnOneAddress_TakesL2Latency_AndLanesOnItTakeTurns") {
  const sim::DeviceSpec device = TestDevice("v100");
  const auto chain = [&](std::uint32_t mask, int atomics) {
    return ChainCycles(device, [&](CodeBuilder& code, CtaBuilder& cta) {
      for (int i = 0; i < atomics; ++i) {
        code.Load(Space::kGlobal, 1, 4, trace::kAtomic, 1);
        cta.Access(4096, 0, mask);
      }
    });
  };
  // The packet carries its operands: one sector on the way there.
  const Cycle one = chain(1, 11) - chain(1, 1);
  CHECK(one >= 10 * device.timing.l2.latency);
  CHECK(one <= 10 * (device.timing.l2.latency + 2));
}

TEST_CASE("Branch_HoldsItsWarpForItsLatency_AndFenceWaitsForStores") {
  const sim::DeviceSpec device = TestDevice("v100");
  const auto branches = ChainCycles(device, [](CodeBuilder& code, CtaBuilder&) {
    for (int i = 0; i < 10; ++i) code.Op(OpClass::kBranch, {}, {});
  });
  CHECK(branches == 10 * device.timing.of(OpClass::kBranch).latency);
  const auto fence = [&](bool store) {
    return ChainCycles(device, [&](CodeBuilder& code, CtaBuilder& cta) {
      if (store) {
        code.Store(Space::kGlobal, 2);
        cta.Access(4096);
      }
      code.Op(OpClass::kFence, {}, {});
    });
  };
  CHECK(fence(false) == device.timing.of(OpClass::kFence).latency);
  CHECK(fence(true) >= device.timing.l2.latency);
}

}  // namespace
}  // namespace gridloom::timing
