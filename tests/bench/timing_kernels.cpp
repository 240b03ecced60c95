#include "tests/bench/timing_kernels.h"

#include <random>

#include "tests/sim/timing/synthetic.h"

namespace gridloom::timing {
namespace {

using trace::OpClass;
using trace::Space;

constexpr std::uint32_t kWarps = 8;

trace::LaunchShape Shape(std::uint64_t ctas, std::uint32_t shared = 0) {
  return {.ctas = ctas, .threads_per_cta = kWarps * 32, .registers_per_thread = 32, .shared_bytes = shared};
}

/// Chains of multiply-adds in a loop, a store at the end.
std::shared_ptr<trace::CtaSource> Compute(std::uint64_t ctas) {
  CodeBuilder code("compute");
  const std::uint32_t loop = code.Block();
  for (std::uint16_t i = 1; i <= 4; ++i) code.Op(OpClass::kFp32, {i}, {i, 5, 6});
  code.Op(OpClass::kInt, {7}, {7});
  code.Op(OpClass::kBranch, {}, {7});
  const std::uint32_t end = code.Block();
  code.Store(Space::kGlobal, 1);
  code.Exit();
  CtaBuilder cta;
  for (std::uint32_t w = 0; w < kWarps; ++w) {
    cta.Warp();
    cta.Visit(loop, kAllLanes, 256);
    cta.Visit(end);
    cta.Access(w * 128);
  }
  return SameCtas(code.code(), Shape(ctas), cta.Finish(), kWarps * 128);
}

/// Matrix product by tiles of 16 x 16 in shared memory, of matrices of 256 x 256.
std::shared_ptr<trace::CtaSource> Tiled(std::uint64_t ctas) {
  CodeBuilder code("shared tiled");
  const std::uint32_t load = code.Block();
  code.Op(OpClass::kInt, {1}, {1});
  code.Load(Space::kGlobal, 2, 4, 0, 1);
  code.Load(Space::kGlobal, 3, 4, 0, 1);
  code.Store(Space::kShared, 2);
  code.Store(Space::kShared, 3);
  code.Barrier();
  const std::uint32_t step = code.Block();
  for (std::uint16_t k = 0; k < 4; ++k) {
    code.Load(Space::kShared, static_cast<std::uint16_t>(4 + k));
    code.Load(Space::kShared, static_cast<std::uint16_t>(8 + k));
    code.Op(OpClass::kFp32, {12}, {12, static_cast<std::uint16_t>(4 + k), static_cast<std::uint16_t>(8 + k)});
  }
  const std::uint32_t next = code.Block();
  code.Barrier();
  code.Op(OpClass::kInt, {13}, {13});
  code.Op(OpClass::kBranch, {}, {13});
  const std::uint32_t end = code.Block();
  code.Store(Space::kGlobal, 12);
  code.Exit();
  CtaBuilder cta;
  for (std::uint64_t w = 0; w < kWarps; ++w) {
    cta.Warp();
    for (std::uint64_t tile = 0; tile < 16; ++tile) {
      cta.Visit(load);
      cta.Access((1 << 20) + w * 2048 + tile * 64);
      cta.Access((2 << 20) + tile * 16384 + w * 2048);
      cta.Access(w * 128);
      cta.Access(1024 + w * 128);
      for (std::uint64_t k = 0; k < 4; ++k) {
        cta.Visit(step);
        for (std::uint64_t i = 0; i < 4; ++i) {
          cta.Access(w * 128 + (k * 4 + i) * 4, 0);
          cta.Access(1024 + (k * 4 + i) * 64, 4, 0xffff);
        }
      }
      cta.Visit(next);
    }
    cta.Visit(end);
    cta.Access((3 << 20) + w * 2048);
  }
  return SameCtas(code.code(), Shape(ctas, 2048), cta.Finish(), 1024);
}

/// c[i] = a[i] + b[i], one element a thread.
std::shared_ptr<trace::CtaSource> Streaming(std::uint64_t ctas) {
  CodeBuilder code("streaming");
  code.Block();
  for (std::uint16_t i = 1; i <= 8; ++i) code.Op(OpClass::kInt, {i}, {static_cast<std::uint16_t>(i - 1)});
  code.Op(OpClass::kBranch, {}, {8});
  for (std::uint16_t i = 9; i <= 14; ++i) code.Op(OpClass::kInt, {i}, {static_cast<std::uint16_t>(i - 1)});
  code.Load(Space::kGlobal, 15, 4, 0, 14);
  code.Load(Space::kGlobal, 16, 4, 0, 14);
  code.Op(OpClass::kFp32, {17}, {15, 16});
  code.Op(OpClass::kInt, {18}, {14});
  code.Store(Space::kGlobal, 17);
  code.Exit();
  CtaBuilder cta;
  for (std::uint64_t w = 0; w < kWarps; ++w) {
    cta.Warp();
    cta.Visit(0);
    for (std::uint64_t array = 1; array <= 3; ++array) cta.Access((array << 32) + w * 128);
  }
  return SameCtas(code.code(), Shape(ctas), cta.Finish(), kWarps * 128);
}

/// A loop with one gather in six instructions; the lanes of a warp fall on `runs` lines of a range of `bytes`.
std::shared_ptr<trace::CtaSource> Gather(std::uint64_t ctas, std::uint32_t runs, std::uint64_t bytes) {
  CodeBuilder code("gather over " + std::to_string(runs) + " lines");
  const std::uint32_t loop = code.Block();
  code.Op(OpClass::kInt, {1}, {1});
  code.Op(OpClass::kInt, {2}, {1});
  code.Load(Space::kGlobal, 3, 4, 0, 2);
  code.Op(OpClass::kInt, {4}, {3, 4});
  code.Op(OpClass::kInt, {5}, {4});
  code.Op(OpClass::kBranch, {}, {5});
  const trace::LaunchShape shape = Shape(ctas);
  return std::make_shared<SyntheticSource>(code.code(), shape, [=](std::uint64_t index) {
    std::mt19937_64 random(index);
    CtaBuilder cta;
    std::vector<std::uint64_t> lanes(32);
    for (std::uint32_t w = 0; w < kWarps; ++w) {
      cta.Warp();
      for (std::uint32_t i = 0; i < 32; ++i) {
        cta.Visit(loop);
        for (std::uint32_t lane = 0; lane < 32; ++lane) {
          const bool first = lane % (32 / runs) == 0;
          lanes[lane] = first ? random() % (bytes / 128) * 128 : lanes[lane - 1] + 4;
        }
        cta.Scatter(lanes);
      }
    }
    return trace::LoadedCta{cta.Finish(), {}};
  });
}

}  // namespace

std::vector<BenchKernel> BenchKernels(std::uint64_t ctas) {
  return {
      {"compute", "multiply-add chains", 20, Compute(ctas)},
      {"tiled", "matrix product in shared memory", 7, Tiled(ctas)},
      {"streaming", "vector addition", 5, Streaming(ctas * 8)},
      {"gather8", "gathers over 8 lines of 32 MiB", 1, Gather(ctas, 8, 32 << 20)},
      {"gather4", "gathers over 4 lines of 32 MiB", 1, Gather(ctas, 4, 32 << 20)},
      {"scattered", "gathers over 32 lines of 32 MiB", 0.5, Gather(ctas, 32, 32 << 20)},
      {"one CTA, tiled", "a launch of one CTA", 1, Tiled(1)},
      {"one CTA, gather8", "a launch of one CTA", 1, Gather(1, 8, 32 << 20)},
  };
}

}  // namespace gridloom::timing
