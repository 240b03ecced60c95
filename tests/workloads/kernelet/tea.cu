// TEA: the Tiny Encryption Algorithm (Wheeler and Needham, 1994) over an array of 64-bit blocks: shifts, additions and
// exclusive ors on registers, 32 cycles of them between a load and a store.
#include "workload.h"

constexpr int kThreads = 128, kCycles = 32;
constexpr unsigned kDelta = 0x9E3779B9u;

struct Key {
  unsigned word[4];
};

__host__ __device__ inline uint2 Encrypt(uint2 block, const Key& key) {
  unsigned sum = 0;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    sum += kDelta;
    block.x += (block.y << 4) + key.word[0] ^ block.y + sum ^ (block.y >> 5) + key.word[1];
    block.y += (block.x << 4) + key.word[2] ^ block.x + sum ^ (block.x >> 5) + key.word[3];
  }
  return block;
}

uint2 Decrypt(uint2 block, const Key& key) {
  unsigned sum = kDelta * kCycles;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    block.y -= (block.x << 4) + key.word[2] ^ block.x + sum ^ (block.x >> 5) + key.word[3];
    block.x -= (block.y << 4) + key.word[0] ^ block.y + sum ^ (block.y >> 5) + key.word[1];
    sum -= kDelta;
  }
  return block;
}

__global__ void __launch_bounds__(kThreads) TeaEncrypt(const uint2* in, uint2* out, int blocks, Key key) {
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < blocks; i += gridDim.x * kThreads) out[i] = Encrypt(in[i], key);
}

int main(int argc, char** argv) {
  // The paper: 20,971,520 blocks with 128 x 16384 threads, ten a thread.
  const Sizes sizes(argc, argv, {{"ctas", 512, 16384}, {"blocks", 512 * kThreads * 2, 20'971'520}});
  const int blocks = sizes["blocks"];
  std::vector<uint2> plain(blocks);
  Random random(1);
  for (uint2& block : plain) block = {random.Next(), random.Next()};
  const Key key{{0x2B7E1516u, 0x28AED2A6u, 0xABF71588u, 0x09CF4F3Cu}};
  const Buffer<uint2> device_plain(plain), device_cipher(blocks);
  TeaEncrypt<<<sizes["ctas"], kThreads>>>(device_plain, device_cipher, blocks, key);
  CU_LAUNCHED();
  const std::vector<uint2> cipher = device_cipher.Read();
  for (int i = 0; i < blocks; ++i) {
    const uint2 block = Decrypt(cipher[i], key);
    Same("low", i, block.x, plain[i].x);
    Same("high", i, block.y, plain[i].y);
  }
  // The published vector of a block of zeros with a key of zeros.
  const uint2 zeros = Encrypt({0, 0}, Key{});
  Same("vector", 0, zeros.x, 0x41EA3A0Au);
  Same("vector", 1, zeros.y, 0x94BAA940u);
  PrintDigest("cipher", cipher);
  return Verdict();
}
