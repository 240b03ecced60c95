#include "scheduler/daemon/state_writer.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>

#include "scheduler/protocol/wait.h"

namespace gridloom::broker {

using protocol::NowNs;

namespace {

/// What may wait to be written; more is lost, and counted.
constexpr std::size_t kMostLines = 4096, kMostSayings = 1024;
/// What could not be written is tried again.
constexpr std::uint64_t kRetryAfter = 5 * protocol::kNsPerS;
/// Accounts are written for a twentieth of the time at most, however many names there are and however slow the disk is.
constexpr std::uint64_t kPausePerWrite = 19;
constexpr std::size_t kBytesPerWrite = 32 << 10;

}  // namespace

Result<std::unique_ptr<StateWriter>> StateWriter::Start(std::unique_ptr<StateFolder> folder, Accounts accounts,
                                                        const AuditBounds& bounds, Log log) {
  std::unique_ptr<StateWriter> writer(new StateWriter(std::move(folder), std::move(accounts), bounds, std::move(log)));
  if (writer->folder_ != nullptr) {
    GL_TRY(audit, AuditLog::Open(*writer->folder_, bounds));
    writer->audit_ = std::move(audit);
  }
  writer->thread_ = std::thread([raw = writer.get()] { raw->Run(); });
  return writer;
}

StateWriter::StateWriter(std::unique_ptr<StateFolder> folder, Accounts accounts, const AuditBounds& bounds, Log log)
    : folder_(std::move(folder)),
      log_(std::move(log)),
      throttle_(bounds.lines_per_minute),
      accounts_(std::move(accounts)) {}

StateWriter::~StateWriter() { Finish(); }

void StateWriter::Finish() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

// ---- from the broker's thread

bool StateWriter::Admit(std::string_view event, std::string_view subject) {
  const std::lock_guard lock(mutex_);
  const bool counting = throttle_.due() != 0;
  const bool admitted = throttle_.Admit(event, subject, NowNs());
  if (!admitted && !counting) wake_.notify_one();  // it has to know when to tell
  return admitted;
}

void StateWriter::Note(std::string_view event, Json details) {
  if (folder_ == nullptr) return;
  Line line{.time = {}, .event = std::string(event), .details = std::move(details)};
  clock_gettime(CLOCK_REALTIME, &line.time);
  {
    const std::lock_guard lock(mutex_);
    if (work_.lines.size() >= kMostLines) ++lost_;
    else work_.lines.push_back(std::move(line));
  }
  wake_.notify_one();
}

void StateWriter::SaveAccounts(std::vector<std::pair<std::string, Account>> changed) {
  if (folder_ == nullptr || changed.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (work_.accounts.empty()) work_.accounts = std::move(changed);
    else std::ranges::move(changed, std::back_inserter(work_.accounts));
  }
  wake_.notify_one();
}

void StateWriter::SaveLimits(LimitChanges changes) {
  if (folder_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    work_.limits = std::move(changes);
  }
  wake_.notify_one();
}

void StateWriter::Say(std::string line) {
  {
    const std::lock_guard lock(mutex_);
    if (work_.sayings.size() < kMostSayings) work_.sayings.push_back(std::move(line));
  }
  wake_.notify_one();
}

void StateWriter::Drain() {
  std::unique_lock lock(mutex_);
  const std::uint64_t mine = ++asked_;
  wake_.notify_one();
  drained_.wait(lock, [&] { return answered_ >= mine; });
}

std::uint64_t StateWriter::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

// ---- the writer's thread

std::optional<std::uint64_t> StateWriter::Due() const {
  std::optional<std::uint64_t> due;
  const auto consider = [&](std::uint64_t at) {
    if (!due || at < *due) due = at;
  };
  if (throttle_.due() != 0) consider(throttle_.due());
  if (accounts_unsaved_) consider(next_accounts_);
  if (limits_) consider(next_limits_);
  return due;
}

/// Sleeps until there is something to do; `mutex_` is held by nobody.
StateWriter::Work StateWriter::Take() {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return work_.any() || stop_ || asked_ != answered_; };
  while (!ready()) {
    const auto due = Due();
    const std::uint64_t now = NowNs();
    if (due && *due <= now) break;
    if (due) wake_.wait_for(lock, std::chrono::nanoseconds(*due - now));
    else wake_.wait(lock);
  }
  Work work = std::exchange(work_, {});
  work.last = stop_;
  work.asked = asked_;
  work.all = stop_ || asked_ != answered_;
  for (const AuditThrottle::Count& count : throttle_.Tell(NowNs(), stop_)) {
    if (folder_ == nullptr) break;
    Line line{.time = {}, .event = count.event, .details = {{"subject", count.subject}, {"more_like_it", count.lines}}};
    clock_gettime(CLOCK_REALTIME, &line.time);
    work.lines.push_back(std::move(line));
  }
  return work;
}

void StateWriter::Run() {
  for (bool last = false; !last;) {
    Work work = Take();
    last = work.last;
    WriteLimits(std::move(work.limits), work.all);
    WriteAccounts(work.accounts, work.all);
    WriteLines(work.lines);
    for (const std::string& line : work.sayings) log_(line);
    const std::lock_guard lock(mutex_);
    answered_ = last ? std::numeric_limits<std::uint64_t>::max() : work.asked;
    drained_.notify_all();
  }
}

void StateWriter::WriteLimits(std::optional<LimitChanges> limits, bool now) {
  const bool fresh = limits.has_value();
  if (fresh) limits_ = std::move(limits);
  if (!limits_ || (!fresh && !now && NowNs() < next_limits_)) return;
  const Status status = broker::WriteLimits(*folder_, *limits_);
  if (!status.ok() && !limits_failed_)
    log_(status.error().message + "; changed limits end with the broker unless this is mended");
  limits_failed_ = !status.ok();
  if (status.ok()) limits_.reset();
  next_limits_ = NowNs() + kRetryAfter;
}

void StateWriter::WriteAccounts(const std::vector<std::pair<std::string, Account>>& changed, bool now) {
  for (const auto& [name, account] : changed) accounts_.insert_or_assign(name, account);
  accounts_unsaved_ = accounts_unsaved_ || !changed.empty();
  const std::uint64_t begin = NowNs();
  if (!accounts_unsaved_ || (!now && begin < next_accounts_)) return;
  const Status status = broker::WriteAccounts(*folder_, accounts_);
  if (!status.ok() && !accounts_failed_) log_(status.error().message);
  accounts_failed_ = accounts_unsaved_ = !status.ok();
  const std::uint64_t end = NowNs();
  next_accounts_ = end + (status.ok() ? (end - begin) * kPausePerWrite : kRetryAfter);
}

/// Many lines in one write, as each may take long.
void StateWriter::WriteLines(const std::vector<Line>& lines) {
  std::string text;
  std::uint64_t in_text = 0;
  const auto write = [&] {
    if (in_text == 0) return;
    const bool written = audit_->Write(text);
    lost_untold_ = written ? 0 : lost_untold_ + in_text;
    if (!written) {
      const std::lock_guard lock(mutex_);
      lost_ += in_text;
    }
    text.clear();
    in_text = 0;
  };
  for (const Line& line : lines) {
    if (in_text == 0 && lost_untold_ != 0) text = AuditLine(line.time, "lost", {{"lines", lost_untold_}});
    text += AuditLine(line.time, line.event, line.details);
    ++in_text;
    if (text.size() >= kBytesPerWrite) write();
  }
  write();
}

}  // namespace gridloom::broker
