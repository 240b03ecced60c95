// A broker, and this process as a program that joins it with --device real: the real driver is a stand-in
// (fake_real_driver.h) whose kernels end when the test says so.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "api_exports.h"
#include "tests/scheduler/daemon/broker_fixture.h"

namespace gridloom {

/// A function of the stand-in.
template <typename Function>
Function* Fake(const char* name) {
  static void* const library = dlopen(FAKE_REAL_DRIVER, RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(library, name));
}
unsigned long Launches();
/// What the stand-in answers when it is asked whether a kernel has run.
void Kernels(CUresult status);
/// Whether every stream is being captured.
void Capture(bool on);
/// Of a kernel that nobody knows.
CUresult Launch(unsigned ctas, std::uintptr_t stream = 0);

/// The process is the tenant `real`, and has joined.
struct RealFixture : broker::BrokerFixture {
  explicit RealFixture(const std::string& policy = "fair");
  ~RealFixture();
  nlohmann::ordered_json Real() { return TenantState("real"); }
};

}  // namespace gridloom
