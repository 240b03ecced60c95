// cuLink*: PTX texts collected for one module.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "interpose/api/cuda_types.h"
#include "interpose/objects/jit_options.h"
#include "rewriter/support/result.h"

namespace gridloom::session {

class LinkJob {
 public:
  JitOptions options;  ///< of cuLinkCreate: its log buffers are filled by every step
  std::mutex mutex;
  std::vector<PtxSource> sources;
  std::string image;  ///< what cuLinkComplete handed out

  /// Adds what is at `data`: PTX text, a fat binary, or an object that carries them.
  cuda::CUresult Add(cuda::CUjitInputType type, const void* data, std::size_t size, const std::string& name,
                     Device& device);
  cuda::CUresult Complete(Device& device, void** data, std::size_t* size);
};

}  // namespace gridloom::session
