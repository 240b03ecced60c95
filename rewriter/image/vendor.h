// Libraries that NVIDIA ships without source.
#pragma once

#include <filesystem>

namespace gridloom::image {

/// By its name: libcublas.so.12, libcudnn_ops.so.9, libcufft_static.a, …
bool IsVendorLibrary(const std::filesystem::path& file);

}  // namespace gridloom::image
