#include "sim/study/kernelet/kernelet.h"

#include "sim/study/experiment/workload_traces.h"
#include "sim/study/kernelet/exhibits.h"

namespace gridloom::study {
namespace {

class KerneletStudy final : public Study {
 public:
  KerneletStudy(const Settings& settings, Environment environment) : settings_(settings), environment_(std::move(environment)) {}

  Status ReadSettings() {
    GL_TRY(layouts, settings_.Number("layouts.count"));
    GL_TRY(first, settings_.Number("layouts.first"));
    if (layouts < 1 || first < 1) return Error{"layouts.count and layouts.first must be at least 1"};
    layouts_ = static_cast<std::uint64_t>(layouts);
    first_layout_ = static_cast<std::uint64_t>(first);
    return {};
  }

  std::vector<std::string> Exhibits() const override { return KerneletExhibits(); }

  Result<Exhibit> Show(const std::string& name) override {
    if (devices_.empty()) GL_TRY_STATUS(Measure());
    return ShowKernelet(name, settings_, devices_);
  }

 private:
  /// Every kernel alone and in slices, on each device in each layout of pages.
  Status Measure() {
    GL_TRY(cache, OpenCache(environment_));
    cache_ = std::move(cache);
    measurements_ = std::make_unique<Measurements>(*cache_, environment_.threads, environment_.progress);
    GL_TRY(kernels, LoadKernels());
    GL_TRY(devices, DevicesOf(settings_));
    DeviceStudies measured;
    for (const sim::DeviceSpec& device : devices) {
      LayoutStudies& layouts = measured.emplace_back();
      for (std::uint64_t i = 0; i < layouts_; ++i) {
        GL_TRY(study, KernelStudy::Create(settings_, device, kernels, first_layout_ + i, *measurements_));
        layouts.push_back(std::move(study));
      }
    }
    devices_ = std::move(measured);
    return {};
  }

  Result<std::vector<StudyKernel>> LoadKernels() const {
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

  const Settings settings_;
  const Environment environment_;
  std::uint64_t layouts_ = 0, first_layout_ = 0;
  std::unique_ptr<RateCache> cache_;
  std::unique_ptr<Measurements> measurements_;
  DeviceStudies devices_;  // empty until something is shown; last: they measure with the above
};

}  // namespace

Result<std::unique_ptr<Study>> MakeKernelet(const Settings& settings, const Environment& environment) {
  auto study = std::make_unique<KerneletStudy>(settings, environment);
  GL_TRY_STATUS(study->ReadSettings());
  return std::unique_ptr<Study>(std::move(study));
}

}  // namespace gridloom::study
