// The CTAs of a kernel that is still running: taken from it in any order, handed to the model in the order it asks for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/trace/byte_stream.h"
#include "sim/trace/chunk.h"
#include "sim/trace/cta_codec.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::timing {

/// What traces that wait for the model may take of memory, all sources of a program together; beyond it they are packed
/// and go to a file that has no name. Producers are never held back: a kernel's blocks may wait for each other.
class TraceStore {
 public:
  /// `most_file_bytes`: of what the file holds; Write fails beyond.
  explicit TraceStore(std::uint64_t most_bytes, std::uint64_t most_file_bytes = ~std::uint64_t{0})
      : most_bytes_(most_bytes), most_file_bytes_(most_file_bytes) {}
  ~TraceStore();
  TraceStore(const TraceStore&) = delete;
  TraceStore& operator=(const TraceStore&) = delete;

  bool full() const { return bytes_.load(std::memory_order_relaxed) > most_bytes_; }
  void Take(std::uint64_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void Give(std::uint64_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  /// Where in the file they begin.
  Result<std::uint64_t> Write(trace::ByteSpan bytes);
  Result<std::vector<std::uint8_t>> Read(std::uint64_t offset, std::uint64_t bytes);
  /// What one Write wrote is not needed any more.
  void Release(std::uint64_t offset, std::uint64_t bytes);
  std::uint64_t file_bytes() const;  ///< that are needed

 private:
  const std::uint64_t most_bytes_, most_file_bytes_;
  std::atomic<std::uint64_t> bytes_{0};
  mutable std::mutex mutex_;
  int fd_ = -1;
  std::uint64_t end_ = 0, used_ = 0;  ///< where the next part goes; bytes of parts that are needed
};

class LiveSource final : public trace::CtaSource, public trace::CtaSink {
 public:
  /// `code` must outlive the source. `keeper`: of traces that come back from the store, as CtaDecoder's; it may be
  /// null.
  LiveSource(const trace::KernelCode& code, trace::LaunchShape shape, std::shared_ptr<TraceStore> store,
             trace::TraceKeeper* keeper = nullptr)
      : code_(code), shape_(shape), store_(std::move(store)), keeper_(keeper) {}
  ~LiveSource() override;

  const trace::KernelCode& code() const override { return code_; }
  const trace::LaunchShape& shape() const override { return shape_; }
  /// Waits for the CTA. After Close, one that has not come has no trace when all that came were loaded; until then it
  /// is empty, and ends as soon as it has begun.
  Result<trace::LoadedCta> Load(std::uint64_t index) override;

  void Push(std::uint64_t cta, trace::LoadedCta trace) override;
  void Close() override;
  /// Empty, or why CTAs that came are lost.
  std::string problem();
  /// Nobody wants to know any more what the launch took: what has not been loaded is dropped.
  void Abandon();

 private:
  struct Batch {
    std::uint64_t offset = 0, bytes = 0;
    std::vector<trace::LoadedCta> ctas;  ///< unpacked, while some of them are asked for
    std::size_t left = 0;
  };
  void Pack(std::uint64_t cta, const trace::LoadedCta& trace);
  void EndBatch();
  void Drop();
  Result<trace::LoadedCta> Unpack(std::uint64_t index);

  const trace::KernelCode& code_;
  const trace::LaunchShape shape_;
  const std::shared_ptr<TraceStore> store_;
  trace::TraceKeeper* const keeper_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  std::string problem_;
  std::unordered_map<std::uint64_t, trace::LoadedCta> ready_;

  // Packed ones.
  struct PackedCta {
    std::uint32_t batch = 0, position = 0;
  };
  std::unordered_map<std::uint64_t, PackedCta> place_;
  std::vector<Batch> batches_;
  std::optional<trace::CtaEncoder> encoder_;  // of the last batch, which is still growing
  trace::ByteWriter content_;
  std::optional<trace::ChunkPacker> packer_;
  std::uint64_t raw_bytes_ = 0;  // of the CTAs in it
};

}  // namespace gridloom::timing
