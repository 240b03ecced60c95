// opens LIBRARY…: opens each with dlopen and calls its `Use`; exit status 10 times the library's number and what Use
// returned. GRIDLOOM_TEST_NVML is 0 where the management library cannot be found by its name.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

int main(int count, char** arguments) {
  const char* const nvml = std::getenv("GRIDLOOM_TEST_NVML");
  for (int i = 1; i < count; ++i) {
    void* const library = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 10 * i + 9;
    }
    const auto use = reinterpret_cast<int (*)(int)>(dlsym(library, "Use"));
    if (const int status = use(nvml == nullptr || *nvml != '0'); status != 0) return 10 * i + status;
  }
  return 0;
}
