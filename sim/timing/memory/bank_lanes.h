// Numbers of a channel's banks, side by side, so that the best of all banks is found with a few vector instructions and
// without branches, which no processor could predict. With the instructions that every x86-64 processor has had since
// 2011 (SSE4.1).
#pragma once

#include <smmintrin.h>

#include <array>
#include <cstdint>

namespace gridloom::timing {

/// Lanes are looked at in steps, which fill a register, and banks are numbered in blocks of two steps.
inline constexpr std::uint32_t kMaxBanks = 64, kBanksPerStep = 8, kBanksPerBlock = 2 * kBanksPerStep,
                               kMaxBankBlocks = kMaxBanks / kBanksPerBlock;

/// A 16-bit number for each bank.
struct alignas(16) BankLanes {
  std::array<std::uint16_t, kMaxBanks> lanes{};
  std::uint16_t operator[](std::uint32_t bank) const { return lanes[bank]; }
};
/// The key of a bank that has none; greater than all others.
inline constexpr std::uint16_t kNoLane = 0xffff;

/// The lanes of eight banks. They are always stored together, as they are read: the host's processor waits when it
/// reads several stores as one.
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
  const __m128i own =
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(kOne + kBanksPerStep - 1 - bank % kBanksPerStep));
  SetLanes(lanes, step, _mm_blendv_epi8(LanesOf(lanes, step), AllLanes(number), own));
}

/// The order in which something came, with its bank's place in its block: below kNoLane, and different for different
/// somethings.
inline constexpr std::uint32_t kOrderBankBits = 4, kOrders = 0xfff;
static_assert(1u << kOrderBankBits == kBanksPerBlock);
inline std::uint16_t OrderOf(std::uint32_t arrival, std::uint32_t bank) {
  return static_cast<std::uint16_t>(arrival << kOrderBankBits | bank % kBanksPerBlock);
}

struct BankChoice {
  std::uint32_t bank = 0;
  std::uint16_t key = kNoLane;    ///< kNoLane: there is none
  std::uint16_t order = kNoLane;  ///< as OrderOf gave it
};

/// Of the banks whose key is not kNoLane, the one with the least key, of several the one with the least order.
/// key(step): the keys of eight banks. `kBlocks` blocks of banks are looked at; places without a bank have no key.
template <std::uint32_t kBlocks, typename KeyOf>
[[gnu::always_inline]] inline BankChoice FirstBankOf(const BankLanes& order, const KeyOf& key) {
  const __m128i none = AllLanes(kNoLane);
  __m128i keys[2 * kBlocks], least = none;
  for (std::uint32_t step = 0; step < 2 * kBlocks; ++step) {
    keys[step] = key(step);
    least = _mm_min_epu16(least, keys[step]);
  }
  least = _mm_minpos_epu16(least);
  BankChoice choice{.key = static_cast<std::uint16_t>(_mm_cvtsi128_si32(least))};
  const __m128i wanted = _mm_shuffle_epi8(least, _mm_set1_epi16(0x0100));
  const auto order_of = [&](std::uint32_t step) {
    return _mm_blendv_epi8(none, LanesOf(order, step), _mm_cmpeq_epi16(keys[step], wanted));
  };
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    const __m128i oldest = _mm_minpos_epu16(_mm_min_epu16(order_of(2 * block), order_of(2 * block + 1)));
    const auto own = static_cast<std::uint16_t>(_mm_cvtsi128_si32(oldest));
    if (kBlocks > 1 && own >= choice.order) continue;
    choice.order = own;
    choice.bank = block * kBanksPerBlock + own % kBanksPerBlock;
  }
  return choice;
}

template <typename KeyOf>
[[gnu::noinline]] BankChoice FirstOfMaxBanks(const BankLanes& order, const KeyOf& key) {
  return FirstBankOf<kMaxBankBlocks>(order, key);
}

/// Most devices have 8 or 16 banks.
template <typename KeyOf>
[[gnu::always_inline]] inline BankChoice FirstBank(std::uint32_t blocks, const BankLanes& order, const KeyOf& key) {
  if (blocks == 1) return FirstBankOf<1>(order, key);
  return FirstOfMaxBanks(order, key);
}

}  // namespace gridloom::timing
