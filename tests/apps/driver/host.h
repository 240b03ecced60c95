// The part of the CUDA driver API that the programs of this folder use, found at run time: no CUDA header is needed.
#pragma once

#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

// Puts a file into the program as a text that ends in a zero byte: extern const char NAME[].
#define EMBED(name, path)                                                                                 \
  __asm__(".section .rodata\n.global " #name "\n" #name ":\n.incbin \"" path "\"\n.byte 0\n.previous\n"); \
  extern "C" const char name[]

namespace driver {

using Result = int;             // CUresult
using Device = int;             // CUdevice
using Pointer = std::uint64_t;  // CUdeviceptr
using Handle = struct Opaque*;  // CUcontext, CUmodule, CUfunction, CUstream

inline void* Library() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (!handle) {
    std::fprintf(stderr, "no CUDA driver: %s\nRun this program as: gridloom run -- <program>\n", dlerror());
    std::exit(1);
  }
  return handle;
}
/// Calls a driver function by name and ends the program when it fails.
template <class... Parameters>
void Call(const char* name, Parameters... parameters) {
  const auto function = reinterpret_cast<Result (*)(Parameters...)>(dlsym(Library(), name));
  const Result result = function ? function(parameters...) : -1;
  if (result != 0) {
    std::fprintf(stderr, "%s: error %d\n", name, result);
    std::exit(1);
  }
}

/// Waits for no other stream. To be made when there is a Program.
class Stream {
 public:
  Stream() { Call("cuStreamCreate", &stream_, 1u); }
  Stream(const Stream&) = delete;
  ~Stream() { Call("cuStreamDestroy_v2", stream_); }
  Handle get() const { return stream_; }

 private:
  Handle stream_ = nullptr;
};

/// A context on device 0 and one module from PTX text.
class Program {
 public:
  explicit Program(const char* ptx) {
    Call("cuInit", 0u);
    Device device = 0;
    Call("cuDeviceGet", &device, 0);
    char name[128] = "";
    Call("cuDeviceGetName", static_cast<char*>(name), 128, device);
    std::printf("device: %s\n", name);
    Handle context = nullptr;
    Call("cuDevicePrimaryCtxRetain", &context, device);
    Call("cuCtxSetCurrent", context);
    Call("cuModuleLoadData", &module_, static_cast<const void*>(ptx));
  }
  struct Shape {
    unsigned x = 1, y = 1, z = 1;
  };
  template <class... Values>
  void Launch(const char* kernel, Shape grid, Shape block, Values... values) {
    LaunchIn(nullptr, kernel, grid, block, values...);
    Call("cuCtxSynchronize");
  }
  /// Does not wait.
  template <class... Values>
  void Start(const Stream& stream, const char* kernel, Shape grid, Shape block, Values... values) {
    LaunchIn(stream.get(), kernel, grid, block, values...);
  }

 private:
  template <class... Values>
  void LaunchIn(Handle stream, const char* kernel, Shape grid, Shape block, Values... values) {
    Handle function = nullptr;
    Call("cuModuleGetFunction", &function, module_, kernel);
    void* parameters[] = {&values...};
    void** extra = nullptr;
    Call("cuLaunchKernel", function, grid.x, grid.y, grid.z, block.x, block.y, block.z, 0u, stream,
         static_cast<void**>(parameters), extra);
  }
  Handle module_ = nullptr;
};

template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t count) : count_(count) {
    Call("cuMemAlloc_v2", &pointer_, count * sizeof(T));
    Call("cuMemsetD8_v2", pointer_, static_cast<unsigned char>(0), count * sizeof(T));
  }
  explicit Buffer(const std::vector<T>& host) : Buffer(host.size()) {
    Call("cuMemcpyHtoD_v2", pointer_, static_cast<const void*>(host.data()), count_ * sizeof(T));
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { Call("cuMemFree_v2", pointer_); }
  Pointer get() const { return pointer_; }
  std::vector<T> Read() const {
    std::vector<T> host(count_);
    Call("cuMemcpyDtoH_v2", static_cast<void*>(host.data()), pointer_, count_ * sizeof(T));
    return host;
  }

 private:
  Pointer pointer_ = 0;
  std::size_t count_;
};

/// Prints the verdict; the exit status of main.
inline int Verdict(const char* name, long bad, long checks) {
  std::printf("%s: %ld of %ld values differ: %s\n", name, bad, checks, bad ? "FAIL" : "PASS");
  return bad != 0;
}

}  // namespace driver
