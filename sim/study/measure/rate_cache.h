// Measurements kept on disk, so that an experiment that was interrupted, or that shares measurements with another, goes
// on where it was.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/device/device_spec.h"

namespace gridloom::study {

/// Text to numbers, in a file of JSON lines that only grows. Thread-safe. A key says all that decides about the
/// numbers; two processes with one file may measure the same thing twice, and nothing worse.
class RateCache {
 public:
  /// Reads what is there; lines that are damaged (a process was killed while it wrote) are measured again. An empty
  /// path keeps nothing on disk.
  static Result<std::unique_ptr<RateCache>> Open(const std::string& path);

  std::optional<std::vector<double>> Find(const std::string& key) const;
  /// Fails when the disk does.
  Status Add(const std::string& key, const std::vector<double>& numbers);

 private:
  explicit RateCache(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::vector<double>> numbers_;  // by key
};

/// All values of a device and of its proposed parts, hashed: part of keys.
std::string DeviceDigest(const sim::DeviceSpec& device);

}  // namespace gridloom::study
