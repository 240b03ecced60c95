#include "sim/study/experiment/study.h"

#include <algorithm>

#include "rewriter/support/suggest.h"
#include "sim/device/device_files.h"

namespace gridloom::study {

Result<std::vector<std::string>> ExhibitsToShow(const Settings& settings, const Study& study) {
  GL_TRY(show, settings.List("show"));
  const std::vector<std::string> exhibits = study.Exhibits();
  const std::vector<std::string_view> known(exhibits.begin(), exhibits.end());
  for (const std::string& name : show) {
    if (std::ranges::find(known, name) == known.end())
      return Error{settings.name() + ": the study has no exhibit '" + name + "'" + DidYouMean(name, known)};
  }
  return show;
}

Result<sim::DeviceSpec> DeviceNamed(const Settings& settings, const std::string& name) {
  GL_TRY(device, sim::LoadDevice(name));
  const auto lowering = settings.Text("lowering");
  if (lowering.ok())
    GL_TRY_STATUS(sim::SetDeviceKey("timing.lowering", *lowering, settings.name() + ": lowering", device));
  return device;
}

Result<std::vector<sim::DeviceSpec>> DevicesOf(const Settings& settings) {
  GL_TRY(names, settings.List("devices"));
  std::vector<sim::DeviceSpec> devices;
  for (const std::string& name : names) {
    GL_TRY(device, DeviceNamed(settings, name));
    devices.push_back(std::move(device));
  }
  if (devices.empty()) return Error{settings.name() + ": 'devices' names none"};
  return devices;
}

Result<std::unique_ptr<RateCache>> OpenCache(const Environment& environment) {
  return RateCache::Open((environment.work / "measurements.jsonl").string());
}

}  // namespace gridloom::study
