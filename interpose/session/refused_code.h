// Names what cannot run: a refusal of device code without PTX says whose it is.
#pragma once

#include <string>

#include "interpose/session/log.h"
#include "rewriter/image/image_set.h"

namespace gridloom::session {

/// " It is in libcudnn_cnn.so.9 and has the kernels gemm_a, gemm_b and 12 more. …": what can be told of code at `data` and what to do about
/// it, as sentences to append. Empty: nothing.
std::string WhoseCode(const void* data, const image::ImageSet& images);

/// How loudly a refusal of code at `data` is told. Libraries that try one kernel after the other until one runs, as cuDNN does, would fill
/// the screen: of each file the first refusals are errors, and the last one of these says in `message` where the rest is told.
LogLevel LevelOfRefusal(const void* data, std::string* message);

}  // namespace gridloom::session
