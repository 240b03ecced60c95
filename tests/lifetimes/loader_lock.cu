// Loads and unloads libraries that wait for kernels while they are loaded and unloaded.
// usage: loader_lock LIBRARY FAULT-LIBRARY
#include <dlfcn.h>

#include "loader_lock.h"

int main(int, char** argv) {
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) Report("dlopen", dlerror());
  dlclose(library);
  void* const again = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (again == nullptr) Report("dlopen", dlerror());
  if (dlopen(argv[2], RTLD_NOW) == nullptr) Report("dlopen", dlerror());
  std::puts("PASS: all parts");
  std::fflush(stdout);
  _exit(0);
}
