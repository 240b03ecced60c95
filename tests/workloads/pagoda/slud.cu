// SLUD, sparse LU decomposition (Barcelona OpenMP Tasks Suite, sparselu): a matrix of blocks, most of which are not
// there, becomes its factors in place. In each step k a task factors block (k, k); then there is a task for each block
// right of it (forward) and below it (divide); then one for each pair of both, which changes the block where their
// column and row meet (update), and makes it if it is not there. Tasks are spawned when those before them in the
// algorithm have ended; how many there are is only known at the end. Nothing is copied between the first task and the
// last.
#include <deque>

#include "pagoda/run.h"

/// A task's blocks. `fresh`: `target` was not there, and holds nothing yet.
struct LuArguments {
  const float *left, *right;
  float* target;
  int size, fresh;
};

/// One warp, which needs no barrier of the block.
__global__ void LuFactor(LuArguments task) {
  const int lane = threadIdx.x, size = task.size;
  if (lane >= 32) return;
  float* const a = task.target;
  for (int k = 0; k < size; ++k) {
    for (int i = k + 1 + lane; i < size; i += 32) a[i * size + k] = __fdiv_rn(a[i * size + k], a[k * size + k]);
    __syncwarp();
    for (int i = k + 1; i < size; ++i) {
      for (int j = k + 1 + lane; j < size; j += 32)
        a[i * size + j] = fmaf(-a[i * size + k], a[k * size + j], a[i * size + j]);
    }
    __syncwarp();
  }
}
/// A thread has a column of the target: target = L^-1 * target, where L is the lower factor in `left`.
__global__ void LuForward(LuArguments task) {
  const int size = task.size;
  for (int j = threadIdx.x; j < size; j += blockDim.x) {
    for (int k = 0; k < size; ++k) {
      const float above = task.target[k * size + j];
      for (int i = k + 1; i < size; ++i)
        task.target[i * size + j] = fmaf(-task.left[i * size + k], above, task.target[i * size + j]);
    }
  }
}
/// A thread has a row of the target: target = target * U^-1, where U is the upper factor in `right`.
__global__ void LuDivide(LuArguments task) {
  const int size = task.size;
  for (int i = threadIdx.x; i < size; i += blockDim.x) {
    float* const row = task.target + i * size;
    for (int k = 0; k < size; ++k) {
      const float quotient = row[k] = __fdiv_rn(row[k], task.right[k * size + k]);
      for (int j = k + 1; j < size; ++j) row[j] = fmaf(-quotient, task.right[k * size + j], row[j]);
    }
  }
}
/// target = target - left * right.
__global__ void LuUpdate(LuArguments task) {
  const int size = task.size;
  for (int at = threadIdx.x; at < size * size; at += blockDim.x) {
    float sum = task.fresh ? 0 : task.target[at];
    for (int k = 0; k < size; ++k) sum = fmaf(-task.left[at / size * size + k], task.right[k * size + at % size], sum);
    task.target[at] = sum;
  }
}

enum LuKind { kFactor, kForward, kDivide, kUpdate };
constexpr void (*kLuKernels[])(LuArguments) = {LuFactor, LuForward, LuDivide, LuUpdate};

/// What the host does: rows from the left to the right.
PAGODA_HOST void LuOnHost(LuKind kind, const LuArguments& task) {
  const int size = task.size;
  float* const a = task.target;
  if (kind == kFactor) {
    for (int k = 0; k < size; ++k) {
      for (int i = k + 1; i < size; ++i) {
        const float factor = a[i * size + k] /= a[k * size + k];
        for (int j = k + 1; j < size; ++j) a[i * size + j] = std::fmaf(-factor, a[k * size + j], a[i * size + j]);
      }
    }
  } else if (kind == kForward) {
    for (int i = 1; i < size; ++i) {
      for (int k = 0; k < i; ++k) {
        for (int j = 0; j < size; ++j)
          a[i * size + j] = std::fmaf(-task.left[i * size + k], a[k * size + j], a[i * size + j]);
      }
    }
  } else if (kind == kDivide) {
    for (int i = 0; i < size; ++i) {
      for (int k = 0; k < size; ++k) {
        const float quotient = a[i * size + k] /= task.right[k * size + k];
        for (int j = k + 1; j < size; ++j)
          a[i * size + j] = std::fmaf(-quotient, task.right[k * size + j], a[i * size + j]);
      }
    }
  } else {
    for (int i = 0; i < size * size && task.fresh; ++i) a[i] = 0;
    for (int i = 0; i < size; ++i) {
      for (int k = 0; k < size; ++k) {
        for (int j = 0; j < size; ++j)
          a[i * size + j] = std::fmaf(-task.left[i * size + k], task.right[k * size + j], a[i * size + j]);
      }
    }
  }
}

/// Which blocks there are, and where: those that there are from the beginning come first, in rows, then others as they
/// are made.
class Pattern {
 public:
  explicit Pattern(int side) : side_(side), places_(static_cast<std::size_t>(side) * side, -1) {
    for (int i = 0; i < side; ++i) {
      for (int j = 0; j < side; ++j) {
        if (IsThere(i, j)) At(i, j) = count_++;
      }
    }
  }
  int side() const { return side_; }
  int count() const { return count_; }
  int operator()(int i, int j) const { return places_[static_cast<std::size_t>(i) * side_ + j]; }
  bool Has(int i, int j) const { return (*this)(i, j) >= 0; }
  /// Whether it had to be made.
  bool Make(int i, int j) {
    if (Has(i, j)) return false;
    At(i, j) = count_++;
    return true;
  }

 private:
  /// The suite's: the diagonal and its neighbours; of the rest, every other row and column, if the row above the
  /// diagonal, or the column below it, is one of three.
  static bool IsThere(int i, int j) {
    if (std::abs(i - j) <= 1) return true;
    return i % 2 == 0 && j % 2 == 0 && std::min(i, j) % 3 == 0;
  }
  int& At(int i, int j) { return places_[static_cast<std::size_t>(i) * side_ + j]; }

  int side_, count_ = 0;
  std::vector<int> places_;
};

struct LuTask {
  LuKind kind;
  int left, right, target;  ///< places of blocks; -1: none
  bool fresh;
};

/// The algorithm: spawn(task) for each of its tasks, wait() where those that were spawned must have ended.
template <class Spawn, class Wait>
void Factorize(Pattern& blocks, Spawn spawn, Wait wait) {
  const int side = blocks.side();
  for (int k = 0; k < side; ++k) {
    const int middle = blocks(k, k);
    spawn(LuTask{kFactor, -1, -1, middle, false});
    wait();
    for (int j = k + 1; j < side; ++j) {
      if (blocks.Has(k, j)) spawn(LuTask{kForward, middle, -1, blocks(k, j), false});
    }
    for (int i = k + 1; i < side; ++i) {
      if (blocks.Has(i, k)) spawn(LuTask{kDivide, -1, middle, blocks(i, k), false});
    }
    wait();
    for (int i = k + 1; i < side; ++i) {
      for (int j = k + 1; j < side && blocks.Has(i, k); ++j) {
        if (!blocks.Has(k, j)) continue;
        const bool fresh = blocks.Make(i, j);
        spawn(LuTask{kUpdate, blocks(i, k), blocks(k, j), blocks(i, j), fresh});
      }
    }
    wait();
  }
}

class Slud {
 public:
  explicit Slud(const Options& options)
      : options_(options),
        workers_(options["host-threads"]),
        side_(options["side"]),
        size_(options["size"]),
        elements_(static_cast<std::size_t>(size_) * size_),
        given_(side_),
        matrix_(elements_ * side_ * side_) {
    // The diagonal is larger than the rest of its row together: there is no pivot to look for.
    Random random(options.seed());
    for (std::size_t at = 0; at < elements_ * given_.count(); ++at) matrix_[at] = random.Uniform(-1, 1);
    for (int k = 0; k < side_; ++k) {
      for (int i = 0; i < size_; ++i)
        matrix_[elements_ * given_(k, k) + static_cast<std::size_t>(i) * size_ + i] +=
            static_cast<float>(side_ * size_);
    }
    original_.assign(matrix_.data(), matrix_.data() + elements_ * given_.count());
  }

  int Main() {
    for (int i = 0; i < options_["repeat"]; ++i) {
      std::memset(matrix_.data(), 0xA5, matrix_.size() * sizeof(float));
      std::memcpy(matrix_.data(), original_.data(), original_.size() * sizeof(float));
      tasks_ = launches_ = 0;
      if (options_.form() == Form::kPthreads) OnHost();
      else OnDevice();
    }
    Check();
    CheckProduct();
    std::printf("%s: %ld tasks, %ld launches of kernels, %d blocks, %d of them made\n", options_.Text().c_str(), tasks_,
                launches_, count_, count_ - given_.count());
    std::printf("result %016llx, ", static_cast<unsigned long long>(digest_));
    return Verdict();
  }

 private:
  LuArguments Arguments(const LuTask& task, float* matrix) const {
    const auto at = [&](int place) { return place < 0 ? nullptr : matrix + elements_ * place; };
    return {at(task.left), at(task.right), at(task.target), size_, task.fresh};
  }

  void OnHost() {
    Pattern blocks = given_;
    std::vector<LuTask> ready;
    const auto start = std::chrono::steady_clock::now();
    Factorize(
        blocks, [&](const LuTask& task) { ready.push_back(task); },
        [&] {
          workers_.For(static_cast<int>(ready.size()), [&](int i) {
            LuOnHost(ready[i].kind, Arguments(ready[i], matrix_.data()));
            if (tasks_ + i == options_["fault"])
              reinterpret_cast<char*>(Arguments(ready[i], matrix_.data()).target)[0] ^= 0x10;
          });
          tasks_ += static_cast<long>(ready.size());
          ready.clear();
        });
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (options_.timed()) std::printf("%s: %.3f ms wall, %d host threads\n", options_.name(), ms, workers_.size());
    count_ = blocks.count();
  }

  void OnDevice() {
    const bool one_by_one = options_.form() == Form::kSerial;
    StreamSet streams(one_by_one ? 1 : options_["streams"]);
    const DeviceArray<float> matrix(matrix_.size());
    for (const auto kernel : kLuKernels) {
      cudaFuncAttributes attributes;
      CU(cudaFuncGetAttributes(&attributes, kernel));
      if (options_.timed()) std::printf("%s: %d registers\n", options_.name(), attributes.numRegs);
    }
    Pattern blocks = given_;
    Stopwatch watch;
    if (!options_.copies()) CopyIn(matrix, streams[0]);
    if (options_.timed()) watch.Begin(streams);
    if (options_.copies()) CopyIn(matrix, streams[0]);
    if (one_by_one)
      Factorize(
          blocks, [&](const LuTask& task) { Spawn(task, matrix, streams[0]); }, [] {});
    else if (options_.Is("wait", "host")) StepByStep(blocks, matrix, streams);
    else ByEvents(blocks, matrix, streams);
    count_ = blocks.count();
    streams.Join();
    if (options_.copies()) CopyOut(matrix, streams[0]);
    if (options_.timed()) {
      watch.End(streams);
      std::printf("%s: %.3f ms wall, %.3f ms between events\n", options_.name(), watch.wall_ms(), watch.event_ms());
    }
    if (!options_.copies()) CopyOut(matrix, streams[0]);
    CU(cudaDeviceSynchronize());
  }

  void CopyIn(float* matrix, cudaStream_t stream) const {
    CU(cudaMemcpyAsync(matrix, matrix_.data(), original_.size() * sizeof(float), cudaMemcpyHostToDevice, stream));
  }
  void CopyOut(const float* matrix, cudaStream_t stream) const {
    CU(cudaMemcpyAsync(matrix_.data(), matrix, elements_ * count_ * sizeof(float), cudaMemcpyDeviceToHost, stream));
  }

  /// The host waits for the tasks of each phase, as the suite's program does.
  void StepByStep(Pattern& blocks, float* matrix, StreamSet& streams) {
    int next = 0;
    streams.Fork();
    Factorize(
        blocks, [&](const LuTask& task) { Spawn(task, matrix, streams[next++ % streams.size()]); },
        [] { CU(cudaDeviceSynchronize()); });
  }

  /// A task waits for the last tasks that wrote its blocks, wherever they are; the host waits for none.
  void ByEvents(Pattern& blocks, float* matrix, StreamSet& streams) {
    struct Written {
      int stream = -1;
      cudaEvent_t event = nullptr;
    };
    std::vector<Written> written(static_cast<std::size_t>(side_) * side_);
    for (Written& block : written) CU(cudaEventCreateWithFlags(&block.event, cudaEventDisableTiming));
    int next = 0;
    streams.Fork();
    const auto spawn = [&](const LuTask& task) {
      const int stream = next++ % streams.size();
      for (const int place : {task.left, task.right, task.target}) {
        if (place >= 0 && written[place].stream >= 0 && written[place].stream != stream) {
          CU(cudaStreamWaitEvent(streams[stream], written[place].event, 0));
        }
      }
      Spawn(task, matrix, streams[stream]);
      written[task.target].stream = stream;
      CU(cudaEventRecord(written[task.target].event, streams[stream]));
    };
    Factorize(blocks, spawn, [] {});
    for (const Written& block : written) CU(cudaEventDestroy(block.event));
  }

  void Spawn(const LuTask& task, float* matrix, cudaStream_t stream) {
    const LuArguments arguments = Arguments(task, matrix);
    kLuKernels[task.kind]<<<1, options_["threads"], 0, stream>>>(arguments);
    CU(cudaGetLastError());
    if (tasks_ == options_["fault"]) FlipBit<<<1, 1, 0, stream>>>(reinterpret_cast<unsigned char*>(arguments.target));
    ++tasks_;
    ++launches_;
  }

  /// Bit by bit what the host finds, one task after the other.
  void Check() {
    Pattern blocks = given_;
    std::vector<float> want(matrix_.size());
    std::copy(original_.begin(), original_.end(), want.begin());
    long tasks = 0;
    Factorize(
        blocks,
        [&](const LuTask& task) {
          LuOnHost(task.kind, Arguments(task, want.data()));
          ++tasks;
        },
        [] {});
    True("number of tasks", tasks == tasks_ && blocks.count() == count_);
    std::vector<std::uint64_t> digests;
    for (int i = 0; i < side_; ++i) {
      for (int j = 0; j < side_; ++j) {
        if (!blocks.Has(i, j)) continue;
        const std::size_t first = elements_ * blocks(i, j);
        for (std::size_t at = first; at < first + elements_; ++at)
          Same("element", static_cast<long>(at), matrix_[at], want[at]);
        digests.push_back(Digest(std::vector<float>(matrix_.data() + first, matrix_.data() + first + elements_)));
      }
    }
    digest_ = Digest(digests);
    factored_ = std::make_unique<Pattern>(blocks);
  }

  /// The product of both factors is the matrix, up to what floats lose of numbers as large as those of the diagonal.
  void CheckProduct() {
    const Pattern& blocks = *factored_;
    std::vector<double> worst(static_cast<std::size_t>(side_) * side_);
    workers_.For(side_ * side_, [&](int at) {
      const int i = at / side_, j = at % side_;
      std::vector<double> sum(elements_);
      for (int k = 0; k <= std::min(i, j); ++k) {
        if (blocks.Has(i, k) && blocks.Has(k, j)) AddProduct(k, i, j, sum);
      }
      for (std::size_t e = 0; e < elements_; ++e) {
        const double want = given_.Has(i, j) ? original_[elements_ * given_(i, j) + e] : 0;
        worst[at] = std::max(worst[at], std::fabs(sum[e] - want));
      }
    });
    for (int at = 0; at < side_ * side_; ++at)
      Near("product of the factors", at, worst[at], 0, 0, 1e-5 * side_ * size_);
  }

  /// sum += L(i, k) * U(k, j): of blocks of the diagonal, that half of them, with ones on the diagonal of L.
  void AddProduct(int k, int i, int j, std::vector<double>& sum) const {
    const float *const left = &matrix_[elements_ * (*factored_)(i, k)], *const right =
                                                                            &matrix_[elements_ * (*factored_)(k, j)];
    for (int y = 0; y < size_; ++y) {
      for (int t = 0; t < (i == k ? y + 1 : size_); ++t) {
        const double factor = i == k && t == y ? 1 : left[y * size_ + t];
        for (int x = j == k ? t : 0; x < size_; ++x)
          sum[static_cast<std::size_t>(y) * size_ + x] += factor * right[t * size_ + x];
      }
    }
  }

  const Options& options_;
  Workers workers_;
  int side_, size_;
  std::size_t elements_;  ///< of a block
  Pattern given_;
  HostArray<float> matrix_;  ///< blocks by place
  std::vector<float> original_;
  std::unique_ptr<Pattern> factored_;
  int count_ = 0;
  long tasks_ = 0, launches_ = 0;
  std::uint64_t digest_ = 0;
};

int main(int argc, char** argv) {
  const Options options("slud", "sparse LU decomposition, a block's step a task", argc, argv, {.counted = false},
                        {{"side", 12, 146, 1, 1024}, {"size", 8, 32, 1, 256}});
  return Slud(options).Main();
}
