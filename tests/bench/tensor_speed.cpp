// tensor_speed: products of matrix instructions, one warp's at a time, for each instruction set that the processor has,
// beside the processor's fused multiply-adds of f32, which are their limit.
//   build/tensor_speed [--seconds S]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <utility>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "sim/exec/simd.h"
#include "sim/exec/tensor/group_multiply.h"
#include "sim/exec/tensor/multiply.h"

namespace {

using namespace gridloom::exec;
using M = MatrixType;

/// Nanoseconds of one call, the best of many rounds.
template <typename Function>
double BestNs(double seconds, Function&& function) {
  constexpr int kCalls = 200;
  const auto now = [] {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  double best = 1e18;
  for (const double end = now() + seconds * 1e9; now() < end;) {
    const double begin = now();
    for (int i = 0; i < kCalls; ++i) function();
    best = std::min(best, (now() - begin) / kCalls);
  }
  return best;
}

// Twelve sums that do not wait for each other keep two units busy that take four to six cycles.
constexpr int kChains = 12, kSteps = 256;
#if defined(__x86_64__)
template <int... kChain>
[[gnu::target("avx512f")]] void AddInAvx512(float* out, std::integer_sequence<int, kChain...>) {
  __m512 sums[] = {_mm512_set1_ps(static_cast<float>(kChain))...};
  const __m512 factor = _mm512_set1_ps(*out);
  for (int step = 0; step < kSteps; ++step) ((sums[kChain] = _mm512_fmadd_ps(factor, factor, sums[kChain])), ...);
  for (const __m512& sum : sums) *out = std::min(*out, _mm512_cvtss_f32(sum));
}
template <int... kChain>
[[gnu::target("avx2,fma")]] void AddInAvx2(float* out, std::integer_sequence<int, kChain...>) {
  __m256 sums[] = {_mm256_set1_ps(static_cast<float>(kChain))...};
  const __m256 factor = _mm256_set1_ps(*out);
  for (int step = 0; step < kSteps; ++step) ((sums[kChain] = _mm256_fmadd_ps(factor, factor, sums[kChain])), ...);
  for (const __m256& sum : sums) *out = std::min(*out, _mm256_cvtss_f32(sum));
}
#endif

/// Multiply-adds of f32 a nanosecond that the processor makes at most; 0: there is no such instruction.
double Limit(SimdLevel level, double seconds) {
#if defined(__x86_64__)
  float out = 0.5f;
  constexpr std::make_integer_sequence<int, kChains> kAll;
  if (level == SimdLevel::kAvx512) return kChains * kSteps * 16 / BestNs(seconds, [&] { AddInAvx512(&out, kAll); });
  if (level == SimdLevel::kAvx2) return kChains * kSteps * 8 / BestNs(seconds, [&] { AddInAvx2(&out, kAll); });
#endif
  return 0;
}

struct Product {
  const char* name;
  M type;
  M accumulator;
  std::uint8_t m, n;
  std::uint16_t k;
};
constexpr Product kProducts[] = {
    {"mma.m16n8k16 f16", M::kF16, M::kF32, 16, 8, 16},   {"mma.m16n8k16 f16, f16 sums", M::kF16, M::kF16, 16, 8, 16},
    {"mma.m16n8k16 bf16", M::kBF16, M::kF32, 16, 8, 16}, {"mma.m16n8k8 tf32", M::kTF32, M::kF32, 16, 8, 8},
    {"mma.m16n8k32 e4m3", M::kE4M3, M::kF32, 16, 8, 32}, {"mma.m16n8k32 s8", M::kS8, M::kS32, 16, 8, 32},
    {"mma.m16n8k16 f64", M::kF64, M::kF64, 16, 8, 16},   {"wmma.m16n16k16 f16", M::kF16, M::kF32, 16, 16, 16},
};
struct GroupProduct {
  const char* name;
  M type;
  M accumulator;
  std::uint8_t columns8;
};
constexpr GroupProduct kGroupProducts[] = {
    {"wgmma.m64n64k16 f16", M::kF16, M::kF32, 8},     {"wgmma.m64n256k16 f16", M::kF16, M::kF32, 32},
    {"wgmma.m64n128k16 bf16", M::kBF16, M::kF32, 16}, {"wgmma.m64n128k8 tf32", M::kTF32, M::kF32, 16},
    {"wgmma.m64n128k32 e4m3", M::kE4M3, M::kF32, 16}, {"wgmma.m64n128k32 s8", M::kS8, M::kS32, 16},
};

/// Registers of a warp, full of numbers between 0.5 and 2, or what bytes of them are in other formats: no subnormal
/// sums, which are slow.
class Registers {
 public:
  explicit Registers(unsigned count, bool wide) : words_(count * 64u + 16) {
    std::mt19937 random(7);
    for (std::uint32_t& word : words_) word = wide ? 0x3ff00000u : (random() & 0x80ff80ffu) | 0x3c003c00u;
    // Aligned as the executor's are.
    auto* const first =
        reinterpret_cast<std::uint8_t*>((reinterpret_cast<std::uintptr_t>(words_.data()) + 63) / 64 * 64);
    for (unsigned i = 0; i < count; ++i) pointers_.push_back(first + i * (wide ? 256 : 128));
  }
  void* const* from(unsigned first) const { return pointers_.data() + first; }

 private:
  std::vector<std::uint32_t> words_;
  std::vector<void*> pointers_;
};

void Print(const char* name, double products, double ns, double limit) {
  std::printf("%-28s %9.1f %10.2f", name, ns, products / ns);
  if (limit > 0) std::printf(" %7.0f %%", 100 * products / ns / limit);
  std::printf("\n");
}

void Measure(const Product& product, double limit, double seconds) {
  const auto types =
      static_cast<std::uint8_t>(static_cast<unsigned>(product.type) | static_cast<unsigned>(product.type) << 4);
  const auto sums = static_cast<std::uint8_t>(static_cast<unsigned>(product.accumulator) |
                                              static_cast<unsigned>(product.accumulator) << 4);
  const MmaImm imm{.m = product.m, .n = product.n, .k = product.k, .types = types, .accumulators = sums};
  const unsigned a = RegistersOfA(imm), b = RegistersOfB(imm), c = AccumulatorRegisters(imm, product.accumulator);
  const Registers registers(a + b + 2 * c, product.type == M::kF64);
  const double ns = BestNs(seconds, [&] {
    MultiplyFragments(imm, registers.from(0), registers.from(a), registers.from(a + b), nullptr,
                      registers.from(a + b + c));
  });
  Print(product.name, static_cast<double>(product.m * product.n * product.k), ns,
        product.type == M::kF64 ? limit / 2 : limit);
}

void Measure(const GroupProduct& product, double limit, double seconds) {
  const auto types =
      static_cast<std::uint8_t>(static_cast<unsigned>(product.type) | static_cast<unsigned>(product.type) << 4);
  const GroupMmaImm imm{.columns8 = product.columns8, .types = types, .accumulator = product.accumulator};
  const unsigned sums = imm.accumulator_registers(), chunks = (product.columns8 + 2u) * kMostChunks;
  const Registers registers(sums + chunks, false);
  GroupOperands operands;
  for (unsigned i = 0; i < product.columns8 + 2u; ++i) {
    for (unsigned chunk = 0; chunk < kMostChunks; ++chunk) {
      EightLines& lines = i < 2 ? operands.a[i] : operands.b[i - 2];
      lines.chunk[chunk] = static_cast<const std::uint8_t*>(*registers.from(sums + i * kMostChunks + chunk));
    }
  }
  const double ns = BestNs(seconds, [&] { MultiplyGroup(imm, operands, false, registers.from(0)); });
  const unsigned depth = kGroupDepthBytes * 8 / BitsOf(product.type);
  Print(product.name, static_cast<double>(kGroupRows * imm.columns() * depth), ns, limit);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Products of matrix instructions a nanosecond, one warp's at a time, beside the processor's own limit."};
  double seconds = 0.05;
  app.add_option("--seconds", seconds, "time for each line")->check(CLI::NonNegativeNumber)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const SimdLevel most = UsableSimd();
  constexpr std::pair<SimdLevel, const char*> kLevels[] = {
      {SimdLevel::kAvx512, "AVX-512"}, {SimdLevel::kAvx2, "AVX2"}, {SimdLevel::kBaseline, "baseline"}};
  for (const auto& [level, name] : kLevels) {
    if (level > most) continue;
    LimitSimd(level);
    const double limit = Limit(level, seconds);
    std::printf("%s%-27s %9s %10s\n", level == most ? "" : "\n", name, "ns", "products/ns");
    if (limit > 0) std::printf("%-28s %9s %10.2f %7.0f %%\n", "fused multiply-adds of f32", "", limit, 100.0);
    for (const Product& product : kProducts) Measure(product, limit, seconds);
    for (const GroupProduct& product : kGroupProducts) Measure(product, limit, seconds);
  }
}
