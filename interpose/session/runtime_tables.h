// Function tables that the CUDA runtime asks the driver for besides the public interface (cuGetExportTable).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "interpose/api/cuda_types.h"

namespace gridloom::session {

/// The table of that identity; null when there is none.
const void* FindExportTable(const cuda::CUuuid& id);

/// HMAC (RFC 2104) with MD2 (RFC 1319); exposed for its test.
void HmacMd2(std::span<const std::uint8_t> key, std::span<const std::uint8_t> message, std::uint8_t digest[16]);
void Md2(std::span<const std::uint8_t> message, std::uint8_t digest[16]);

/// The answer to the runtime's start-up check (docs/design/runtime-handshake.md); false when this build leaves it out.
bool AnswerHandshake(std::uint32_t version, std::uint64_t unix_seconds, const void* interface_table,
                     const void* check_table, std::uint8_t result[16]);

}  // namespace gridloom::session
