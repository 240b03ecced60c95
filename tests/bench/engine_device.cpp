#include "tests/bench/engine_device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "rewriter/ptx/parser.h"
#include "sim/device/device_files.h"

namespace bench {

using namespace gridloom;

EngineDevice::EngineDevice(std::string name, const char* ptx, unsigned threads) : name_(std::move(name)) {
  memory_ = Take(exec::DeviceMemory::Create({}));
  exec::Engine::Options options;
  options.threads = threads;
  engine_ = Take(exec::Engine::Create(options, Take(sim::LoadDevice("h200")), *memory_));
  DiagnosticSink sink;
  program_ = Take(exec::Program::Load(ptx::ParseModule(ptx, sink), ptx, *memory_));
}

void EngineDevice::Die(const std::string& message) const {
  std::fprintf(stderr, "%s: %s\n", name_.c_str(), message.c_str());
  std::exit(1);
}

Device::Memory EngineDevice::Allocate(std::size_t bytes) {
  return memory_->Allocate(bytes, 256, exec::MemoryKind::kDevice);
}
void EngineDevice::Write(Memory memory, const void* from, std::size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(memory), from, bytes);
}
void EngineDevice::Read(void* to, Memory memory, std::size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(memory), bytes);
}
void EngineDevice::Clear(Memory memory, std::size_t bytes) { std::memset(reinterpret_cast<void*>(memory), 0, bytes); }

void EngineDevice::Launch(const char* kernel, Shape grid, Shape block, const std::vector<Argument>& arguments) {
  exec::LaunchParams launch;
  launch.program = program_;
  launch.kernel = program_->FindKernel(kernel);
  launch.grid = {grid.x, grid.y, grid.z};
  launch.block = {block.x, block.y, block.z};
  std::vector<std::byte> params(launch.kernel->params.bytes);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::visit(
        [&](const auto& value) { std::memcpy(params.data() + launch.kernel->params.offsets[i], &value, sizeof value); },
        arguments[i]);
  }
  launch.params = params;
  const exec::LaunchFault fault = Run(launch, kernel);
  if (fault.kind != exec::FaultKind::kNone) Die(fault.text);
}

double CpuTime() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace bench
