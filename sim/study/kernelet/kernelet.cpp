#include "sim/study/kernelet/kernelet.h"

#include "sim/study/experiment/workload_traces.h"
#include "sim/study/kernelet/exhibits.h"

namespace gridloom::study {

Status DeviceStudies::ReadSettings() {
  GL_TRY(layouts, settings_.Number("layouts.count"));
  GL_TRY(first, settings_.Number("layouts.first"));
  if (layouts < 1 || first < 1) return Error{"layouts.count and layouts.first must be at least 1"};
  layouts_ = static_cast<std::uint64_t>(layouts);
  first_layout_ = static_cast<std::uint64_t>(first);
  return {};
}

Status DeviceStudies::Begin(Measurements& kept) {
  GL_TRY(kernels, LoadKernels());
  GL_TRY(devices, DevicesOf(settings_));
  devices_.clear();
  for (const sim::DeviceSpec& device : devices) {
    LayoutStudies& layouts = devices_.emplace_back();
    for (std::uint64_t i = 0; i < layouts_; ++i) {
      GL_TRY(study, KernelStudy::Create(settings_, device, kernels, first_layout_ + i, kept));
      layouts.push_back(std::move(study));
    }
  }
  return {};
}

Result<std::vector<StudyKernel>> DeviceStudies::LoadKernels() const {
  std::vector<StudyKernel> kernels;
  for (const std::string& name : settings_.Below("kernels")) {
    const std::string key = "kernels." + name + ".";
    GL_TRY(kernel, settings_.Text(key + "kernel"));
    GL_TRY(paper_ctas, settings_.Number(key + "paper_ctas"));
    GL_TRY(scale, settings_.Number(key + "scale"));
    GL_TRY(trace, TraceOf({.study = "kernelet", .name = name, .kernel = kernel}, environment_));
    const auto process = static_cast<std::uint32_t>(kernels.size() + 1);  // each program's memory is its own
    GL_TRY(traced, LoadTracedKernel(trace.string(), kernel, name, process));
    kernels.push_back({.traced = std::move(traced), .paper_ctas = paper_ctas, .scale = scale});
  }
  return kernels;
}

Result<std::unique_ptr<Study>> MakeKernelet(const Settings& settings, const Environment& environment) {
  return StudyOf<DeviceStudies>::Make(KerneletExhibits(), settings, environment);
}

}  // namespace gridloom::study
