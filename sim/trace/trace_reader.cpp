#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>

#include "rewriter/support/printable.h"
#include "sim/trace/trace_file.h"
#include "sim/trace/trace_records.h"

namespace gridloom::trace {
namespace {

constexpr std::uint64_t kLeastCtaBytes = 2;    // which trace, and flags
constexpr std::uint32_t kMostGroups = 10'000;  // of groups in groups: players go down into them

Error Bad(const std::string& what) { return Error{what}; }

// What few bytes may become, whatever the file: a loop of many rounds takes no more of them than one of few. Where the
// bytes say all of it, they become at most kMostGrowth times as many.
constexpr std::uint64_t kMostOfFew = std::uint64_t{128} << 20, kMostGrowth = 64;

std::uint64_t MostOf(std::uint64_t bytes) { return std::max(kMostOfFew, bytes * kMostGrowth); }

/// Bytes of a budget, as long as it is there.
class Taken {
 public:
  Taken(std::shared_ptr<TraceBudget> budget, std::uint64_t bytes) : budget_(std::move(budget)), bytes_(bytes) {}
  ~Taken() { budget_->Give(bytes_); }
  Taken(const Taken&) = delete;

 private:
  const std::shared_ptr<TraceBudget> budget_;
  const std::uint64_t bytes_;
};

/// Keeps the traces of one batch while it is decoded.
class BatchKeeper final : public TraceKeeper {
 public:
  BatchKeeper(std::shared_ptr<TraceBudget> budget, std::uint64_t content)
      : budget_(std::move(budget)), most_(MostOf(content)) {}
  std::uint64_t most_bytes() const override { return std::min(most_, budget_->left()); }
  /// It counts until the last one lets it go, also where tables that have grown by doubling take more than there was.
  std::shared_ptr<const CtaTrace> Keep(CtaTrace trace) override {
    struct Kept {
      Kept(CtaTrace of, std::shared_ptr<TraceBudget> by, std::uint64_t bytes)
          : trace(std::move(of)), taken(std::move(by), bytes) {}
      const CtaTrace trace;
      const Taken taken;
    };
    const std::uint64_t bytes = BytesOf(trace);
    const auto kept = std::make_shared<const Kept>(std::move(trace), budget_, budget_->Take(bytes) ? bytes : 0);
    return {kept, &kept->trace};
  }

 private:
  const std::shared_ptr<TraceBudget> budget_;
  const std::uint64_t most_;
};

/// Decodes batch by batch and keeps the last few: the model asks nearly in the order in which they were written.
class FileSource final : public CtaSource {
 public:
  FileSource(std::shared_ptr<TraceFile> file, ByteSpan bytes, std::size_t launch, std::shared_ptr<TraceBudget> budget)
      : file_(std::move(file)),
        bytes_(bytes),
        budget_(std::move(budget)),
        launch_(file_->launches()[launch]),
        code_(file_->kernels()[launch_.info.kernel]) {}

  const KernelCode& code() const override { return code_; }
  const LaunchShape& shape() const override { return launch_.info.shape; }

  Result<LoadedCta> Load(std::uint64_t index) override {
    const auto place = launch_.place.find(index);
    if (place == launch_.place.end())
      return Bad("kernel " + code_.name + ": the trace has no CTA " + std::to_string(index));
    GL_TRY(batch, BatchOf(place->second.first));
    return (*batch)[place->second.second];
  }

 private:
  struct Decoded {
    std::unique_ptr<const Taken> taken;  ///< for `ctas`, besides their traces
    std::vector<LoadedCta> ctas;
  };
  using Batch = std::shared_ptr<const std::vector<LoadedCta>>;
  static constexpr std::size_t kKept = 4;

  Result<Batch> BatchOf(std::uint32_t number) {
    for (const auto& [kept, batch] : recent_) {
      if (kept == number) return batch;
    }
    if (recent_.size() == kKept) recent_.pop_back();
    GL_TRY(batch, Decode(launch_.batches[number]));
    recent_.emplace_front(number, batch);
    return batch;
  }

  Result<Batch> Decode(const TraceFile::Batch& batch) {
    GL_TRY(chunk, ReadChunk(bytes_, batch.offset));
    const auto too_large = [&] {
      return Bad("kernel " + code_.name + ": a batch of CTAs takes more memory than there is for it");
    };
    GL_TRY(content, Take(chunk.raw_bytes));
    if (chunk.raw_bytes > MostOf(chunk.compressed.size()) || content == nullptr) return too_large();
    GL_TRY(raw, Decompress(chunk));
    const std::uint64_t shifts = AccessCount(code_) * sizeof(std::uint64_t);
    auto decoded = std::make_shared<Decoded>();
    GL_TRY(taken, Take(batch.ctas * (sizeof(LoadedCta) + shifts)));
    if (taken == nullptr) return too_large();
    decoded->taken = std::move(taken);
    ByteReader in(raw);
    BatchKeeper keeper(budget_, raw.size());
    CtaDecoder decoder(code_, &keeper);
    for (std::uint32_t i = 0; i < batch.ctas; ++i) {
      GL_TRY(cta, decoder.Decode(in));
      if (cta.trace->warps.size() != shape().warps_per_cta())
        return Bad("kernel " + code_.name + ": a CTA has a wrong number of warps");
      decoded->ctas.push_back(std::move(cta));
    }
    if (in.left() != 0) return Bad("kernel " + code_.name + ": a batch of CTAs is damaged");
    return Batch(decoded, &decoded->ctas);
  }

  /// Null: there is not so much.
  Result<std::unique_ptr<const Taken>> Take(std::uint64_t bytes) {
    if (!budget_->Take(bytes)) return std::unique_ptr<const Taken>();
    return std::make_unique<const Taken>(budget_, bytes);
  }

  const std::shared_ptr<TraceFile> file_;
  const ByteSpan bytes_;
  const std::shared_ptr<TraceBudget> budget_;
  const TraceFile::Launch& launch_;
  const KernelCode& code_;
  std::list<std::pair<std::uint32_t, Batch>> recent_;
};

}  // namespace

TraceBudget::TraceBudget()
    : TraceBudget(static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                  static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) / 2) {}

std::uint64_t TraceBudget::left() const { return bytes_ - std::min(bytes_, taken_.load(std::memory_order_relaxed)); }

bool TraceBudget::Take(std::uint64_t bytes) {
  std::uint64_t taken = taken_.load(std::memory_order_relaxed);
  do {
    if (taken > bytes_ || bytes > bytes_ - taken) return false;
  } while (!taken_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
  return true;
}

Result<std::shared_ptr<TraceFile>> TraceFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO would wait for a writer
  if (fd < 0) return Bad("cannot read the trace " + path + ": " + std::strerror(errno));
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    return Bad("the trace " + path + " is no file");
  }
  std::shared_ptr<TraceFile> file(new TraceFile(path));
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size != 0) {
    void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped == MAP_FAILED) {
      close(fd);
      return Bad("cannot read the trace " + path + ": " + std::strerror(errno));
    }
    file->mapped_ = mapped;
    file->bytes_ = ByteSpan(static_cast<const std::uint8_t*>(mapped), size);
  }
  close(fd);
  GL_TRY_STATUS(file->Index());
  return file;
}

Result<std::shared_ptr<TraceFile>> TraceFile::FromBytes(std::vector<std::uint8_t> bytes, std::string name) {
  std::shared_ptr<TraceFile> file(new TraceFile(std::move(name)));
  file->owned_ = std::move(bytes);
  file->bytes_ = file->owned_;
  GL_TRY_STATUS(file->Index());
  return file;
}

TraceFile::~TraceFile() {
  if (mapped_) munmap(mapped_, bytes_.size());
}

Status TraceFile::Index() {
  FileHeader header{};
  if (bytes_.size() < sizeof header)
    return Bad(name_ + " is no trace: it has " + std::to_string(bytes_.size()) + " bytes");
  std::memcpy(&header, bytes_.data(), sizeof header);
  if (std::memcmp(header.magic, kFileMagic, sizeof header.magic) != 0)
    return Bad(name_ + " is no trace of Gridloom's; `gridloom run --trace FILE -- ./app` writes one");
  if (header.version < kOldestReadVersion || header.version > kFormatVersion) {
    return Bad(name_ + " is a trace of format version " + std::to_string(header.version) +
               "; this Gridloom reads versions " + std::to_string(kOldestReadVersion) + " to " +
               std::to_string(kFormatVersion));
  }
  version_ = header.version;
  std::uint64_t offset = sizeof header;
  while (offset < bytes_.size()) {
    const Result<Chunk> chunk = ReadChunk(bytes_, offset);
    const Status taken = chunk ? Take(*chunk, offset) : Status(chunk.error());
    if (!taken) {
      problem_ = name_ + ": " + taken.error().message + "; " + std::to_string(launches_.size()) +
                 " launches before it can be used";
      break;
    }
    offset = chunk->end;
  }
  return {};
}

Status TraceFile::Take(const Chunk& chunk, std::uint64_t offset) {
  switch (chunk.type) {
    case ChunkType::kCtas: return TakeCtas(chunk, offset);
    case ChunkType::kInfo:
    case ChunkType::kKernel:
    case ChunkType::kLaunchBegin:
    case ChunkType::kLaunchEnd:
    case ChunkType::kHost: break;
    default: return {};  // a later version's addition
  }
  GL_TRY(raw, Unpack(chunk));
  ByteReader in(raw);
  switch (chunk.type) {
    case ChunkType::kCtas: break;
    case ChunkType::kInfo: {
      const std::string_view text = in.Text();
      if (in.failed()) return Bad("a chunk that is damaged");
      info_ = PrintableText(text);
      return {};
    }
    case ChunkType::kKernel: return TakeKernel(in);
    case ChunkType::kLaunchBegin: return TakeLaunch(in);
    case ChunkType::kLaunchEnd: return TakeEnd(in);
    case ChunkType::kHost: return TakeAction(in);
  }
  return {};
}

/// All that is unpacked here is kept, so all of it together has a bound.
Result<std::vector<std::uint8_t>> TraceFile::Unpack(const Chunk& chunk) {
  if (chunk.raw_bytes > MostOf(bytes_.size()) - unpacked_)
    return Bad("a chunk that makes more of few bytes than any program has");
  unpacked_ += chunk.raw_bytes;
  return Decompress(chunk);
}

Status TraceFile::TakeKernel(ByteReader in) {
  GL_TRY(code, GetCode(in, version_));
  kernels_.push_back(std::move(code));
  return {};
}

Status TraceFile::TakeLaunch(ByteReader in) {
  Launch launch;
  launch.info = GetInfo(in, version_);
  const LaunchShape& shape = launch.info.shape;
  const bool whole = shape.threads_per_cta != 0 && shape.threads_per_cta <= 1024 && shape.ctas <= kMostCtas;
  if (in.failed() || launch.info.kernel >= kernels_.size() || !whole) return Bad("a launch that does not fit");
  launches_.push_back(std::move(launch));
  return {};
}

Status TraceFile::TakeEnd(ByteReader in) {
  const std::uint64_t number = in.Varint(), written = in.Varint(), left_out = in.Varint();
  if (in.failed() || number >= launches_.size()) return Bad("the end of a launch that is not there");
  Launch& launch = launches_[number];
  if (launch.complete) return Bad("a launch that ends twice");
  if (launch.place.size() != written) return Bad("a launch's end does not fit");
  launch.complete = true;
  launch.left_out = left_out;
  return {};
}

/// Works are numbered in the order of the calls, and a group comes before what belongs to it: whoever follows groups
/// gets to an end.
Status TraceFile::TakeAction(ByteReader in) {
  HostAction action = GetAction(in, version_);
  if (in.failed()) return Bad("a chunk that is damaged");
  if (std::max({action.bytes, action.span, action.source_span, action.host_span}) > kMostBytes)
    return Bad("a call of the host that moves more than any host has");
  if (action.group == 0 && action.stream >= kStreams) return Bad("a call of the host in a stream that no program has");
  if (action.kind == HostAction::Kind::kWait && action.group != 0)
    return Bad("a wait of the host in a group, which runs without it");
  if (action.kind != HostAction::Kind::kWait) {
    if (action.work <= last_work_) return Bad("a call of the host that is out of order");
    if (action.group >= action.work) return Bad("a call of the host in a group that comes after it");
    const auto group = depths_.find(action.group);
    const std::uint32_t depth = action.group == 0 ? 0 : group == depths_.end() ? 1 : group->second + 1;
    if (depth > kMostGroups)
      return Bad("calls of the host in more than " + std::to_string(kMostGroups) + " groups of groups");
    if (depth != 0) depths_[action.work] = depth;
    last_work_ = action.work;
  }
  actions_.push_back(std::move(action));
  return {};
}

/// The whole directory is checked before anything of it is kept: what `place` names is there.
Status TraceFile::TakeCtas(const Chunk& chunk, std::uint64_t offset) {
  ByteReader in(chunk.directory);
  const std::uint64_t number = in.Varint(), count = in.Count();
  if (in.failed() || number >= launches_.size()) return Bad("CTAs of a launch that is not there");
  Launch& launch = launches_[number];
  if (launch.complete) return Bad("CTAs of a launch that has ended");
  if (launch.batches.size() == UINT32_MAX || count > UINT32_MAX || count > chunk.raw_bytes / kLeastCtaBytes)
    return Bad("more CTAs than a batch can have");
  std::vector<std::uint64_t> ctas;
  ctas.reserve(count);
  std::uint64_t cta = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    cta += static_cast<std::uint64_t>(in.Signed());
    if (in.failed() || cta >= launch.info.shape.ctas) return Bad("a CTA that the launch does not have");
    ctas.push_back(cta);
  }
  if (in.left() != 0) return Bad("a directory that is longer than it says");
  const auto batch = static_cast<std::uint32_t>(launch.batches.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    if (launch.place.try_emplace(ctas[i], batch, i).second) continue;
    while (i-- > 0) launch.place.erase(ctas[i]);
    return Bad("a CTA that the launch has twice");
  }
  launch.batches.push_back({.offset = offset, .ctas = static_cast<std::uint32_t>(count)});
  return {};
}

std::vector<std::uint64_t> TraceFile::Launch::KeptCtas() const {
  std::vector<std::uint64_t> ctas;
  ctas.reserve(place.size());
  for (const auto& [cta, where] : place) ctas.push_back(cta);
  std::ranges::sort(ctas);
  return ctas;
}

std::unique_ptr<CtaSource> TraceFile::Source(std::shared_ptr<TraceFile> file, std::size_t launch,
                                             std::shared_ptr<TraceBudget> budget) {
  const ByteSpan bytes = file->bytes_;
  if (budget == nullptr) budget = std::make_shared<TraceBudget>();
  return std::make_unique<FileSource>(std::move(file), bytes, launch, std::move(budget));
}

}  // namespace gridloom::trace
