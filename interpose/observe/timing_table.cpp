#include "interpose/observe/timing_table.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "interpose/base/log.h"
#include "interpose/base/summary.h"
#include "rewriter/support/demangle.h"
#include "rewriter/support/json.h"
#include "sim/exec/memcheck.h"
#include "sim/hardware/catalog.h"

namespace gridloom::session {
namespace {

using Json = nlohmann::ordered_json;
using timing::KernelTimes;

double Milliseconds(std::uint64_t cycles, const sim::DeviceSpec& device) {
  return static_cast<double>(cycles) / (device.timing.clock.sm_mhz * 1e3);
}

/// Part of the scheduler cycles in which an SM had work, by what the schedulers did.
std::vector<std::pair<std::string_view, double>> SchedulerShares(const timing::SmCounters& sm,
                                                                 const sim::DeviceSpec& device) {
  const std::vector<timing::SchedulerState> states = hardware::StatesOf(device);
  double all = 0;
  for (const timing::SchedulerState& state : states) all += static_cast<double>(state.value(sm));
  std::vector<std::pair<std::string_view, double>> shares;
  for (const timing::SchedulerState& state : states) {
    shares.emplace_back(state.label, all == 0 ? 0 : static_cast<double>(state.value(sm)) / all);
  }
  return shares;
}

/// The larger shares, the largest first.
std::string SharesText(const timing::SmCounters& sm, const sim::DeviceSpec& device) {
  constexpr double kWorthTelling = 0.05;
  auto shares = SchedulerShares(sm, device);
  std::ranges::stable_sort(shares, std::ranges::greater{}, [](const auto& share) { return share.second; });
  std::string text;
  for (const auto& [label, share] : shares) {
    if (share >= kWorthTelling)
      text +=
          Format("%s%.*s %.0f %%", text.empty() ? "" : ", ", static_cast<int>(label.size()), label.data(), 100 * share);
  }
  return text;
}

Json KernelJson(const KernelTimes& kernel, const sim::DeviceSpec& device) {
  const timing::Activity activity = kernel.On(device);
  Json json{{"kernel", DemangledName(kernel.name)},
            {"symbol", kernel.name},
            {"launches", kernel.launches},
            {"ctas", kernel.ctas},
            {"cycles", kernel.cycles},
            {"profiled_cycles", kernel.cycles + kernel.launches * device.timing.launch.profiled_cycles},
            {"warp_instructions", kernel.warp_instructions},
            {"thread_instructions", kernel.thread_instructions},
            {"bound_by", timing::BoundBy(activity, hardware::StatesOf(device))}};
  for (const timing::DerivedInfo& info : timing::DerivedTable()) json[std::string(info.name)] = info.value(activity);
  for (const timing::CounterInfo& counter : hardware::CountersOf(device)) {
    json["counters"][std::string(counter.name)] = counter.value(kernel.during);
  }
  return json;
}

/// What proposed parts of the device counted, a line each.
std::string PartText(const TimingTable& table) {
  std::string text;
  const std::vector<timing::CounterInfo> counters = hardware::CountersOf(table.device);
  for (std::size_t i = timing::CounterTable().size(); i < counters.size(); ++i) {
    const timing::CounterInfo& counter = counters[i];
    text +=
        Format("%-40.*s %17llu %.*s: %.*s\n", static_cast<int>(counter.name.size()), counter.name.data(),
               static_cast<unsigned long long>(counter.value(table.counters)), static_cast<int>(counter.unit.size()),
               counter.unit.data(), static_cast<int>(counter.meaning.size()), counter.meaning.data());
  }
  return text;
}

}  // namespace

std::string TimingText(const TimingTable& table) {
  const sim::DeviceSpec& device = table.device;
  std::string text =
      Format("\ngridloom: simulated on %s, policy %s: %.3f ms, %llu cycles\n", sim::DeviceLabel(device).c_str(),
             table.policy.c_str(), Milliseconds(table.cycles, device), static_cast<unsigned long long>(table.cycles));
  if (!table.problem.empty()) text += "the simulation ended early: " + table.problem + "\n";
  if (table.profiled.kernels != 0) {
    text += Format(
        "profiled for the policy: %llu kernels, %.3f million warp instructions simulated besides the program's %.3f\n",
        static_cast<unsigned long long>(table.profiled.kernels),
        static_cast<double>(table.profiled.warp_instructions) / 1e6,
        static_cast<double>(table.counters.sm.warp_instructions) / 1e6);
  }
  text += Format("%-40s %8s %14s %11s %7s %9s %10s  %s\n", "kernel", "launches", "cycles", "time ms", "IPC",
                 "occupancy", "DRAM GB/s", "bound by");
  for (const KernelTimes& kernel : table.kernels.Kernels()) {
    const timing::Activity activity = kernel.On(device);
    const std::string_view bound = timing::BoundBy(activity, hardware::StatesOf(device));
    text +=
        Format("%-40s %8llu %14llu %11.4f %7.2f %7.1f %% %10.1f  %.*s (%s)\n", ShortKernelName(kernel.name, 40).c_str(),
               static_cast<unsigned long long>(kernel.launches), static_cast<unsigned long long>(kernel.cycles),
               Milliseconds(kernel.cycles, device), timing::Derived("ipc", activity),
               100 * timing::Derived("occupancy", activity), timing::Derived("dram_gb_s", activity),
               static_cast<int>(bound.size()), bound.data(), SharesText(kernel.during.sm, device).c_str());
  }
  for (const timing::CopyTimes& copies : table.kernels.Copies()) {
    const double ms = Milliseconds(copies.cycles, device);
    const std::string_view name = timing::Name(copies.kind);
    text += Format(
        "%-40.*s %8llu %14llu %11.4f %38s%llu bytes, %.2f GB/s\n", static_cast<int>(name.size()), name.data(),
        static_cast<unsigned long long>(copies.count), static_cast<unsigned long long>(copies.cycles), ms, "",
        static_cast<unsigned long long>(copies.bytes), ms == 0 ? 0.0 : static_cast<double>(copies.bytes) / ms / 1e6);
  }
  return text + PartText(table);
}

void WriteTimingJson(const TimingTable& table, const std::string& path) {
  const timing::Activity activity{.device = table.device, .cycles = table.cycles, .counters = table.counters};
  Json json{{"device", table.device.id},
            {"policy", table.policy},
            {"cycles", table.cycles},
            {"bound_by", timing::BoundBy(activity, hardware::StatesOf(table.device))}};
  for (const hardware::KeyText& field : hardware::FieldsOf(table.device)) json["hardware"][field.key] = field.value;
  json["profiled"] = {{"kernels", table.profiled.kernels}, {"warp_instructions", table.profiled.warp_instructions}};
  json["problem"] = table.problem.empty() ? Json() : Json(table.problem);
  for (const timing::DerivedInfo& info : timing::DerivedTable()) json[std::string(info.name)] = info.value(activity);
  json["kernels"] = Json::array();
  for (const KernelTimes& kernel : table.kernels.Kernels()) json["kernels"].push_back(KernelJson(kernel, table.device));
  json["copies"] = Json::array();
  for (const timing::CopyTimes& copies : table.kernels.Copies()) {
    json["copies"].push_back({{"kind", timing::Name(copies.kind)},
                              {"count", copies.count},
                              {"bytes", copies.bytes},
                              {"cycles", copies.cycles}});
  }
  for (const timing::CounterInfo& counter : hardware::CountersOf(table.device))
    json["counters"][std::string(counter.name)] = counter.value(table.counters);
  const std::string text = JsonText(json, 2) + "\n";
  if (path == "-") return LogText(text);
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) LogText("gridloom: error: cannot write " + path + "\n");
}

}  // namespace gridloom::session
