// PTX that a program brings: chosen from an image for a device, parsed and linked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "rewriter/image/image_set.h"
#include "rewriter/ptx/ir.h"
#include "rewriter/ptx/verifier.h"
#include "rewriter/support/compute_capability.h"

namespace gridloom::session {

/// What the compiler had to say, for CU_JIT_INFO_LOG_BUFFER and CU_JIT_ERROR_LOG_BUFFER.
struct JitLog {
  std::string info, error;
};

/// PTX and what to call it in messages.
struct PtxSource {
  std::string name, text;
  bool stands_in = false;           ///< see ptx::LinkInput
  std::uint32_t max_registers = 0;  ///< per thread of its kernels, 0: no limit
};

/// Functions that device code calls and nobody defines: the device's own library, and what passes call
/// (docs/ranges.md).
bool IsProvided(std::string_view name);

/// The number of -maxrregcount in options as ptxas gets them ("-maxrregcount=32", "--maxrregcount 32"); 0 when they
/// have none.
std::uint32_t MaxRegisters(std::string_view options);

/// `ptx` with that limit of registers in it, as ptxas -maxrregcount compiles it; as it is when `max_registers` is 0 or
/// it has errors.
std::string WithMaxRegisters(std::string ptx, std::uint32_t max_registers);

/// The PTX of an image that suits the device best, one text per part of a separately compiled program; none of an image
/// without anything in it. Nothing is parsed. NO_BINARY_FOR_GPU or INVALID_IMAGE with a sentence.
cuda::CUresult SelectSources(const image::ImageSet& images, ComputeCapability device, std::vector<PtxSource>* sources,
                             std::string* why);

/// Parses and verifies the texts and, if there are several, links them. INVALID_PTX with the complaints in `log->error`
/// and, for a log, in
/// `*why`.
cuda::CUresult ParseSources(const std::vector<PtxSource>& sources, ptx::PtxOrigin origin,
                            std::unique_ptr<ptx::Module>* module, JitLog* log, std::string* why);

/// Parses and links PTX texts and prints the result, as cuLinkComplete does; says in the log what is wrong with them.
cuda::CUresult LinkTexts(const std::vector<PtxSource>& sources, std::string* image, JitLog* log);

}  // namespace gridloom::session
