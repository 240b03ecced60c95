// The Data Encryption Standard as FIPS 46-3 writes it down, bit by bit: the host's form of 3DES, and what the device's
// tables are made of. Bits are counted from 1 at the left, as in the standard. Permutations of many bits go through
// tables of bytes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace des {

using Key = std::uint64_t;
/// 48 bits for each round: of DES 16, of EDE with three keys 48.
using Schedule = std::vector<std::uint64_t>;

constexpr std::uint8_t kInitial[64] = {58, 50, 42, 34, 26, 18, 10, 2, 60, 52, 44, 36, 28, 20, 12, 4,
                                       62, 54, 46, 38, 30, 22, 14, 6, 64, 56, 48, 40, 32, 24, 16, 8,
                                       57, 49, 41, 33, 25, 17, 9,  1, 59, 51, 43, 35, 27, 19, 11, 3,
                                       61, 53, 45, 37, 29, 21, 13, 5, 63, 55, 47, 39, 31, 23, 15, 7};
constexpr std::uint8_t kExpansion[48] = {32, 1,  2,  3,  4,  5,  4,  5,  6,  7,  8,  9,  8,  9,  10, 11,
                                         12, 13, 12, 13, 14, 15, 16, 17, 16, 17, 18, 19, 20, 21, 20, 21,
                                         22, 23, 24, 25, 24, 25, 26, 27, 28, 29, 28, 29, 30, 31, 32, 1};
constexpr std::uint8_t kPermutation[32] = {16, 7, 20, 21, 29, 12, 28, 17, 1,  15, 23, 26, 5,  18, 31, 10,
                                           2,  8, 24, 14, 32, 27, 3,  9,  19, 13, 30, 6,  22, 11, 4,  25};
constexpr std::uint8_t kChoice1[56] = {57, 49, 41, 33, 25, 17, 9,  1,  58, 50, 42, 34, 26, 18, 10, 2,  59, 51, 43,
                                       35, 27, 19, 11, 3,  60, 52, 44, 36, 63, 55, 47, 39, 31, 23, 15, 7,  62, 54,
                                       46, 38, 30, 22, 14, 6,  61, 53, 45, 37, 29, 21, 13, 5,  28, 20, 12, 4};
constexpr std::uint8_t kChoice2[48] = {14, 17, 11, 24, 1,  5,  3,  28, 15, 6,  21, 10, 23, 19, 12, 4,
                                       26, 8,  16, 7,  27, 20, 13, 2,  41, 52, 31, 37, 47, 55, 30, 40,
                                       51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32};
constexpr int kShifts[16] = {1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1};
/// Four rows of sixteen each: the first and the last bit of six choose the row.
constexpr std::uint8_t kSubstitutions[8][64] = {
    {14, 4,  13, 1, 2,  15, 11, 8, 3, 10, 6, 12, 5,  9,  0,  7,  0,  15, 7,  4,  14, 2,
     13, 1,  10, 6, 12, 11, 9,  5, 3, 8,  4, 1,  14, 8,  13, 6,  2,  11, 15, 12, 9,  7,
     3,  10, 5,  0, 15, 12, 8,  2, 4, 9,  1, 7,  5,  11, 3,  14, 10, 0,  6,  13},
    {15, 1,  8, 14, 6,  11, 3,  4, 9, 7, 2,  13, 12, 0, 5, 10, 3,  13, 4,  7, 15, 2,  8, 14, 12, 0, 1, 10, 6, 9, 11, 5,
     0,  14, 7, 11, 10, 4,  13, 1, 5, 8, 12, 6,  9,  3, 2, 15, 13, 8,  10, 1, 3,  15, 4, 2,  11, 6, 7, 12, 0, 5, 14, 9},
    {10, 0,  9,  14, 6, 3,  15, 5,  1,  13, 12, 7, 11, 4,  2,  8,  13, 7, 0,  9, 3, 4,
     6,  10, 2,  8,  5, 14, 12, 11, 15, 1,  13, 6, 4,  9,  8,  15, 3,  0, 11, 1, 2, 12,
     5,  10, 14, 7,  1, 10, 13, 0,  6,  9,  8,  7, 4,  15, 14, 3,  11, 5, 2,  12},
    {7, 13, 14, 3, 0, 6,  9, 10, 1,  2, 8,  5, 11, 12, 4,  15, 13, 8,  11, 5, 6, 15,
     0, 3,  4,  7, 2, 12, 1, 10, 14, 9, 10, 6, 9,  0,  12, 11, 7,  13, 15, 1, 3, 14,
     5, 2,  8,  4, 3, 15, 0, 6,  10, 1, 13, 8, 9,  4,  5,  11, 12, 7,  2,  14},
    {2,  12, 4, 1,  7,  10, 11, 6, 8, 5,  3, 15, 13, 0,  14, 9,  14, 11, 2,  12, 4,  7,
     13, 1,  5, 0,  15, 10, 3,  9, 8, 6,  4, 2,  1,  11, 10, 13, 7,  8,  15, 9,  12, 5,
     6,  3,  0, 14, 11, 8,  12, 7, 1, 14, 2, 13, 6,  15, 0,  9,  10, 4,  5,  3},
    {12, 1,  10, 15, 9,  2,  6, 8,  0, 13, 3,  4,  14, 7,  5, 11, 10, 15, 4, 2, 7, 12,
     9,  5,  6,  1,  13, 14, 0, 11, 3, 8,  9,  14, 15, 5,  2, 8,  12, 3,  7, 0, 4, 10,
     1,  13, 11, 6,  4,  3,  2, 12, 9, 5,  15, 10, 11, 14, 1, 7,  6,  0,  8, 13},
    {4, 11, 2,  14, 15, 0, 8, 13, 3,  12, 9, 7, 5, 10, 6, 1, 13, 0,  11, 7, 4, 9, 1,  10, 14, 3, 5, 12, 2,  15, 8, 6,
     1, 4,  11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5,  9, 2, 6,  11, 13, 8, 1, 4, 10, 7,  9,  5, 0, 15, 14, 2,  3, 12},
    {13, 2, 8, 4, 6,  15, 11, 1, 10, 9,  3,  14, 5, 0, 12, 7, 1, 15, 13, 8, 10, 3, 7,  4,  12, 5, 6, 11, 0, 14, 9, 2, 7,
     11, 4, 1, 9, 12, 14, 2,  0, 6,  10, 13, 15, 3, 5, 8,  2, 1, 14, 7,  4, 10, 8, 13, 15, 12, 9, 0, 3,  5, 6,  11}};

/// Row and column of six bits, as an index.
constexpr int Place(int six) { return (six & 32) | (six & 1) << 4 | (six >> 1 & 15); }

/// Bit i of the result is bit table[i] of `value`, which has `bits`.
template <std::size_t kCount>
constexpr std::uint64_t Permuted(const std::uint8_t (&table)[kCount], std::uint64_t value, int bits) {
  std::uint64_t result = 0;
  for (std::size_t i = 0; i < kCount; ++i) result = result << 1 | (value >> (bits - table[i]) & 1);
  return result;
}

/// The same, a byte of the value at a time.
template <int kBytes>
class ByteTables {
 public:
  template <std::size_t kCount>
  explicit ByteTables(const std::uint8_t (&table)[kCount]) {
    for (int byte = 0; byte < kBytes; ++byte) {
      for (std::uint64_t value = 0; value < 256; ++value)
        parts_[byte][value] = Permuted(table, value << 8 * byte, 8 * kBytes);
    }
  }
  std::uint64_t operator()(std::uint64_t value) const {
    std::uint64_t result = 0;
    for (int byte = 0; byte < kBytes; ++byte) result |= parts_[byte][value >> 8 * byte & 255];
    return result;
  }

 private:
  std::array<std::array<std::uint64_t, 256>, kBytes> parts_{};
};

/// The 16 keys of a key's rounds.
inline Schedule RoundKeys(Key key) {
  constexpr std::uint64_t kHalf = (1u << 28) - 1;
  const std::uint64_t chosen = Permuted(kChoice1, key, 64);
  std::uint64_t left = chosen >> 28, right = chosen & kHalf;
  Schedule keys;
  for (const int shift : kShifts) {
    left = (left << shift | left >> (28 - shift)) & kHalf;
    right = (right << shift | right >> (28 - shift)) & kHalf;
    keys.push_back(Permuted(kChoice2, left << 28 | right, 56));
  }
  return keys;
}

/// EDE: encrypt with the first key, decrypt with the second, encrypt with the third (SP 800-67). Backwards it decrypts.
inline Schedule TripleKeys(const std::array<Key, 3>& keys, bool decrypt) {
  Schedule schedule;
  for (int i = 0; i < 3; ++i) {
    const Schedule one = RoundKeys(keys[i]);
    if (i == 1) schedule.insert(schedule.end(), one.rbegin(), one.rend());
    else schedule.insert(schedule.end(), one.begin(), one.end());
  }
  return decrypt ? Schedule(schedule.rbegin(), schedule.rend()) : schedule;
}

/// All permutations of the standard, as tables.
class Cipher {
 public:
  Cipher() : initial_(kInitial), final_(Inverse().table), expansion_(kExpansion), permutation_(kPermutation) {}

  /// One block through as many times sixteen rounds as the schedule has.
  std::uint64_t operator()(std::uint64_t block, const std::uint64_t* schedule, std::size_t rounds) const {
    for (std::size_t first = 0; first < rounds; first += 16) {
      block = initial_(block);
      std::uint64_t left = block >> 32, right = block & 0xFFFFFFFFu;
      for (std::size_t round = first; round < first + 16; ++round) {
        const std::uint64_t next = left ^ Function(right, schedule[round]);
        left = right;
        right = next;
      }
      block = final_(right << 32 | left);
    }
    return block;
  }

 private:
  struct Inverse {
    Inverse() {
      for (int i = 0; i < 64; ++i) table[kInitial[i] - 1] = static_cast<std::uint8_t>(i + 1);
    }
    std::uint8_t table[64];
  };

  std::uint64_t Function(std::uint64_t right, std::uint64_t key) const {
    const std::uint64_t mixed = expansion_(right) ^ key;
    std::uint64_t chosen = 0;
    for (int box = 0; box < 8; ++box)
      chosen = chosen << 4 | kSubstitutions[box][Place(static_cast<int>(mixed >> (42 - 6 * box) & 63))];
    return permutation_(chosen);
  }

  ByteTables<8> initial_, final_;
  ByteTables<4> expansion_, permutation_;
};

/// A known answer: blocks under keys.
struct Known {
  std::array<Key, 3> keys;
  std::uint64_t plain, coded;
};
inline Known KnownOfOneKey(Key key, std::uint64_t plain, std::uint64_t coded) {
  return {{key, key, key}, plain, coded};
}

/// Answers that NIST has published: the example of SP 800-67; of SP 800-17 and SP 800-20 the first of each of the
/// tables for variable plain text, inverse permutation, variable key and permutation operation, and the whole table for
/// substitution, in which each entry of each box is used.
inline std::vector<Known> KnownAnswers() {
  constexpr Key kWeak = 0x0101010101010101;
  const std::array<Key, 3> three = {0x0123456789ABCDEF, 0x23456789ABCDEF01, 0x456789ABCDEF0123};
  return {{three, 0x5468652071756663, 0xA826FD8CE53B855F},
          {three, 0x6B2062726F776E20, 0xCCE21C8112256FE6},
          {three, 0x666F78206A756D70, 0x68D5C05DD9B6B900},
          KnownOfOneKey(kWeak, 0x8000000000000000, 0x95F8A5E5DD31D900),
          KnownOfOneKey(kWeak, 0x95F8A5E5DD31D900, 0x8000000000000000),
          KnownOfOneKey(0x8001010101010101, 0, 0x95A8D72813DAA94D),
          KnownOfOneKey(0x1046913489980131, 0, 0x88D55E54F54C97B4),
          KnownOfOneKey(0x7CA110454A1A6E57, 0x01A1D6D039776742, 0x690F5B0D9A26939B),
          KnownOfOneKey(0x0131D9619DC1376E, 0x5CD54CA83DEF57DA, 0x7A389D10354BD271),
          KnownOfOneKey(0x07A1133E4A0B2686, 0x0248D43806F67172, 0x868EBB51CAB4599A),
          KnownOfOneKey(0x3849674C2602319E, 0x51454B582DDF440A, 0x7178876E01F19B2A),
          KnownOfOneKey(0x04B915BA43FEB5B6, 0x42FD443059577FA2, 0xAF37FB421F8C4095),
          KnownOfOneKey(0x0113B970FD34F2CE, 0x059B5E0851CF143A, 0x86A560F10EC6D85B),
          KnownOfOneKey(0x0170F175468FB5E6, 0x0756D8E0774761D2, 0x0CD3DA020021DC09),
          KnownOfOneKey(0x43297FAD38E373FE, 0x762514B829BF486A, 0xEA676B2CB7DB2B7A),
          KnownOfOneKey(0x07A7137045DA2A16, 0x3BDD119049372802, 0xDFD64A815CAF1A0F),
          KnownOfOneKey(0x04689104C2FD3B2F, 0x26955F6835AF609A, 0x5C513C9C4886C088),
          KnownOfOneKey(0x37D06BB516CB7546, 0x164D5E404F275232, 0x0A2AEEAE3FF4AB77),
          KnownOfOneKey(0x1F08260D1AC2465E, 0x6B056E18759F5CCA, 0xEF1BF03E5DFA575A),
          KnownOfOneKey(0x584023641ABA6176, 0x004BD6EF09176062, 0x88BF0DB6D70DEE56),
          KnownOfOneKey(0x025816164629B007, 0x480D39006EE762F2, 0xA1F9915541020B56),
          KnownOfOneKey(0x49793EBC79B3258F, 0x437540C8698F3CFA, 0x6FBF1CAFCFFD0556),
          KnownOfOneKey(0x4FB05E1515AB73A7, 0x072D43A077075292, 0x2F22E49BAB7CA1AC),
          KnownOfOneKey(0x49E95D6D4CA229BF, 0x02FE55778117F12A, 0x5A6B612CC26CCE4A),
          KnownOfOneKey(0x018310DC409B26D6, 0x1D9D5C5018F728C2, 0x5F4C038ED12B2E41),
          KnownOfOneKey(0x1C587F1C13924FEF, 0x305532286D6F295A, 0x63FAC0D034D9F793)};
}

}  // namespace des
