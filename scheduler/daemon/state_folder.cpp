#include "scheduler/daemon/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "rewriter/support/whole_file.h"

namespace gridloom::broker {

using protocol::Fd;

namespace {

/// The file whose blocks are given up when the disk is full.
constexpr const char* kRoomFile = "reserve";
constexpr std::uint64_t kLeastRoom = 256 << 10;

}  // namespace

int Disk::Write(int file, std::string_view bytes) { return WriteWhole(file, bytes); }
int Disk::Sync(int file) { return fdatasync(file) == 0 ? 0 : errno; }

Result<StateFolder> StateFolder::Open(const std::string& path, std::shared_ptr<Disk> disk) {
  std::string plain = path;
  while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();  // "LINK/" would be followed
  std::error_code error;
  const auto parent = std::filesystem::path(plain).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error || (mkdir(plain.c_str(), 0700) != 0 && errno != EEXIST)) {
    return Error{"cannot make the folder " + plain + ": " + (error ? error.message() : std::strerror(errno))};
  }
  Fd folder(open(plain.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!folder && (errno == ENOTDIR || errno == ELOOP) && lstat(plain.c_str(), &info) == 0) {
    return Error{"the state folder " + plain +
                 (S_ISLNK(info.st_mode) ? " is a link; name the folder itself" : " is no folder")};
  }
  if (!folder || fstat(folder.get(), &info) != 0)
    return Error{"cannot open the folder " + plain + ": " + std::strerror(errno)};
  if (info.st_uid != geteuid()) {
    return Error{"the state folder " + plain + " belongs to user " + std::to_string(info.st_uid) +
                 ", not to the broker's (" + std::to_string(geteuid()) + ")"};
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error{"others may write into the state folder " + plain + "; `chmod go-w " + plain + "` mends it"};
  }
  if ((info.st_mode & 0777) != 0700 && fchmod(folder.get(), 0700) != 0) {
    return Error{"cannot set the permissions of " + plain + ": " + std::strerror(errno)};
  }
  if (flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{errno == EWOULDBLOCK
                     ? "another broker keeps its state in " + plain + "; choose another folder, or `--state off`"
                     : "cannot lock the folder " + plain + ": " + std::strerror(errno)};
  }
  if (disk == nullptr) disk = std::make_shared<Disk>();
  return StateFolder(std::move(plain), std::move(folder), std::move(disk));
}

Error StateFolder::Failed(const std::string& what, const std::string& name, int error) const {
  return Error{what + " " + path_ + "/" + name + ": " + std::strerror(error)};
}

/// errno says why there is none.
Fd StateFolder::OpenFile(const std::string& name, int flags) {
  const auto attempt = [&] {
    return Fd(openat(folder_.get(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  };
  Fd file = attempt();
  if (!file && spare_.Help(errno)) file = attempt();
  return file;
}

/// The broker's own file and nothing else: neither a second name of somebody's file, nor a pipe that would never
/// answer.
Status StateFolder::CheckFile(int file, const std::string& name) const {
  struct stat info {};
  if (fstat(file, &info) != 0) return Failed("cannot look at", name, errno);
  const std::string path = path_ + "/" + name;
  if (S_ISDIR(info.st_mode)) return Error{"cannot read " + path + ": Is a directory"};
  if (!S_ISREG(info.st_mode)) return Error{path + " is no regular file"};
  if (info.st_uid != geteuid())
    return Error{path + " belongs to user " + std::to_string(info.st_uid) + ", not to the broker's"};
  if (info.st_nlink > 1) return Error{path + " has another name, too (a hard link); the broker does not use it"};
  return {};
}

Result<std::optional<std::string>> StateFolder::Read(const std::string& name) {
  const Fd file = OpenFile(name, O_RDONLY);
  if (!file && errno == ENOENT) return std::optional<std::string>();
  if (!file)
    return errno == ELOOP ? Error{path_ + "/" + name + " is a link; the broker does not follow it"}
                          : Failed("cannot read", name, errno);
  GL_TRY_STATUS(CheckFile(file.get(), name));
  std::string text;
  constexpr std::size_t kPart = 64 << 10;
  for (std::size_t size = 0;;) {
    text.resize(size + kPart);
    const ssize_t got = read(file.get(), text.data() + size, kPart);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("cannot read", name, errno);
    size += static_cast<std::size_t>(got);
    if (got > 0) continue;
    text.resize(size);
    return std::optional(std::move(text));
  }
}

Result<Fd> StateFolder::OpenToAppend(const std::string& name) {
  Fd file = OpenFile(name, O_WRONLY | O_CREAT | O_APPEND);
  if (!file) {
    return errno == ELOOP ? Error{path_ + "/" + name + " is a link; the broker does not follow it"}
                          : Failed("cannot write", name, errno);
  }
  GL_TRY_STATUS(CheckFile(file.get(), name));
  return file;
}

Status StateFolder::Rename(const std::string& from, const std::string& to) {
  if (renameat(folder_.get(), from.c_str(), folder_.get(), to.c_str()) == 0) return {};
  return Failed("cannot write", to, errno);
}

void StateFolder::Remove(const std::string& name) { unlinkat(folder_.get(), name.c_str(), 0); }

/// The text is in a new file, and on its disk; 0, or errno.
int StateFolder::WriteNew(const std::string& name, std::string_view text) {
  Remove(name);  // what an earlier attempt has left, or a link: the new one is made here and now
  const Fd file = OpenFile(name, O_WRONLY | O_CREAT | O_EXCL);
  if (!file) return errno;
  int problem = disk_->Write(file.get(), text);
  if (problem == 0) problem = disk_->Sync(file.get());
  if (problem != 0) Remove(name);
  return problem;
}

Status StateFolder::Replace(const std::string& name, std::string_view text) {
  const std::string fresh = name + ".new";
  int problem = WriteNew(fresh, text);
  if ((problem == ENOSPC || problem == EDQUOT) && GiveRoom()) problem = WriteNew(fresh, text);
  if (problem == 0 && renameat(folder_.get(), fresh.c_str(), folder_.get(), name.c_str()) != 0) {
    problem = errno;
    Remove(fresh);
  }
  if (problem == 0)
    disk_->Sync(folder_.get());  // the name, too, outlives a loss of power; without it only the last second is lost
  spare_.Keep();
  if (problem == 0) KeepRoom(text.size());
  return problem == 0 ? Status() : Failed("cannot write", name, problem);
}

bool StateFolder::GiveRoom() {
  room_ = 0;
  return unlinkat(folder_.get(), kRoomFile, 0) == 0;
}

/// Keeps room for replacing twice as much as was written, or for as much where the disk has no more. Disks that cannot
/// keep room have none.
void StateFolder::KeepRoom(std::uint64_t bytes) {
  if (room_ >= std::max(bytes, kLeastRoom)) return;
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  for (const std::uint64_t wanted : {std::max(bytes * 2, kLeastRoom), bytes + 4096}) {
    if (wanted > limit.rlim_cur) continue;  // it would cost a signal
    Remove(kRoomFile);
    const Fd file = OpenFile(kRoomFile, O_WRONLY | O_CREAT | O_EXCL);
    if (!file) return;
    if (fallocate(file.get(), 0, 0, static_cast<off_t>(wanted)) == 0) {
      room_ = wanted;
      return;
    }
    Remove(kRoomFile);
  }
}

}  // namespace gridloom::broker
