#include "tests/bench/broker_launch.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "scheduler/protocol/socket.h"
#include "scheduler/protocol/wait.h"

namespace gridloom::bench {
namespace {

using protocol::Fd;
using protocol::NowNs;

constexpr const char* kPtx = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n";
constexpr int kWarmUp = 20;

/// What is needed of the driver API.
class Driver {
 public:
  explicit Driver(const char* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
  template <typename... Args>
  bool Call(const char* name, Args... args) const {
    auto* const function = library_ != nullptr ? reinterpret_cast<int (*)(Args...)>(dlsym(library_, name)) : nullptr;
    const int status = function != nullptr ? function(args...) : -1;
    if (status != 0) std::fprintf(stderr, "%s: %d\n", name, status);
    return status == 0;
  }

 private:
  void* const library_;
};

using Sample = std::array<double, 2>;  // hook, whole

/// The kernel, launched again and again; each sample goes to the descriptor.
bool Launch(int count, int out) {
  const Driver driver(BENCH_SHIM);
  void *context = nullptr, *module = nullptr, *function = nullptr;
  if (!driver.Call("cuInit", 0u) || !driver.Call("cuDevicePrimaryCtxRetain", &context, 0) ||
      !driver.Call("cuCtxSetCurrent", context) ||
      !driver.Call("cuModuleLoadData", &module, static_cast<const void*>(kPtx)) ||
      !driver.Call("cuModuleGetFunction", &function, module, "nothing")) {
    return false;
  }
  for (int i = -kWarmUp; i < count; ++i) {
    const std::uint64_t begin = NowNs();
    if (!driver.Call("cuLaunchKernel", function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, static_cast<void*>(nullptr),
                     static_cast<void**>(nullptr), static_cast<void**>(nullptr))) {
      return false;
    }
    const std::uint64_t returned = NowNs();
    if (!driver.Call("cuCtxSynchronize")) return false;
    const std::uint64_t end = NowNs();
    const Sample sample{static_cast<double>(returned - begin) / 1000, static_cast<double>(end - begin) / 1000};
    if (i >= 0 && write(out, &sample, sizeof sample) != sizeof sample) return false;
  }
  return true;
}

}  // namespace

LaunchCosts MeasureLaunches(const std::string& socket, int count) {
  LaunchCosts costs;
  int ends[2];
  if (pipe(ends) != 0) return costs;
  const Fd in(ends[0]);
  Fd out(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    setenv("GRIDLOOM_DEVICE", "h200", 1);
    setenv("GRIDLOOM_CACHE_DIR", "off", 1);
    if (socket.empty()) unsetenv("GRIDLOOM_CONNECT");
    else setenv("GRIDLOOM_CONNECT", socket.c_str(), 1);
    _exit(Launch(count, out.get()) ? 0 : 1);
  }
  out = Fd();
  Sample sample;
  while (read(in.get(), &sample, sizeof sample) == sizeof sample) {
    costs.hook_us.push_back(sample[0]);
    costs.whole_us.push_back(sample[1]);
  }
  waitpid(child, nullptr, 0);
  return costs;
}

}  // namespace gridloom::bench
