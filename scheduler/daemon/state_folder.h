// The broker's state folder, opened once and checked: it belongs to the broker's user and nobody else may write into
// it. Files are opened beside the open folder, never through a link, and only if they are the broker's own: a daemon of
// root's cannot be made to write over somebody else's file. Files are replaced whole, so that a crash at any point
// leaves the old one or the new one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rewriter/support/result.h"
#include "scheduler/daemon/spare_descriptor.h"
#include "scheduler/protocol/socket.h"

namespace gridloom::broker {

/// What the state files ask of a disk; tests make it slow or full.
class Disk {
 public:
  virtual ~Disk() = default;
  /// 0, or errno.
  virtual int Write(int file, std::string_view bytes);
  virtual int Sync(int file);
};

class StateFolder {
 public:
  /// Makes the folder, owner-only, where it is missing, and holds it against other brokers. `disk`: null: as it is.
  static Result<StateFolder> Open(const std::string& path, std::shared_ptr<Disk> disk = nullptr);

  const std::string& path() const { return path_; }
  /// A file's text; nothing when there is no file yet.
  Result<std::optional<std::string>> Read(const std::string& name);
  /// Writes a file whole: another name first, then in its place. On a full disk it takes the room that is kept for
  /// this.
  Status Replace(const std::string& name, std::string_view text);
  /// A file to append to; made where it is missing.
  Result<protocol::Fd> OpenToAppend(const std::string& name);
  Status Rename(const std::string& from, const std::string& to);
  /// Does nothing when there is no such file.
  void Remove(const std::string& name);
  Disk& disk() { return *disk_; }

 private:
  StateFolder(std::string path, protocol::Fd folder, std::shared_ptr<Disk> disk)
      : path_(std::move(path)), folder_(std::move(folder)), disk_(std::move(disk)) {}
  protocol::Fd OpenFile(const std::string& name, int flags);
  Status CheckFile(int file, const std::string& name) const;
  int WriteNew(const std::string& name, std::string_view text);
  bool GiveRoom();
  void KeepRoom(std::uint64_t bytes);
  Error Failed(const std::string& what, const std::string& name, int error) const;

  std::string path_;
  protocol::Fd folder_;
  std::shared_ptr<Disk> disk_;
  SpareDescriptor spare_;
  std::uint64_t room_ = 0;  ///< bytes of the disk that are kept for replacing files; 0: none
};

}  // namespace gridloom::broker
