// Who did what: one line of JSON for each event (docs/broker.md lists them). What a tenant can cause as often as it
// likes is written so often and no more, and then counted; files are bounded in size and number.
#pragma once

#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/daemon/state_folder.h"

namespace gridloom::broker {

/// What the audit log may take.
struct AuditBounds {
  std::uint64_t file_bytes = 16 << 20;  ///< a file that is larger is put aside
  std::uint32_t files = 4;              ///< that one included
  std::uint32_t lines_per_minute = 60;  ///< of one event and one tenant or user, after a burst of kAuditBurst
};
inline constexpr std::uint32_t kAuditBurst = 100;

/// Which lines are written. A bucket for each event and subject (a tenant, or a user): it holds kAuditBurst lines and
/// is filled again with time. Lines that find it empty are counted, and the count becomes a line of its own.
class AuditThrottle {
 public:
  explicit AuditThrottle(std::uint32_t lines_per_minute) : lines_per_minute_(lines_per_minute) {}

  /// False: the line is counted, not written. `now`: nanoseconds of a steady clock.
  bool Admit(std::string_view event, std::string_view subject, std::uint64_t now);
  struct Count {
    std::string event, subject;
    std::uint64_t lines = 0;
  };
  /// Counts that are old enough to be told; all of them when the log ends.
  std::vector<Count> Tell(std::uint64_t now, bool all = false);
  /// When Tell has something; 0: nothing is counted.
  std::uint64_t due() const { return due_; }
  std::size_t subjects() const { return buckets_.size(); }

 private:
  struct Bucket {
    Count count;
    double lines = kAuditBurst;  ///< that may come at `since`
    std::uint64_t since = 0;     ///< when it was looked at last
    std::uint64_t counting = 0;  ///< when the first line was counted
  };
  double LinesAt(const Bucket& bucket, std::uint64_t now) const;
  void Forget(std::uint64_t now);

  const std::uint32_t lines_per_minute_;
  std::unordered_map<std::string, Bucket> buckets_;
  std::uint64_t due_ = 0, forgot_ = 0;
};

/// The files: audit.jsonl, and before it audit.jsonl.1, .2, … Used by one thread.
class AuditLog {
 public:
  static Result<AuditLog> Open(StateFolder& folder, const AuditBounds& bounds);
  /// Whole lines, in one write and in one file. False: they are lost.
  bool Write(const std::string& lines);

 private:
  AuditLog(StateFolder& folder, const AuditBounds& bounds) : folder_(&folder), bounds_(bounds) {}
  Status OpenFile();
  Status PutAside();

  StateFolder* folder_;
  AuditBounds bounds_;
  protocol::Fd file_;
  std::uint64_t size_ = 0;
};

/// Time and event, then the details.
std::string AuditLine(const timespec& time, std::string_view event, const nlohmann::ordered_json& details);

}  // namespace gridloom::broker
