#include "sim/trace/chunk_writer.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "rewriter/support/own_thread.h"
#include "rewriter/support/whole_file.h"

namespace gridloom::trace {
namespace {

constexpr std::size_t kMostWaiting = 4;  // chunks; then who adds more waits

}  // namespace

ChunkWriter::~ChunkWriter() { static_cast<void>(Close()); }

void ChunkWriter::Write(ByteSpan bytes) {
  if (!problem_.empty()) return;
  if (const int problem = WriteWhole(fd_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}); problem != 0)
    problem_ = "the trace " + path_ + " is incomplete: " + std::strerror(problem);
}

void ChunkWriter::WaitUntilIdle(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
}

void ChunkWriter::WriteBytes(ByteSpan bytes) {
  std::unique_lock lock(mutex_);
  WaitUntilIdle(lock);
  Write(bytes);
}

void ChunkWriter::Add(ChunkType type, const ByteWriter& directory, const ByteWriter& content) {
  std::unique_lock lock(mutex_);
  WaitUntilIdle(lock);
  Write(packer_.Pack(type, directory.bytes(), content.bytes()));
}

void ChunkWriter::AddLater(ChunkType type, ByteWriter directory, ByteWriter& content) {
  std::unique_lock lock(mutex_);
  if (!StartThread()) {
    Write(packer_.Pack(type, directory.bytes(), content.bytes()));
    return content.Clear();
  }
  changed_.wait(lock, [&] { return queue_.size() < kMostWaiting; });
  queue_.push_back({type, std::move(directory), std::exchange(content, {})});
  if (!spare_.empty()) {
    content = std::move(spare_.back());
    spare_.pop_back();
  }
  changed_.notify_all();
}

/// False where there can be none. Signals are the program's.
bool ChunkWriter::StartThread() {
  if (thread_.joinable()) return true;
  sigset_t blocked, before;
  sigfillset(&blocked);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  try {
    thread_ = std::thread([this] {
      BecomeOwnThread();
      Main();
    });
  } catch (const std::system_error&) {
    // The machine allows no more; the chunk is written by who has it.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread_.joinable();
}

void ChunkWriter::Main() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Waiting waiting = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    changed_.notify_all();
    Write(packer_.Pack(waiting.type, waiting.directory.bytes(), waiting.content.bytes()));
    waiting.content.Clear();
    lock.lock();
    busy_ = false;
    if (spare_.size() < kMostWaiting) spare_.push_back(std::move(waiting.content));
    changed_.notify_all();
  }
}

void ChunkWriter::Drain() {
  std::unique_lock lock(mutex_);
  WaitUntilIdle(lock);
}

Status ChunkWriter::Close() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  if (fd_ >= 0 && close(fd_) != 0 && problem_.empty())
    problem_ = "the trace " + path_ + " is incomplete: " + std::strerror(errno);
  fd_ = -1;
  if (!problem_.empty()) return Error{problem_};
  return {};
}

}  // namespace gridloom::trace
