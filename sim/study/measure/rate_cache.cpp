#include "sim/study/measure/rate_cache.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rewriter/support/json.h"
#include "rewriter/support/whole_file.h"
#include "sim/hardware/catalog.h"

namespace gridloom::study {

using Json = nlohmann::json;

Result<std::unique_ptr<RateCache>> RateCache::Open(const std::string& path) {
  std::unique_ptr<RateCache> cache(new RateCache(path));
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return cache;
  GL_TRY(text, ReadWholeFile(path));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const Json record = ParseJson<Json>(line);
    if (!record.is_object() || !record.contains("key") || !record["key"].is_string() || !record.contains("numbers"))
      continue;
    const Json& numbers = record["numbers"];
    if (!numbers.is_array() || !std::ranges::all_of(numbers, [](const Json& number) { return number.is_number(); }))
      continue;
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
  // One write of one line: O_APPEND keeps those of several processes apart. A line cut off by a kill is closed by the
  // newline.
  const std::string line = "\n" + JsonText(Json{{"key", key}, {"numbers", numbers}}) + "\n";
  const int file = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK,
                        0666);  // a FIFO would wait for a reader
  const int error = file < 0 ? errno : WriteWhole(file, line);
  if (file >= 0) close(file);
  if (error != 0) return Error{"cannot write " + path_ + ": " + std::strerror(error)};
  return {};
}

std::string DeviceDigest(const sim::DeviceSpec& device) {
  std::string text;
  for (const sim::DeviceField& field : sim::DeviceFields())
    text += std::string(field.key) + "=" + sim::FieldText(field, device) + "\n";
  for (const hardware::KeyText& field : hardware::FieldsOf(device)) text += field.key + "=" + field.value + "\n";
  char hash[20];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return hash;
}

}  // namespace gridloom::study
