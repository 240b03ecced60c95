#include "interpose/objects/jit_options.h"

#include <algorithm>
#include <cstring>

namespace gridloom::session {

using namespace cuda;

CUresult JitOptions::Parse(unsigned count, const CUjit_option* keys, void** values, JitOptions* options) {
  if (count != 0 && (keys == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const auto number = reinterpret_cast<std::uintptr_t>(values[i]);
    switch (keys[i]) {
      case CU_JIT_INFO_LOG_BUFFER: options->info_.data = static_cast<char*>(values[i]); break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        options->info_.capacity = static_cast<unsigned>(number);
        options->info_.size_slot = &values[i];
        break;
      case CU_JIT_ERROR_LOG_BUFFER: options->error_.data = static_cast<char*>(values[i]); break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        options->error_.capacity = static_cast<unsigned>(number);
        options->error_.size_slot = &values[i];
        break;
      case CU_JIT_MAX_REGISTERS: options->max_registers_ = static_cast<std::uint32_t>(number); break;
      case CU_JIT_WALL_TIME: options->wall_slot_ = &values[i]; break;
      default:
        if (keys[i] < 0 || keys[i] > CU_JIT_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
        break;
    }
  }
  return CUDA_SUCCESS;
}

void JitOptions::Buffer::Append(const std::string& text) {
  if (data == nullptr || capacity == 0) return;
  const std::size_t room = capacity - 1 - std::min(used, capacity - 1);
  const std::size_t taken = std::min(room, text.size());
  std::memcpy(data + used, text.data(), taken);
  used += taken;
  data[used] = '\0';
  if (size_slot != nullptr) *size_slot = reinterpret_cast<void*>(static_cast<std::uintptr_t>(used));
}

void JitOptions::Store(const JitLog& log, float wall_ms) {
  info_.Append(log.info);
  error_.Append(log.error);
  if (wall_slot_ != nullptr) std::memcpy(wall_slot_, &wall_ms, sizeof(wall_ms));
}

}  // namespace gridloom::session
