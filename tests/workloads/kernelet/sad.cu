// SAD: sums of absolute differences of a frame's macroblocks (16x16 pixels) with a reference frame at 33x33 positions,
// as motion search of a video encoder needs them. The first kernel sums blocks of 8x8; the second one, the paper's,
// joins them to 16x8, 8x16 and 16x16 with one warp a macroblock, two positions in a word: four loads and five stores,
// all coalesced, no shared memory.
#include "workload.h"

constexpr int kRange = 16, kSide = 2 * kRange + 1, kPositions = kSide * kSide;
constexpr int kWords = (kPositions + 1) / 2;  // two 16-bit sums in each
constexpr int kLarger = 5;                    // 16x8 twice, 8x16 twice, 16x16

__host__ __device__ inline int Clamp(int value, int end) { return value < 0 ? 0 : value < end ? value : end - 1; }

/// Sum of the 8x8 block `block` of a macroblock at one position of the reference frame, which repeats its edge outside.
__host__ __device__ inline unsigned Sad8x8(const unsigned char* frame, const unsigned char* reference, int width,
                                           int height, int macroblock, int block, int position) {
  if (position >= kPositions) return 0;
  const int per_row = width / 16;
  const int x0 = macroblock % per_row * 16 + block % 2 * 8, y0 = macroblock / per_row * 16 + block / 2 * 8;
  const int dx = position % kSide - kRange, dy = position / kSide - kRange;
  unsigned sum = 0;
  for (int y = y0; y < y0 + 8; ++y) {
    for (int x = x0; x < x0 + 8; ++x) {
      const int difference = frame[y * width + x] - reference[Clamp(y + dy, height) * width + Clamp(x + dx, width)];
      sum += difference < 0 ? -difference : difference;
    }
  }
  return sum;
}

/// sums[macroblock][block][word]
__global__ void SumBlocks(const unsigned char* frame, const unsigned char* reference, int width, int height,
                          unsigned* sums) {
  const int macroblock = blockIdx.x, block = blockIdx.y;
  for (int word = threadIdx.x; word < kWords; word += blockDim.x) {
    const unsigned low = Sad8x8(frame, reference, width, height, macroblock, block, 2 * word);
    const unsigned high = Sad8x8(frame, reference, width, height, macroblock, block, 2 * word + 1);
    sums[(macroblock * 4 + block) * kWords + word] = low | high << 16;
  }
}

/// larger[macroblock][shape][word]. Sums of 256 pixels fit into 16 bits, so both halves of a word are added at once.
__global__ void __launch_bounds__(32) SumMacroblocks(const unsigned* sums, unsigned* larger) {
  const unsigned* in = sums + blockIdx.x * 4 * kWords;
  unsigned* out = larger + blockIdx.x * kLarger * kWords;
  for (int word = threadIdx.x; word < kWords; word += 32) {
    const unsigned a = in[word], b = in[kWords + word], c = in[2 * kWords + word], d = in[3 * kWords + word];
    out[word] = a + b;               // upper 16x8
    out[kWords + word] = c + d;      // lower 16x8
    out[2 * kWords + word] = a + c;  // left 8x16
    out[3 * kWords + word] = b + d;  // right 8x16
    out[4 * kWords + word] = a + b + c + d;
  }
}

std::vector<unsigned char> Frame(int pixels, std::uint64_t seed) {
  Random random(seed);
  std::vector<unsigned char> frame(pixels);
  for (auto& pixel : frame) pixel = static_cast<unsigned char>(random.Next());
  return frame;
}

int main(int argc, char** argv) {
  // The paper: 1920x1072 pixels, 8040 macroblocks (it prints 8048 thread blocks).
  const Sizes sizes(argc, argv, {{"width", 512, 1920}, {"height", 256, 1072}});
  const int width = sizes["width"] & ~15, height = sizes["height"] & ~15, macroblocks = width / 16 * (height / 16);
  const auto frame = Frame(width * height, 1), reference = Frame(width * height, 2);
  const Buffer<unsigned char> device_frame(frame), device_reference(reference);
  const Buffer<unsigned> sums(static_cast<std::size_t>(macroblocks) * 4 * kWords),
      larger(static_cast<std::size_t>(macroblocks) * kLarger * kWords);
  SumBlocks<<<dim3(macroblocks, 4), 128>>>(device_frame, device_reference, width, height, sums);
  CU_LAUNCHED();
  SumMacroblocks<<<macroblocks, 32>>>(sums, larger);
  CU_LAUNCHED();

  const std::vector<unsigned> result = larger.Read();
  const std::size_t every = CheckEvery(macroblocks, 64);
  for (std::size_t macroblock = 0; macroblock < static_cast<std::size_t>(macroblocks); macroblock += every) {
    for (int position = 0; position < kPositions; ++position) {
      unsigned s[4];
      for (int block = 0; block < 4; ++block)
        s[block] = Sad8x8(frame.data(), reference.data(), width, height, static_cast<int>(macroblock), block, position);
      const unsigned want[kLarger] = {s[0] + s[1], s[2] + s[3], s[0] + s[2], s[1] + s[3], s[0] + s[1] + s[2] + s[3]};
      for (int shape = 0; shape < kLarger; ++shape) {
        const std::size_t word = (macroblock * kLarger + shape) * kWords + position / 2;
        Same("sum", static_cast<long>(word), result[word] >> (position % 2 * 16) & 0xffffu, want[shape]);
      }
    }
  }
  PrintDigest("result", result);
  return Verdict();
}
