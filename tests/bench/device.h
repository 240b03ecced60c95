// What a benchmark needs of CUDA (under Gridloom) and of OpenCL (PoCL), so that each benchmark is written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace bench {

struct Shape {
  unsigned x = 1, y = 1, z = 1;
};

class Device {
 public:
  using Memory = std::uint64_t;  ///< a device pointer, or an index into the OpenCL buffers
  struct Pointer {
    Memory memory;
  };
  using Argument = std::variant<Pointer, int>;

  virtual ~Device() = default;
  virtual std::string name() const = 0;
  virtual Memory Allocate(std::size_t bytes) = 0;
  virtual void Write(Memory memory, const void* from, std::size_t bytes) = 0;
  virtual void Read(void* to, Memory memory, std::size_t bytes) = 0;
  virtual void Clear(Memory memory, std::size_t bytes) = 0;
  /// Launches a grid of blocks of that shape; does not wait.
  virtual void Launch(const char* kernel, Shape grid, Shape block, const std::vector<Argument>& arguments) = 0;
  virtual void Finish() = 0;
  /// False while code may still be replaced by faster code.
  virtual bool HasFinalCode() const { return true; }

  template <class T>
  Memory Upload(const std::vector<T>& host) {
    return Upload(host.data(), host.size() * sizeof(T));
  }
  Memory Upload(const void* host, std::size_t bytes) {
    const Memory memory = Allocate(bytes);
    Write(memory, host, bytes);
    return memory;
  }
};

/// The CUDA driver this process sees, running `ptx`. Ends the program with a message when there is none.
std::unique_ptr<Device> OpenCuda(const char* ptx);
/// The first OpenCL CPU device, running `source`; null with a reason when there is none.
std::unique_ptr<Device> OpenOpenCl(const char* source, std::string* reason);

}  // namespace bench
