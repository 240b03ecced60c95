// What a linear filter gives where texels arrive as integers (CU_TR_FILTER_MODE_LINEAR with CU_TRSF_READ_AS_INTEGER),
// which the Programming Guide leaves open: for formats of 8, 16 and 32 bits, the status of cuTexObjectCreate and what
// fetches between two texels give, in eighths of the way. And whether a surface object can be made of an array without
// CUDA_ARRAY3D_SURFACE_LDST. "name value" lines.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "driver.h"

namespace {

// Reads between texels 0 and 1 of a row: coordinate 0.5 + i / 8.
constexpr char kPtx[] = R"(.version 7.5
.target sm_75
.address_size 64
.visible .entry fetch(.param .u64 texture, .param .u64 out) {
  .reg .u64 %t, %o, %a; .reg .u32 %i, %v<4>; .reg .f32 %x, %y;
  ld.param.u64 %t, [texture]; ld.param.u64 %o, [out];
  mov.u32 %i, %tid.x;
  cvt.rn.f32.u32 %x, %i;
  fma.rn.f32 %x, %x, 0f3E000000, 0f3F000000;
  mov.f32 %y, 0f3F000000;
  tex.2d.v4.u32.f32 {%v0, %v1, %v2, %v3}, [%t, {%x, %y}];
  mul.wide.u32 %a, %i, 4; add.u64 %o, %o, %a;
  st.global.u32 [%o], %v0;
  ret;
})";

struct Format {
  const char* name;
  CUarray_format format;
  unsigned bytes;
};
constexpr Format kFormats[] = {{"u8", CU_AD_FORMAT_UNSIGNED_INT8, 1},   {"s8", CU_AD_FORMAT_SIGNED_INT8, 1},
                               {"u16", CU_AD_FORMAT_UNSIGNED_INT16, 2}, {"s16", CU_AD_FORMAT_SIGNED_INT16, 2},
                               {"u32", CU_AD_FORMAT_UNSIGNED_INT32, 4}, {"s32", CU_AD_FORMAT_SIGNED_INT32, 4}};
struct Pair {
  std::int32_t left, right;
};
constexpr Pair kPairs[] = {{0, 100}, {10, 13}, {-128, 127}, {7, 8}};
constexpr unsigned kSteps = 9;

void Probe(const Format& format, const Pair& pair, CUfunction fetch, CUdeviceptr out) {
  const std::string name =
      std::string(format.name) + "." + std::to_string(pair.left) + "_" + std::to_string(pair.right);
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{2, 1, 0, format.format, 1, 0};
  CUarray array;
  Find<decltype(&cuArray3DCreate)>("cuArray3DCreate_v2")(&array, &descriptor);
  std::vector<unsigned char> row(2 * format.bytes);
  for (unsigned i = 0; i < row.size(); ++i)
    row[i] = static_cast<unsigned char>(static_cast<std::uint32_t>(i < format.bytes ? pair.left : pair.right) >>
                                        8 * (i % format.bytes));
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = row.data();
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = row.size();
  copy.Height = 1;
  Find<decltype(&cuMemcpy2D)>("cuMemcpy2D_v2")(&copy);
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC texture{};
  texture.addressMode[0] = texture.addressMode[1] = CU_TR_ADDRESS_MODE_CLAMP;
  texture.filterMode = CU_TR_FILTER_MODE_LINEAR;
  texture.flags = CU_TRSF_READ_AS_INTEGER;
  CUtexObject object = 0;
  const CUresult status =
      Find<decltype(&cuTexObjectCreate)>("cuTexObjectCreate")(&object, &resource, &texture, nullptr);
  std::printf("%s.create %d\n", name.c_str(), static_cast<int>(status));
  if (status == CUDA_SUCCESS) {
    void* parameters[] = {&object, &out};
    std::int32_t values[kSteps] = {};
    Find<decltype(&cuLaunchKernel)>("cuLaunchKernel")(fetch, 1, 1, 1, kSteps, 1, 1, 0, nullptr, parameters, nullptr);
    const CUresult ran = Find<decltype(&cuMemcpyDtoH)>("cuMemcpyDtoH_v2")(values, out, sizeof values);
    for (unsigned i = 0; i < kSteps && ran == CUDA_SUCCESS; ++i)
      std::printf("%s.%u/8 %d\n", name.c_str(), i, values[i]);
    if (ran != CUDA_SUCCESS) std::printf("%s.fetch %d\n", name.c_str(), static_cast<int>(ran));
  }
  CUsurfObject surface = 0;
  std::printf("%s.surface %d\n", name.c_str(),
              static_cast<int>(Find<decltype(&cuSurfObjectCreate)>("cuSurfObjectCreate")(&surface, &resource)));
}

}  // namespace

int main() {
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction fetch;
  CUdeviceptr out;
  Find<decltype(&cuInit)>("cuInit")(0);
  Find<decltype(&cuDeviceGet)>("cuDeviceGet")(&device, 0);
  Find<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, device);
  Find<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent")(context);
  if (Find<decltype(&cuModuleLoadData)>("cuModuleLoadData")(&module, kPtx) != CUDA_SUCCESS) return 1;
  Find<decltype(&cuModuleGetFunction)>("cuModuleGetFunction")(&fetch, module, "fetch");
  Find<decltype(&cuMemAlloc)>("cuMemAlloc_v2")(&out, kSteps * 4);
  for (const Format& format : kFormats) {
    for (const Pair& pair : kPairs) Probe(format, pair, fetch, out);
  }
  return 0;
}
