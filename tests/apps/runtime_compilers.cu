// The toolkit's compiler and linker as Python's libraries use them: opened by dlopen, their functions looked up by
// dlsym, asked for machine code of a real architecture. Two modules linked by nvJitLink, one that calls the other: as
// PTX, as machine code, as LTO-IR. Then lookups that must go where they always went.
#include <dlfcn.h>
#include <nvJitLink.h>
#include <nvrtc.h>

#include <cstdint>

#include "driver.h"

namespace {

void* Open(const char* name) {
  for (const char* ending : {".13", ".12", ""}) {
    if (void* library = dlopen((std::string(name) + ending).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  std::printf("FAIL: no %s\n", name);
  std::exit(1);
}

template <class... Args>
int Call(void* library, const char* name, Args... args) {
  const auto function = reinterpret_cast<int (*)(Args...)>(dlsym(library, name));
  return function == nullptr ? -1 : function(args...);
}

/// What NVRTC makes of `source`; `kind`: CUBIN, PTX or LTOIR.
std::string Compile(void* nvrtc, const char* source, std::vector<const char*> options, const std::string& kind) {
  nvrtcProgram program;
  Same("create", 0,
       Call(nvrtc, "nvrtcCreateProgram", &program, source, static_cast<const char*>("source.cu"), 0,
            static_cast<const char* const*>(nullptr), static_cast<const char* const*>(nullptr)),
       0);
  Same("compile", 0, Call(nvrtc, "nvrtcCompileProgram", program, static_cast<int>(options.size()), options.data()), 0);
  std::size_t size = 0;
  Same("size", 0, Call(nvrtc, ("nvrtcGet" + kind + "Size").c_str(), program, &size), 0);
  std::string code(size, 0);
  Same("code", 0, Call(nvrtc, ("nvrtcGet" + kind).c_str(), program, code.data()), 0);
  Same("destroy", 0, Call(nvrtc, "nvrtcDestroyProgram", &program), 0);
  return code;
}

void Run(const std::string& code, int factor) {
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
  for (int i = 0; i < 100; ++i) Same("scaled", i, got[i], i * factor);
  DRV(cuModuleUnload(module));
}

using Inputs = std::vector<std::pair<nvJitLinkInputType, std::string>>;

std::string Link(void* linker, std::vector<const char*> options, const Inputs& inputs) {
  nvJitLinkHandle handle = nullptr;
  Same("link", 0, Call(linker, "nvJitLinkCreate", &handle, static_cast<std::uint32_t>(options.size()), options.data()),
       0);
  for (const auto& [type, input] : inputs) {
    Same("input", 0,
         Call(linker, "nvJitLinkAddData", handle, type, static_cast<const void*>(input.data()), input.size(),
              static_cast<const char*>("input")),
         0);
  }
  Same("complete", 0, Call(linker, "nvJitLinkComplete", handle), 0);
  std::size_t size = 0;
  Same("linked size", 0, Call(linker, "nvJitLinkGetLinkedCubinSize", handle, &size), 0);
  std::string code(size, 0);
  Same("linked", 0, Call(linker, "nvJitLinkGetLinkedCubin", handle, code.data()), 0);
  Same("destroyed", 0, Call(linker, "nvJitLinkDestroy", &handle), 0);
  return code;
}

}  // namespace

int main() {
  CU(cudaFree(nullptr));
  void *const nvrtc = Open("libnvrtc.so"), *const linker = Open("libnvJitLink.so");
  Run(Compile(nvrtc, "extern \"C\" __global__ void Scale(int* out) { out[threadIdx.x] = threadIdx.x * 3; }",
              {"--gpu-architecture=sm_90"}, "CUBIN"),
      3);
  const std::vector<const char*> kToPtx = {"--gpu-architecture=compute_90", "-rdc=true"};
  const std::vector<const char*> kToLtoIr = {"--gpu-architecture=compute_90", "-rdc=true", "-dlto"};
  const char* const caller =
      "__device__ int Factor();\nextern \"C\" __global__ void Scale(int* out) { out[threadIdx.x] = threadIdx.x * "
      "Factor(); }";
  const char* const callee = "__device__ int Factor() { return 7; }";
  Inputs ptx, lto;
  for (const char* source : {caller, callee}) {
    ptx.emplace_back(NVJITLINK_INPUT_PTX, Compile(nvrtc, source, kToPtx, "PTX"));
    lto.emplace_back(NVJITLINK_INPUT_LTOIR, Compile(nvrtc, source, kToLtoIr, "LTOIR"));
  }
  Run(Link(linker, {"-arch=sm_90"}, ptx), 7);
  // Machine code to be linked, also with PTX; from compute capability 10.0 on ptxas writes it in another form, too.
  for (const bool newer : {false, true}) {
    const std::vector<const char*> to_cubin = {newer ? "--gpu-architecture=sm_100" : "--gpu-architecture=sm_90",
                                               "-rdc=true"};
    const std::vector<const char*> options = {newer ? "-arch=sm_100" : "-arch=sm_90"};
    Inputs cubins;
    for (const char* source : {caller, callee})
      cubins.emplace_back(NVJITLINK_INPUT_CUBIN, Compile(nvrtc, source, to_cubin, "CUBIN"));
    const std::string linked = Link(linker, options, cubins), mixed = Link(linker, options, {cubins[0], ptx[1]});
    if (newer) continue;  // the device is older
    Run(linked, 7);
    Run(mixed, 7);
  }
  Run(Link(linker, {"-arch=sm_90", "-lto"}, lto), 7);

  // LTO-IR calls a function of PTX, which calls and reads what only LTO-IR has, and nothing of that itself uses.
  const char* const between =
      "__device__ int Twice(int);\nextern __device__ int offset;\n__device__ int Factor() { return Twice(4) + offset; "
      "}";
  const char* const used = "__device__ int offset = 3;\n__device__ __noinline__ int Twice(int x) { return 2 * x; }";
  Run(Link(linker, {"-arch=sm_90", "-lto"},
           {lto[0],
            {NVJITLINK_INPUT_PTX, Compile(nvrtc, between, kToPtx, "PTX")},
            {NVJITLINK_INPUT_LTOIR, Compile(nvrtc, used, kToLtoIr, "LTOIR")}}),
      11);

  Same("no such function", 0, dlsym(nvrtc, "nvJitLinkCreate") == nullptr, true);
  Same("default", 0, dlsym(RTLD_DEFAULT, "strlen") != nullptr, true);
  // RTLD_NEXT starts behind the caller, here the program, which has a `main` of its own and nobody behind it does.
  Same("next", 0, dlsym(RTLD_NEXT, "main") == nullptr, true);
  return Verdict();
}
