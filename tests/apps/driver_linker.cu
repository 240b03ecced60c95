// cuLink: two PTX texts that need each other, linked at run time into one module.
#include "driver.h"

const char kMain[] = R"(.version 6.4
.target sm_75
.address_size 64
.extern .func (.param .b32 result) twist(.param .b32 value);
.extern .global .align 4 .u32 shared_counter;
.visible .entry run(.param .u64 out)
{
  .reg .b32 %r<6>; .reg .b64 %d<4>;
  ld.param.u64 %d0, [out]; cvta.to.global.u64 %d0, %d0;
  mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1;
  { .param .b32 a; .param .b32 r; st.param.b32 [a], %r0; call.uni (r), twist, (a); ld.param.b32 %r1, [r]; }
  atom.global.add.u32 %r2, [shared_counter], 1;
  st.global.u32 [%d0], %r1; ret;
})";
const char kLibrary[] = R"(.version 6.4
.target sm_75
.address_size 64
.visible .global .align 4 .u32 shared_counter = 100;
.visible .func (.param .b32 result) twist(.param .b32 value)
{
  .reg .b32 %r<4>;
  ld.param.b32 %r0, [value]; mad.lo.s32 %r1, %r0, %r0, 17; st.param.b32 [result], %r1; ret;
})";

int main() {
  DRV(cuInit(0));
  CUdevice device;
  CUcontext context;
  DRV(cuDeviceGet(&device, 0));
  DRV(cuDevicePrimaryCtxRetain(&context, device));
  DRV(cuCtxSetCurrent(context));
  CUlinkState link;
  char log[2000] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  DRV(cuLinkCreate(2, options, values, &link));
  DRV(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(kMain), sizeof kMain, "main.ptx", 0, nullptr, nullptr));
  DRV(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(kLibrary), sizeof kLibrary, "library.ptx", 0, nullptr,
                    nullptr));
  void* cubin = nullptr;
  std::size_t size = 0;
  DRV(cuLinkComplete(link, &cubin, &size));
  True("image", cubin != nullptr && size > 0);
  CUmodule module;
  DRV(cuModuleLoadData(&module, cubin));
  DRV(cuLinkDestroy(link));
  CUfunction function;
  DRV(cuModuleGetFunction(&function, module, "run"));
  CUdeviceptr out, counter;
  DRV(cuMemAlloc(&out, 70 * 4));
  void* arguments[] = {&out};
  DRV(cuLaunchKernel(function, 1, 1, 1, 70, 1, 1, 0, nullptr, arguments, nullptr));
  std::vector<unsigned> got(70);
  DRV(cuMemcpyDtoH(got.data(), out, 70 * 4));
  for (unsigned t = 0; t < 70; ++t) Same("linked", t, got[t], t * t + 17);
  DRV(cuModuleGetGlobal(&counter, nullptr, module, "shared_counter"));
  unsigned value = 0;
  DRV(cuMemcpyDtoH(&value, counter, 4));
  Same("counter", 0, value, 170u);

  // A symbol that nobody defines. The driver wrote the length of the log over the buffer's size.
  values[1] = reinterpret_cast<void*>(sizeof log);
  DRV(cuLinkCreate(2, options, values, &link));
  DRV(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(kMain), sizeof kMain, "main.ptx", 0, nullptr, nullptr));
  True("undefined", cuLinkComplete(link, &cubin, &size) != CUDA_SUCCESS);
  True("named in the log", std::strstr(log, "twist") || std::strstr(log, "shared_counter"));
  DRV(cuLinkDestroy(link));
  return Verdict();
}
