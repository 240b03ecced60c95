// Matrix products as Hopper's libraries make them: one warp group fetches tiles by tensor copies into a ring of
// swizzled stages, two others multiply them by wgmma; one thread of a group gives a stage back for all four warps. B
// along k, and across it.
#include <cuda.h>
#include <cuda_fp16.h>

#include <cuda/ptx>

#include "app.h"

namespace ptx = cuda::ptx;

constexpr int kTileM = 128, kTileN = 128, kTileK = 64, kStages = 3, kGroups = 2, kRegisters = kTileN / 2;

/// A descriptor of a matrix with 128-byte swizzle. The bits of a shared address that it holds are those of a generic
/// one, too, and some libraries make descriptors of that without a conversion.
template <bool kConverted>
__device__ std::uint64_t Descriptor(const void* place, unsigned leading, unsigned stride) {
  const std::uint64_t address = kConverted ? __cvta_generic_to_shared(place) : reinterpret_cast<std::uint64_t>(place);
  return (address & 0x3ffff) >> 4 | std::uint64_t{leading >> 4} << 16 | std::uint64_t{stride >> 4} << 32 |
         std::uint64_t{1} << 62;
}

#define R8(i)                                                                                                 \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
template <int kTransposeB>
__device__ void Multiply(float (&d)[kRegisters], std::uint64_t a, std::uint64_t b, int accumulates) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, "
      "%27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, "
      "%49, %50, %51, "
      "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, %67;\n}\n"
      : R8(0), R8(8), R8(16), R8(24), R8(32), R8(40), R8(48), R8(56)
      : "l"(a), "l"(b), "r"(accumulates), "n"(kTransposeB));
}

struct Stages {
  alignas(1024) __half a[kStages][kTileM * kTileK];
  alignas(1024) __half b[kStages][kTileN * kTileK];
  std::uint64_t full[kStages], empty[kStages];
};

__device__ void Wait(std::uint64_t* barrier, unsigned parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

template <bool kAcross>
__global__ void __launch_bounds__(128 * (kGroups + 1))
    Gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float* c, int n, int k) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Stages& s = *reinterpret_cast<Stages*>(memory);
  const int group = threadIdx.x / 128, steps = k / kTileK;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(&s.full[i], 1);
      ptx::mbarrier_init(&s.empty[i], kGroups);
    }
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      for (int step = 0; step < steps; ++step) {
        const int stage = step % kStages;
        if (step >= kStages) Wait(&s.empty[stage], (step / kStages - 1) & 1);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &s.full[stage],
                                       (kTileM + kTileN) * kTileK * sizeof(__half));
        const std::int32_t at_a[2] = {step * kTileK, static_cast<int>(blockIdx.y) * kTileM};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, s.a[stage], &map_a, at_a, &s.full[stage]);
        for (int half = 0; half < (kAcross ? 2 : 1); ++half) {  // rows of 64 columns when they lie across k
          const std::int32_t along[2] = {step * kTileK, static_cast<int>(blockIdx.x) * kTileN};
          const std::int32_t across[2] = {static_cast<int>(blockIdx.x) * kTileN + half * 64, step * kTileK};
          ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, s.b[stage] + half * 64 * kTileK, &map_b,
                                    kAcross ? across : along, &s.full[stage]);
        }
      }
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  float d[kRegisters];
  for (int step = 0; step < steps; ++step) {
    const int stage = step % kStages;
    Wait(&s.full[stage], step / kStages & 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int i = 0; i < kTileK / 16; ++i) {
      const std::uint64_t a = Descriptor<kAcross>(s.a[stage] + (group - 1) * 64 * kTileK + i * 16, 16, 1024);
      const std::uint64_t b = kAcross ? Descriptor<true>(s.b[stage] + i * 16 * 64, 64 * kTileK * 2, 1024)
                                      : Descriptor<false>(s.b[stage] + i * 16, 16, 1024);
      Multiply<kAcross>(d, a, b, step + i > 0);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (threadIdx.x % 128 == 0) ptx::mbarrier_arrive(&s.empty[stage]);
  }
  const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < kRegisters; ++i) {
    const int row = blockIdx.y * kTileM + (group - 1) * 64 + warp * 16 + lane / 4 + i % 4 / 2 * 8;
    const int column = blockIdx.x * kTileN + i / 4 * 8 + lane % 4 * 2 + i % 2;
    c[row * n + column] = d[i];
  }
}

CUtensorMap Map(__half* address, cuuint64_t inner, cuuint64_t outer, cuuint32_t box) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CU(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
  CUtensorMap map;
  const cuuint64_t sizes[2] = {inner, outer}, strides[1] = {inner * sizeof(__half)};
  const cuuint32_t boxes[2] = {64, box}, steps[2] = {1, 1};
  const CUresult status = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, address, sizes, strides, boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) std::printf("FAIL cuTensorMapEncodeTiled: %d\n", status), std::exit(1);
  return map;
}

template <bool kAcross>
void Run(int m, int n, int k) {
  Random random(m + n + k);
  std::vector<__half> a(m * k), b(n * k);
  std::vector<float> fa(m * k), fb(n * k);  // B by columns
  for (int i = 0; i < m * k; ++i) a[i] = __float2half(fa[i] = static_cast<int>(random.Next() % 17) - 8.0f);
  for (int column = 0; column < n; ++column) {
    for (int i = 0; i < k; ++i) {
      const float value = static_cast<int>(random.Next() % 17) - 8.0f;
      fb[column * k + i] = value;
      b[kAcross ? i * n + column : column * k + i] = __float2half(value);
    }
  }
  Buffer<__half> da(a), db(b);
  Buffer<float> dc(m * n);
  CU(cudaFuncSetAttribute(Gemm<kAcross>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Stages)));
  const CUtensorMap map_b = kAcross ? Map(db, n, k, kTileK) : Map(db, k, n, kTileN);
  Gemm<kAcross>
      <<<dim3(n / kTileN, m / kTileM), 128 * (kGroups + 1), sizeof(Stages)>>>(Map(da, k, m, kTileM), map_b, dc, n, k);
  CU_LAUNCHED();
  const std::vector<float> c = dc.Read();
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      float want = 0;
      for (int i = 0; i < k; ++i) want += fa[row * k + i] * fb[column * k + i];
      Note(c[row * n + column] == want, kAcross ? "across" : "along", row * n + column, c[row * n + column], want);
    }
  }
}

int main() {
  Run<false>(256, 256, 448);
  Run<true>(128, 256, 320);
  return Verdict();
}
