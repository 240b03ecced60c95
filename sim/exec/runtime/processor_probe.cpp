// The measurements behind processor_choices.h. Both walk through rows of a table as the rows of a sparse matrix are
// walked through: each of 32 lanes goes on word by word from a place of its own.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "sim/exec/runtime/processor_choices.h"
#include "sim/exec/simd.h"

namespace gridloom::exec {

#if defined(__x86_64__)
namespace {

constexpr unsigned kLanes = 32, kSteps = 16;
constexpr unsigned kFew = 12;             ///< between the two numbers of lanes to choose from
constexpr std::size_t kWords = 4u << 20;  ///< 16 MB: more than a core's own caches hold, and pages than it knows
constexpr std::size_t kWarps = kWords / (kLanes * kSteps);
constexpr unsigned kRounds = 3;

struct Table {
  std::vector<std::int32_t> words = std::vector<std::int32_t>(kWords, 1);
  std::vector<std::int32_t> starts;  ///< of each lane's row, warp by warp

  Table() {
    for (std::size_t i = 0; i < kWarps * kLanes; ++i) starts.push_back(static_cast<std::int32_t>(i * kSteps));
  }
};

/// The rows of a warp and as much behind them, as generated code does (compiler/warp_fetch_ahead.cpp).
void FetchAhead(const Table& table, std::size_t warp) {
  const std::size_t first = warp * kLanes * kSteps, last = std::min(first + 2 * kLanes * kSteps, kWords);
  for (std::size_t word = first; word < last; word += 16) __builtin_prefetch(table.words.data() + word);
}

std::int32_t Total(std::span<const std::int32_t> sums) { return std::accumulate(sums.begin(), sums.end(), 0); }

[[gnu::target("avx2"), gnu::noinline]] std::int32_t GatherRows(const Table& table, bool ahead, unsigned lanes) {
  __m256i sum = _mm256_setzero_si256();
  const __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (std::size_t warp = 0; warp < kWarps; ++warp) {
    if (ahead) FetchAhead(table, warp);
    __m256i at[4], on[4];
    for (int part = 0; part < 4; ++part) {
      at[part] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(table.starts.data() + warp * kLanes + 8 * part));
      on[part] = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(lanes) - 8 * part), numbers);
    }
    for (unsigned step = 0; step < kSteps; ++step) {
      for (int part = 0; part < 4; ++part) {
        const __m256i got =
            _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), table.words.data(), at[part], on[part], 4);
        sum = _mm256_add_epi32(sum, got);
        at[part] = _mm256_add_epi32(at[part], _mm256_set1_epi32(1));
      }
    }
  }
  std::int32_t sums[8];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums), sum);
  return Total(sums);
}

[[gnu::target("avx512f"), gnu::noinline]] std::int32_t GatherRows512(const Table& table, bool ahead, unsigned lanes) {
  __m512i sum = _mm512_setzero_si512();
  for (std::size_t warp = 0; warp < kWarps; ++warp) {
    if (ahead) FetchAhead(table, warp);
    __m512i at[2];
    __mmask16 on[2];
    for (int part = 0; part < 2; ++part) {
      at[part] = _mm512_loadu_si512(table.starts.data() + warp * kLanes + 16 * part);
      on[part] = static_cast<__mmask16>(lanes >= kLanes ? 0xffff : ((1u << lanes) - 1) >> (16 * part));
    }
    for (unsigned step = 0; step < kSteps; ++step) {
      for (int part = 0; part < 2; ++part) {
        const __m512i got =
            _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), on[part], at[part], table.words.data(), 4);
        sum = _mm512_add_epi32(sum, got);
        at[part] = _mm512_add_epi32(at[part], _mm512_set1_epi32(1));
      }
    }
  }
  std::int32_t sums[16];
  _mm512_storeu_si512(sums, sum);
  return Total(sums);
}

// No loop of the function may become vectors.
#if defined(__clang__)
#define GL_NO_VECTORS gnu::noinline
#define GL_PLAIN_LOOP _Pragma("clang loop vectorize(disable) unroll(disable)")
#else
#define GL_NO_VECTORS gnu::noinline, gnu::optimize("no-tree-vectorize")
#define GL_PLAIN_LOOP
#endif

/// One lane after the other.
[[GL_NO_VECTORS]] std::int32_t LoadRows(const Table& table, unsigned lanes) {
  std::int32_t sum = 0;
  for (std::size_t warp = 0; warp < kWarps; ++warp) {
    FetchAhead(table, warp);
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const std::int32_t* const row = table.words.data() + table.starts[warp * kLanes + lane];
      GL_PLAIN_LOOP
      for (unsigned step = 0; step < kSteps; ++step) sum += row[step];
    }
  }
  return sum;
}

#undef GL_NO_VECTORS
#undef GL_PLAIN_LOOP

/// Nanoseconds; `checked` keeps the compiler from leaving the work out.
template <typename Work>
double Time(Work work, std::int32_t& checked) {
  const auto start = std::chrono::steady_clock::now();
  checked += work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

ProcessorTimes MeasureProcessor() {
  const SimdLevel level = UsableSimd();
  if (level == SimdLevel::kBaseline) return {};
  const Table table;
  const auto gather = level == SimdLevel::kAvx512 ? &GatherRows512 : &GatherRows;
  double plain = 1e18, ahead = 1e18, few = 1e18, few_loads = 1e18, all_loads = 1e18;
  std::int32_t checked = 0;
  for (unsigned round = 0; round < kRounds; ++round) {  // in turns: other programs disturb all alike
    plain = std::min(plain, Time([&] { return gather(table, false, kLanes); }, checked));
    ahead = std::min(ahead, Time([&] { return gather(table, true, kLanes); }, checked));
    few = std::min(few, Time([&] { return gather(table, true, kFew); }, checked));
    few_loads = std::min(few_loads, Time([&] { return LoadRows(table, kFew); }, checked));
    all_loads = std::min(all_loads, Time([&] { return LoadRows(table, kLanes); }, checked));
  }
  if (checked == 0) return {};  // it cannot be: all words are 1
  return {.ahead_gain = plain / ahead,
          .few_gain = few / few_loads,
          .all_gain = ahead / all_loads,
          .halves = level == SimdLevel::kAvx512};
}

#else
ProcessorTimes MeasureProcessor() { return {}; }
#endif

}  // namespace gridloom::exec
