// Numbers of a channel's banks, side by side, so that the best of all banks is found with a few vector instructions and without branches,
// which no processor could predict. With the instructions that every x86-64 processor has.
#pragma once

#include <emmintrin.h>

#include <array>
#include <bit>
#include <cstdint>

namespace gridloom::timing {

inline constexpr std::uint32_t kMaxBanks = 64, kBanksPerStep = 8, kMaxBankSteps = kMaxBanks / kBanksPerStep;

/// A 16-bit number for each bank: kNoLane at most, or all bits.
struct alignas(16) BankLanes {
  std::array<std::uint16_t, kMaxBanks> lanes{};
  std::uint16_t operator[](std::uint32_t bank) const { return lanes[bank]; }
};
inline constexpr std::uint16_t kNoLane = 0x7fff;

/// Those of eight banks. They are always stored together, as they are read: the host's processor waits when it reads several stores as one.
inline __m128i LanesOf(const BankLanes& lanes, std::uint32_t step) {
  return _mm_load_si128(reinterpret_cast<const __m128i*>(lanes.lanes.data() + step * kBanksPerStep));
}
inline void SetLanes(BankLanes& lanes, std::uint32_t step, __m128i eight) {
  _mm_store_si128(reinterpret_cast<__m128i*>(lanes.lanes.data() + step * kBanksPerStep), eight);
}
inline __m128i AllLanes(std::uint16_t number) { return _mm_set1_epi16(static_cast<short>(number)); }

/// All bits of bank `first`, and so on every `every` banks, of the first `banks`.
inline BankLanes EveryBank(std::uint32_t first, std::uint32_t every, std::uint32_t banks) {
  BankLanes some;
  for (std::uint32_t bank = first; bank < banks; bank += every) some.lanes[bank] = 0xffff;
  return some;
}

/// The lane of one bank.
inline void SetLane(BankLanes& lanes, std::uint32_t bank, std::uint16_t number) {
  // From the middle on: all bits of one lane.
  alignas(16) static constexpr std::uint16_t kOne[2 * kBanksPerStep] = {0, 0, 0, 0, 0, 0, 0, 0xffff};
  const std::uint32_t step = bank / kBanksPerStep;
  const __m128i own = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kOne + kBanksPerStep - 1 - bank % kBanksPerStep));
  SetLanes(lanes, step, _mm_or_si128(_mm_andnot_si128(own, LanesOf(lanes, step)), _mm_and_si128(own, AllLanes(number))));
}

/// The least of eight numbers, in all of them.
inline __m128i LeastInAll(__m128i lanes) {
  lanes = _mm_min_epi16(lanes, _mm_shuffle_epi32(lanes, 0x4e));
  lanes = _mm_min_epi16(lanes, _mm_shuffle_epi32(lanes, 0xb1));
  return _mm_min_epi16(lanes, _mm_or_si128(_mm_slli_epi32(lanes, 16), _mm_srli_epi32(lanes, 16)));
}

struct BankChoice {
  std::uint32_t bank = 0;
  std::uint16_t key = kNoLane;  ///< kNoLane: there is none
};

/// Of the banks whose `order` is not kNoLane, the one with the least key, of several the one with the least order; orders differ.
/// key(step): the keys of eight banks, below kNoLane. `kSteps` times eight banks are looked at; places without a bank have no order.
template <std::uint32_t kSteps, typename KeyOf>
[[gnu::always_inline]] inline BankChoice FirstBankOf(const BankLanes& order, const KeyOf& key) {
  const __m128i none = AllLanes(kNoLane);
  __m128i keys[kSteps], least = none;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    keys[step] = _mm_or_si128(key(step), _mm_srli_epi16(_mm_cmpeq_epi16(LanesOf(order, step), none), 1));
    least = _mm_min_epi16(least, keys[step]);
  }
  least = LeastInAll(least);
  __m128i oldest = none;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    // The orders of greater keys do not count.
    keys[step] = _mm_or_si128(LanesOf(order, step), _mm_srli_epi16(_mm_cmpgt_epi16(keys[step], least), 1));
    oldest = _mm_min_epi16(oldest, keys[step]);
  }
  oldest = LeastInAll(oldest);
  std::uint64_t where = 0;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    const __m128i bytes = _mm_packs_epi16(_mm_cmpeq_epi16(keys[step], oldest), _mm_setzero_si128());
    where |= static_cast<std::uint64_t>(_mm_movemask_epi8(bytes)) << (step * kBanksPerStep);
  }
  return {.bank = static_cast<std::uint32_t>(std::countr_zero(where)), .key = static_cast<std::uint16_t>(_mm_cvtsi128_si32(least))};
}

template <typename KeyOf>
[[gnu::noinline]] BankChoice FirstOfMaxBanks(const BankLanes& order, const KeyOf& key) {
  return FirstBankOf<kMaxBankSteps>(order, key);
}

/// Most devices have 8 or 16 banks.
template <typename KeyOf>
[[gnu::always_inline]] inline BankChoice FirstBank(std::uint32_t steps, const BankLanes& order, const KeyOf& key) {
  if (steps <= 2) return FirstBankOf<2>(order, key);
  return FirstOfMaxBanks(order, key);
}

}  // namespace gridloom::timing
