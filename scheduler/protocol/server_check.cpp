#include "scheduler/protocol/server_check.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace gridloom::protocol {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

Result<PathStep> Look(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return Error{"cannot look at " + path + ": " + std::strerror(errno)};
  return PathStep{path, info.st_uid, info.st_mode};
}

/// Puts the parts of a path before those that are still to be passed (the next one is the last of `ahead`).
void PutBefore(const fs::path& path, std::vector<std::string>& ahead) {
  std::vector<std::string> parts;
  for (const fs::path& part : path.relative_path()) parts.push_back(part.string());
  ahead.insert(ahead.end(), parts.rbegin(), parts.rend());
}

std::string User(uid_t uid) { return "user " + std::to_string(uid); }

Error Distrusted(const PathStep& socket, const std::string& why) {
  return Error{"nothing is said to the broker on " + socket.path + ": " + why};
}

/// Why a path does not say that the broker is to be this user's; empty: it does.
std::string Doubt(const SocketPath& path, uid_t server, uid_t self) {
  for (const PathStep& step : path.steps) {
    if (step.uid != 0 && step.uid != self && step.uid != server) return step.path + " belongs to " + User(step.uid);
    if (!S_ISLNK(step.mode) && (step.mode & kOthersWrite) != 0) return "others may put files into " + step.path;
  }
  if (path.socket.uid != server) return "the socket belongs to " + User(path.socket.uid);
  return {};
}

}  // namespace

Result<SocketPath> WalkTo(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  if (error) return Error{"cannot tell where " + path + " is: " + error.message()};
  SocketPath found;
  std::vector<std::string> ahead;
  PutBefore(whole, ahead);
  GL_TRY(root, Look("/"));
  std::vector<PathStep> folders{root};
  found.steps.push_back(std::move(root));
  for (int links = 0; !ahead.empty();) {
    const std::string name = ahead.back();
    ahead.pop_back();
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      if (folders.size() > 1) folders.pop_back();
      continue;
    }
    GL_TRY(step, Look((fs::path(folders.back().path) / name).string()));
    if (S_ISSOCK(step.mode) && ahead.empty()) {
      found.folder = folders.back();
      found.socket = std::move(step);
      return found;
    }
    if (S_ISLNK(step.mode)) {
      const fs::path target = fs::read_symlink(step.path, error);
      if (error || ++links > kMostLinks) return Error{"cannot follow the link " + step.path};
      if (target.is_absolute()) folders.resize(1);
      PutBefore(target, ahead);
    } else if (S_ISDIR(step.mode)) {
      folders.push_back(step);
    } else {
      return Error{step.path + " is no folder"};
    }
    found.steps.push_back(std::move(step));
  }
  return Error{path + " is no socket"};
}

Status CheckServer(const SocketPath& path, const Peer& server, uid_t self) {
  const PathStep& folder = path.folder;
  if (!server.user_known) {
    return Distrusted(
        path.socket,
        "its user has no number in this user namespace, so that nobody can tell who it is; run the broker as a "
        "user whom the namespace maps");
  }
  if (server.uid != 0 && server.uid != self) {
    const std::string doubt = Doubt(path, server.uid, self);
    if (doubt.empty()) return {};
    return Distrusted(
        path.socket,
        "it is served by " + User(server.uid) + ", who is neither you (" + User(self) + ") nor root, and " + doubt +
            "; an operator has to put the broker's socket into a folder that is the broker's user's or root's "
            "and that nobody else may write to, such as /run/gridloom");
  }
  if (folder.uid != 0 && folder.uid != self && folder.uid != server.uid) {
    return Distrusted(path.socket, folder.path + " belongs to " + User(folder.uid) +
                                       "; remove it, or choose another place for the socket");
  }
  if ((folder.mode & kOthersWrite) != 0 && (folder.mode & S_ISVTX) == 0) {
    return Distrusted(path.socket,
                      "others may write into " + folder.path + "; choose another folder, or `chmod go-w` it");
  }
  return {};
}

}  // namespace gridloom::protocol
