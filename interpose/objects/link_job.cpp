#include "interpose/objects/link_job.h"

#include <cstring>

#include "interpose/base/log.h"
#include "interpose/base/refusals.h"
#include "rewriter/image/image_set.h"
#include "rewriter/image/select.h"

namespace gridloom::session {

using namespace cuda;

CUresult LinkJob::Add(CUjitInputType type, const void* data, std::size_t size, const std::string& name,
                      Device& device) {
  const std::lock_guard lock(mutex);
  const auto refuse = [&](const std::string& why, CUresult status) {
    LogFormat(LogLevel::kError, "cuLink: %s: %s", name.c_str(), why.c_str());
    NoteRefused(RefusedKind::kModule, name, why);
    options.Store({"", name + ": " + why + "\n"}, 0);
    return status;
  };
  const std::string_view bytes(static_cast<const char*>(data), size);
  if (type == CU_JIT_INPUT_PTX) {
    sources.push_back({.name = name,
                       .text = std::string(bytes.substr(0, bytes.find('\0'))),
                       .max_registers = options.max_registers()});
    return CUDA_SUCCESS;
  }
  if (type == CU_JIT_INPUT_NVVM)
    return refuse("link-time optimisation input is not supported", CUDA_ERROR_NOT_SUPPORTED);
  if (type < 0 || type >= CU_JIT_NUM_INPUT_TYPES) return CUDA_ERROR_INVALID_VALUE;
  const auto images = image::ReadImages(image::AsBytes(bytes));
  if (!images.ok()) return refuse(images.error().message, CUDA_ERROR_INVALID_IMAGE);
  const auto entries = image::SelectPartsToLink(*images, device.compute_capability());
  if (!entries.ok()) return refuse(entries.error().message, CUDA_ERROR_NO_BINARY_FOR_GPU);
  for (const image::Entry* entry : *entries) {
    auto text = entry->Read();
    if (!text.ok()) return refuse(text.error().message, CUDA_ERROR_INVALID_IMAGE);
    const std::uint32_t own_limit = MaxRegisters(entry->options);
    sources.push_back({.name = name,
                       .text = std::move(text).value(),
                       .stands_in = !entry->arch.PtxRunsOn(device.compute_capability()),
                       .max_registers = own_limit != 0 ? own_limit : options.max_registers()});
  }
  return CUDA_SUCCESS;
}

CUresult LinkJob::Complete(Device& device, void** data, std::size_t* size) {
  const std::lock_guard lock(mutex);
  JitLog log;
  if (const auto status = LinkTexts(sources, &image, &log); status != CUDA_SUCCESS) {
    options.Store(log, 0);
    return status;
  }
  options.Store(log, 0);
  *data = image.data();
  if (size != nullptr) *size = image.size() + 1;
  return CUDA_SUCCESS;
}

}  // namespace gridloom::session
