// Attention of a head of 64 channels in f16 with sums in f32, by matrix instructions and running softmax: a warp has 16
// queries, a block 64; keys and values go through shared memory 32 at a time. Rows of K lie 36 words apart there and
// those of the transposed V 20, so that lanes meet different banks.

/// c += a b: 16 x 8, rows of a and columns of b by lane / 4, pairs along the sum by lane % 4.
static __device__ void AttentionProduct(float (&c)[4], unsigned a0, unsigned a1, unsigned b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(b));
}
static __device__ unsigned AttentionPair(float low, float high) {
  unsigned pair;
  asm("{.reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h};}"
      : "=r"(pair)
      : "f"(low), "f"(high));
  return pair;
}
/// Over the four lanes that hold a row.
static __device__ float AttentionMost(float v) {
  v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
  return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}
static __device__ float AttentionSum(float v) {
  v += __shfl_xor_sync(0xffffffffu, v, 1);
  return v + __shfl_xor_sync(0xffffffffu, v, 2);
}

KERNEL Attention(const unsigned* queries, const unsigned* keys, const unsigned* values, float* out, int n) {
  __shared__ unsigned key_tile[32 * 36];
  __shared__ unsigned value_words[64 * 20];
  unsigned short* const value_tile = reinterpret_cast<unsigned short*>(value_words);
  const int t = threadIdx.x, lane = t % 32, group = lane / 4, pair = lane % 4;
  const int head = blockIdx.y * n * 32, first = blockIdx.x * 64 + t / 32 * 16 + group;
  unsigned query[8][2];
  for (int k = 0; k < 8; ++k) {
    query[k][0] = queries[head + first * 32 + k * 4 + pair];
    query[k][1] = queries[head + (first + 8) * 32 + k * 4 + pair];
  }
  float result[8][4] = {}, most[2] = {-1e30f, -1e30f}, sum[2] = {0, 0};
  for (int tile = 0; tile < n; tile += 32) {
    for (int i = t; i < 1024; i += 128) {
      const int row = i / 32, column = i % 32;
      key_tile[row * 36 + column] = keys[head + (tile + row) * 32 + column];
      const unsigned word = values[head + (tile + row) * 32 + column];
      value_tile[2 * column * 40 + row] = static_cast<unsigned short>(word);
      value_tile[(2 * column + 1) * 40 + row] = static_cast<unsigned short>(word >> 16);
    }
    __syncthreads();
    float score[4][4] = {}, largest[2] = {most[0], most[1]};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int k = 0; k < 8; ++k)
        AttentionProduct(score[j], query[k][0], query[k][1], key_tile[(j * 8 + group) * 36 + k * 4 + pair]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        score[j][i] *= 0.125f * 1.4426950408889634f;  // of exp2: 1 / sqrt(64) times log2(e)
        largest[i / 2] = fmaxf(largest[i / 2], score[j][i]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      largest[half] = AttentionMost(largest[half]);
      const float factor = exp2f(most[half] - largest[half]);
      most[half] = largest[half];
      sum[half] *= factor;
#pragma unroll
      for (int d = 0; d < 8; ++d) result[d][2 * half] *= factor, result[d][2 * half + 1] *= factor;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        score[j][i] = exp2f(score[j][i] - most[i / 2]);
        sum[i / 2] += score[j][i];
      }
      const unsigned a0 = AttentionPair(score[j][0], score[j][1]), a1 = AttentionPair(score[j][2], score[j][3]);
#pragma unroll
      for (int d = 0; d < 8; ++d) AttentionProduct(result[d], a0, a1, value_words[(d * 8 + group) * 20 + j * 4 + pair]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float scale = 1.0f / AttentionSum(sum[half]);
    float* const to = out + 2 * (head + (first + 8 * half) * 32) + 2 * pair;
#pragma unroll
    for (int d = 0; d < 8; ++d) {
      to[d * 8] = result[d][2 * half] * scale;
      to[d * 8 + 1] = result[d][2 * half + 1] * scale;
    }
  }
}
