// Names what cannot run: a refusal of device code without PTX says whose it is.
#pragma once

#include <string>

#include "rewriter/image/image_set.h"

namespace gridloom::session {

/// " It is in libcudnn_cnn.so.9 and has the kernels gemm_a, gemm_b and 12 more. …": what can be told of code at `data` and what to do about
/// it, as sentences to append. Empty: nothing.
std::string WhoseCode(const void* data, const image::ImageSet& images);

}  // namespace gridloom::session
