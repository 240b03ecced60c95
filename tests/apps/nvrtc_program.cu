// NVRTC: a program text compiled at run time, to PTX and for a real architecture, a template instantiated by name
// expression, a compile error with its log.
#include <nvrtc.h>

#include "driver.h"

#define RTC(call)                                                                                      \
  do {                                                                                                 \
    const nvrtcResult rtc_result = (call);                                                             \
    if (rtc_result != NVRTC_SUCCESS) {                                                                 \
      std::printf("FAIL %s:%d: %s: %s\n", __FILE__, __LINE__, #call, nvrtcGetErrorString(rtc_result)); \
      std::exit(1);                                                                                    \
    }                                                                                                  \
  } while (0)

const char kSource[] = R"(
template <class T> __global__ void Axpy(T* y, const T* x, T a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
__constant__ float kBias;
extern "C" __global__ void Bias(float* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] += kBias + sinf(0.0f);
}
)";

/// A program that asks for machine code of its device gets what runs there.
void CompileForRealArchitecture() {
  nvrtcProgram program;
  RTC(nvrtcCreateProgram(
      &program, "extern \"C\" __global__ void Squares(int* out) { out[threadIdx.x] = threadIdx.x * threadIdx.x; }",
      "squares.cu", 0, nullptr, nullptr));
  const char* options[] = {"--gpu-architecture=sm_90"};
  RTC(nvrtcCompileProgram(program, 1, options));
  std::size_t size = 0;
  RTC(nvrtcGetCUBINSize(program, &size));
  std::string code(size, 0);
  RTC(nvrtcGetCUBIN(program, code.data()));
  RTC(nvrtcDestroyProgram(&program));
  CUmodule module;
  CUfunction squares;
  DRV(cuModuleLoadData(&module, code.data()));
  DRV(cuModuleGetFunction(&squares, module, "Squares"));
  Buffer<int> out(100);
  int* pointer = out;
  void* arguments[] = {&pointer};
  DRV(cuLaunchKernel(squares, 1, 1, 1, 100, 1, 1, 0, nullptr, arguments, nullptr));
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int i = 0; i < 100; ++i) Same("squares", i, got[i], i * i);
}

/// A limit of registers given to NVRTC holds for the code of a real architecture.
void LimitRegisters() {
  const std::string source = R"(extern "C" __global__ void Many(float* v) {
    float x[80];
    #pragma unroll
    for (int i = 0; i < 80; ++i) x[i] = v[i * 1024 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 80; ++i) v[(79 - i) * 1024 + threadIdx.x] = x[i];
  })";
  for (const std::vector<const char*>& limit :
       {std::vector<const char*>{}, {"--maxrregcount=40"}, {"-maxrregcount", "40"}}) {
    nvrtcProgram program;
    RTC(nvrtcCreateProgram(&program, source.c_str(), "many.cu", 0, nullptr, nullptr));
    std::vector<const char*> options = {"--gpu-architecture=sm_90"};
    options.insert(options.end(), limit.begin(), limit.end());
    RTC(nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data()));
    std::size_t size = 0;
    RTC(nvrtcGetCUBINSize(program, &size));
    std::string code(size, 0);
    RTC(nvrtcGetCUBIN(program, code.data()));
    RTC(nvrtcDestroyProgram(&program));
    CUmodule module;
    CUfunction many;
    int registers = 0;
    DRV(cuModuleLoadData(&module, code.data()));
    DRV(cuModuleGetFunction(&many, module, "Many"));
    DRV(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, many));
    True("limit of registers", limit.empty() ? registers > 80 : registers <= 40);
    DRV(cuModuleUnload(module));
  }
}

int main() {
  CU(cudaFree(nullptr));
  CompileForRealArchitecture();
  LimitRegisters();
  nvrtcProgram program;
  RTC(nvrtcCreateProgram(&program, kSource, "axpy.cu", 0, nullptr, nullptr));
  RTC(nvrtcAddNameExpression(program, "Axpy<float>"));
  RTC(nvrtcAddNameExpression(program, "Axpy<double>"));
  const char* options[] = {"--gpu-architecture=compute_75", "--std=c++17"};
  RTC(nvrtcCompileProgram(program, 2, options));
  std::size_t size = 0;
  RTC(nvrtcGetPTXSize(program, &size));
  std::string ptx(size, 0);
  RTC(nvrtcGetPTX(program, ptx.data()));
  const char* lowered = nullptr;
  RTC(nvrtcGetLoweredName(program, "Axpy<float>", &lowered));
  CUmodule module;
  CUfunction axpy, bias;
  DRV(cuModuleLoadData(&module, ptx.c_str()));
  DRV(cuModuleGetFunction(&axpy, module, lowered));
  DRV(cuModuleGetFunction(&bias, module, "Bias"));
  CUdeviceptr constant;
  DRV(cuModuleGetGlobal(&constant, nullptr, module, "kBias"));
  const float four = 4;
  DRV(cuMemcpyHtoD(constant, &four, 4));
  int n = 2000;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = i, y[i] = 2 * i;
  Buffer<float> dx(x), dy(y);
  float *px = dx, *py = dy, a = 0.5f;
  void* arguments[] = {&py, &px, &a, &n};
  DRV(cuLaunchKernel(axpy, 16, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
  void* bias_arguments[] = {&py, &n};
  DRV(cuLaunchKernel(bias, 1, 1, 1, 96, 1, 1, 0, nullptr, bias_arguments, nullptr));
  CU_LAUNCHED();
  const auto got = dy.Read();
  for (int i = 0; i < n; ++i) Same("axpy", i, got[i], 2.5f * i + 4);
  RTC(nvrtcDestroyProgram(&program));

  RTC(nvrtcCreateProgram(&program, "__global__ void broken( { }", "broken.cu", 0, nullptr, nullptr));
  True("error", nvrtcCompileProgram(program, 0, nullptr) == NVRTC_ERROR_COMPILATION);
  RTC(nvrtcGetProgramLogSize(program, &size));
  True("log", size > 10);
  RTC(nvrtcDestroyProgram(&program));
  return Verdict();
}
