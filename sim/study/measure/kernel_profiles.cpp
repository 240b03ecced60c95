#include "sim/study/measure/kernel_profiles.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "rewriter/support/whole_file.h"
#include "sim/device/device_files.h"
#include "sim/device/yaml_map.h"
#include "sim/study/measure/profiling.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::study {
namespace {

/// A launch in one of the traces.
struct Chosen {
  std::shared_ptr<trace::TraceFile> file;
  std::size_t launch = 0;

  const trace::TraceFile::Launch& get() const { return file->launches()[launch]; }
  const trace::KernelCode& code() const { return file->kernels()[get().info.kernel]; }
};

Result<std::shared_ptr<const TracedKernel>> Load(const Chosen& chosen, std::uint64_t most) {
  const trace::TraceFile::Launch& launch = chosen.get();
  const auto source = trace::TraceFile::Source(chosen.file, chosen.launch);
  std::vector<std::shared_ptr<const trace::CtaTrace>> ctas;
  trace::CtaChecks checks;
  std::uint64_t bytes = 0;
  for (const std::uint64_t cta : launch.KeptCtas()) {
    if (ctas.size() >= most || bytes >= kMostKernelBytes) break;
    GL_TRY(loaded, source->Load(cta));
    GL_TRY_STATUS(checks.Check(chosen.code(), launch.info.shape, loaded));
    ctas.push_back(trace::FlatTrace(chosen.code(), std::move(loaded)));
    bytes += trace::BytesOf(*ctas.back());
  }
  if (ctas.empty()) return Error{"no thread block of kernel " + chosen.code().name + " was kept"};
  return TracedKernel::Make(chosen.code().name, chosen.code(), launch.info.shape, std::move(ctas));
}

}  // namespace

Result<model::KernelProfile> MeasureProfile(const std::shared_ptr<const TracedKernel>& kernel,
                                            const sim::DeviceSpec& device, const model::KerneletConfig& config,
                                            const Effort& effort) {
  const SliceLimit slices{
      .overhead = config.overhead_percent / 100,
      .launch_interval = static_cast<timing::Cycle>(config.launch_interval_us * device.timing.clock.sm_mhz),
      .effort = effort};
  GL_TRY(profile, ProfileKernel(kernel, device, {.effort = effort}));
  GL_TRY(smallest, MeasureSmallestSlice(kernel, device, profile, slices));
  profile.smallest_slice = smallest;
  return profile;
}

Result<model::ProfileFile> ProfileTraces(const sim::DeviceSpec& device,
                                         const std::vector<std::shared_ptr<trace::TraceFile>>& traces,
                                         const model::KerneletConfig& config) {
  std::map<std::pair<std::string, std::uint32_t>, Chosen> kernels;  // by name and warps of a block
  for (const auto& file : traces) {
    for (std::size_t i = 0; i < file->launches().size(); ++i) {
      const Chosen candidate{file, i};
      if (!candidate.get().complete || !candidate.get().info.of_program()) continue;
      const auto [chosen, is_new] =
          kernels.try_emplace({candidate.code().name, candidate.get().info.shape.warps_per_cta()}, candidate);
      if (!is_new && candidate.get().info.shape.ctas > chosen->second.get().info.shape.ctas) chosen->second = candidate;
    }
  }
  model::ProfileFile profiles{.sm = SmModelOf(device)};
  for (const auto& [kind, chosen] : kernels) {
    GL_TRY(needs, timing::NeedsOf(chosen.get().info.shape, device));
    GL_TRY(kernel, Load(chosen, std::uint64_t{timing::CtasPerSm(needs, device)} * device.sm.count));
    GL_TRY(profile, MeasureProfile(kernel, device, config));
    profiles.kernels.push_back(std::move(profile));
  }
  return profiles;
}

std::uint64_t ProfileOf(const model::ProfileTable& profiles, const trace::KernelCode& code,
                        const trace::LaunchShape& shape) {
  return profiles.Find(code.name, shape.warps_per_cta());
}

Result<model::KerneletConfig> LoadKerneletConfig() {
  model::KerneletConfig config;
  GL_TRY(devices, sim::DeviceDirectory());
  const std::string path = (devices.parent_path() / "policies" / "kernelet.yaml").string();
  if (std::error_code error; !std::filesystem::exists(path, error)) return config;
  GL_TRY(text, ReadWholeFile(path));
  GL_TRY(entries, sim::ReadYamlMap(text, path));
  for (const sim::YamlEntry& entry : entries) {
    const Status set = model::SetKerneletParameter(config, entry.key, entry.value);
    if (!set.ok()) return Error{path + ":" + std::to_string(entry.line) + ": " + set.error().message};
  }
  return config;
}

}  // namespace gridloom::study
