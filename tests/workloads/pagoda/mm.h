// MM, matrix multiplication (CUDA samples, matrixMul): the product of two small square matrices. A task is a product.
// With shared memory a block makes a tile of the product, 16 columns wide and as high as it has threads for, from tiles
// of both matrices, between barriers: 2 KiB with 256 threads, as in the sample. Without, each thread reads a row and a
// column for each of its elements.
#pragma once

#include "pagoda/task.h"

constexpr int kMmTile = 16;

struct MmArguments {
  const float *left, *right;
  float* product;
  int side;
};

__device__ inline void MmWithShared(const MmArguments& task, int block, int blocks) {
  extern __shared__ float mm_tiles[];
  const int threads = blockDim.x, thread = threadIdx.x, side = task.side, rows = threads / kMmTile;
  const int across = thread % kMmTile, down = thread / kMmTile;
  float *const left = mm_tiles, *const right = mm_tiles + threads;
  const int columns = (side + kMmTile - 1) / kMmTile, tiles = (side + rows - 1) / rows * columns;
  for (int tile = block; tile < tiles; tile += blocks) {
    const int row = tile / columns * rows + down, first = tile % columns * kMmTile, column = first + across;
    float sum = 0;
    for (int from = 0; from < side; from += kMmTile) {
      left[thread] = row < side && from + across < side ? task.left[row * side + from + across] : 0;
      for (int i = thread; i < kMmTile * kMmTile; i += threads) {
        const int y = from + i / kMmTile, x = first + i % kMmTile;
        right[i] = y < side && x < side ? task.right[y * side + x] : 0;
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kMmTile; ++k) sum = fmaf(left[down * kMmTile + k], right[k * kMmTile + across], sum);
      __syncthreads();
    }
    if (row < side && column < side) task.product[row * side + column] = sum;
  }
}
__device__ inline void MmWithoutShared(const MmArguments& task, int thread, int threads) {
  const int side = task.side;
  for (int i = thread; i < side * side; i += threads) {
    float sum = 0;
    for (int k = 0; k < side; ++k) sum = fmaf(task.left[i / side * side + k], task.right[k * side + i % side], sum);
    task.product[i] = sum;
  }
}
__global__ void MatrixMul(MmArguments task) { MmWithShared(task, blockIdx.x, gridDim.x); }
__global__ void MatrixMulFused(const MmArguments* tasks) { MmWithShared(tasks[blockIdx.x], 0, 1); }
__global__ void MatrixMulGlobal(MmArguments task) {
  MmWithoutShared(task, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}
__global__ void MatrixMulGlobalFused(const MmArguments* tasks) {
  MmWithoutShared(tasks[blockIdx.x], threadIdx.x, blockDim.x);
}

/// The tile of the left matrix has an element for each thread.
inline std::size_t MmSharedBytes(int threads) { return sizeof(float) * (threads + kMmTile * kMmTile); }

/// Row by row of the right matrix.
PAGODA_HOST inline void MmOnHost(const float* left, const float* right, int side, float* product) {
  for (int row = 0; row < side; ++row) {
    float* const sums = product + static_cast<std::size_t>(row) * side;
    for (int column = 0; column < side; ++column) sums[column] = 0;
    for (int k = 0; k < side; ++k) {
      const float factor = left[row * side + k];
      for (int column = 0; column < side; ++column)
        sums[column] = std::fmaf(factor, right[k * side + column], sums[column]);
    }
  }
}

class Mm final : public KindOf<MmArguments> {
 public:
  Mm(const Options& options, const char* size)
      : KindOf(options.shared() ? MatrixMul : MatrixMulGlobal, options.shared() ? MatrixMulFused : MatrixMulGlobalFused,
               options.shared() ? MmSharedBytes : nullptr),
        options_(options),
        side_(options[size]) {}

  void Describe(Task& task) const override {
    task.size = SizeOf(options_, task.index, side_ / 4, side_, 1);
    task.share = Square(1.0 * task.size / side_);
    task.out_bytes = sizeof(float) * task.size * task.size;
    task.in_bytes = 2 * task.out_bytes;
  }
  void Fill(const Task& task, char* in) const override {
    FillUniform(reinterpret_cast<float*>(in), task.in_bytes / sizeof(float), -1, 1, RandomOf(options_, task.index));
  }
  void Compute(const Task& task, const char* in, char* out) const override {
    const float* const left = reinterpret_cast<const float*>(in);
    MmOnHost(left, left + task.size * task.size, task.size, reinterpret_cast<float*>(out));
  }
  MmArguments ArgumentsOf(const Task& task) const override {
    const float* const left = reinterpret_cast<const float*>(task.in);
    return {left, left + task.size * task.size, reinterpret_cast<float*>(task.out), task.size};
  }

 private:
  const Options& options_;
  int side_;
};
