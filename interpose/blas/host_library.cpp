#include "interpose/blas/host_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <iterator>
#include <vector>

#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "interpose/settings/host_libraries.h"

namespace gridloom::blas {
namespace {

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

/// The program may use the same library with as many threads as it likes; the number is the library's only one.
void SetThreads(void* library, unsigned threads) {
  if (std::getenv("OPENBLAS_NUM_THREADS") != nullptr || std::getenv("OMP_NUM_THREADS") != nullptr) return;
  void (*set)(int) = nullptr;
  if (Find(library, "openblas_set_num_threads", &set)) return set(static_cast<int>(threads));
  void (*set_blis)(long) = nullptr;
  if (Find(library, "bli_thread_set_num_threads", &set_blis)) set_blis(static_cast<long>(threads));
}

HostLibrary Load(unsigned threads) {
  const auto& wanted = session::TheSettings().blas;
  if (wanted && *wanted == "off") return {};
  std::vector<std::string> names(std::begin(settings::kBlasLibraries), std::end(settings::kBlasLibraries));
  if (wanted && !wanted->empty()) names = {*wanted};
  for (const std::string& name : names) {
    const bool of_the_program = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD) != nullptr;
    void* const library = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
      if (wanted) GL_LOG(kWarn, "GRIDLOOM_BLAS: %s; products are made by Gridloom's own kernels", dlerror());
      continue;
    }
    HostLibrary found;
    if (!Find(library, "sgemm_", &found.sgemm) || !Find(library, "dgemm_", &found.dgemm) ||
        !Find(library, "cgemm_", &found.cgemm) || !Find(library, "zgemm_", &found.zgemm)) {
      GL_LOG(kWarn, "%s has no sgemm_, dgemm_, cgemm_, zgemm_; products are made by Gridloom's own kernels",
             name.c_str());
      continue;
    }
    if (!of_the_program) SetThreads(library, threads);
    found.name = name;
    GL_LOG(kInfo, "products of matrices are made by %s", name.c_str());
    return found;
  }
  return {};
}

}  // namespace

const HostLibrary& TheHostLibrary(unsigned threads) {
  static const HostLibrary library = Load(threads);
  return library;
}

}  // namespace gridloom::blas
