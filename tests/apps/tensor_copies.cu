// Hopper's tensor copies through cuda::barrier and cuda::ptx: tiles in and out, edges, swizzle, fills, multicast in a
// cluster, reductions, maps changed by the kernel; arguments that the driver refuses. Boxes begin at multiples of 16
// bytes in a row: anything else is an illegal instruction.
#include <cuda.h>

#include <cuda/barrier>
#include <cuda/ptx>

#include "app.h"

namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cde = cuda::device::experimental;

constexpr int kTileRows = 16, kTileColumns = 32;

// As in NVIDIA's guide: a tile comes in, every element is changed, the tile goes out again.
__global__ void AddToTile(const __grid_constant__ CUtensorMap map, int x, int y, int add) {
  __shared__ alignas(128) int tile[kTileRows][kTileColumns];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    cde::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  Barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_global_to_shared(&tile, &map, x, y, barrier);
    token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof tile);
  } else {
    token = barrier.arrive();
  }
  barrier.wait(std::move(token));
  for (int row = 0; row < kTileRows; ++row) tile[row][threadIdx.x] += add;
  cde::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_shared_to_global(&map, x, y, &tile);
    cde::cp_async_bulk_commit_group();
    cde::cp_async_bulk_wait_group_read<0>();
    barrier.~Barrier();
  }
}

// A transposition through a swizzled tile.
__global__ void Transpose(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out) {
  __shared__ alignas(1024) int4 from[8][8], to[8][8];
  __shared__ std::uint64_t bar;
  const int row = threadIdx.x / 8, column = threadIdx.x % 8;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_proxy_async(ptx::space_shared);
    const std::int32_t at[2] = {0, 0};
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof from);
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, &from, &in, at, &bar);
  }
  __syncthreads();
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {
  }
  to[column][row ^ column] = from[row][column ^ row];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    const std::int32_t at[2] = {0, 0};
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, at, &to);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}

// Three dimensions with every second plane, over all edges; what lies outside is NaN.
__global__ void Edges(const __grid_constant__ CUtensorMap map, float* out) {
  __shared__ alignas(128) float box[2][4][8];
  __shared__ std::uint64_t bar;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, 1);
    const std::int32_t at[3] = {-4, 4, -1};
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof box);
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, &box, &map, at, &bar);
  }
  __syncthreads();
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {
  }
  out[threadIdx.x] = (&box[0][0][0])[threadIdx.x];
}

// Every CTA of the cluster loads a part for all of them.
__global__ __cluster_dims__(4, 1, 1) void Multicast(const __grid_constant__ CUtensorMap map, int* out) {
  __shared__ alignas(128) int parts[4][64];
  __shared__ std::uint64_t bar;
  const unsigned rank = blockIdx.x % 4;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof parts);
  }
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  if (threadIdx.x == 0) {
    const std::int32_t at[1] = {static_cast<std::int32_t>(rank * 64)};
    const std::uint16_t all = 0xf;
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, &parts[rank], &map, at, &bar, all);
  }
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {
  }
  for (int i = threadIdx.x; i < 256; i += blockDim.x) out[blockIdx.x * 256 + i] = parts[i / 64][i % 64];
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

__global__ void Reduce(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) float row[64];
  row[threadIdx.x] = blockIdx.x + 1.0f;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    const std::int32_t at[1] = {32};
    ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_add, &map, at, &row);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}

// The map gets another address and size before it is used, as in grouped matrix products.
__global__ void Replace(const __grid_constant__ CUtensorMap map, CUtensorMap* changed, int* other, int* out) {
  __shared__ alignas(128) CUtensorMap copy;
  __shared__ alignas(128) int row[32];
  __shared__ std::uint64_t bar;
  if (threadIdx.x == 0) {
    copy = map;
    ptx::mbarrier_init(&bar, 1);
    ptx::tensormap_replace_global_address(ptx::space_shared, &copy, other);
    ptx::tensormap_replace_global_dim(ptx::space_shared, &copy, ptx::n32_t<0>(), 20);
  }
  __syncwarp();
  ptx::tensormap_cp_fenceproxy(ptx::sem_release, ptx::scope_gpu, changed, &copy, ptx::n32_t<128>());
  ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, changed, ptx::n32_t<128>());
  if (threadIdx.x == 0) {
    const std::int32_t at[1] = {0};
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof row);
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, &row, changed, at, &bar);
  }
  __syncwarp();
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {
  }
  out[threadIdx.x] = row[threadIdx.x];
}

struct Shape {
  cuuint32_t rank;
  cuuint64_t sizes[5], strides[4];
  cuuint32_t box[5], steps[5];
};
CUresult Encode(CUtensorMap* map, CUtensorMapDataType type, void* address, const Shape& s,
                CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
                CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
                CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE) {
  static const auto encode = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    CU(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  }();
  return encode(map, type, s.rank, address, s.sizes, s.strides, s.box, s.steps, interleave, swizzle,
                CU_TENSOR_MAP_L2_PROMOTION_NONE, fill);
}
CUtensorMap Map(CUtensorMapDataType type, void* address, const Shape& s,
                CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
                CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) {
  CUtensorMap map;
  const CUresult status = Encode(&map, type, address, s, swizzle, fill);
  if (status != CUDA_SUCCESS) std::printf("FAIL cuTensorMapEncodeTiled: %d\n", status), std::exit(1);
  return map;
}

void Refused() {
  alignas(64) CUtensorMap map;
  Buffer<int> memory(4096);
  int* const p = memory;
  const Shape good{2, {64, 64}, {256}, {32, 16}, {1, 1}};
  const auto status = [&](auto change, CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                          CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
                          CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, int* address = nullptr) {
    Shape s = good;
    change(s);
    return Encode(&map, type, address ? address : p, s, swizzle, fill);
  };
  const auto same = [](Shape&) {};
  const auto expect = [](const char* what, CUresult got, CUresult want) { True(what, got == want); };
  expect("a good map", status(same), CUDA_SUCCESS);
  expect("no rank", status([](Shape& s) { s.rank = 0; }), CUDA_ERROR_INVALID_VALUE);
  expect("rank 6", status([](Shape& s) { s.rank = 6; }), CUDA_ERROR_INVALID_VALUE);
  expect("empty box", status([](Shape& s) { s.box[1] = 0; }), CUDA_ERROR_INVALID_VALUE);
  expect("box of 257", status([](Shape& s) { s.box[1] = 257; }), CUDA_ERROR_INVALID_VALUE);
  expect("row of 12 bytes", status([](Shape& s) { s.box[0] = 3; }), CUDA_ERROR_INVALID_VALUE);
  expect("empty tensor", status([](Shape& s) { s.sizes[0] = 0; }), CUDA_ERROR_INVALID_VALUE);
  expect("stride of 250", status([](Shape& s) { s.strides[0] = 250; }), CUDA_ERROR_INVALID_VALUE);
  expect("stride of 2^40", status([](Shape& s) { s.strides[0] = cuuint64_t{1} << 40; }), CUDA_ERROR_INVALID_VALUE);
  expect("step of 9", status([](Shape& s) { s.steps[1] = 9; }), CUDA_ERROR_INVALID_VALUE);
  expect("swizzled row too wide", status(same, CU_TENSOR_MAP_DATA_TYPE_INT32, CU_TENSOR_MAP_SWIZZLE_64B),
         CUDA_ERROR_INVALID_VALUE);
  expect("NaN for integers",
         status(same, CU_TENSOR_MAP_DATA_TYPE_INT32, CU_TENSOR_MAP_SWIZZLE_NONE,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA),
         CUDA_ERROR_INVALID_VALUE);
  expect(
      "address at 4",
      status(same, CU_TENSOR_MAP_DATA_TYPE_INT32, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, p + 1),
      CUDA_ERROR_INVALID_VALUE);
}

int main() {
  constexpr int kRows = 40, kColumns = 72, kPitch = 80;
  std::vector<int> words(kRows * kPitch);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<int>(i * 7);
  {
    Buffer<int> memory(words);
    const CUtensorMap map = Map(CU_TENSOR_MAP_DATA_TYPE_INT32, memory,
                                {2, {kColumns, kRows}, {kPitch * 4}, {kTileColumns, kTileRows}, {1, 1}});
    AddToTile<<<1, kTileColumns>>>(map, 32, 16, 1000);
    CU_LAUNCHED();
    AddToTile<<<1, kTileColumns>>>(map, 60, 30, 1);  // over the right and the lower edge
    CU_LAUNCHED();
    AddToTile<<<1, kTileColumns>>>(map, 0, 0, 3);  // what begins before the tensor can be read only (Edges)
    CU_LAUNCHED();
    const std::vector<int> got = memory.Read();
    for (int y = 0; y < kRows; ++y) {
      for (int x = 0; x < kPitch; ++x) {
        int want = words[y * kPitch + x];
        if (x >= 32 && x < 64 && y >= 16 && y < 32) want += 1000;
        if (x >= 60 && x < kColumns && y >= 30) want += 1;
        if (x < 32 && y < 16) want += 3;
        Note(got[y * kPitch + x] == want, "tile", y * kPitch + x, got[y * kPitch + x], want);
      }
    }
  }
  {
    std::vector<int4> cells(64);
    for (int i = 0; i < 64; ++i) cells[i] = {i, i * 2, i * 3, i * 4};
    Buffer<int4> in(cells), out(64);
    const Shape shape{2, {32, 8}, {128}, {32, 8}, {1, 1}};
    Transpose<<<1, 64>>>(Map(CU_TENSOR_MAP_DATA_TYPE_INT32, in, shape, CU_TENSOR_MAP_SWIZZLE_128B),
                         Map(CU_TENSOR_MAP_DATA_TYPE_INT32, out, shape, CU_TENSOR_MAP_SWIZZLE_128B));
    CU_LAUNCHED();
    const std::vector<int4> got = out.Read();
    for (int i = 0; i < 64; ++i)
      Note(got[i].x == i % 8 * 8 + i / 8 && got[i].w == got[i].x * 4, "transposed", i, got[i].x, i % 8 * 8 + i / 8);
  }
  {
    std::vector<float> values(5 * 6 * 12);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    Buffer<float> in(values), out(64);
    Edges<<<1, 64>>>(Map(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, in, {3, {12, 6, 5}, {48, 288}, {8, 4, 3}, {1, 1, 2}},
                         CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA),
                     out);
    CU_LAUNCHED();
    const std::vector<float> got = out.Read();
    for (int i = 0; i < 64; ++i) {
      const int x = i % 8 - 4, y = i / 8 % 4 + 4, z = i / 32 * 2 - 1;
      const bool inside = x >= 0 && y < 6 && z >= 0;
      const float want = inside ? static_cast<float>(z * 72 + y * 12 + x) : 0;
      Note(inside ? got[i] == want : std::isnan(got[i]), "edges", i, got[i], want);
    }
  }
  {
    std::vector<int> values(256);
    for (int i = 0; i < 256; ++i) values[i] = i * i;
    Buffer<int> in(values), out(8 * 256);
    Multicast<<<8, 64>>>(Map(CU_TENSOR_MAP_DATA_TYPE_INT32, in, {1, {256}, {}, {64}, {1}}), out);
    CU_LAUNCHED();
    const std::vector<int> got = out.Read();
    for (int i = 0; i < 8 * 256; ++i) Note(got[i] == values[i % 256], "multicast", i, got[i], values[i % 256]);
  }
  {
    Buffer<float> sums(std::vector<float>(80, 1.0f));
    Reduce<<<5, 64>>>(Map(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, sums, {1, {80}, {}, {64}, {1}}));
    CU_LAUNCHED();
    const std::vector<float> got = sums.Read();
    for (int i = 0; i < 80; ++i) Note(got[i] == (i < 32 ? 1.0f : 16.0f), "reduced", i, got[i], i < 32 ? 1 : 16);
  }
  {
    std::vector<int> values(32);
    for (int i = 0; i < 32; ++i) values[i] = 100 - i;
    Buffer<int> unused(32), other(values), out(32);
    Buffer<CUtensorMap> changed(1);
    Replace<<<1, 32>>>(Map(CU_TENSOR_MAP_DATA_TYPE_INT32, unused, {1, {32}, {}, {32}, {1}}), changed, other, out);
    CU_LAUNCHED();
    const std::vector<int> got = out.Read();
    for (int i = 0; i < 32; ++i) Note(got[i] == (i < 20 ? 100 - i : 0), "replaced", i, got[i], i < 20 ? 100 - i : 0);
  }
  Refused();
  return Verdict();
}
