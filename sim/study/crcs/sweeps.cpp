// The same on other hardware: readings of the paper, and storage, PCIe, pages and devices that were not there yet.
#include <cmath>

#include "sim/study/crcs/exhibits.h"

namespace gridloom::study::crcs {
namespace {

constexpr const char* kPolicies[] = {kFifo, kPpcs, kReady};

/// Hardware that programs are replayed on under all policies. Keys of the part mean nothing to the baseline, which has
/// none.
struct Setting {
  Row names;  ///< the row's first cells
  std::string device;
  DeviceKeys keys;
};

/// Rows of the settings: their names, then the mean gain under each policy over the workloads, in per cent. The mean of
/// ratios of times is the geometric one.
Status AddRows(const std::vector<Setting>& settings, const std::vector<std::string>& workloads, Runs& runs,
               Exhibit& exhibit) {
  std::vector<Run> wanted;
  for (const Setting& setting : settings) {
    for (const std::string& workload : workloads) {
      wanted.push_back({.program = workload, .device = setting.device, .keys = setting.keys});
      for (const char* policy : kPolicies)
        wanted.push_back({.program = workload, .scheme = policy, .device = setting.device, .keys = setting.keys});
    }
  }
  GL_TRY(times, runs.Measure<Times>(wanted));
  const Times* next = times.data();
  for (const Setting& setting : settings) {
    double gains[std::size(kPolicies)] = {}, total = 0;
    for (std::size_t i = 0; i < workloads.size(); ++i, next += 1 + std::size(kPolicies)) {
      total += next[0].total;
      for (std::size_t policy = 0; policy < std::size(kPolicies); ++policy)
        gains[policy] += std::log(next[0].total / next[1 + policy].total);
    }
    Row row = setting.names;
    row.push_back(total);
    for (const double gain : gains) row.push_back(100 * (std::exp(gain / static_cast<double>(workloads.size())) - 1));
    exhibit.rows.push_back(std::move(row));
  }
  return {};
}

std::string Whole(double value) { return Number("%.0f", value); }

}  // namespace

Result<Exhibit> Readings(const Settings& settings, Runs& runs) {
  Exhibit exhibit{.name = {},
                  .title = "Readings of what the paper leaves open: mean speed-up over the workloads, in per cent",
                  .columns = {"device", "reading", "baseline ms", "CRCS+FIFO", "CRCS+PPCS", "crcs-ready"},
                  .drawings = {{.caption = "mean speed-up", .unit = "%", .names = {1}, .values = {3, 4, 5}}}};
  GL_TRY(readings, ReadingsFrom(settings));
  std::vector<Setting> variants;
  for (const auto& [name, keys] : readings)
    variants.push_back({.names = {runs.device(), name}, .device = {}, .keys = keys});
  GL_TRY(workloads, settings.List("readings_of"));
  GL_TRY_STATUS(AddRows(variants, workloads, runs, exhibit));
  return exhibit;
}

Result<Exhibit> Pays(const Settings& settings, Runs& runs) {
  Exhibit exhibit{.name = {},
                  .title = "Does it still pay? Geometric means over the workloads, in per cent of speed-up",
                  .columns = {"device", "varied", "storage MB/s", "PCIe MB/s", "page KiB", "baseline ms", "CRCS+FIFO",
                              "CRCS+PPCS", "crcs-ready"},
                  .drawings = {{.caption = "mean speed-up", .unit = "%", .names = {1, 2, 3, 4}, .values = {6, 7, 8}}}};
  GL_TRY(workloads, settings.List("pays.workloads"));
  GL_TRY(devices, settings.List("pays.devices"));
  GL_TRY(storage, settings.Numbers("pays.storage_mb_s"));
  GL_TRY(pcie, settings.Numbers("pays.pcie_mb_s"));
  GL_TRY(pages, settings.Numbers("pays.page_kib"));
  GL_TRY(fast, settings.Number("pays.fast_mb_s"));
  std::vector<Setting> variants;
  const auto add = [&](const std::string& device, const std::string& varied, double rate, double link, double page) {
    Setting variant{.names = {device, varied, rate, nullptr, page}, .device = device, .keys = {}};
    variant.keys["timing.host.storage_mb_s"] = Whole(rate);
    if (link != 0) {
      variant.names[3] = link;
      variant.keys["timing.pcie.to_device_mb_s"] = variant.keys["timing.pcie.to_host_mb_s"] = Whole(link);
    }
    variant.keys["hardware.crcs.page_bytes"] = Whole(page * 1024);
    variants.push_back(std::move(variant));
  };
  constexpr double kPage = 4;
  for (const std::string& device : devices) {
    for (const double rate : storage) add(device, "storage", rate, 0, kPage);
  }
  for (const double link : pcie) add(devices.back(), "PCIe", fast, link, kPage);
  for (const double page : pages) {
    for (const double rate : {storage.front(), fast}) add(devices.back(), "pages", rate, 0, page);
  }
  GL_TRY_STATUS(AddRows(variants, workloads, runs, exhibit));
  return exhibit;
}

}  // namespace gridloom::study::crcs
