#include "rewriter/image/vendor.h"

#include <algorithm>
#include <string_view>

namespace gridloom::image {
namespace {

constexpr std::string_view kLibraries[] = {
    "libcublas",   "libcudnn",    "libcudss",    "libcufft",     "libcuopt",      "libcurand",
    "libcusolver", "libcusparse", "libcutensor", "libcuquantum", "libcustatevec", "libnpp",
    "libnvgraph",  "libnvinfer",  "libnvjpeg",   "libnvtiff",
};

}  // namespace

bool IsVendorLibrary(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return std::ranges::any_of(kLibraries, [&](std::string_view library) { return name.starts_with(library); });
}

}  // namespace gridloom::image
