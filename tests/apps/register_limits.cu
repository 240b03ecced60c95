// Limits of registers: -maxrregcount of this file's own kernels (32), CU_JIT_MAX_REGISTERS of modules and links. A
// kernel within its limit runs with as many threads as that many registers allow. Kernels with launch bounds ignore the
// limit.
#include <cuda.h>

#include <string>

#include "app.h"
#include "driver.h"

constexpr int kLive = 80;

__device__ void Use(float* v) {
  float x[kLive];
#pragma unroll
  for (int i = 0; i < kLive; ++i) x[i] = v[i * 1024];
  __syncthreads();  // all of them are alive here
#pragma unroll
  for (int i = 0; i < kLive; ++i) v[(kLive - 1 - i) * 1024] = x[i];
}
__global__ void Many(float* v) { Use(v + threadIdx.x); }
__global__ void __launch_bounds__(64) Bounded(float* v) { Use(v + threadIdx.x); }

// A kernel that keeps kLive values over a barrier.
std::string ManyInPtx() {
  std::string ptx =
      ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry many(.param .u64 p) {\n.reg .b64 %p;\n.reg .b32 "
      "%r<" +
      std::to_string(kLive) + ">;\nld.param.u64 %p, [p];\ncvta.to.global.u64 %p, %p;\n";
  for (int i = 0; i < kLive; ++i)
    ptx += "ld.global.u32 %r" + std::to_string(i) + ", [%p+" + std::to_string(4 * i) + "];\n";
  ptx += "bar.sync 0;\n";
  for (int i = 0; i < kLive; ++i)
    ptx += "st.global.u32 [%p+" + std::to_string(4 * (kLive - 1 - i)) + "], %r" + std::to_string(i) + ";\n";
  return ptx + "ret;\n}\n";
}
int RegistersOf(CUmodule module) {
  CUfunction function;
  int registers = 0;
  DRV(cuModuleGetFunction(&function, module, "many"));
  DRV(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
  DRV(cuModuleUnload(module));
  return registers;
}

int main() {
  cudaFuncAttributes attributes;
  CU(cudaFuncGetAttributes(&attributes, Many));
  True("limit of the file", attributes.numRegs <= 32);
  Same("threads", 0, attributes.maxThreadsPerBlock, 1024);
  CU(cudaFuncGetAttributes(&attributes, Bounded));
  True("launch bounds", attributes.numRegs > kLive && attributes.maxThreadsPerBlock == 64);
  std::vector<float> in(kLive * 1024);
  for (int i = 0; i < kLive * 1024; ++i) in[i] = static_cast<float>(i);
  Buffer<float> v(in);
  Many<<<1, 1024>>>(v);
  CU_LAUNCHED();
  const auto out = v.Read();
  for (int i = 0; i < kLive * 1024; ++i) Same("reversed", i, out[i], in[(kLive - 1 - i / 1024) * 1024 + i % 1024]);

  const std::string ptx = ManyInPtx();
  CUjit_option key = CU_JIT_MAX_REGISTERS;
  void* value = reinterpret_cast<void*>(std::uintptr_t{40});
  CUmodule module;
  DRV(cuModuleLoadDataEx(&module, ptx.c_str(), 0, nullptr, nullptr));
  True("no limit", RegistersOf(module) > kLive);
  DRV(cuModuleLoadDataEx(&module, ptx.c_str(), 1, &key, &value));
  True("limit of a module", RegistersOf(module) <= 40);

  CUlinkState link;
  void* image;
  std::size_t bytes;
  DRV(cuLinkCreate(1, &key, &value, &link));
  DRV(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.c_str()), ptx.size() + 1, "many", 0, nullptr,
                    nullptr));
  DRV(cuLinkComplete(link, &image, &bytes));
  DRV(cuModuleLoadData(&module, image));
  True("limit of a link", RegistersOf(module) <= 40);
  DRV(cuLinkDestroy(link));
  return Verdict();
}
