// Helpers: atomics against plain arithmetic, printf against the host's, heap, assert, trap, faults by signal.
#include <unistd.h>

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "sim/exec/runtime/half.h"
#include "sim/exec/runtime/printf_format.h"
#include "tests/sim/exec/runtime_harness.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

/// What the kernel of a test case does: set before Run, called once per warp.
std::function<void(WarpCtx*)> g_body;
void Body(WarpCtx* warp) { g_body(warp); }

/// Runs `body` as a kernel of one warp.
LaunchFault RunOne(Harness& h, std::function<void(WarpCtx*)> body, Dim3 grid = {1, 1, 1}, Dim3 block = {32, 1, 1}) {
  g_body = std::move(body);
  if (!h.program || !h.program->FindKernel("body"))
    h.Add("body", {.entry = &Body, .static_shared_bytes = 1024, .local_bytes = 64});
  return h.Run("body", grid, block);
}

template <typename T>
std::vector<T> Atomic(WarpCtx* warp, AtomicOp op, AtomicType type, Space space,
                      const std::vector<std::uint64_t>& addresses, const std::vector<T>& b, const std::vector<T>& c,
                      std::uint32_t mask = ~0u, AtomicFlush flush = AtomicFlush::kNever) {
  std::vector<T> old(32);
  void* args[] = {old.data(), const_cast<std::uint64_t*>(addresses.data()), const_cast<T*>(b.data()),
                  const_cast<T*>(c.data())};
  CallHelper(warp, Helper::kAtomic, mask, 9, AtomicImm(op, type, false, space, flush), args);
  return old;
}

template <typename T>
T Reference(AtomicOp op, T old, T b, T c) {
  using S = std::make_signed_t<T>;
  switch (op) {
    case AtomicOp::kAdd: return static_cast<T>(old + b);
    case AtomicOp::kMin: return static_cast<S>(old) < static_cast<S>(b) ? old : b;
    case AtomicOp::kMax: return static_cast<S>(old) > static_cast<S>(b) ? old : b;
    case AtomicOp::kUMin: return std::min(old, b);
    case AtomicOp::kUMax: return std::max(old, b);
    case AtomicOp::kInc: return old >= b ? T{0} : static_cast<T>(old + 1);
    case AtomicOp::kDec: return old == 0 || old > b ? b : static_cast<T>(old - 1);
    case AtomicOp::kAnd: return old & b;
    case AtomicOp::kOr: return old | b;
    case AtomicOp::kXor: return old ^ b;
    case AtomicOp::kExch: return b;
    case AtomicOp::kCas: return old == b ? c : old;
    default: return 0;
  }
}

template <typename T>
void CheckIntegerAtomics(WarpCtx* warp, AtomicType type, std::uint64_t global) {
  std::mt19937_64 random(5);
  for (const Space space : {Space::kGlobal, Space::kShared, Space::kGeneric}) {
    for (int op = 0; op <= static_cast<int>(AtomicOp::kCas); ++op) {
      const std::uint64_t base = space == Space::kShared ? warp->cta->shared_base : global;
      std::vector<std::uint64_t> addresses(32);
      std::vector<T> b(32), c(32), expected_old(32), model(4);
      T* const cells = reinterpret_cast<T*>(base);
      for (T& cell : model) cell = static_cast<T>(random() % 8);
      std::copy(model.begin(), model.end(), cells);
      const std::uint32_t mask = static_cast<std::uint32_t>(random());
      for (std::uint32_t lane = 0; lane < 32; ++lane) {
        const auto at = random() % 4;
        addresses[lane] = base + at * sizeof(T);
        b[lane] = static_cast<T>(random() % 8 - (random() % 2 ? 4 : 0));
        c[lane] = static_cast<T>(random());
        if (!(mask >> lane & 1)) continue;
        expected_old[lane] = model[at];
        model[at] = Reference<T>(static_cast<AtomicOp>(op), model[at], b[lane], c[lane]);
      }
      const auto old = Atomic<T>(warp, static_cast<AtomicOp>(op), type, space, addresses, b, c, mask);
      for (std::uint32_t lane = 0; lane < 32; ++lane)
        if (mask >> lane & 1) REQUIRE(old[lane] == expected_old[lane]);
      REQUIRE(std::equal(model.begin(), model.end(), cells));
    }
  }
}

PrintfText Print(std::string_view format, const std::vector<std::uint8_t>& block) {
  return FormatPrintf(
      format, {.read =
                   [&](std::uint64_t offset, void* to, std::size_t bytes) {
                     if (offset + bytes > block.size()) return false;
                     std::memcpy(to, block.data() + offset, bytes);
                     return true;
                   },
               .string = [](std::uint64_t address) { return std::string(reinterpret_cast<const char*>(address)); }});
}

struct Block {
  std::vector<std::uint8_t> bytes;
  template <typename T>
  Block& Add(T value) {
    while (bytes.size() % sizeof(T) != 0) bytes.push_back(0xee);
    bytes.insert(bytes.end(), reinterpret_cast<const std::uint8_t*>(&value),
                 reinterpret_cast<const std::uint8_t*>(&value) + sizeof value);
    return *this;
  }
};

}  // namespace

TEST_CASE("Atomic_Integers_MatchTheLaneByLaneModel") {
  Harness h(1);
  const std::uint64_t global = h.memory->Allocate(256, 256, MemoryKind::kDevice);
  const LaunchFault fault = RunOne(h, [&](WarpCtx* warp) {
    for (int i = 0; i < 20; ++i) {
      CheckIntegerAtomics<std::uint16_t>(warp, AtomicType::kI16, global);
      CheckIntegerAtomics<std::uint32_t>(warp, AtomicType::kI32, global);
      CheckIntegerAtomics<std::uint64_t>(warp, AtomicType::kI64, global);
    }
  });
  CHECK(fault.text.empty());
}

TEST_CASE("Atomic_Floats_AddMinMax") {
  Harness h(1);
  const std::uint64_t global = h.memory->Allocate(256, 256, MemoryKind::kDevice);
  const float nan = std::nanf("");
  const LaunchFault fault = RunOne(h, [&](WarpCtx* warp) {
    const auto single = [&](AtomicOp op, AtomicType type, auto start, auto b, Space space = Space::kGlobal,
                            AtomicFlush flush = AtomicFlush::kOutsideShared) {
      using T = decltype(start);
      const std::uint64_t at = space == Space::kShared ? warp->cta->shared_base : global;
      std::memcpy(reinterpret_cast<void*>(at), &start, sizeof start);
      const auto old = Atomic<T>(warp, op, type, space, std::vector<std::uint64_t>(32, at), std::vector<T>(32, b),
                                 std::vector<T>(32), 1u << 5, flush);
      CHECK(std::memcmp(&old[5], &start, sizeof start) == 0);
      T now;
      std::memcpy(&now, reinterpret_cast<void*>(at), sizeof now);
      return now;
    };
    CHECK(single(AtomicOp::kFAdd, AtomicType::kF32, 1.5f, 2.25f) == 3.75f);
    CHECK(single(AtomicOp::kFAdd, AtomicType::kF64, 1.5, 0x1p-52) == 1.5 + 0x1p-52);
    CHECK(single(AtomicOp::kFMin, AtomicType::kF32, 1.5f, nan) == 1.5f);
    CHECK(single(AtomicOp::kFMax, AtomicType::kF32, nan, 2.0f) == 2.0f);
    CHECK(std::signbit(single(AtomicOp::kFMin, AtomicType::kF32, 0.0f, -0.0f)));
    CHECK_FALSE(std::signbit(single(AtomicOp::kFMax, AtomicType::kF64, -0.0, 0.0)));
    // Subnormals: flushed in global memory, kept in shared memory.
    CHECK(single(AtomicOp::kFAdd, AtomicType::kF32, 0x1p-140f, 0x1p-140f) == 0.0f);
    CHECK(single(AtomicOp::kFAdd, AtomicType::kF32, 0x1p-140f, 0x1p-140f, Space::kShared) == 0x1p-139f);
    CHECK(single(AtomicOp::kFAdd, AtomicType::kF32, 0x1p-140f, 0x1p-140f, Space::kGlobal, AtomicFlush::kNever) ==
          0x1p-139f);
    const auto half = [](float value) { return FloatToHalf(value); };
    CHECK(single(AtomicOp::kFAdd, AtomicType::kF16, half(1.0f), half(2.5f)) == half(3.5f));
    CHECK(single(AtomicOp::kFAdd, AtomicType::kBF16, FloatToBfloat(1.0f), FloatToBfloat(2.5f)) == FloatToBfloat(3.5f));
    const auto pair = [&](float low, float high) { return std::uint32_t{half(low)} | std::uint32_t{half(high)} << 16; };
    CHECK(single(AtomicOp::kFAdd, AtomicType::kF16x2, pair(1, 2), pair(10, 20)) == pair(11, 22));
    CHECK(single(AtomicOp::kFMax, AtomicType::kF16x2, pair(1, 20), pair(10, 2)) == pair(10, 20));
    struct Wide {
      std::uint64_t low, high;
      bool operator==(const Wide&) const = default;
    };
    CHECK(single(AtomicOp::kExch, AtomicType::kI128, Wide{1, 2}, Wide{3, 4}) == Wide{3, 4});
    CHECK(single(AtomicOp::kExch, AtomicType::kI128, Wide{1, 2}, Wide{3, 4}, Space::kShared) == Wide{3, 4});
    CHECK(single(AtomicOp::kCas, AtomicType::kI128, Wide{1, 2}, Wide{1, 2}) == Wide{0, 0});
    CHECK(single(AtomicOp::kCas, AtomicType::kI128, Wide{1, 2}, Wide{1, 3}) == Wide{1, 2});
  });
  CHECK(fault.text.empty());
}

TEST_CASE("Atomic_FromAllThreads_LosesNothing") {
  Harness h(4);
  auto* const cells = h.Allocate<std::uint64_t>(8);
  const LaunchFault fault = RunOne(
      h,
      [&](WarpCtx* warp) {
        const std::vector<std::uint64_t> f32(32, reinterpret_cast<std::uint64_t>(cells)),
            u16(32, reinterpret_cast<std::uint64_t>(cells) + 8 + 2),
            h2(32, reinterpret_cast<std::uint64_t>(cells) + 16), wide(32, reinterpret_cast<std::uint64_t>(cells) + 32);
        Atomic<float>(warp, AtomicOp::kFAdd, AtomicType::kF32, Space::kGlobal, f32, std::vector<float>(32, 1.0f),
                      std::vector<float>(32));
        Atomic<std::uint16_t>(warp, AtomicOp::kAdd, AtomicType::kI16, Space::kGlobal, u16,
                              std::vector<std::uint16_t>(32, 1), std::vector<std::uint16_t>(32));
        Atomic<std::uint32_t>(warp, AtomicOp::kFMax, AtomicType::kF16x2, Space::kGlobal, h2,
                              std::vector<std::uint32_t>(32, FloatToHalf(static_cast<float>(LinearCta(warp)))),
                              std::vector<std::uint32_t>(32));
      },
      {500, 1, 1}, {64, 1, 1});
  CHECK(fault.text.empty());
  float sum;
  std::memcpy(&sum, cells, 4);
  CHECK(sum == 32000.0f);
  CHECK(cells[1] == std::uint64_t{32000} << 16);
  CHECK(cells[2] == FloatToHalf(499.0f));
}

TEST_CASE("Atomic_OutOfBounds_IsAFaultOfItsThread") {
  Harness h(1);
  const std::uint64_t global = h.memory->Allocate(4096, 256, MemoryKind::kDevice);
  const auto at = [&](std::uint64_t address, Space space) {
    return RunOne(h, [=](WarpCtx* warp) {  // arrays only: a fault leaves the warp without running destructors
      alignas(64) std::uint64_t addresses[32];
      alignas(64) std::uint32_t ones[32], old[32];
      std::fill(std::begin(addresses), std::end(addresses),
                address + (space == Space::kShared ? warp->cta->shared_base : 0));
      std::fill(std::begin(ones), std::end(ones), 1u);
      void* args[] = {old, addresses, ones, ones};
      CallHelper(warp, Helper::kAtomic, 1u << 17, 9, AtomicImm(AtomicOp::kAdd, AtomicType::kI32, false, space), args);
    });
  };
  CHECK(at(global, Space::kGlobal).kind == FaultKind::kNone);
  const LaunchFault beyond = at(global + 4096, Space::kGlobal);
  CHECK(beyond.kind == FaultKind::kIllegalAddress);
  CHECK((beyond.thread.x == 17 && beyond.ptx_line == 9));
  CHECK(at(global + 1, Space::kGlobal).kind == FaultKind::kMisalignedAddress);
  CHECK(at(1020, Space::kShared).kind == FaultKind::kNone);
  CHECK(at(1024, Space::kShared).kind == FaultKind::kIllegalAddress);
  std::vector<std::uint32_t> host(4);
  const auto host_address = reinterpret_cast<std::uint64_t>(host.data());
  CHECK(at(host_address, Space::kGeneric).kind == FaultKind::kIllegalAddress);
  REQUIRE(h.memory->RegisterHost(host.data(), 16, false));
  CHECK(at(host_address, Space::kGeneric).kind == FaultKind::kNone);
  CHECK(host[0] == 1);
  CHECK(at(host_address + 16, Space::kGeneric).kind == FaultKind::kIllegalAddress);
  h.memory->UnregisterHost(host.data());
  REQUIRE(h.memory->RegisterHost(host.data(), 16, true));
  CHECK(at(host_address, Space::kGeneric).kind == FaultKind::kIllegalAddress);
}

TEST_CASE("SlowLoadAndStore_EverySize_MoveLanesInEverySpace") {
  Harness h(1);
  const std::uint64_t global = h.memory->Allocate(4096, 256, MemoryKind::kDevice);
  const LaunchFault fault = RunOne(h, [&](WarpCtx* warp) {
    for (const std::uint32_t bytes : {1u, 2u, 4u, 8u, 16u, 32u}) {
      for (const Space space : {Space::kGlobal, Space::kShared, Space::kLocal}) {
        std::uint64_t addresses[32];
        std::vector<std::uint8_t> values(32 * bytes), loaded(32 * bytes, 0xcc);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * 7 + bytes);
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
          addresses[lane] = global + lane * bytes;
          if (space == Space::kShared) addresses[lane] = warp->cta->shared_base + lane * bytes;
          if (space == Space::kLocal)
            addresses[lane] = warp->local_base + std::uint64_t{warp->local_stride} * lane + 32;
        }
        const std::uint32_t mask = 0xfffefff7;
        void* store[] = {addresses, values.data()};
        CallHelper(warp, Helper::kStoreSlow, ~0u, 1, bytes | static_cast<std::uint64_t>(space) << 8, store);
        void* load[] = {loaded.data(), addresses};
        CallHelper(warp, Helper::kLoadSlow, mask, 1, bytes | static_cast<std::uint64_t>(space) << 8, load);
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
          const bool active = mask >> lane & 1;
          for (std::uint32_t i = 0; i < bytes; ++i)
            REQUIRE(loaded[lane * bytes + i] == (active ? values[lane * bytes + i] : 0xcc));
        }
      }
    }
  });
  CHECK(fault.text.empty());
}

TEST_CASE("Load_FromGeneratedCodeThatFaults_IsAnIllegalAddressOfItsCta") {
  for (const unsigned threads : {1u, 2u}) {
    for (const bool fiber : {false, true}) {
      Harness h(threads);
      const std::uint64_t gap = h.memory->Allocate(4096, 256, MemoryKind::kDevice) + 4096;
      // The access section of a helper stands in for generated code: the C++ function is not in the code object.
      h.Add("touch", {.entry =
                          [](WarpCtx* warp) {
                            if (LinearCta(warp) != 7) return;
                            Worker& worker = WarpOf(warp).cta->unit->worker;
                            worker.access_line = 12;
                            worker.access_lane = 3;
                            *reinterpret_cast<volatile int*>(Param(warp, 0)) = 1;
                            worker.access_lane = -1;
                          },
                      .needs_fiber = fiber});
      for (int i = 0; i < 3; ++i) {
        const LaunchFault fault = h.Run("touch", {20, 1, 1}, {32, 1, 1}, {gap});
        CHECK(fault.kind == FaultKind::kIllegalAddress);
        CHECK((fault.cta.x == 7 && fault.thread.x == 3 && fault.address == gap && fault.ptx_line == 12));
      }
    }
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {
std::uint64_t Recurse(std::uint64_t depth, volatile char* above) {
  volatile char frame[512];
  frame[0] = above ? above[0] : 1;
  return depth == 0 ? 0 : Recurse(depth - 1, frame) + static_cast<std::uint64_t>(frame[0]);
}
}  // namespace

TEST_CASE("Stack_Overflow_IsReportedAsSuch") {
  for (const bool fiber : {false, true}) {
    Harness h(1);
    h.Add("deep", {.entry =
                       [](WarpCtx* warp) {
                         reinterpret_cast<std::uint64_t*>(Param(warp, 0))[0] += Recurse(Param(warp, 1), nullptr);
                       },
                   .needs_fiber = fiber,
                   .recursive = true});
    const auto sink = reinterpret_cast<std::uint64_t>(h.Allocate<std::uint64_t>(1));
    CHECK(h.Run("deep", {2, 1, 1}, {64, 1, 1}, {sink, 1000}).kind == FaultKind::kNone);
    CHECK(h.Run("deep", {2, 1, 1}, {64, 1, 1}, {sink, 1'000'000}).kind == FaultKind::kStackOverflow);
    CHECK(h.Run("deep", {2, 1, 1}, {64, 1, 1}, {sink, 1000}).kind == FaultKind::kNone);
  }
}
#endif

TEST_CASE("Printf_EveryConversion_PrintsAsTheHostDoes") {
  const auto check = [](const char* format, const Block& block, const std::string& expected, int arguments) {
    const PrintfText text = Print(format, block.bytes);
    CHECK(text.text == expected);
    CHECK(text.arguments == arguments);
  };
  check("plain %% text\n", {}, "plain % text\n", 0);
  check("%d %i|%5d|%-5d|%05d|%+d|% d", Block().Add(-1).Add(7).Add(42).Add(42).Add(42).Add(42).Add(42),
        "-1 7|   42|42   |00042|+42| 42", 7);
  check("%u %x %X %o %#x %#o", Block().Add(4000000000u).Add(255).Add(255).Add(8).Add(255).Add(8),
        "4000000000 ff FF 10 0xff 010", 6);
  check("%ld %lld %lu %llx %hd",
        Block()
            .Add(std::int64_t{-5})
            .Add(std::int64_t{1} << 40)
            .Add(~std::uint64_t{0})
            .Add(std::uint64_t{0xabcdef0123})
            .Add(70000),
        "-5 1099511627776 18446744073709551615 abcdef0123 4464", 5);
  check("%f %.2f %8.3f %e %G %a", Block().Add(1.5).Add(3.14159).Add(2.0).Add(12345.678).Add(1e-10).Add(1.0),
        "1.500000 3.14    2.000 1.234568e+04 1E-10 0x1p+0", 6);
  check("%d%f%d", Block().Add(1).Add(2.0).Add(3), "12.0000003", 3);
  check("%c%c%5c", Block().Add(int{'a'}).Add(int{'b'}).Add(int{'c'}), "ab    c", 3);
  check("%*d|%-*d|%.*f|%*d", Block().Add(6).Add(42).Add(6).Add(42).Add(2).Add(1.239).Add(-4).Add(7),
        "    42|42    |1.24|7   ", 8);
  check("%.*f", Block().Add(-1).Add(0.5), "0.500000", 2);
  check("%s|%8s|%-8s|%.2s", Block().Add("one").Add("two").Add("three").Add("four"), "one|     two|three   |fo", 4);
  check("%p", Block().Add(std::uint64_t{0x1234}), "0x1234", 1);
  check("%y %", {}, "%y %", 0);
  check("%s", Block().Add(std::string(500, 'x').c_str()), std::string(500, 'x'), 1);
}

TEST_CASE("Vprintf_PrintsCtaByCtaOnAnyNumberOfThreads") {
  for (const unsigned threads : {1u, 3u}) {
    Harness h(threads);
    char* const format = h.Allocate<char>(32);
    std::strcpy(format, "cta %d lane %d\n");
    const LaunchFault fault = RunOne(h,
                                     [&](WarpCtx* warp) {
                                       const std::uint32_t mask = 0x00010001;
                                       alignas(64) std::uint64_t formats[32], blocks[32];
                                       alignas(64) std::int32_t results[32] = {};
                                       for (std::uint32_t lane = 0; lane < 32; ++lane) {
                                         formats[lane] = reinterpret_cast<std::uint64_t>(format);
                                         blocks[lane] = warp->local_base + std::uint64_t{warp->local_stride} * lane;
                                         const std::int32_t values[2] = {static_cast<std::int32_t>(LinearCta(warp)),
                                                                         static_cast<std::int32_t>(lane)};
                                         std::memcpy(reinterpret_cast<void*>(blocks[lane]), values, sizeof values);
                                       }
                                       void* args[] = {results, formats, blocks};
                                       CallHelper(warp, Helper::kVprintf, mask, 1, 0, args);
                                       if (results[0] != 2 || results[16] != 2 || results[1] != 0) __builtin_trap();
                                     },
                                     {50, 1, 1});
    CHECK(fault.text.empty());
    std::string expected;
    for (int cta = 0; cta < 50; ++cta)
      for (int lane : {0, 16}) expected += "cta " + std::to_string(cta) + " lane " + std::to_string(lane) + "\n";
    CHECK(h.printed == expected);
  }
}

TEST_CASE("Assert_PrintsTheDriversLineAndEndsTheGrid") {
  Harness h(1);
  char* const text = h.Allocate<char>(64);
  std::strcpy(text, "x == 0");
  std::strcpy(text + 16, "test.cu");
  std::strcpy(text + 32, "kernel");
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int saved = dup(2);
  dup2(ends[1], 2);
  const LaunchFault fault = RunOne(h, [&](WarpCtx* warp) {
    alignas(64) std::uint64_t message[32], file[32], function[32], size[32];
    alignas(64) std::uint32_t line[32];
    for (int i = 0; i < 32; ++i) {
      message[i] = reinterpret_cast<std::uint64_t>(text);
      file[i] = message[i] + 16;
      function[i] = message[i] + 32;
      line[i] = 9;
      size[i] = 1;
    }
    void* args[] = {message, file, line, function, size};
    CallHelper(warp, Helper::kAssertFail, 0x6, 77, 0, args);
  });
  dup2(saved, 2);
  close(saved);
  close(ends[1]);
  char printed[512] = {};
  REQUIRE(read(ends[0], printed, sizeof printed - 1) > 0);
  close(ends[0]);
  CHECK(std::string(printed) ==
        "test.cu:9: kernel: block: [0,0,0], thread: [1,0,0] Assertion `x == 0` failed.\n"
        "test.cu:9: kernel: block: [0,0,0], thread: [2,0,0] Assertion `x == 0` failed.\n");
  CHECK(fault.kind == FaultKind::kAssert);
  CHECK(fault.thread.x == 1);
  CHECK(RunOne(h, [](WarpCtx* warp) { CallHelper(warp, Helper::kTrap, 0x80, 5, 0, nullptr); }).kind ==
        FaultKind::kTrap);
}

TEST_CASE("Heap_GivesBlocksAcrossLaunchesUntilItIsFull") {
  Engine::Options options;
  options.device_heap_bytes = 1 << 16;
  Harness h(2, options);
  static std::uint64_t kept[32];
  CHECK(RunOne(h, [](WarpCtx* warp) {
          alignas(64) std::uint64_t sizes[32];
          for (int i = 0; i < 32; ++i) sizes[i] = static_cast<std::uint64_t>(i == 31 ? 1 << 20 : i * 10);
          void* args[] = {kept, sizes};
          CallHelper(warp, Helper::kMalloc, ~0u, 1, 0, args);
        }).text.empty());
  CHECK(kept[31] == 0);
  for (int i = 0; i < 31; ++i) {
    REQUIRE(kept[i] != 0);
    CHECK(kept[i] % 16 == 0);
    std::memset(reinterpret_cast<void*>(kept[i]), i, static_cast<std::size_t>(i) * 10);
  }
  for (int i = 1; i < 31; ++i) CHECK(reinterpret_cast<unsigned char*>(kept[i])[i * 10 - 1] == i);
  const auto free_all = [](WarpCtx* warp) {
    void* args[] = {kept};
    CallHelper(warp, Helper::kFree, ~0u, 3, 0, args);
  };
  CHECK(RunOne(h, free_all).text.empty());
  CHECK(RunOne(h, free_all).kind == FaultKind::kIllegalAddress);
  CHECK(h.engine->device_heap_bytes() == 1 << 16);
}

TEST_CASE("Half_ConversionsRoundToNearestEven") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = HalfToFloat(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    REQUIRE(FloatToHalf(value) == bits);
    const float b = BfloatToFloat(static_cast<std::uint16_t>(bits));
    if (!std::isnan(b)) REQUIRE(FloatToBfloat(b) == bits);
  }
  CHECK(FloatToHalf(65519.0f) == 0x7bff);
  CHECK(FloatToHalf(65520.0f) == 0x7c00);
  CHECK(FloatToHalf(0x1p-25f) == 0);
  CHECK(FloatToHalf(0x1.002p-25f) == 1);
  CHECK(FloatToHalf(1.0f + 0x1p-11f) == 0x3c00);
  CHECK(FloatToHalf(1.0f + 0x1.8p-10f) == 0x3c02);
  CHECK(DoubleToHalf(1.0 + 0x1p-11 + 0x1p-40) == 0x3c01);
  CHECK(FloatToHalf(std::nanf("")) == 0x7fff);
}
