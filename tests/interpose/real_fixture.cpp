#include "tests/interpose/real_fixture.h"

#include <catch2/catch.hpp>
#include <cstdlib>

namespace gridloom {
namespace {

/// A process has one driver, which reads its settings once: the broker of all tests listens on the same path.
const std::string& SocketPath() {
  static const std::string path = [] {
    char name[] = "/tmp/gridloom-real-XXXXXX";
    const std::string socket = std::string(mkdtemp(name)) + "/socket";
    setenv("GRIDLOOM_DEVICE", "real", 1);
    setenv("GRIDLOOM_REAL_DRIVER", FAKE_REAL_DRIVER, 1);
    setenv("GRIDLOOM_CONNECT", socket.c_str(), 1);
    setenv("GRIDLOOM_TENANT", "real", 1);
    setenv("GRIDLOOM_SLICE_MACHINE_CODE", "1", 1);
    if (std::getenv("GRIDLOOM_LOG") == nullptr) setenv("GRIDLOOM_LOG", "off", 1);
    return socket;
  }();
  return path;
}

}  // namespace

unsigned long Launches() { return Fake<unsigned long()>("fake_launches")(); }
void Kernels(CUresult status) { Fake<void(int)>("fake_set_event_status")(status); }
void Capture(bool on) { Fake<void(int)>("fake_set_capturing")(on ? 1 : 0); }

CUresult Launch(unsigned ctas, std::uintptr_t stream) {
  return cuLaunchKernel(nullptr, ctas, 1, 1, 32, 1, 1, 0, reinterpret_cast<CUstream>(stream), nullptr, nullptr);
}

RealFixture::RealFixture(const std::string& policy) {
  config.socket = SocketPath();
  config.policy = policy;
  Start();
  Kernels(CUDA_SUCCESS);
  Capture(false);
  REQUIRE(cuInit(0) == CUDA_SUCCESS);  // joins, the first time; joins again, later
  // The broker knows a session before its process does: it has joined when a launch of it was counted.
  REQUIRE(Eventually([&] {
    const bool launched = Launch(1) == CUDA_SUCCESS;
    const auto tenant = Real();
    return launched && tenant.is_object() && tenant["launches"] > 0;
  }));
  REQUIRE(Eventually([&] { return Real()["in_flight"] == 0; }));
}

RealFixture::~RealFixture() {
  Kernels(CUDA_SUCCESS);
  CHECK(Eventually([&] { return Real()["in_flight"] == 0; }));
}

}  // namespace gridloom
