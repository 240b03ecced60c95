#include "sim/timing/live/live_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "sim/trace/chunk.h"

namespace gridloom::timing {
namespace {

// Memory of CTAs as the model reads them: what unpacking one of them brings back.
constexpr std::uint64_t kBatchBytes = 4u << 20;

/// What a CTA takes of memory; a trace that is shared counts where it has no shifts.
std::uint64_t BytesOf(const trace::LoadedCta& loaded) {
  if (!loaded.shifts.empty()) return sizeof loaded + loaded.shifts.size() * sizeof(std::uint64_t);
  return trace::BytesOf(*loaded.trace);
}

/// A file without a name, in the folder for temporary files.
int OpenStore() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  std::string name = (error ? std::filesystem::path("/tmp") : folder) / "gridloom-traces-XXXXXX";
  const int fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd >= 0) unlink(name.c_str());
  return fd;
}

}  // namespace

TraceStore::~TraceStore() {
  if (fd_ >= 0) close(fd_);
}

std::uint64_t TraceStore::file_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

Result<std::uint64_t> TraceStore::Write(trace::ByteSpan bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes.size() > most_file_bytes_ - std::min(used_, most_file_bytes_)) {
    return Error{"traces that wait for the timing model take more than " + std::to_string(most_file_bytes_) +
                 " bytes of disk"};
  }
  if (fd_ < 0) fd_ = OpenStore();
  if (fd_ < 0) return Error{std::string("cannot make a temporary file for traces: ") + std::strerror(errno)};
  const std::uint64_t offset = end_;
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t put = pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0)
      return Error{std::string("cannot write traces to a temporary file: ") + std::strerror(put < 0 ? errno : ENOSPC)};
    done += static_cast<std::size_t>(put);
  }
  end_ += bytes.size();
  used_ += bytes.size();
  return offset;
}

void TraceStore::Release(std::uint64_t offset, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  used_ -= bytes;
  // Gives the disk back as far as the file system can; a file that is not needed any more begins anew.
  if (used_ != 0) {
    static_cast<void>(fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                                static_cast<off_t>(bytes)));
    return;
  }
  end_ = 0;
  static_cast<void>(ftruncate(fd_, 0));
}

Result<std::vector<std::uint8_t>> TraceStore::Read(std::uint64_t offset, std::uint64_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Error{std::string("cannot read traces back: ") + std::strerror(got < 0 ? errno : EIO)};
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

LiveSource::~LiveSource() { Drop(); }

/// Gives back what is stored. Holding the lock, or nobody else is there.
void LiveSource::Drop() {
  std::uint64_t bytes = 0;
  for (const auto& [index, cta] : ready_) bytes += BytesOf(cta);
  store_->Give(bytes);
  ready_.clear();
  for (const Batch& batch : batches_) {
    if (batch.bytes != 0) store_->Release(batch.offset, batch.bytes);
  }
  batches_.clear();
  place_.clear();
  encoder_.reset();
  content_.Clear();
}

void LiveSource::Push(std::uint64_t cta, trace::LoadedCta trace) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  if (store_->full()) {
    Pack(cta, trace);
  } else {
    store_->Take(BytesOf(trace));
    ready_.emplace(cta, std::move(trace));
  }
  changed_.notify_all();
}

void LiveSource::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

std::string LiveSource::problem() {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void LiveSource::Abandon() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  Drop();
  changed_.notify_all();
}

Result<trace::LoadedCta> LiveSource::Load(std::uint64_t index) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || ready_.contains(index) || place_.contains(index) || !problem_.empty(); });
  if (!problem_.empty()) return Error{problem_};
  if (const auto found = ready_.find(index); found != ready_.end()) {
    trace::LoadedCta cta = std::move(found->second);
    ready_.erase(found);
    store_->Give(BytesOf(cta));
    return cta;
  }
  if (place_.contains(index)) return Unpack(index);
  if (ready_.empty() && place_.empty()) return trace::LoadedCta{};
  auto empty = std::make_shared<trace::CtaTrace>();
  empty->warps.resize(shape_.warps_per_cta());
  return trace::LoadedCta{std::move(empty), {}};
}

void LiveSource::Pack(std::uint64_t cta, const trace::LoadedCta& trace) {
  if (!encoder_) {
    encoder_.emplace(code_);
    batches_.emplace_back();
  }
  encoder_->Encode(trace, content_);
  place_[cta] = {static_cast<std::uint32_t>(batches_.size() - 1), static_cast<std::uint32_t>(batches_.back().left++)};
  raw_bytes_ += BytesOf(trace);
  if (raw_bytes_ >= kBatchBytes) EndBatch();
}

void LiveSource::EndBatch() {
  Batch& batch = batches_.back();
  if (!packer_) packer_.emplace();
  const trace::ByteSpan packed = packer_->Pack(trace::ChunkType::kCtas, {}, content_.bytes());
  const auto offset = store_->Write(packed);
  if (offset.ok()) {
    batch.offset = *offset;
    batch.bytes = packed.size();
  } else {
    problem_ = offset.error().message;
  }
  encoder_.reset();
  content_.Clear();
  raw_bytes_ = 0;
}

Result<trace::LoadedCta> LiveSource::Unpack(std::uint64_t index) {
  const auto [number, position] = place_.at(index);
  if (encoder_ && number + 1 == batches_.size()) EndBatch();
  if (!problem_.empty()) return Error{problem_};
  Batch& batch = batches_[number];
  if (batch.ctas.empty()) {
    GL_TRY(packed, store_->Read(batch.offset, batch.bytes));
    GL_TRY(chunk, trace::ReadChunk(packed, 0));
    GL_TRY(raw, trace::Decompress(chunk));
    trace::ByteReader in(raw);
    trace::CtaDecoder decoder(code_, keeper_);
    while (in.left() != 0) {
      GL_TRY(cta, decoder.Decode(in));
      batch.ctas.push_back(std::move(cta));
    }
  }
  trace::LoadedCta cta = std::move(batch.ctas.at(position));
  place_.erase(index);
  if (--batch.left == 0) {
    batch.ctas = {};
    store_->Release(batch.offset, std::exchange(batch.bytes, 0));
  }
  return cta;
}

}  // namespace gridloom::timing
