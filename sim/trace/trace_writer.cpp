#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sim/trace/trace_file.h"
#include "sim/trace/trace_names.h"
#include "sim/trace/trace_records.h"

namespace gridloom::trace {
namespace {

constexpr std::size_t kBatchBytes = 1u << 20;  // before compression: enough for zstd to find what repeats
// What is compressed at once at a launch's end, which waits for it in any case: sooner done than given to another
// thread.
constexpr std::size_t kFewBytes = 64u << 10;

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::Create(const std::string& path, std::string_view info) {
  std::string own = NameForThisProcess(path);
  int fd = open(own.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    // Another process is writing it, one that started this one perhaps.
    close(fd);
    own += "." + std::to_string(getpid());
    fd = open(own.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  }
  if (fd < 0) return Error{"cannot write the trace " + own + ": " + std::strerror(errno)};
  static_cast<void>(ftruncate(fd, 0));  // a device cannot be, and need not
  std::unique_ptr<TraceWriter> writer(new TraceWriter(own, fd));
  FileHeader header{};
  std::memcpy(header.magic, kFileMagic, sizeof header.magic);
  header.version = kFormatVersion;
  writer->file_.WriteBytes(ByteSpan(reinterpret_cast<const std::uint8_t*>(&header), sizeof header));
  ByteWriter text;
  text.Text(info);
  writer->file_.Add(ChunkType::kInfo, {}, text);
  return writer;
}

std::uint32_t TraceWriter::AddKernel(const KernelCode& code) {
  ByteWriter content;
  PutCode(code, content);
  const std::lock_guard lock(mutex_);  // the order in the file gives the numbers
  file_.Add(ChunkType::kKernel, {}, content);
  return kernels_++;
}

std::unique_ptr<LaunchWriter> TraceWriter::BeginLaunch(const LaunchInfo& info, const KernelCode& code) {
  ByteWriter content;
  PutInfo(info, content);
  const std::lock_guard lock(mutex_);
  file_.Add(ChunkType::kLaunchBegin, {}, content);
  return std::make_unique<LaunchWriter>(file_, launches_++, code);
}

void TraceWriter::Add(const HostAction& action) {
  ByteWriter content;
  PutAction(action, content);
  file_.Add(ChunkType::kHost, {}, content);
}

Status TraceWriter::Close() { return file_.Close(); }

void LaunchWriter::Add(std::uint64_t cta, const LoadedCta& trace) {
  if (!encoder_) encoder_.emplace(code_);
  encoder_->Encode(trace, content_);
  ctas_.push_back(cta);
  if (content_.size() >= kBatchBytes) WriteBatch(true);
}

void LaunchWriter::WriteBatch(bool later) {
  if (ctas_.empty()) return;
  ByteWriter directory;
  PutCtas(launch_, ctas_, directory);
  if (later) {
    file_.AddLater(ChunkType::kCtas, std::move(directory), content_);
  } else {
    file_.Add(ChunkType::kCtas, directory, content_);
    content_.Clear();
  }
  written_ += ctas_.size();
  ctas_.clear();
  encoder_.reset();
}

void LaunchWriter::End(std::uint64_t left_out) {
  WriteBatch(content_.size() >= kFewBytes);
  ByteWriter content;
  content.Varint(launch_);
  content.Varint(written_);
  content.Varint(left_out);
  file_.Add(ChunkType::kLaunchEnd, {}, content);
}

}  // namespace gridloom::trace
