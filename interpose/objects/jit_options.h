// Options of cuModuleLoadDataEx, cuLibraryLoadData and cuLink*: parallel arrays of keys and pointer-sized values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "interpose/api/cuda_types.h"
#include "interpose/objects/module.h"

namespace gridloom::session {

class JitOptions {
 public:
  /// INVALID_VALUE for keys that do not exist. Of the keys that steer machine code generation the
  /// limit of registers counts, since programs ask for a kernel's registers and occupancy.
  static cuda::CUresult Parse(unsigned count, const cuda::CUjit_option* keys, void** values, JitOptions* options);
  bool wants_logs() const { return info_.data != nullptr || error_.data != nullptr; }
  std::uint32_t max_registers() const { return max_registers_; }  ///< per thread, 0: no limit
  /// Copies the log into the program's buffers and writes the lengths back into the option values.
  void Store(const JitLog& log, float wall_ms);

 private:
  struct Buffer {
    char* data = nullptr;
    std::size_t capacity = 0, used = 0;
    void** size_slot = nullptr;  ///< where the written length goes
    void Append(const std::string& text);
  };
  Buffer info_, error_;
  void** wall_slot_ = nullptr;
  std::uint32_t max_registers_ = 0;
};

}  // namespace gridloom::session
