// What the broker keeps on disk, written by a thread of its own: a disk that takes a second for a write delays no
// launch. Limits that an operator has changed go first, then accounts, then the audit log, then what there is to tell
// the operator.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/daemon/accounts.h"
#include "scheduler/daemon/audit.h"
#include "scheduler/daemon/limits_file.h"
#include "scheduler/daemon/state_folder.h"

namespace gridloom::broker {

class StateWriter {
 public:
  using Json = nlohmann::ordered_json;
  using Log = std::function<void(const std::string&)>;

  /// `folder`: null: nothing is kept. `accounts`: what the file has. `log` takes a line for the operator, on the
  /// writer's thread.
  static Result<std::unique_ptr<StateWriter>> Start(std::unique_ptr<StateFolder> folder, Accounts accounts,
                                                    const AuditBounds& bounds, Log log);
  ~StateWriter();

  /// An event that an operator or the broker itself has caused.
  void Note(std::string_view event, Json details);
  /// An event that a tenant or a user (`subject`) has caused. True: it is written, not only counted; `details` is
  /// called only then.
  template <typename Details>
  bool Note(std::string_view event, std::string_view subject, const Details& details) {
    if (!Admit(event, subject)) return false;
    if (folder_ != nullptr) Note(event, Json(details()));
    return true;
  }
  /// Accounts that have changed.
  void SaveAccounts(std::vector<std::pair<std::string, Account>> changed);
  /// All limits that differ from the configuration.
  void SaveLimits(LimitChanges changes);
  void Say(std::string line);

  /// Waits until the disk has everything that came before, or has refused it.
  void Drain();
  /// The same, for the last time.
  void Finish();
  /// Lines of the audit log that could not be written.
  std::uint64_t lost() const;

 private:
  struct Line {
    timespec time{};
    std::string event;
    Json details;
  };
  struct Work {
    std::optional<LimitChanges> limits;
    std::vector<std::pair<std::string, Account>> accounts;
    std::vector<Line> lines;
    std::vector<std::string> sayings;
    bool any() const { return limits || !accounts.empty() || !lines.empty() || !sayings.empty(); }
    // What stood when it was taken:
    bool last = false;        ///< nothing comes after it
    bool all = false;         ///< somebody waits: nothing is put off
    std::uint64_t asked = 0;  ///< calls of Drain
  };

  StateWriter(std::unique_ptr<StateFolder> folder, Accounts accounts, const AuditBounds& bounds, Log log);
  bool Admit(std::string_view event, std::string_view subject);
  void Run();
  Work Take();
  void WriteLimits(std::optional<LimitChanges> limits, bool now);
  void WriteAccounts(const std::vector<std::pair<std::string, Account>>& changed, bool now);
  void WriteLines(const std::vector<Line>& lines);
  /// When something that has been put off is due.
  std::optional<std::uint64_t> Due() const;

  const std::unique_ptr<StateFolder> folder_;
  const Log log_;

  mutable std::mutex mutex_;
  std::condition_variable wake_, drained_;
  Work work_;
  AuditThrottle throttle_;
  std::uint64_t lost_ = 0, asked_ = 0, answered_ = 0;  ///< lines; Drain's calls, and those that have been served
  bool stop_ = false;

  // Of the writer's thread:
  std::optional<AuditLog> audit_;
  Accounts accounts_;
  std::optional<LimitChanges> limits_;  ///< not written yet
  std::uint64_t lost_untold_ = 0;
  bool accounts_unsaved_ = false, accounts_failed_ = false, limits_failed_ = false;
  std::uint64_t next_accounts_ = 0, next_limits_ = 0;  ///< not before
  std::thread thread_;
};

}  // namespace gridloom::broker
