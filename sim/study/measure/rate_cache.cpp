#include "sim/study/measure/rate_cache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rewriter/support/json.h"
#include "sim/hardware/catalog.h"

namespace gridloom::study {

using Json = nlohmann::json;

Result<std::unique_ptr<RateCache>> RateCache::Open(const std::string& path) {
  std::unique_ptr<RateCache> cache(new RateCache(path));
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const Json record = ParseJson<Json>(line);
    if (!record.is_object() || !record.contains("key") || !record["key"].is_string() || !record.contains("numbers")) continue;
    const Json& numbers = record["numbers"];
    if (!numbers.is_array() || !std::ranges::all_of(numbers, [](const Json& number) { return number.is_number(); })) continue;
    cache->numbers_[record["key"].get<std::string>()] = numbers.get<std::vector<double>>();
  }
  return cache;
}

std::optional<std::vector<double>> RateCache::Find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = numbers_.find(key);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

Status RateCache::Add(const std::string& key, const std::vector<double>& numbers) {
  const std::lock_guard lock(mutex_);
  numbers_[key] = numbers;
  if (path_.empty()) return {};
  // One write of one line: O_APPEND keeps those of several processes apart. A line cut off by a kill is closed by the newline.
  std::ofstream out(path_, std::ios::app);
  const std::string line = JsonText(Json{{"key", key}, {"numbers", numbers}});
  out << "\n" + line + "\n" << std::flush;
  if (!out) return Error{"cannot write " + path_ + ": " + std::strerror(errno)};
  return {};
}

std::string DeviceDigest(const sim::DeviceSpec& device) {
  std::string text;
  for (const sim::DeviceField& field : sim::DeviceFields()) text += std::string(field.key) + "=" + sim::FieldText(field, device) + "\n";
  for (const hardware::KeyText& field : hardware::FieldsOf(device)) text += field.key + "=" + field.value + "\n";
  char hash[20];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return hash;
}

}  // namespace gridloom::study
