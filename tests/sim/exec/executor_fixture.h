// Device memory, engine and a launch in three lines, for tests that run PTX text.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rewriter/ptx/parser.h"
#include "sim/exec/device_memory.h"
#include "sim/exec/engine.h"
#include "sim/exec/program.h"

namespace gridloom::test {

/// Kernel parameters packed as a launch passes them: each at its natural alignment.
class ParamBlock {
 public:
  template <typename T>
  ParamBlock& Add(const T& value) {
    const std::size_t offset = (bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    bytes_.resize(offset + sizeof(T));
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
    return *this;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class Executor {
 public:
  explicit Executor(exec::Engine::Options options = {});
  ~Executor();

  template <typename T>
  std::uint64_t Upload(const std::vector<T>& data) {
    const std::uint64_t address = memory_->Allocate(data.size() * sizeof(T), 256, exec::MemoryKind::kDevice);
    std::memcpy(reinterpret_cast<void*>(address), data.data(), data.size() * sizeof(T));
    return address;
  }
  template <typename T>
  void Download(std::uint64_t address, std::vector<T>& data) {
    std::memcpy(data.data(), reinterpret_cast<const void*>(address), data.size() * sizeof(T));
  }
  void Free(std::uint64_t address) { memory_->Free(address); }

  /// Parses and loads `ptx` (kept, so that the same text is loaded once) and runs the kernel.
  exec::LaunchFault Launch(const std::string& ptx, const std::string& kernel, exec::Dim3 grid, exec::Dim3 block,
                           const ParamBlock& params, std::uint32_t dynamic_shared_bytes = 0);
  /// The same with everything that a launch can be given; `program` and `kernel` are filled in.
  exec::LaunchFault Launch(const std::string& ptx, const std::string& kernel, exec::LaunchParams launch,
                           exec::LaunchStats* stats = nullptr);
  exec::DeviceMemory& memory() { return *memory_; }
  exec::Engine& engine() { return *engine_; }

 private:
  std::unique_ptr<exec::DeviceMemory> memory_;
  std::unique_ptr<exec::Engine> engine_;
  std::map<std::string, std::shared_ptr<exec::Program>> programs_;
};

}  // namespace gridloom::test
