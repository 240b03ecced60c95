// gridloom cache: what is in the folder of compiled kernels, less of it, and its way to another machine.
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "interpose/launcher/commands.h"
#include "interpose/launcher/installation.h"
#include "rewriter/support/json.h"
#include "rewriter/support/quantity.h"
#include "rewriter/support/terminal.h"

namespace gridloom::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".glk";
constexpr std::size_t kKeyLetters = 32;
/// No kernel's code is near it.
constexpr std::uintmax_t kLargestEntry = std::uintmax_t{256} << 20;

/// `prefix`, that many letters of a hexadecimal number, `suffix`.
bool IsNumbered(std::string_view name, std::string_view prefix, std::size_t letters, std::string_view suffix) {
  if (name.size() != prefix.size() + letters + suffix.size()) return false;
  const std::string_view number = name.substr(prefix.size(), letters);
  return name.starts_with(prefix) && name.ends_with(suffix) &&
         number.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsEntryName(const std::string& name) { return IsNumbered(name, "", kKeyLetters, kSuffix); }
/// What was measured of a kind of processor. Keys of kernels follow from it, so that it goes with them.
bool IsMeasurementName(const std::string& name) { return IsNumbered(name, "processor-", 16, ".txt"); }

struct Entry {
  fs::path path;
  std::uintmax_t bytes = 0;
  fs::file_time_type used;  ///< last: kernels that are read are touched
};

/// The kernels of a folder, those used last first. Nothing else in it is theirs.
std::vector<Entry> EntriesOf(const fs::path& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (const fs::directory_entry& item : fs::directory_iterator(folder, error)) {
    std::error_code unreadable;
    if (!IsEntryName(item.path().filename()) || item.symlink_status(unreadable).type() != fs::file_type::regular)
      continue;
    Entry entry{item.path(), item.file_size(unreadable), item.last_write_time(unreadable)};
    if (!unreadable) entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, std::greater{}, [](const Entry& entry) { return std::pair(entry.used, entry.path); });
  return entries;
}

std::uintmax_t BytesOf(const std::vector<Entry>& entries) {
  std::uintmax_t bytes = 0;
  for (const Entry& entry : entries) bytes += entry.bytes;
  return bytes;
}

/// Runs tar, whose compression follows from the archive's name. `names`: what it reads from its standard input.
Status RunTar(const std::vector<std::string>& arguments, const std::string& names) {
  const int list = memfd_create("names", MFD_CLOEXEC);
  if (list < 0) return Error{std::string("cannot keep the names for tar: ") + std::strerror(errno)};
  if (write(list, names.data(), names.size()) != static_cast<ssize_t>(names.size()) || lseek(list, 0, SEEK_SET) != 0) {
    close(list);
    return Error{std::string("cannot keep the names for tar: ") + std::strerror(errno)};
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, list, STDIN_FILENO);
  std::vector<char*> words;
  std::string tar = "tar";
  words.push_back(tar.data());
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, "tar", &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(list);
  if (failed != 0) return Error{std::string("cannot start tar: ") + std::strerror(failed)};
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return Error{"tar could not do it"};
  return {};
}

class Cache final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.add_option("action", action_, "show (the default), prune, export or import")->type_name("");
    app.add_option("file", file_, "export, import: the archive; .tar, .tar.gz, .tar.zst")->type_name("");
    app.add_option("--size", size_, "prune: keep those used last, as many as are no larger together: 200M, 1G")
        ->type_name("SIZE");
    app.add_option("--days", days_, "prune: keep those used within N days")->type_name("N");
    app.add_flag("--all", all_, "prune: keep none");
    app.add_flag("--json", json_, "show: print JSON");
  }

  int Run() override {
    folder_ = CacheDirectory();
    if (folder_.empty()) return Fail("there is no cache: GRIDLOOM_CACHE_DIR is off, or there is no home folder");
    if (action_ == "show") return Show();
    if (action_ == "prune") return Prune();
    if (action_ != "export" && action_ != "import")
      return Fail("cannot " + action_ + " a cache; expected show, prune, export or import");
    if (file_.empty()) return Fail("which archive?\n  for example: gridloom cache " + action_ + " kernels.tar.zst");
    return action_ == "export" ? Export() : Import();
  }

 private:
  int Show() const {
    const std::vector<Entry> entries = EntriesOf(folder_);
    if (json_) {
      const nlohmann::ordered_json shown = {
          {"folder", folder_.string()}, {"kernels", entries.size()}, {"bytes", BytesOf(entries)}};
      Print(JsonText(shown, 2) + "\n");
      return kExitOk;
    }
    Print(folder_.string() + ": " + Count(entries.size()) + ", " + SizeText(BytesOf(entries)) + "\n");
    return kExitOk;
  }

  int Prune() const {
    if (!all_ && size_.empty() && days_ < 0) return Fail("prune to what? --size SIZE, --days N, or --all");
    const auto limit = size_.empty() ? std::optional<std::uint64_t>(UINT64_MAX) : ParseBytes(size_);
    if (!limit) return Fail("--size is '" + size_ + "'; expected a number of bytes such as 200M or 1G");
    const auto oldest = fs::file_time_type::clock::now() - std::chrono::hours(24) * days_;
    std::size_t gone = 0;
    std::uintmax_t kept = 0, freed = 0;
    bool full = all_;
    for (const Entry& entry : EntriesOf(folder_)) {
      full = full || kept + entry.bytes > *limit || (days_ >= 0 && entry.used < oldest);
      std::error_code error;
      if (!full || !fs::remove(entry.path, error)) {
        kept += entry.bytes;
        continue;
      }
      ++gone;
      freed += entry.bytes;
    }
    Print("removed " + Count(gone) + ", " + SizeText(freed) + "; " + SizeText(kept) + " left\n");
    return kExitOk;
  }

  int Export() const {
    const std::vector<Entry> entries = EntriesOf(folder_);
    if (entries.empty()) return Fail("there are no kernels in " + folder_.string());
    std::vector<std::string> names;
    for (const Entry& entry : entries) names.push_back(entry.path.filename());
    std::error_code error;
    for (const fs::directory_entry& item : fs::directory_iterator(folder_, error))
      if (IsMeasurementName(item.path().filename())) names.push_back(item.path().filename());
    std::ranges::sort(names);
    std::string list;
    for (const std::string& name : names) list += name + "\n";
    const fs::path archive = fs::absolute(file_);
    const Status status = RunTar({"--create", "--auto-compress", "--owner=0", "--group=0", "--numeric-owner",
                                  "--file=" + archive.string(), "--directory=" + folder_.string(), "--files-from=-"},
                                 list);
    if (!status.ok()) return Fail(status.error().message);
    Print(file_ + ": " + Count(entries.size()) + ", " + SizeText(BytesOf(entries)) + "\n");
    return kExitOk;
  }

  /// Only what has a kernel's name comes in; what is no kernel of this build is ignored when it is looked for.
  int Import() const {
    std::error_code error;
    fs::create_directories(folder_, error);
    std::string room = (folder_ / "import-XXXXXX").string();
    if (mkdtemp(room.data()) == nullptr)
      return Fail("cannot write to " + folder_.string() + ": " + std::strerror(errno));
    fs::permissions(folder_, fs::perms::owner_all, error);  // as the cache makes it
    const Status status =
        RunTar({"--extract", "--no-same-owner", "--no-same-permissions", "--file=" + file_, "--directory=" + room}, "");
    if (!status.ok()) {
      fs::remove_all(room, error);
      return Fail(file_ + ": " + status.error().message);
    }
    std::size_t added = 0, there = 0, strange = 0;
    for (const fs::directory_entry& item : fs::directory_iterator(room, error)) {
      std::error_code bad;
      const bool kernel = IsEntryName(item.path().filename());
      const bool ours = (kernel || IsMeasurementName(item.path().filename())) &&
                        item.symlink_status(bad).type() == fs::file_type::regular &&
                        item.file_size(bad) <= kLargestEntry && item.hard_link_count(bad) == 1;
      const fs::path place = folder_ / item.path().filename();
      if (!ours) ++strange;
      else if (fs::exists(place, bad)) there += kernel ? 1 : 0;
      else if (chmod(item.path().c_str(), S_IRUSR | S_IWUSR) == 0 && rename(item.path().c_str(), place.c_str()) == 0)
        added += kernel ? 1 : 0;
    }
    fs::remove_all(room, error);
    Print("added " + Count(added) + "; " + std::to_string(there) + " were there" +
          (strange == 0 ? "" : "; " + std::to_string(strange) + " files are no part of a cache and were left out") +
          "\n");
    return kExitOk;
  }

  static std::string Count(std::size_t kernels) {
    return std::to_string(kernels) + (kernels == 1 ? " kernel" : " kernels");
  }

  std::string action_ = "show", file_, size_;
  int days_ = -1;
  bool all_ = false, json_ = false;
  fs::path folder_;
};

}  // namespace

std::unique_ptr<Command> MakeCache() { return std::make_unique<Cache>(); }

}  // namespace gridloom::launcher
