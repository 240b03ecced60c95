#include "interpose/objects/program_scan.h"

#include <link.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "interpose/base/log.h"
#include "rewriter/image/image_set.h"
#include "rewriter/image/select.h"

namespace gridloom::session {
namespace {

int AddFile(dl_phdr_info* info, std::size_t, void* files) {
  auto& list = *static_cast<std::vector<std::string>*>(files);
  // The first entry is the executable and has no name; the vDSO has neither a slash nor a file.
  if (list.empty()) list.emplace_back("/proc/self/exe");
  else if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/') list.emplace_back(info->dlpi_name);
  return 0;
}

bool IsSystemLibrary(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename();
  for (const char* prefix :
       {"libc.", "libm.", "libdl.", "librt.", "libpthread.", "libstdc++.", "libgcc_s.", "ld-linux", "libgridloom"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

ComputeCapability CapabilityForProgram(ComputeCapability preferred) {
  std::vector<std::string> files;
  dl_iterate_phdr(AddFile, &files);
  image::ImageSet all;
  std::vector<std::shared_ptr<const void>> kept;  // the containers' bytes
  for (const std::string& file : files) {
    if (IsSystemLibrary(file)) continue;
    auto images = image::ReadImageFile(file);
    if (!images.ok()) {
      GL_LOG(kDebug, "%s is not searched for device code: %s", file.c_str(), images.error().message.c_str());
      continue;
    }
    kept.push_back(images->storage);
    std::ranges::move(images->containers, std::back_inserter(all.containers));
  }
  if (all.containers.empty()) return preferred;
  return image::FittingCapability(all, preferred).value_or(preferred);
}

}  // namespace gridloom::session
