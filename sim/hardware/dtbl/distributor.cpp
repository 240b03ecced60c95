#include "sim/hardware/dtbl/distributor.h"

#include <algorithm>
#include <utility>

namespace gridloom::hardware {

void Distributor::Add(RunningKernel kernel) {
  auto entry = std::ranges::find_if(entries_, [](const auto& one) { return !one.has_value(); });
  if (entry == entries_.end()) entry = entries_.emplace(entries_.end());
  entry_of_[kernel.kernel] = static_cast<std::size_t>(entry - entries_.begin());
  *entry = std::move(kernel);
}

void Distributor::Remove(timing::WorkId kernel) {
  if (const auto entry = entry_of_.extract(kernel); !entry.empty()) entries_[entry.mapped()].reset();
}

RunningKernel* Distributor::Find(timing::WorkId kernel) {
  const auto entry = entry_of_.find(kernel);
  return entry == entry_of_.end() ? nullptr : &*entries_[entry->second];
}

RunningKernel* Distributor::FindLike(std::uint64_t code, std::uint32_t address_space) {
  const auto entry = std::ranges::find_if(entries_, [&](const auto& one) {
    return one.has_value() && one->code == code && one->address_space == address_space;
  });
  return entry == entries_.end() ? nullptr : &**entry;
}

void Distributor::Join(RunningKernel& kernel, Group group) {
  group.first_cta = kernel.ctas;
  kernel.ctas += group.ctas;
  kernel.waiting.push_back(std::move(group));
}

void Distributor::Start(RunningKernel& kernel) {
  ++kernel.started;
  while (!kernel.waiting.empty() && kernel.waiting.front().first_cta + kernel.waiting.front().ctas <= kernel.started) {
    kernel.waiting.pop_front();
  }
}

Group* Distributor::Next(RunningKernel& kernel) {
  if (kernel.waiting.empty() || kernel.started < kernel.waiting.front().first_cta) return nullptr;
  return &kernel.waiting.front();
}

}  // namespace gridloom::hardware
