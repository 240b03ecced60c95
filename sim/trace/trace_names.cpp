#include "sim/trace/trace_names.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace gridloom::trace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProcess = "%p";

}  // namespace

std::string NameForThisProcess(std::string name) {
  if (const std::size_t at = name.rfind(kProcess); at != std::string::npos)
    name.replace(at, kProcess.size(), std::to_string(getpid()));
  return name;
}

std::vector<std::string> FilesOfProcesses(const std::string& name) {
  std::error_code error;
  const fs::path path(name);
  const std::string file = path.filename().string();
  const std::size_t at = file.rfind(kProcess);
  if (at == std::string::npos) return fs::exists(path, error) ? std::vector{name} : std::vector<std::string>();
  const std::string_view before = std::string_view(file).substr(0, at),
                         behind = std::string_view(file).substr(at + kProcess.size());
  std::vector<std::pair<unsigned long, std::string>> found;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(path.has_parent_path() ? path.parent_path() : ".", error)) {
    const std::string other = entry.path().filename().string();
    if (other.size() <= before.size() + behind.size() || !other.starts_with(before) || !other.ends_with(behind))
      continue;
    unsigned long number = 0;
    const char* const end = other.data() + other.size() - behind.size();
    const auto read = std::from_chars(other.data() + before.size(), end, number);
    if (read.ec == std::errc() && read.ptr == end) found.emplace_back(number, (path.parent_path() / other).string());
  }
  std::ranges::sort(found);
  std::vector<std::string> files;
  for (auto& [number, one] : found) files.push_back(std::move(one));
  return files;
}

}  // namespace gridloom::trace
