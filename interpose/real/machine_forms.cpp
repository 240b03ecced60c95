#include "interpose/real/machine_forms.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "interpose/base/settings.h"
#include "rewriter/image/select.h"
#include "rewriter/image/vendor.h"
#include "rewriter/machine/slice/kernel_parts.h"

namespace gridloom::api {

bool WantsMachineForms() {
  static const bool wants = session::IsOn(session::TheSettings().slice_machine_code);
  return wants;
}

Status CheckOrigin(const char* file) {
  static const bool libraries = session::IsOn(session::TheSettings().slice_libraries);
  if (libraries || file == nullptr || !image::IsVendorLibrary(file)) return {};
  return Error{"its machine code is NVIDIA's (--slice-libraries)"};
}

const char* FileOf(const void* place) {
  Dl_info info{};
  return dladdr(place, &info) != 0 ? info.dli_fname : nullptr;
}

Result<MachineForms> MakeMachineForms(const image::ImageSet& images, ComputeCapability device) {
  const image::Entry* const entry =
      images.containers.empty() ? nullptr : image::SelectCode(images.containers[0], device);
  if (entry == nullptr) return Error{"its image has no machine code for sm_" + std::to_string(device.sm())};
  GL_TRY(code, entry->Read());
  GL_TRY(sliced, machine::SliceCubin(image::AsBytes(code)));
  MachineForms forms{.image = std::move(sliced.bytes)};
  for (machine::SlicedKernel& kernel : sliced.kernels) {
    forms.count += kernel.why_whole.empty() ? 1 : 0;
    forms.kernels.emplace(kernel.name, std::move(kernel));
  }
  return forms;
}

bool IsFormName(std::string_view name) { return name.ends_with(machine::SlicedName("")); }

}  // namespace gridloom::api
