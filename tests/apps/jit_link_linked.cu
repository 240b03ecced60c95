// A program linked with the toolkit's linker, not opening it, as libraries and C++ programs are: two modules linked by
// nvJitLink for a real architecture, one that calls the other; once as PTX and once as LTO-IR.
#include <nvJitLink.h>
#include <nvrtc.h>

#include "driver.h"

namespace {

#define RTC(call) Same(#call, 0, static_cast<int>(call), 0)

/// What NVRTC makes of `source`: LTO-IR or PTX.
std::string Compile(const char* source, bool lto) {
  std::vector<const char*> options = {"--gpu-architecture=compute_90", "-rdc=true"};
  if (lto) options.push_back("-dlto");
  nvrtcProgram program;
  RTC(nvrtcCreateProgram(&program, source, "source.cu", 0, nullptr, nullptr));
  RTC(nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data()));
  std::size_t size = 0;
  RTC(lto ? nvrtcGetLTOIRSize(program, &size) : nvrtcGetPTXSize(program, &size));
  std::string code(size, 0);
  RTC(lto ? nvrtcGetLTOIR(program, code.data()) : nvrtcGetPTX(program, code.data()));
  RTC(nvrtcDestroyProgram(&program));
  return code;
}

std::string Link(std::vector<const char*> options, nvJitLinkInputType type, const std::vector<std::string>& inputs) {
  nvJitLinkHandle handle = nullptr;
  RTC(nvJitLinkCreate(&handle, static_cast<std::uint32_t>(options.size()), options.data()));
  for (const std::string& input : inputs) RTC(nvJitLinkAddData(handle, type, input.data(), input.size(), "input"));
  RTC(nvJitLinkComplete(handle));
  std::size_t size = 0;
  RTC(nvJitLinkGetLinkedCubinSize(handle, &size));
  std::string code(size, 0);
  RTC(nvJitLinkGetLinkedCubin(handle, code.data()));
  RTC(nvJitLinkDestroy(&handle));
  return code;
}

void Run(const std::string& code) {
  CUmodule module;
  CUfunction kernel;
  DRV(cuModuleLoadData(&module, code.data()));
  DRV(cuModuleGetFunction(&kernel, module, "Scale"));
  Buffer<int> out(100);
  int* pointer = out;
  void* arguments[] = {&pointer};
  DRV(cuLaunchKernel(kernel, 1, 1, 1, 100, 1, 1, 0, nullptr, arguments, nullptr));
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int i = 0; i < 100; ++i) Same("scaled", i, got[i], i * 7);
  DRV(cuModuleUnload(module));
}

}  // namespace

int main() {
  CU(cudaFree(nullptr));
  const char* const caller =
      "__device__ int Factor();\nextern \"C\" __global__ void Scale(int* out) { out[threadIdx.x] = threadIdx.x * "
      "Factor(); }";
  const char* const callee = "__device__ int Factor() { return 7; }";
  Run(Link({"-arch=sm_90"}, NVJITLINK_INPUT_PTX, {Compile(caller, false), Compile(callee, false)}));
  Run(Link({"-arch=sm_90", "-lto"}, NVJITLINK_INPUT_LTOIR, {Compile(caller, true), Compile(callee, true)}));
  return Verdict();
}
