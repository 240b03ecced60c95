#include "tests/interpose/fixture.h"

#include <atomic>
#include <cstdlib>

#include "interpose/objects/backend.h"

namespace gridloom::test {

const char* const kPtx = R"(
.version 7.8
.target sm_75
.address_size 64
.visible .global .align 4 .b8 table[64];
.visible .global .attribute(.managed) .align 4 .u32 counter = 7;
.visible .entry fill(.param .u64 pointer, .param .u32 value, .param .u8 flag) { ret; }
.visible .entry nothing() { ret; }
.visible .entry bounded() .maxntid 64, 1, 1 { ret; }
.visible .entry shared() { .shared .align 4 .b8 buffer[1024]; ret; }
)";

FakeEngine& FakeEngine::Get() {
  static FakeEngine* const engine = new FakeEngine;
  return *engine;
}
void FakeEngine::set_body(Body body) {
  const std::lock_guard lock(mutex_);
  body_ = std::move(body);
}
std::vector<LoggedLaunch> FakeEngine::TakeLaunches() {
  const std::lock_guard lock(mutex_);
  return std::exchange(launches_, {});
}
std::size_t FakeEngine::launches() const {
  const std::lock_guard lock(mutex_);
  return launches_.size();
}
exec::LaunchFault FakeEngine::Run(const exec::LaunchParams& launch) {
  Body body;
  {
    const std::lock_guard lock(mutex_);
    launches_.push_back({launch.kernel->name,
                         launch.grid,
                         launch.block,
                         launch.cluster,
                         launch.dynamic_shared_bytes,
                         {launch.params.begin(), launch.params.end()},
                         launch.cooperative});
    body = body_;
  }
  return body ? body(launch) : exec::LaunchFault{};
}

namespace {

class Engine final : public exec::Engine {
 public:
  exec::LaunchFault Run(const exec::LaunchParams& launch, exec::LaunchStats* stats) override {
    if (stats != nullptr) stats->ctas = launch.grid.count();
    return FakeEngine::Get().Run(launch);
  }
  void Stop() override {}
  Status Prepare(const std::shared_ptr<exec::Program>&, const exec::KernelInfo&, exec::Dim3) override { return {}; }
  std::uint32_t Occupancy(const exec::KernelInfo&, std::uint32_t threads, std::uint32_t, std::uint32_t) const override {
    return 2048 / threads;
  }
  std::uint64_t NewGridId() override { return ++grid_ids_; }
  std::uint64_t device_heap_bytes() const override { return heap_; }
  void set_device_heap_bytes(std::uint64_t bytes) override { heap_ = bytes; }

 private:
  std::uint64_t heap_ = 8u << 20;
  std::atomic<std::uint64_t> grid_ids_{0};
};

class Backend final : public session::Backend {
 public:
  explicit Backend(std::unique_ptr<exec::DeviceMemory> memory) : memory_(std::move(memory)) {}
  exec::DeviceMemory& memory() override { return *memory_; }
  exec::Engine& engine() override { return engine_; }
  Result<std::shared_ptr<exec::Program>> Load(std::unique_ptr<ptx::Module> module, std::string text) override {
    return exec::Program::Load(std::move(module), std::move(text), *memory_);
  }

 private:
  std::unique_ptr<exec::DeviceMemory> memory_;
  Engine engine_;
};

// Before main, hence before the settings are read.
const bool g_installed = [] {
  setenv("GRIDLOOM_DEVICE", "h200", 1);
  setenv("GRIDLOOM_MEMORY", "1G", 1);
  if (std::getenv("GRIDLOOM_LOG") == nullptr) setenv("GRIDLOOM_LOG", "off", 1);
  session::SetBackendFactory(
      [](session::Process&, const sim::DeviceSpec&, std::uint64_t bytes) -> Result<std::unique_ptr<session::Backend>> {
        exec::DeviceMemory::Options options;
        options.limit_bytes = bytes;
        GL_TRY(memory, exec::DeviceMemory::Create(options));
        return std::unique_ptr<session::Backend>(std::make_unique<Backend>(std::move(memory)));
      });
  return true;
}();

}  // namespace

Fixture::Fixture() {
  static_cast<void>(g_installed);
  CU_OK(cuInit(0));
  CU_OK(cuDevicePrimaryCtxRetain(&context, 0));
  CU_OK(cuCtxSetCurrent(context));
  CU_OK(cuModuleLoadData(&module, kPtx));
  FakeEngine::Get().set_body(nullptr);
  FakeEngine::Get().TakeLaunches();
}

Fixture::~Fixture() {
  cuDevicePrimaryCtxReset(0);
  cuDevicePrimaryCtxRelease(0);
  cuCtxSetCurrent(nullptr);
  FakeEngine::Get().set_body(nullptr);
}

CUfunction Fixture::Function(const char* name) const {
  CUfunction function = nullptr;
  CU_OK(cuModuleGetFunction(&function, module, name));
  return function;
}

}  // namespace gridloom::test
