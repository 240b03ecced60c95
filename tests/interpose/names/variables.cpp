// A library that keeps the driver's functions in variables called like them, as slang-rhi does.
#include <dlfcn.h>

extern "C" {
int (*cuInit)(unsigned) = nullptr;
int (*cuDeviceGetCount)(int*) = nullptr;
int (*cuGetProcAddress_v2)(const char*, void**, int, unsigned long long, void*) = nullptr;
int (*nvmlInit_v2)() = nullptr;

/// 0: what it put into the variables works. Else where it failed. `nvml`: the management library is to be found by its
/// name.
int Use(int nvml) {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY);
  if (driver == nullptr) return 1;
  cuInit = reinterpret_cast<decltype(cuInit)>(dlsym(driver, "cuInit"));
  cuDeviceGetCount = reinterpret_cast<decltype(cuDeviceGetCount)>(dlsym(driver, "cuDeviceGetCount"));
  cuGetProcAddress_v2 = reinterpret_cast<decltype(cuGetProcAddress_v2)>(dlsym(driver, "cuGetProcAddress_v2"));
  int count = 0;
  if (cuInit(0) != 0 || cuDeviceGetCount(&count) != 0 || count != 1) return 2;
  void* same = nullptr;
  if (cuGetProcAddress_v2("cuInit", &same, 13000, 0, nullptr) != 0 || same != reinterpret_cast<void*>(cuInit)) return 3;
  if (nvml == 0) return 0;
  void* const management = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
  if (management == nullptr) return 4;
  nvmlInit_v2 = reinterpret_cast<decltype(nvmlInit_v2)>(dlsym(management, "nvmlInit_v2"));
  return nvmlInit_v2() == 0 ? 0 : 5;
}
}
