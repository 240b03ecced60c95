#include "scheduler/daemon/state_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "rewriter/support/whole_file.h"

namespace gridloom::broker {

using Json = nlohmann::ordered_json;

namespace {

constexpr int kVersion = 1;

Error Failed(const std::string& what, const std::string& path) { return Error{what + " " + path + ": " + std::strerror(errno)}; }

/// Writes `text` to a new file, and to its disk.
Status WriteNew(const std::string& path, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return Failed("cannot write", path);
  int problem = WriteWhole(fd, text);
  if (problem == 0 && fdatasync(fd) != 0) problem = errno;
  close(fd);
  errno = problem;
  return problem == 0 ? Status() : Failed("cannot write", path);
}

}  // namespace

Result<std::optional<std::string>> ReadStateFile(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::optional<std::string>();
  GL_TRY(text, ReadWholeFile(path));
  return std::optional(std::move(text));
}

Result<Json> ParseTenants(std::string_view text, const std::string& path, const std::string& what) {
  Json json = Json::parse(text, nullptr, false);
  const bool good = json.is_object() && json.contains("version") && json["version"] == kVersion && json.contains("tenants") &&
                    json["tenants"].is_object();
  if (!good) return Error{path + " is no " + what};
  return std::move(json["tenants"]);
}

std::string TenantsText(Json tenants) {
  return Json{{"version", kVersion}, {"tenants", std::move(tenants)}}.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status ReplaceFile(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  Status written = WriteNew(fresh, text);
  if (written.ok() && rename(fresh.c_str(), path.c_str()) != 0) written = Failed("cannot write", path);
  if (!written.ok()) {
    unlink(fresh.c_str());
    return written;
  }
  const int folder = open(std::filesystem::path(path).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);  // the name, too, outlives a loss of power; without it only the last second of accounts is lost
    close(folder);
  }
  return {};
}

}  // namespace gridloom::broker
