// DCT (CUDA samples, dct8x8): cosine transforms of all blocks of 8x8 pixels of an image. A task is an image; a thread
// transforms eight values, first of a column, then of a row. With shared memory a tile of 32x32 pixels (4.1 KiB) stays
// there between both, for each 128 threads of the block, and all accesses to global memory are of whole rows; without,
// columns go to the result and rows are read from there. Both wait at barriers. There is little to compute, so that
// copies are most of the time.
#include "pagoda/run.h"

constexpr int kSide = 8, kTile = 32, kPitch = kTile + 1, kVectors = kTile * kTile / kSide;
/// Half of the cosine of i * pi / 16.
constexpr float kHalfCos[kSide] = {0.5f,        0.49039264f, 0.46193977f, 0.41573481f,
                                   0.35355339f, 0.27778512f, 0.19134172f, 0.097545161f};

struct DctArguments {
  const float* image;
  float* coefficients;
  int side;
};

/// Eight values become their coefficients: sums and differences of both ends make the even ones and the odd ones.
__device__ inline void Transform(float (&v)[kSide]) {
  constexpr float kA = kHalfCos[1], kB = kHalfCos[2], kC = kHalfCos[3], kD = kHalfCos[4], kE = kHalfCos[5],
                  kF = kHalfCos[6], kG = kHalfCos[7];
  const float s0 = v[0] + v[7], s1 = v[1] + v[6], s2 = v[2] + v[5], s3 = v[3] + v[4];
  const float d0 = v[0] - v[7], d1 = v[1] - v[6], d2 = v[2] - v[5], d3 = v[3] - v[4];
  const float outer = s0 + s3, inner = s1 + s2, outer_difference = s0 - s3, inner_difference = s1 - s2;
  v[0] = __fmul_rn(kD, outer + inner);
  v[4] = __fmul_rn(kD, outer - inner);
  v[2] = fmaf(kF, inner_difference, __fmul_rn(kB, outer_difference));
  v[6] = fmaf(-kB, inner_difference, __fmul_rn(kF, outer_difference));
  v[1] = fmaf(kG, d3, fmaf(kE, d2, fmaf(kC, d1, __fmul_rn(kA, d0))));
  v[3] = fmaf(-kE, d3, fmaf(-kA, d2, fmaf(-kG, d1, __fmul_rn(kC, d0))));
  v[5] = fmaf(kC, d3, fmaf(kG, d2, fmaf(-kA, d1, __fmul_rn(kE, d0))));
  v[7] = fmaf(-kA, d3, fmaf(kC, d2, fmaf(-kE, d1, __fmul_rn(kG, d0))));
}
__device__ inline void TransformAt(const float* from, int from_step, float* to, int to_step) {
  float v[kSide];
#pragma unroll
  for (int i = 0; i < kSide; ++i) v[i] = from[i * from_step];
  Transform(v);
#pragma unroll
  for (int i = 0; i < kSide; ++i) to[i * to_step] = v[i];
}

/// Tiles of a block at once, each of which has work for 128 threads.
__host__ __device__ constexpr int TilesAtOnce(int threads) { return (threads + kVectors - 1) / kVectors; }

__device__ inline void DctWithShared(const DctArguments& task, int block, int blocks) {
  extern __shared__ float dct_tiles[];
  const int threads = blockDim.x, side = task.side, at_once = TilesAtOnce(threads);
  const int columns = (side + kTile - 1) / kTile, tiles = columns * columns;
  for (int first = block * at_once; first < tiles; first += blocks * at_once) {
    for (int i = threadIdx.x; i < at_once * kVectors; i += threads) {
      const int tile = first + i / kVectors, x = i % kTile, y = i % kVectors / kTile * kSide;
      const int image_x = tile % columns * kTile + x, image_y = tile / columns * kTile + y;
      if (tile >= tiles || image_x >= side || image_y >= side) continue;
      TransformAt(&task.image[image_y * side + image_x], side, &dct_tiles[(i / kVectors * kTile + y) * kPitch + x],
                  kPitch);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < at_once * kVectors; i += threads) {
      const int tile = first + i / kVectors, x = i % kVectors / kTile * kSide, y = i % kTile;
      if (tile >= tiles || tile % columns * kTile + x >= side || tile / columns * kTile + y >= side) continue;
      float* const row = &dct_tiles[(i / kVectors * kTile + y) * kPitch + x];
      TransformAt(row, 1, row, 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < at_once * kTile * kTile; i += threads) {
      const int tile = first + i / (kTile * kTile), x = tile % columns * kTile + i % kTile;
      const int y = tile / columns * kTile + i / kTile % kTile;
      if (tile < tiles && x < side && y < side)
        task.coefficients[y * side + x] = dct_tiles[i / kTile * kPitch + i % kTile];
    }
    __syncthreads();
  }
}

/// Strips of eight rows: as many at once as there are threads for, one at least.
__device__ inline void DctWithoutShared(const DctArguments& task, int block, int blocks) {
  const int threads = blockDim.x, side = task.side, at_once = max(1, threads / side);
  for (int first = block * at_once * kSide; first < side; first += blocks * at_once * kSide) {
    for (int i = threadIdx.x; i < at_once * side; i += threads) {
      const int at = (first + i / side * kSide) * side + i % side;
      if (at < side * side) TransformAt(&task.image[at], side, &task.coefficients[at], side);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < at_once * side; i += threads) {
      const int at = (first + i / side * kSide) * side + i % side * kSide;
      if (at < side * side) TransformAt(&task.coefficients[at], 1, &task.coefficients[at], 1);
    }
    __syncthreads();
  }
}
__global__ void Dct8x8(DctArguments task) { DctWithShared(task, blockIdx.x, gridDim.x); }
__global__ void Dct8x8Fused(const DctArguments* tasks) { DctWithShared(tasks[blockIdx.x], 0, 1); }
__global__ void Dct8x8Global(DctArguments task) { DctWithoutShared(task, blockIdx.x, gridDim.x); }
__global__ void Dct8x8GlobalFused(const DctArguments* tasks) { DctWithoutShared(tasks[blockIdx.x], 0, 1); }

std::size_t DctSharedBytes(int threads) { return sizeof(float) * TilesAtOnce(threads) * kTile * kPitch; }

/// The cosine of (2 * place + 1) * frequency * pi / 16, scaled: an entry of the matrix by which eight values are
/// multiplied.
float Weight(int frequency, int place) {
  if (frequency == 0) return kHalfCos[4];
  const int sixteenths = (2 * place + 1) * frequency % 32;
  const int folded = sixteenths > 16 ? 32 - sixteenths : sixteenths;
  return folded < 8 ? kHalfCos[folded] : folded == 8 ? 0.0f : -kHalfCos[16 - folded];
}

/// As rows of that matrix, half of which are symmetric; those of 0 and 4 have one factor.
PAGODA_HOST void HostTransform(const float (&weights)[kSide][kSide], const float* from, float* to, int step) {
  float ends[2][4], pairs[2][2], result[kSide];
  for (int i = 0; i < 4; ++i) {
    ends[0][i] = from[i * step] + from[(7 - i) * step];
    ends[1][i] = from[i * step] - from[(7 - i) * step];
  }
  for (int i = 0; i < 2; ++i) {
    pairs[0][i] = ends[0][i] + ends[0][3 - i];
    pairs[1][i] = ends[0][i] - ends[0][3 - i];
  }
  for (int frequency = 0; frequency < kSide; ++frequency) {
    const float* const row = weights[frequency];
    if (frequency % 4 == 0) {
      result[frequency] = row[0] * (frequency == 0 ? pairs[0][0] + pairs[0][1] : pairs[0][0] - pairs[0][1]);
      continue;
    }
    const float* const terms = frequency % 2 == 0 ? pairs[1] : ends[1];
    float sum = row[0] * terms[0];
    for (int i = 1; i < (frequency % 2 == 0 ? 2 : 4); ++i) sum = std::fmaf(row[i], terms[i], sum);
    result[frequency] = sum;
  }
  for (int i = 0; i < kSide; ++i) to[i * step] = result[i];
}

class Dct final : public KindOf<DctArguments> {
 public:
  explicit Dct(const Options& options)
      : KindOf(options.shared() ? Dct8x8 : Dct8x8Global, options.shared() ? Dct8x8Fused : Dct8x8GlobalFused,
               options.shared() ? DctSharedBytes : nullptr),
        options_(options) {
    for (int i = 0; i < kSide * kSide; ++i) weights_[i / kSide][i % kSide] = Weight(i / kSide, i % kSide);
  }

  void Describe(Task& task) const override {
    task.size = SizeOf(options_, task.index, options_["size"] / 4, options_["size"], kSide);
    task.share = Square(1.0 * task.size / options_["size"]);
    task.in_bytes = task.out_bytes = sizeof(float) * task.size * task.size;
  }
  /// Pixels less 128.
  void Fill(const Task& task, char* in) const override {
    Random random = RandomOf(options_, task.index);
    float* const pixels = reinterpret_cast<float*>(in);
    for (int i = 0; i < task.size * task.size; ++i)
      pixels[i] = static_cast<float>(static_cast<int>(random.Next() % 256) - 128);
  }
  void Compute(const Task& task, const char* in, char* out) const override {
    const float* const image = reinterpret_cast<const float*>(in);
    float* const coefficients = reinterpret_cast<float*>(out);
    const int side = task.size;
    for (int y = 0; y < side; y += kSide) {
      for (int x = 0; x < side; ++x) HostTransform(weights_, image + y * side + x, coefficients + y * side + x, side);
    }
    for (int i = 0; i < side * side; i += kSide) HostTransform(weights_, coefficients + i, coefficients + i, 1);
  }
  DctArguments ArgumentsOf(const Task& task) const override {
    return {reinterpret_cast<const float*>(task.in), reinterpret_cast<float*>(task.out), task.size};
  }

  /// The definition, in double precision, of the first block of the first tasks. Coefficients are below 1024 in
  /// magnitude; 1e-3 is several times what floats lose.
  void CheckMore(const std::vector<Task>& tasks) const override {
    for (std::size_t i = 0; i < std::min<std::size_t>(tasks.size(), 16); ++i) {
      const float *const pixels = reinterpret_cast<const float*>(tasks[i].host_in), *const got =
                                                                                        reinterpret_cast<const float*>(
                                                                                            tasks[i].host_out);
      const int side = tasks[i].size;
      for (int at = 0; at < kSide * kSide; ++at) {
        double want = 0;
        for (int from = 0; from < kSide * kSide; ++from) {
          want += pixels[from / kSide * side + from % kSide] * Cosine(at / kSide, from / kSide) *
                  Cosine(at % kSide, from % kSide);
        }
        Near("coefficient", at, got[at / kSide * side + at % kSide], want, 0, 1e-3);
      }
    }
  }

 private:
  static double Cosine(int frequency, int place) {
    return (frequency == 0 ? std::sqrt(0.125) : 0.5) * std::cos((2 * place + 1) * frequency * std::acos(-1.0) / 16);
  }

  const Options& options_;
  float weights_[kSide][kSide];
};

int main(int argc, char** argv) {
  const Options options("dct", "cosine transforms of images, an image a task", argc, argv,
                        {.shared = true, .blocks = true}, {{"size", 64, 128, kSide, 4096, kSide}});
  const Dct kind(options);
  return Run(options, kind).Main();
}
