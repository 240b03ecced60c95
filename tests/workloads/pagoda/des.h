// 3DES: packets are encrypted (FIPS 46-3, SP 800-67: DES-EDE with three keys), each block of eight bytes by itself. A
// task is a packet, whose length is one of many: a network's packets differ by a factor of 32. A thread has every
// so-manieth block: 48 rounds of integer arithmetic with eight look-ups in tables, whose places depend on the data. The
// 48 keys of the rounds are in front of the packet's bytes.
#pragma once

#include "pagoda/des_standard.h"
#include "pagoda/task.h"

constexpr int kDesRounds = 48, kDesBlock = 8;
constexpr std::size_t kDesKeyWords = 2 * kDesRounds;

struct DesArguments {
  const std::uint32_t* boxes;  ///< eight tables of 64 words
  const uint2* keys;           ///< of each round
  const uint2* plain;
  uint2* coded;
  int blocks;
};

/// Swaps the bits of `left` that are `shift` above those of `right` under the mask.
__device__ inline void SwapBits(std::uint32_t& left, std::uint32_t& right, int shift, std::uint32_t mask) {
  const std::uint32_t difference = ((left >> shift) ^ right) & mask;
  right ^= difference;
  left ^= difference << shift;
}
/// The six bits that box i has are at the right of the half turned by 5 + 4 * i: every other box is 8 bits further.
__device__ inline std::uint32_t DesFunction(std::uint32_t half, uint2 key, const std::uint32_t* boxes) {
  const std::uint32_t even = __funnelshift_l(half, half, 5) ^ key.x, odd = __funnelshift_l(half, half, 9) ^ key.y;
  return boxes[even & 63] ^ boxes[128 + (even >> 24 & 63)] ^ boxes[256 + (even >> 16 & 63)] ^
         boxes[384 + (even >> 8 & 63)] ^ boxes[64 + (odd & 63)] ^ boxes[192 + (odd >> 24 & 63)] ^
         boxes[320 + (odd >> 16 & 63)] ^ boxes[448 + (odd >> 8 & 63)];
}
/// Between two of the three ciphers the final permutation and the initial one undo each other.
__device__ inline void DesWork(const DesArguments& task, int thread, int threads) {
  for (int block = thread; block < task.blocks; block += threads) {
    const uint2 bytes = task.plain[block];
    std::uint32_t left = __byte_perm(bytes.x, 0, 0x0123), right = __byte_perm(bytes.y, 0, 0x0123);
    SwapBits(left, right, 4, 0x0F0F0F0F);
    SwapBits(left, right, 16, 0x0000FFFF);
    SwapBits(right, left, 2, 0x33333333);
    SwapBits(right, left, 8, 0x00FF00FF);
    SwapBits(left, right, 1, 0x55555555);
    for (int first = 0; first < kDesRounds; first += 16) {
      for (int round = first; round < first + 16; round += 2) {
        left ^= DesFunction(right, task.keys[round], task.boxes);
        right ^= DesFunction(left, task.keys[round + 1], task.boxes);
      }
      const std::uint32_t swapped = left;
      left = right;
      right = swapped;
    }
    SwapBits(left, right, 1, 0x55555555);
    SwapBits(right, left, 8, 0x00FF00FF);
    SwapBits(right, left, 2, 0x33333333);
    SwapBits(left, right, 16, 0x0000FFFF);
    SwapBits(left, right, 4, 0x0F0F0F0F);
    task.coded[block] = make_uint2(__byte_perm(left, 0, 0x0123), __byte_perm(right, 0, 0x0123));
  }
}
__global__ void TripleDes(DesArguments task) {
  DesWork(task, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}
__global__ void TripleDesFused(const DesArguments* tasks) { DesWork(tasks[blockIdx.x], threadIdx.x, blockDim.x); }

/// A box's answer to six bits, where the permutation puts it.
inline std::vector<std::uint32_t> DesBoxes() {
  std::vector<std::uint32_t> boxes;
  for (int box = 0; box < 8; ++box) {
    for (int six = 0; six < 64; ++six) {
      const std::uint64_t chosen = static_cast<std::uint64_t>(des::kSubstitutions[box][des::Place(six)])
                                   << (28 - 4 * box);
      boxes.push_back(static_cast<std::uint32_t>(des::Permuted(des::kPermutation, chosen, 32)));
    }
  }
  return boxes;
}

/// The keys of the rounds as the device has them: what even boxes get in one word, what odd ones get in the other.
inline void PutDesKeys(const des::Schedule& schedule, std::uint32_t* words) {
  constexpr int kPlaces[] = {0, 24, 16, 8};
  for (int round = 0; round < kDesRounds; ++round) {
    for (int odd = 0; odd < 2; ++odd) {
      std::uint32_t& word = words[2 * round + odd] = 0;
      for (int i = 0; i < 4; ++i)
        word |= static_cast<std::uint32_t>(schedule[round] >> (42 - 6 * (2 * i + odd)) & 63) << kPlaces[i];
    }
  }
}

inline std::uint64_t DesBytes(std::uint64_t block) { return __builtin_bswap64(block); }

class Des final : public KindOf<DesArguments> {
 public:
  Des(const Options& options, const char* size)
      : KindOf(TripleDes, TripleDesFused),
        options_(options),
        most_(Most(options, size)),
        boxes_(options.form() == Form::kPthreads ? std::vector<std::uint32_t>() : DesBoxes()) {}

  /// Lengths whose logarithms are all as likely.
  void Describe(Task& task) const override {
    Random random(options_["irregular"] != 0 ? static_cast<std::uint64_t>(options_["irregular"]) * 7919 + task.index
                                             : RandomOf(options_, task.index, 3).Next64());
    random.Next();
    const double least = options_["least"], bytes = least * std::exp(random.Uniform(0, 1) * std::log(most_ / least));
    task.size = std::min(most_, static_cast<int>(bytes) / kDesBlock * kDesBlock);
    task.share = 1.0 * task.size / most_;
    task.out_bytes = static_cast<std::size_t>(task.size);
    task.in_bytes = kDesKeyWords * sizeof(std::uint32_t) + task.out_bytes;
  }
  void Fill(const Task& task, char* in) const override {
    PutDesKeys(des::TripleKeys(KeysOf(task), false), reinterpret_cast<std::uint32_t*>(in));
    Random random = RandomOf(options_, task.index);
    std::uint64_t* const packet = reinterpret_cast<std::uint64_t*>(in + kDesKeyWords * sizeof(std::uint32_t));
    for (int i = 0; i < task.size / kDesBlock; ++i) packet[i] = random.Next64();
  }
  void Compute(const Task& task, const char* in, char* out) const override {
    const des::Schedule schedule = des::TripleKeys(KeysOf(task), false);
    for (int at = 0; at < task.size; at += kDesBlock) {
      std::uint64_t block;
      std::memcpy(&block, in + kDesKeyWords * sizeof(std::uint32_t) + at, sizeof block);
      block = DesBytes(cipher_(DesBytes(block), schedule.data(), schedule.size()));
      std::memcpy(out + at, &block, sizeof block);
    }
  }
  DesArguments ArgumentsOf(const Task& task) const override {
    return {boxes_, reinterpret_cast<const uint2*>(task.in),
            reinterpret_cast<const uint2*>(task.in + kDesKeyWords * sizeof(std::uint32_t)),
            reinterpret_cast<uint2*>(task.out), task.size / kDesBlock};
  }
  std::string About(const std::vector<Task>& tasks) const override {
    int least = INT32_MAX, most = 0;
    for (const Task& task : tasks) least = std::min(least, task.size), most = std::max(most, task.size);
    return "a packet has " + std::to_string(least) + " to " + std::to_string(most) + " bytes";
  }

  /// The published answers, in both directions: of the host's cipher, and of the kernel.
  void CheckMore(const std::vector<Task>&) const override {
    const std::vector<des::Known> known = des::KnownAnswers();
    std::vector<std::uint32_t> in, want;
    const auto put = [](std::vector<std::uint32_t>& words, std::uint64_t block) {
      const std::uint64_t bytes = DesBytes(block);
      words.push_back(static_cast<std::uint32_t>(bytes));
      words.push_back(static_cast<std::uint32_t>(bytes >> 32));
    };
    for (std::size_t i = 0; i < 2 * known.size(); ++i) {
      const bool decrypt = i % 2 == 1;
      const auto& [keys, plain, coded] = known[i / 2];
      const des::Schedule schedule = des::TripleKeys(keys, decrypt);
      const std::uint64_t answer = decrypt ? plain : coded;
      Note(cipher_(decrypt ? coded : plain, schedule.data(), schedule.size()) == answer, "known answer of the host",
           static_cast<long>(i), 0, 0);
      in.resize(in.size() + kDesKeyWords);
      PutDesKeys(schedule, &in[in.size() - kDesKeyWords]);
      put(in, decrypt ? coded : plain);
      put(want, answer);
    }
    if (options_.form() != Form::kPthreads && options_.vectors()) CheckKnownOnDevice(in, want);
  }

 private:
  static int Most(const Options& options, const char* size) {
    const int least = options["least"], most = options[size];
    if (least <= most) return most;
    Refuse(std::string(options.name()) + ": --least=" + std::to_string(least) + " is more than --" + size + "=" +
           std::to_string(most));
  }

  void CheckKnownOnDevice(const std::vector<std::uint32_t>& in, const std::vector<std::uint32_t>& want) const {
    const DeviceArray<std::uint32_t> device_in(in), device_out(want.size());
    std::vector<DesArguments> arguments;
    for (std::size_t i = 0; i < want.size() / 2; ++i) {
      const std::uint32_t* const words = device_in + i * (kDesKeyWords + 2);
      arguments.push_back({boxes_, reinterpret_cast<const uint2*>(words),
                           reinterpret_cast<const uint2*>(words + kDesKeyWords),
                           reinterpret_cast<uint2*>(device_out + 2 * i), 1});
    }
    const DeviceArray<DesArguments> device_arguments(arguments);
    TripleDesFused<<<static_cast<int>(arguments.size()), 32>>>(device_arguments);
    CU_LAUNCHED();
    const std::vector<std::uint32_t> got = device_out.Read();
    for (std::size_t i = 0; i < want.size(); ++i) Same("known answer", static_cast<long>(i), got[i], want[i]);
  }

  std::array<des::Key, 3> KeysOf(const Task& task) const {
    Random random = RandomOf(options_, task.index, 2);
    return {random.Next64(), random.Next64(), random.Next64()};
  }

  const Options& options_;
  int most_;
  des::Cipher cipher_;
  DeviceArray<std::uint32_t> boxes_;
};
