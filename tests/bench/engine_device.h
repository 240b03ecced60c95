// The executor as a device of the benchmarks, without driver and streams: what is measured is the executor alone.
#pragma once

#include <memory>
#include <string>

#include "sim/exec/engine.h"
#include "tests/bench/device.h"

namespace bench {

/// Ends the program on errors: `name` says whose message it is. Derived classes decide how a launch runs.
class EngineDevice : public Device {
 public:
  EngineDevice(std::string name, const char* ptx, unsigned threads);
  std::string name() const override { return "executor"; }
  Memory Allocate(std::size_t bytes) override;
  void Write(Memory memory, const void* from, std::size_t bytes) override;
  void Read(void* to, Memory memory, std::size_t bytes) override;
  void Clear(Memory memory, std::size_t bytes) override;
  void Launch(const char* kernel, Shape grid, Shape block, const std::vector<Argument>& arguments) override;
  void Finish() override {}

 protected:
  virtual gridloom::exec::LaunchFault Run(gridloom::exec::LaunchParams& launch, const char* kernel) = 0;
  [[noreturn]] void Die(const std::string& message) const;
  template <typename T>
  T Take(gridloom::Result<T> result) const {
    if (!result.ok()) Die(result.error().message);
    return std::move(result).value();
  }

  gridloom::exec::Engine& engine() { return *engine_; }
  gridloom::exec::DeviceMemory& memory() { return *memory_; }
  const std::shared_ptr<gridloom::exec::Program>& program() const { return program_; }

 private:
  const std::string name_;
  std::unique_ptr<gridloom::exec::DeviceMemory> memory_;
  std::unique_ptr<gridloom::exec::Engine> engine_;
  std::shared_ptr<gridloom::exec::Program> program_;
};

/// CPU time of this process in seconds: the machine may be busy with other things.
double CpuTime();

}  // namespace bench
