// What the driver says of its first device: "id value" of each attribute, then names that have no number. Compared with
// a device file's by scripts/check-gpu. Needs CUDA's headers only.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>

#include "driver.h"

namespace {}  // namespace

int main() {
  int version = 0, value = 0;
  char name[256] = "";
  std::size_t bytes = 0;
  if (Find<decltype(&cuInit)>("cuInit")(0) != CUDA_SUCCESS) return std::fprintf(stderr, "cuInit failed\n"), 1;
  Find<decltype(&cuDriverGetVersion)>("cuDriverGetVersion")(&version);
  Find<decltype(&cuDeviceGetName)>("cuDeviceGetName")(name, sizeof name, 0);
  Find<decltype(&cuDeviceTotalMem)>("cuDeviceTotalMem_v2")(&bytes, 0);
  const auto get = Find<decltype(&cuDeviceGetAttribute)>("cuDeviceGetAttribute");
  for (int id = 1; id < CU_DEVICE_ATTRIBUTE_MAX; ++id) {
    const CUresult status = get(&value, static_cast<CUdevice_attribute>(id), 0);
    if (status == CUDA_SUCCESS) std::printf("%d %d\n", id, value);
    else std::printf("%d error_%d\n", id, static_cast<int>(status));
  }
  std::printf("name %s\ndriver %d\nmemory %zu\n", name, version, bytes);
}
