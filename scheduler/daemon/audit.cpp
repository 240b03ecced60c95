#include "scheduler/daemon/audit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "scheduler/protocol/wait.h"

namespace gridloom::broker {
namespace {

constexpr const char* kAuditFile = "audit.jsonl";
/// How long lines are counted before the count is told.
constexpr std::uint64_t kTellAfter = 10 * protocol::kNsPerS;
/// Further subjects share one bucket for each event.
constexpr std::size_t kMostSubjects = 8192;
/// Names of files that an earlier configuration may have left.
constexpr std::uint32_t kMostFiles = 100;

std::string TimeText(const timespec& time) {
  tm parts{};
  gmtime_r(&time.tv_sec, &parts);
  char text[40];
  const std::size_t size = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(text + size, sizeof text - size, ".%03ldZ", time.tv_nsec / 1'000'000);
  return text;
}

std::string NameOf(std::uint32_t place) {
  return place == 0 ? kAuditFile : std::string(kAuditFile) + "." + std::to_string(place);
}

}  // namespace

std::string AuditLine(const timespec& time, std::string_view event, const nlohmann::ordered_json& details) {
  nlohmann::ordered_json line{{"time", TimeText(time)}, {"event", event}};
  line.update(details);
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// ---- the throttle

double AuditThrottle::LinesAt(const Bucket& bucket, std::uint64_t now) const {
  const double seconds = static_cast<double>(now - bucket.since) / protocol::kNsPerS;
  return std::min<double>(kAuditBurst, bucket.lines + seconds * lines_per_minute_ / 60);
}

bool AuditThrottle::Admit(std::string_view event, std::string_view subject, std::uint64_t now) {
  std::string key(event);
  key += '\n';
  auto at = buckets_.find(key + std::string(subject));
  if (at == buckets_.end()) {
    if (buckets_.size() >= kMostSubjects) Forget(now);
    if (buckets_.size() >= kMostSubjects) subject = "others";
    at = buckets_.try_emplace(key + std::string(subject)).first;
    if (at->second.since == 0) {
      at->second.since = now;
      at->second.count = {.event = std::string(event), .subject = std::string(subject), .lines = 0};
    }
  }
  Bucket& bucket = at->second;
  bucket.lines = LinesAt(bucket, now);
  bucket.since = now;
  // Until the count is told nothing of its kind is written: a reader sees the lines in the order in which they came.
  if (bucket.count.lines == 0 && bucket.lines >= 1) {
    bucket.lines -= 1;
    return true;
  }
  if (bucket.count.lines++ == 0) {
    bucket.counting = now;
    due_ = due_ == 0 ? now + kTellAfter : std::min(due_, now + kTellAfter);
  }
  return false;
}

std::vector<AuditThrottle::Count> AuditThrottle::Tell(std::uint64_t now, bool all) {
  std::vector<Count> told;
  if (due_ == 0 || (!all && now < due_)) return told;
  due_ = 0;
  for (auto& [key, bucket] : buckets_) {
    if (bucket.count.lines == 0) continue;
    const std::uint64_t at = bucket.counting + kTellAfter;
    if (all || at <= now) {
      told.push_back(bucket.count);
      bucket.count.lines = 0;
    } else {
      due_ = due_ == 0 ? at : std::min(due_, at);
    }
  }
  std::ranges::sort(told, {}, [](const Count& count) { return std::pair(count.event, count.subject); });
  return told;
}

/// Buckets that are full again say nothing that a new one would not; at most once a second, as it looks at all of them.
void AuditThrottle::Forget(std::uint64_t now) {
  if (forgot_ != 0 && now - forgot_ < protocol::kNsPerS) return;
  forgot_ = now;
  std::erase_if(buckets_, [&](const auto& entry) {
    return entry.second.count.lines == 0 && LinesAt(entry.second, now) >= kAuditBurst;
  });
}

// ---- the files

Result<AuditLog> AuditLog::Open(StateFolder& folder, const AuditBounds& bounds) {
  AuditLog log(folder, bounds);
  for (std::uint32_t place = bounds.files; place < kMostFiles; ++place) folder.Remove(NameOf(place));
  GL_TRY_STATUS(log.OpenFile());
  return log;
}

Status AuditLog::OpenFile() {
  GL_TRY(file, folder_->OpenToAppend(kAuditFile));
  struct stat info {};
  fstat(file.get(), &info);
  size_ = static_cast<std::uint64_t>(info.st_size);
  file_ = std::move(file);
  return {};
}

/// Each file gets the next number; the last one goes.
Status AuditLog::PutAside() {
  file_ = protocol::Fd();
  if (bounds_.files < 2) folder_->Remove(kAuditFile);
  for (std::uint32_t place = bounds_.files - 1; place > 0; --place) {
    const Status renamed = folder_->Rename(NameOf(place - 1), NameOf(place));
    // Those in between may not have come yet.
    if (!renamed.ok() && place == 1) return renamed;
  }
  return {};
}

bool AuditLog::Write(const std::string& lines) {
  if (file_ && size_ != 0 && size_ + lines.size() > bounds_.file_bytes && !PutAside().ok()) return false;
  if (!file_ && !OpenFile().ok()) return false;
  if (size_ != 0 && size_ + lines.size() > bounds_.file_bytes) return false;  // it could not be put aside earlier
  const int problem = folder_->disk().Write(file_.get(), lines);
  if (problem == 0) {
    size_ += lines.size();
    return true;
  }
  // A part of a line, on a disk that is full now, is taken back: the next line would be appended to it.
  if (ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) file_ = protocol::Fd();
  return false;
}

}  // namespace gridloom::broker
