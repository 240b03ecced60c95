#include "interpose/fft/host_library.h"

#include <dlfcn.h>

#include <optional>
#include <string>

#include "interpose/base/log.h"
#include "interpose/base/settings.h"
#include "interpose/settings/host_libraries.h"

namespace gridloom::fft {
namespace {

/// Functions of a library by their names behind FFTW's prefix, which says the precision.
class Functions {
 public:
  Functions(void* library, const char* prefix) : library_(library), prefix_(prefix) {}
  template <typename Function>
  bool Find(const char* name, Function* function) const {
    *function = reinterpret_cast<Function>(dlsym(library_, (prefix_ + name).c_str()));
    return *function != nullptr;
  }

 private:
  void* library_;
  std::string prefix_;
};

/// GRIDLOOM_FFT names the folder to look in.
std::string FileOf(const char* name) {
  const auto& folder = session::TheSettings().fft;
  return folder && !folder->empty() ? *folder + "/" + name : name;
}

std::optional<HostFunctions> Load(bool wide) {
  const auto& wanted = session::TheSettings().fft;
  if (wanted && *wanted == "off") return std::nullopt;
  const std::string file = FileOf(settings::kFftwLibraries[wide ? 1 : 0]);
  void* const library = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    if (wanted) GL_LOG(kWarn, "GRIDLOOM_FFT: %s; transforms are made by Gridloom's own kernels", dlerror());
    return std::nullopt;
  }
  const Functions functions(library, wide ? "fftw_" : "fftwf_");
  HostFunctions found{};
  int (*init_threads)() = nullptr;
  void (*make_planner_safe)() = nullptr;
  const bool all =
      functions.Find("plan_guru64_dft", &found.plan_complex) &&
      functions.Find("plan_guru64_dft_r2c", &found.plan_to_spectrum) &&
      functions.Find("plan_guru64_dft_c2r", &found.plan_to_real) &&
      functions.Find("execute_dft", &found.execute_complex) &&
      functions.Find("execute_dft_r2c", &found.execute_to_spectrum) &&
      functions.Find("execute_dft_c2r", &found.execute_to_real) && functions.Find("destroy_plan", &found.destroy) &&
      functions.Find("alignment_of", &found.alignment_of) &&
      functions.Find("plan_with_nthreads", &found.plan_with_threads) && functions.Find("init_threads", &init_threads) &&
      functions.Find("make_planner_thread_safe", &make_planner_safe);
  if (!all || init_threads() == 0) {
    GL_LOG(kWarn, "%s is no FFTW from 3.3.6 on; transforms are made by Gridloom's own kernels", file.c_str());
    return std::nullopt;
  }
  functions.Find("planner_nthreads", &found.planned_threads);
  make_planner_safe();  // the program may plan transforms of its own with the same library
  GL_LOG(kInfo, "transforms of %s are made by %s", wide ? "f64" : "f32", file.c_str());
  return found;
}

}  // namespace

const HostFunctions* FindHostFunctions(bool wide) {
  if (wide) {
    static const std::optional<HostFunctions> functions = Load(true);
    return functions ? &*functions : nullptr;
  }
  static const std::optional<HostFunctions> functions = Load(false);
  return functions ? &*functions : nullptr;
}

std::mutex& PlannerLock() {
  static auto* const lock = new std::mutex;  // programs destroy plans when they exit, too
  return *lock;
}

}  // namespace gridloom::fft
