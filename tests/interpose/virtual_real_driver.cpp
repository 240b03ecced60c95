// The virtual GPU in the place of a GPU's libcuda.so.1: a second copy of the shim, to be loaded as the real driver by
// the first one (GRIDLOOM_REAL_DRIVER). So what the first one makes of a real driver's kernels can be run where there
// is no GPU.
#include <cstdlib>
#include <initializer_list>

namespace {

/// The settings in the environment are the first copy's, which has read them: this one has a device of its own and no
/// broker. A copy reads its settings when it is called first, after this.
__attribute__((constructor)) void BeADriver() {
  const char* const device = std::getenv("GRIDLOOM_STAND_IN_DEVICE");
  setenv("GRIDLOOM_DEVICE", device != nullptr ? device : "h200", 1);
  for (const char* const setting : {"GRIDLOOM_CONNECT", "GRIDLOOM_REAL_DRIVER", "GRIDLOOM_SLICE",
                                    "GRIDLOOM_SLICE_MACHINE_CODE", "GRIDLOOM_SLICE_LIBRARIES"})
    unsetenv(setting);
}

}  // namespace
