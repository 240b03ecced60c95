#include "sim/device/device_files.h"

#include <dlfcn.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "rewriter/support/suggest.h"
#include "rewriter/support/whole_file.h"

namespace gridloom::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".yaml";
constexpr std::size_t kMaxInheritance = 16;

bool IsPath(std::string_view name) { return name.find('/') != std::string_view::npos || name.ends_with(kExtension); }

/// Folder of the executable or shared library that contains this function.
fs::path OwnDirectory() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&OwnDirectory), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  fs::path file = fs::canonical(info.dli_fname, error);
  // For the executable itself dli_fname is argv[0], which need not be a path.
  if (error) file = fs::canonical("/proc/self/exe", error);
  return error ? fs::path{} : file.parent_path();
}

Error UnknownDevice(std::string_view name, const fs::path& directory) {
  const std::vector<std::string> ids = DeviceIds(directory);
  const std::vector<std::string_view> views(ids.begin(), ids.end());
  std::string message = "unknown device '" + std::string(name) + "' (looked in " + directory.string() + ")";
  const std::string_view nearest = NearestName(name, views);
  if (!nearest.empty()) message += "; did you mean '" + std::string(nearest) + "'?";
  else message += "; `gridloom devices` lists them";
  return Error{std::move(message)};
}

/// Where `inherits: id` of `file` leads.
fs::path ParentFile(const std::string& id, const fs::path& file, const fs::path& directory) {
  const fs::path name = id + std::string(kExtension);
  std::error_code error;
  const fs::path beside = file.parent_path() / name;
  return fs::exists(beside, error) ? beside : directory / name;
}

struct SourceFile {
  fs::path path;
  std::string text;
};

/// The file and everything it inherits from, the most basic one last.
Result<std::vector<SourceFile>> ReadChain(fs::path file, const fs::path& directory) {
  std::vector<SourceFile> chain;
  while (true) {
    if (chain.size() == kMaxInheritance) return Error{file.string() + ": devices inherit from each other in a circle"};
    GL_TRY(text, ReadWholeFile(file.string()));
    DeviceSpec scratch;
    GL_TRY(applied, ApplyDeviceText(text, file.string(), scratch));
    chain.push_back({file, std::move(text)});
    if (applied.inherits.empty()) return chain;
    file = ParentFile(applied.inherits, file, directory);
  }
}

}  // namespace

Result<fs::path> DeviceDirectory() {
  const fs::path own = OwnDirectory();
  // Build tree: build/gridloom and build/libgridloom.so beside build/configs, tests in build/tests. Installed:
  // bin/gridloom and lib/gridloom/libgridloom.so.
  const fs::path candidates[] = {own / "configs/devices", own / "../configs/devices", own / "../share/gridloom/devices",
                                 own / "../../share/gridloom/devices"};
  for (const fs::path& candidate : candidates) {
    std::error_code error;
    if (fs::is_directory(candidate, error)) return fs::canonical(candidate, error);
  }
  return Error{"no device files beside " + own.string() +
               " (expected share/gridloom/devices in the installed tree); reinstall Gridloom"};
}

std::vector<std::string> DeviceIds(const fs::path& directory) {
  std::vector<std::string> ids;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() != kExtension) continue;
    std::string id = entry.path().stem().string();
    if (!id.starts_with('_')) ids.push_back(std::move(id));
  }
  std::ranges::sort(ids);
  return ids;
}

Result<DeviceSpec> LoadDevice(std::string_view name, const fs::path& directory) {
  const fs::path file = IsPath(name) ? fs::path(name) : directory / (std::string(name) + std::string(kExtension));
  std::error_code error;
  if (!IsPath(name) && !fs::exists(file, error)) return UnknownDevice(name, directory);
  GL_TRY(chain, ReadChain(file, directory));

  DeviceSpec spec;
  std::set<std::string_view> given;
  for (auto source = chain.rbegin(); source != chain.rend(); ++source) {
    GL_TRY(applied, ApplyDeviceText(source->text, source->path.string(), spec));
    given.insert(applied.keys.begin(), applied.keys.end());
  }
  for (const DeviceField& field : DeviceFields()) {
    if (!given.contains(field.key))
      return Error{file.string() + ": key '" + std::string(field.key) + "' is missing (" + std::string(field.meaning) +
                   ")"};
  }
  const Status valid = ValidateDevice(spec);
  if (!valid.ok()) return Error{file.string() + ": " + valid.error().message};
  spec.id = file.stem().string();
  return spec;
}

Result<DeviceSpec> LoadDevice(std::string_view name) {
  GL_TRY(directory, DeviceDirectory());
  return LoadDevice(name, directory);
}

std::string GenericDeviceId(ComputeCapability capability) { return "sm_" + std::to_string(capability.sm()); }

}  // namespace gridloom::sim
