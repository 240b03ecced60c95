#include "scheduler/daemon/accounts.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace gridloom::broker {
namespace {

using Json = nlohmann::ordered_json;

/// The names in the file.
template <typename Account, typename Visit>
void ForEachField(Account& account, const Visit& visit) {
  visit("launches", account.launches);
  visit("faults", account.faults);
  visit("slices", account.slices);
  visit("ctas", account.ctas);
  visit("copied_bytes", account.copied_bytes);
  visit("peak_memory_bytes", account.peak_memory_bytes);
  visit("device_seconds", account.device_seconds);
  visit("simulated_seconds", account.simulated_seconds);
}

Error Failed(const std::string& what, const std::string& path) { return Error{what + " " + path + ": " + std::strerror(errno)}; }

}  // namespace

Result<Accounts> ReadAccounts(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    if (errno == ENOENT) return Accounts{};
    return Failed("cannot read", path);
  }
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object() || json.value("version", 0) != 1 || !json.contains("tenants") || !json["tenants"].is_object()) {
    return Error{path + " is no file of accounts"};
  }
  Accounts accounts;
  for (const auto& [name, fields] : json["tenants"].items()) {
    Account& account = accounts[name];
    bool good = fields.is_object();
    ForEachField(account, [&](const char* key, auto& value) {
      if (!good || !fields.contains(key)) return;
      if (fields[key].is_number()) value = fields[key].template get<std::decay_t<decltype(value)>>();
      else good = false;
    });
    if (!good) return Error{path + ": the account of " + name + " is damaged"};
  }
  return accounts;
}

Status WriteAccounts(const std::string& path, const Accounts& accounts) {
  Json json{{"version", 1}, {"tenants", Json::object()}};
  for (const auto& [name, account] : accounts) {
    Json& fields = json["tenants"][name] = Json::object();
    ForEachField(account, [&](const char* key, const auto& value) { fields[key] = value; });
  }
  return ReplaceFile(path, json.dump(1) + "\n");
}

Status ReplaceFile(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return Failed("cannot write", fresh);
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(fd, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const Error error = Failed("cannot write", fresh);
      close(fd);
      unlink(fresh.c_str());
      return error;
    }
    written += static_cast<std::size_t>(count);
  }
  const bool synced = fdatasync(fd) == 0;
  close(fd);
  if (!synced || rename(fresh.c_str(), path.c_str()) != 0) return Failed("cannot write", path);
  const int folder = open(std::filesystem::path(path).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);  // the name, too, outlives a loss of power; without it only the last second of accounts is lost
    close(folder);
  }
  return {};
}

}  // namespace gridloom::broker
