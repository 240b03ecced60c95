// The parts of a trace that are not CTAs, as bytes (docs/trace-format.md): in files, and on the way from a program to a
// broker that simulates it. Readers trust nothing.
#pragma once

#include <cstdint>
#include <span>

#include "rewriter/support/result.h"
#include "sim/trace/byte_stream.h"
#include "sim/trace/chunk.h"
#include "sim/trace/kernel_trace.h"
#include "sim/trace/trace_file.h"

namespace gridloom::trace {

void PutCode(const KernelCode& code, ByteWriter& out);
void PutInfo(const LaunchInfo& info, ByteWriter& out);
void PutAction(const HostAction& action, ByteWriter& out);
/// Heads a batch of encoded CTAs of the launch: how many, and which.
void PutCtas(std::uint64_t launch, std::span<const std::uint64_t> ctas, ByteWriter& out);

/// As a file of that version has it. What it gives satisfies ValidateCode.
Result<KernelCode> GetCode(ByteReader in, std::uint32_t version = kFormatVersion);
/// Reads a record as a file of that version has it. Damage is in.failed(); what the numbers refer to is for the caller
/// to check.
LaunchInfo GetInfo(ByteReader& in, std::uint32_t version = kFormatVersion);
HostAction GetAction(ByteReader& in, std::uint32_t version = kFormatVersion);

}  // namespace gridloom::trace
