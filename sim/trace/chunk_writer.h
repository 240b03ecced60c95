// Chunks into a file, in the order in which they come. Large ones are compressed on a thread of its own, beside the
// program that is traced.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/trace/byte_stream.h"
#include "sim/trace/chunk.h"

namespace gridloom::trace {

/// Thread-safe. After a failure (a full disk) everything is ignored, and Close tells.
class ChunkWriter {
 public:
  /// Takes the descriptor over; `path` is for messages.
  ChunkWriter(int fd, std::string path) : path_(std::move(path)), fd_(fd) {}
  ~ChunkWriter();
  ChunkWriter(const ChunkWriter&) = delete;
  ChunkWriter& operator=(const ChunkWriter&) = delete;

  /// Writes the bytes as they are, at once.
  void WriteBytes(ByteSpan bytes);
  void Add(ChunkType type, const ByteWriter& directory, const ByteWriter& content);
  /// The same, maybe later. `content` is empty then, with room for as much again.
  void AddLater(ChunkType type, ByteWriter directory, ByteWriter& content);
  /// Until all that has been added is in the file.
  void Drain();
  Status Close();

 private:
  struct Waiting {
    ChunkType type;
    ByteWriter directory, content;
  };
  bool StartThread();
  void Main();
  void Write(ByteSpan bytes);
  void WaitUntilIdle(std::unique_lock<std::mutex>& lock);

  const std::string path_;
  std::mutex mutex_;  // of all; packer_ and fd_ are the thread's while busy_
  std::condition_variable changed_;
  int fd_;
  std::string problem_;
  ChunkPacker packer_;
  std::deque<Waiting> queue_;
  std::vector<ByteWriter> spare_;
  bool busy_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace gridloom::trace
