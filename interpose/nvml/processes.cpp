#include "interpose/nvml/processes.h"

#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>

namespace gridloom::nvml {
namespace {

constexpr unsigned kNoInstance = 0xFFFFFFFF;  // of a GPU that is not divided

Return Store(unsigned* to, std::size_t value, Return status) {
  *to = static_cast<unsigned>(value);
  return status;
}

template <typename Entry, typename Items, typename Make>
Return Fill(const Items& items, unsigned* count, Entry* entries, Make make) {
  if (items.size() > *count) return Store(count, items.size(), kInsufficientSize);
  if (entries == nullptr && !items.empty()) return kInvalidArgument;
  for (std::size_t i = 0; i < items.size(); ++i) entries[i] = make(items[i]);
  return Store(count, items.size(), kSuccess);
}

std::uint64_t NowUs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

template <typename Entry, typename Make>
Return FillWork(const BrokerView::Work& work, std::uint64_t last_seen_us, unsigned* count, Entry* entries, Make make) {
  const std::uint64_t now = NowUs();
  if (work.parts.empty() || last_seen_us >= now) return Store(count, 0, kNotFound);
  return Fill(work.parts, count, entries, [&](const BrokerView::Work::Part& part) { return make(part, now); });
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator(file), {});
}

}  // namespace

DeviceUse UseOf(const session::VisibleDevice& facts, const std::optional<BrokerView::State>& shared) {
  if (shared) return {shared->memory_bytes, shared->used_bytes, shared->processes};
  DeviceUse use{facts.memory_bytes, facts.used_bytes, {}};
  if (facts.user != 0)
    use.processes.push_back({.pid = facts.user, .memory_bytes = facts.used_bytes, .device_seconds = 0, .program = {}});
  return use;
}

Return List(const DeviceUse& use, unsigned* count, ProcessInfoV1* processes) {
  return Fill(use.processes, count, processes, [](const BrokerView::Process& process) {
    return ProcessInfoV1{static_cast<unsigned>(process.pid), process.memory_bytes};
  });
}

Return List(const DeviceUse& use, unsigned* count, ProcessInfo* processes) {
  return Fill(use.processes, count, processes, [](const BrokerView::Process& process) {
    return ProcessInfo{static_cast<unsigned>(process.pid), process.memory_bytes, kNoInstance, kNoInstance};
  });
}

Return List(const DeviceUse& use, unsigned* count, ProcessDetail* processes) {
  return Fill(use.processes, count, processes, [](const BrokerView::Process& process) {
    return ProcessDetail{static_cast<unsigned>(process.pid), process.memory_bytes, kNoInstance, kNoInstance, 0};
  });
}

Return List(const BrokerView::Work& work, std::uint64_t last_seen_us, unsigned* count, ProcessSample* processes) {
  return FillWork(work, last_seen_us, count, processes, [](const BrokerView::Work::Part& part, std::uint64_t now) {
    return ProcessSample{static_cast<unsigned>(part.pid), now, Percent(part.share), 0, 0, 0};
  });
}

Return List(const BrokerView::Work& work, std::uint64_t last_seen_us, unsigned* count, ProcessWork* processes) {
  return FillWork(work, last_seen_us, count, processes, [](const BrokerView::Work::Part& part, std::uint64_t now) {
    return ProcessWork{now, static_cast<unsigned>(part.pid), Percent(part.share), 0, 0, 0, 0, 0};
  });
}

unsigned Percent(double share) { return static_cast<unsigned>(std::lround(share * 100)); }

std::string NameOf(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/";
  std::string name = TextOf(folder + "cmdline");
  name.resize(name.find('\0') != std::string::npos ? name.find('\0') : name.size());
  if (!name.empty()) return name;
  name = TextOf(folder + "comm");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

}  // namespace gridloom::nvml
