#include "interpose/launcher/installation.h"

#include <cstdlib>
#include <string>
#include <system_error>

#include "sim/exec/runtime/code_cache.h"

namespace gridloom::launcher {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> FirstExisting(std::initializer_list<fs::path> candidates) {
  for (const fs::path& candidate : candidates) {
    std::error_code error;
    if (fs::exists(candidate, error)) return candidate.lexically_normal();
  }
  return std::nullopt;
}

}  // namespace

fs::path ToolDirectory() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path{} : self.parent_path();
}

std::optional<fs::path> FindLibrary(std::string_view name) {
  const fs::path directory = ToolDirectory();
  return FirstExisting({directory / name, directory / "../lib/gridloom" / name});
}

std::optional<fs::path> FindDriverLinks() {
  const fs::path directory = ToolDirectory();
  const auto link = FirstExisting({directory / "driver/libcuda.so.1", directory / "../lib/gridloom/libcuda.so.1"});
  if (!link) return std::nullopt;
  return link->parent_path();
}

std::optional<fs::path> FindSample(std::string_view name) {
  const std::string program = "driver_" + std::string(name);
  const fs::path directory = ToolDirectory();
  return FirstExisting({directory / "apps" / program, directory / "../lib/gridloom/samples" / program});
}

fs::path CacheDirectory() {
  const char* own = std::getenv("GRIDLOOM_CACHE_DIR");
  if (own == nullptr) return exec::DefaultCacheDirectory();
  return std::string_view(own) == "off" ? fs::path{} : fs::path(own);
}

}  // namespace gridloom::launcher
