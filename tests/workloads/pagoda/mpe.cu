// MPE, several programs at once: as many tasks of 3DES, MB, FB and MM, which arrive in random order from several
// threads of the host. Their tasks differ in length, in what they copy, in shared memory, and in whether they have
// barriers. The fused kernel has the work of all four in one function, and with it the registers and the shared memory
// of the most demanding one.
#include <array>

#include "pagoda/des.h"
#include "pagoda/fb.h"
#include "pagoda/mb.h"
#include "pagoda/mm.h"
#include "pagoda/run.h"

constexpr int kKinds = 4;

struct MixedArguments {
  int kind;
  union {
    DesArguments des;
    MbArguments mb;
    FbArguments fb;
    MmArguments mm;
  };
};

__global__ void MixedFused(const MixedArguments* tasks) {
  const MixedArguments& task = tasks[blockIdx.x];
  switch (task.kind) {
    case 0: DesWork(task.des, threadIdx.x, blockDim.x); break;
    case 1: MbWork(task.mb, threadIdx.x, blockDim.x); break;
    case 2: FbWork(task.fb); break;
    default: MmWithShared(task.mm, 0, 1);
  }
}
__global__ void MixedGlobalFused(const MixedArguments* tasks) {
  const MixedArguments& task = tasks[blockIdx.x];
  switch (task.kind) {
    case 0: DesWork(task.des, threadIdx.x, blockDim.x); break;
    case 1: MbWork(task.mb, threadIdx.x, blockDim.x); break;
    case 2: FbWork(task.fb); break;
    default: MmWithoutShared(task.mm, threadIdx.x, blockDim.x);
  }
}

class Mixed final : public Kind {
 public:
  explicit Mixed(const Options& options)
      : options_(options),
        des_(options, "des"),
        mb_(options, "mb"),
        fb_(options, "fb"),
        mm_(options, "mm"),
        kind_of_(options["tasks"]) {
    for (std::size_t i = 0; i < kind_of_.size(); ++i) kind_of_[i] = static_cast<int>(i % kKinds);
    Random random(options.seed() + 77);
    for (std::size_t left = kind_of_.size(); left > 1; --left)
      std::swap(kind_of_[left - 1], kind_of_[random.Next64() % left]);
  }

  void Describe(Task& task) const override { Of(task).Describe(task); }
  void Fill(const Task& task, char* in) const override { Of(task).Fill(task, in); }
  void Compute(const Task& task, const char* in, char* out) const override { Of(task).Compute(task, in, out); }
  void Launch(const Task& task, cudaStream_t stream) const override { Of(task).Launch(task, stream); }

  void LaunchFused(const char* arguments, int tasks, cudaStream_t stream) const override {
    const auto* const mixed = reinterpret_cast<const MixedArguments*>(arguments);
    if (options_.shared()) MixedFused<<<tasks, kFusedThreads, MmSharedBytes(kFusedThreads), stream>>>(mixed);
    else MixedGlobalFused<<<tasks, kFusedThreads, 0, stream>>>(mixed);
    CU(cudaGetLastError());
  }
  std::size_t argument_bytes() const override { return sizeof(MixedArguments); }
  void PutArguments(const Task& task, char* where) const override {
    MixedArguments mixed;
    std::memset(static_cast<void*>(&mixed), 0, sizeof mixed);
    mixed.kind = kind_of_[task.index];
    Of(task).PutArguments(task, reinterpret_cast<char*>(&mixed.des));
    std::memcpy(where, &mixed, sizeof mixed);
  }

  std::string Load() const override {
    cudaFuncAttributes attributes;
    CU(cudaFuncGetAttributes(&attributes, options_.shared() ? MixedFused : MixedGlobalFused));
    return "3DES " + des_.Load() + "; MB " + mb_.Load() + "; FB " + fb_.Load() + "; MM " + mm_.Load() + "; fused all " +
           std::to_string(attributes.numRegs) + " registers";
  }
  std::string About(const std::vector<Task>&) const override {
    std::array<int, kKinds> counts{};
    for (const int kind : kind_of_) ++counts[kind];
    std::ostringstream text;
    text << counts[0] << " of 3DES, " << counts[1] << " of MB, " << counts[2] << " of FB, " << counts[3] << " of MM";
    return text.str();
  }

 private:
  const Kind& Of(const Task& task) const {
    const std::array<const Kind*, kKinds> kinds = {&des_, &mb_, &fb_, &mm_};
    return *kinds[kind_of_[task.index]];
  }

  const Options& options_;
  Des des_;
  Mb mb_;
  Fb fb_;
  Mm mm_;
  std::vector<int> kind_of_;
};

int main(int argc, char** argv) {
  const Options options("mpe", "tasks of 3DES, MB, FB and MM in random order", argc, argv,
                        {.shared = true, .launchers = 4},
                        {{"des", 8192, 65536, 8, 1 << 24, 8},
                         {"least", 512, 2048, 8, 1 << 24, 8},
                         {"mb", 32, 64, 1, 4096},
                         {"cap", 256, 256, 1, 1 << 20},
                         {"fb", 512, 2048, 1, 1 << 20},
                         {"taps", 32, 32, 1, 1024},
                         {"channels", 1, 1, 1, 64},
                         {"mm", 32, 64, 1, 4096}});
  const Mixed kind(options);
  return Run(options, kind).Main();
}
