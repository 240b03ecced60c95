// Texture and surface references, the module-scope variables of programs built before CUDA 12: linear memory, arrays,
// rows with a pitch. A launch sees what was bound when it was submitted, though the kernel may run after the next
// binding.
#include <chrono>
#include <thread>

#include "driver.h"

namespace {

constexpr int kWidth = 32, kHeight = 16, kTexels = kWidth * kHeight;

// copy: out[i] = lin[i]. rows: out[y][x] = whole(x, y) + pitch(x, y). plus: surf += 1.
const char kPtx[] = R"(
.version 7.0
.target sm_52
.address_size 64
.global .texref lin;
.global .texref whole;
.global .texref pitch;
.global .surfref surf;
.visible .entry copy(.param .u64 out) {
  .reg .u32 i, x; .reg .u64 o, a; .reg .f32 v, u1, u2, u3;
  mov.u32 i, %ctaid.x;
  mov.u32 x, %tid.x;
  mad.lo.u32 i, i, 32, x;
  tex.1d.v4.f32.s32 {v, u1, u2, u3}, [lin, {i}];
  ld.param.u64 o, [out];
  mad.wide.u32 a, i, 4, o;
  st.global.f32 [a], v;
  ret;
}
.visible .entry rows(.param .u64 out) {
  .reg .u32 x, y, i; .reg .u64 o, a; .reg .f32 fx, fy, w, v, u1, u2, u3;
  mov.u32 x, %tid.x;
  mov.u32 y, %ctaid.x;
  cvt.rn.f32.u32 fx, x;
  cvt.rn.f32.u32 fy, y;
  add.f32 fx, fx, 0f3F000000;
  add.f32 fy, fy, 0f3F000000;
  tex.2d.v4.f32.f32 {w, u1, u2, u3}, [whole, {fx, fy}];
  tex.2d.v4.f32.f32 {v, u1, u2, u3}, [pitch, {fx, fy}];
  add.f32 v, v, w;
  mad.lo.u32 i, y, 32, x;
  ld.param.u64 o, [out];
  mad.wide.u32 a, i, 4, o;
  st.global.f32 [a], v;
  ret;
}
.visible .entry numbers(.param .u64 out) {
  .reg .u32 x, y, i, v, u1, u2, u3; .reg .u64 o, a; .reg .f32 fx, fy;
  mov.u32 x, %tid.x;
  mov.u32 y, %ctaid.x;
  cvt.rn.f32.u32 fx, x;
  cvt.rn.f32.u32 fy, y;
  tex.2d.v4.u32.f32 {v, u1, u2, u3}, [whole, {fx, fy}];
  mad.lo.u32 i, y, 32, x;
  ld.param.u64 o, [out];
  mad.wide.u32 a, i, 4, o;
  st.global.u32 [a], v;
  ret;
}
.visible .entry plus() {
  .reg .u32 x, y, v;
  mov.u32 x, %tid.x;
  shl.b32 x, x, 2;
  mov.u32 y, %ctaid.x;
  suld.b.2d.b32.trap {v}, [surf, {x, y}];
  add.u32 v, v, 1;
  sust.b.2d.b32.trap [surf, {x, y}], {v};
  ret;
}
)";

CUarray MakeArray(CUarray_format format, unsigned flags, const void* texels, std::size_t row_bytes) {
  CUDA_ARRAY3D_DESCRIPTOR desc = {};
  desc.Width = kWidth, desc.Height = kHeight, desc.Format = format, desc.NumChannels = 1, desc.Flags = flags;
  CUarray array;
  DRV(cuArray3DCreate(&array, &desc));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = texels, copy.srcPitch = row_bytes;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = array;
  copy.WidthInBytes = row_bytes, copy.Height = kHeight;
  DRV(cuMemcpy2D(&copy));
  return array;
}

CUdeviceptr Upload(const std::vector<float>& values) {
  CUdeviceptr memory;
  DRV(cuMemAlloc(&memory, values.size() * sizeof(float)));
  DRV(cuMemcpyHtoD(memory, values.data(), values.size() * sizeof(float)));
  return memory;
}

struct Device {
  CUmodule module;
  CUdeviceptr out[3];

  CUtexref Texture(const char* name) const {
    CUtexref texture;
    DRV(cuModuleGetTexRef(&texture, module, name));
    return texture;
  }
  void Launch(const char* kernel, std::vector<void*> params) const {
    CUfunction function;
    DRV(cuModuleGetFunction(&function, module, kernel));
    DRV(cuLaunchKernel(function, kHeight, 1, 1, kWidth, 1, 1, 0, nullptr, params.data(), nullptr));
  }
  template <typename T>
  std::vector<T> Read(int which) const {
    std::vector<T> values(kTexels);
    DRV(cuMemcpyDtoH(values.data(), out[which], kTexels * sizeof(T)));
    return values;
  }
};

/// One reference bound to three memories in turn, each launch submitted long before it runs.
void BoundInTurn(const Device& device) {
  const CUtexref texture = device.Texture("lin");
  DRV(cuTexRefSetFormat(texture, CU_AD_FORMAT_FLOAT, 1));
  CUdeviceptr memory[3];
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<float> values(kTexels);
    for (int i = 0; i < kTexels; ++i) values[i] = turn * 1000.5f + i;
    memory[turn] = Upload(values);
  }
  for (int turn = 0; turn < 3; ++turn) {
    DRV(cuTexRefSetAddress(nullptr, texture, memory[turn], kTexels * sizeof(float)));
    CUdeviceptr out = device.out[turn];
    DRV(cuLaunchHostFunc(
        nullptr, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr));
    device.Launch("copy", {&out});
  }
  for (int turn = 0; turn < 3; ++turn) {
    const auto got = device.Read<float>(turn);
    for (int i = 0; i < kTexels; ++i) Same("bound in turn", i, got[i], turn * 1000.5f + i);
  }
}

/// Bytes read as 0 to 1 from an array and floats from rows of 512 bytes. The flag is not optional (CUDA driver API,
/// cuTexRefSetArray): without it the reference keeps its own format, and a GPU reads the array's bytes as the floats
/// that it begins with.
void ArrayAndRows(const Device& device, const std::vector<unsigned char>& bytes, CUarray array) {
  DRV(cuTexRefSetArray(device.Texture("whole"), array, CU_TRSA_OVERRIDE_FORMAT));
  constexpr int kPitch = 512 / sizeof(float);
  std::vector<float> rows(kPitch * kHeight);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i * 0.25f;
  CUDA_ARRAY_DESCRIPTOR desc = {};
  desc.Width = kWidth, desc.Height = kHeight, desc.Format = CU_AD_FORMAT_FLOAT, desc.NumChannels = 1;
  DRV(cuTexRefSetAddress2D(device.Texture("pitch"), &desc, Upload(rows), 512));
  CUdeviceptr out = device.out[0];
  device.Launch("rows", {&out});
  const auto got = device.Read<float>(0);
  for (int i = 0; i < kTexels; ++i)
    Same("array and rows", i, got[i], bytes[i] / 255.0f + rows[i / kWidth * kPitch + i % kWidth]);
}

/// The same reference, filtered before, now of numbers, which no filter fits: what lies between the calls does not
/// count.
void ThenNumbers(const Device& device, const std::vector<unsigned char>& bytes, CUarray array) {
  const CUtexref texture = device.Texture("whole");
  DRV(cuTexRefSetFilterMode(texture, CU_TR_FILTER_MODE_LINEAR));
  DRV(cuTexRefSetFlags(texture, CU_TRSF_READ_AS_INTEGER));
  DRV(cuTexRefSetArray(texture, array, CU_TRSA_OVERRIDE_FORMAT));
  DRV(cuTexRefSetFilterMode(texture, CU_TR_FILTER_MODE_POINT));
  CUdeviceptr out = device.out[0];
  device.Launch("numbers", {&out});
  const auto got = device.Read<unsigned>(0);
  for (int i = 0; i < kTexels; ++i) Same("numbers", i, got[i], unsigned{bytes[i]});
}

void Surface(const Device& device) {
  std::vector<unsigned> numbers(kTexels), got(kTexels);
  for (int i = 0; i < kTexels; ++i) numbers[i] = i * 3;
  const CUarray array = MakeArray(CU_AD_FORMAT_UNSIGNED_INT32, CUDA_ARRAY3D_SURFACE_LDST, numbers.data(), kWidth * 4);
  CUsurfref surface;
  DRV(cuModuleGetSurfRef(&surface, device.module, "surf"));
  DRV(cuSurfRefSetArray(surface, array, 0));
  device.Launch("plus", {});
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY, copy.srcArray = array;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = got.data(), copy.dstPitch = kWidth * 4;
  copy.WidthInBytes = kWidth * 4, copy.Height = kHeight;
  DRV(cuMemcpy2D(&copy));
  for (int i = 0; i < kTexels; ++i) Same("surface", i, got[i], numbers[i] + 1);
}

}  // namespace

int main() {
  DRV(cuInit(0));
  CUdevice number;
  CUcontext context;
  DRV(cuDeviceGet(&number, 0));
  DRV(cuDevicePrimaryCtxRetain(&context, number));
  DRV(cuCtxSetCurrent(context));
  Device device;
  DRV(cuModuleLoadData(&device.module, kPtx));
  for (CUdeviceptr& out : device.out) DRV(cuMemAlloc(&out, kTexels * 4));

  BoundInTurn(device);
  std::vector<unsigned char> bytes(kTexels);
  for (int i = 0; i < kTexels; ++i) bytes[i] = i * 7;
  const CUarray array = MakeArray(CU_AD_FORMAT_UNSIGNED_INT8, 0, bytes.data(), kWidth);
  ArrayAndRows(device, bytes, array);
  ThenNumbers(device, bytes, array);
  Surface(device);

  CUtexref absent;
  Result("absent", cuModuleGetTexRef(&absent, device.module, "absent"), CUDA_ERROR_NOT_FOUND);
  Result("no memory", cuTexRefSetAddress(nullptr, device.Texture("lin"), 4096, 64), CUDA_ERROR_INVALID_VALUE);
  return Verdict();
}
