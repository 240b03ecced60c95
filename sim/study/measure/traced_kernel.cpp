#include "sim/study/measure/traced_kernel.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdio>

#include "sim/trace/trace_file.h"

namespace gridloom::study {
namespace {

class Circle final : public trace::CtaSource {
 public:
  Circle(std::shared_ptr<const TracedKernel> kernel, std::uint64_t first, std::uint64_t count)
      : kernel_(std::move(kernel)), shape_(kernel_->shape), first_(first) {
    shape_.ctas = count;
  }
  const trace::KernelCode& code() const override { return kernel_->code; }
  const trace::LaunchShape& shape() const override { return shape_; }
  Result<trace::LoadedCta> Load(std::uint64_t index) override {
    return trace::LoadedCta{kernel_->ctas[(first_ + index) % kernel_->ctas.size()], {}};
  }

 private:
  const std::shared_ptr<const TracedKernel> kernel_;
  trace::LaunchShape shape_;
  const std::uint64_t first_;
};

template <typename Values>
void Hash(XXH3_state_t& state, const Values& values) {
  const std::uint64_t count = values.size();
  XXH3_64bits_update(&state, &count, sizeof count);
  XXH3_64bits_update(&state, values.data(), values.size() * sizeof values[0]);
}

/// A digest of all that decides about cycles. The structures that are hashed have no padding.
std::string Digest(const TracedKernel& kernel) {
  static_assert(sizeof(trace::MemoryAccess) == 16 && sizeof(trace::BlockVisit) == 8 && sizeof(trace::WarpTrace) == 16);
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  Hash(*state, kernel.code.instructions);
  Hash(*state, kernel.code.operands);
  Hash(*state, kernel.code.blocks);
  const std::uint32_t shape[] = {kernel.shape.threads_per_cta, kernel.shape.registers_per_thread,
                                 kernel.shape.shared_bytes, kernel.process};
  XXH3_64bits_update(state, shape, sizeof shape);
  for (const auto& cta : kernel.ctas) {
    Hash(*state, cta->warps);
    Hash(*state, cta->visits);
    Hash(*state, cta->accesses);
    Hash(*state, cta->lanes);
    Hash(*state, cta->patterns);
    for (const trace::Repeat& repeat : cta->repeats) {
      const std::uint64_t numbers[] = {repeat.warp, repeat.visit, repeat.visit_count, repeat.more};
      XXH3_64bits_update(state, numbers, sizeof numbers);
    }
  }
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(XXH3_64bits_digest(state)));
  XXH3_freeState(state);
  return text;
}

}  // namespace

std::shared_ptr<const TracedKernel> TracedKernel::Make(std::string name, trace::KernelCode code,
                                                       trace::LaunchShape shape,
                                                       std::vector<std::shared_ptr<const trace::CtaTrace>> ctas,
                                                       std::uint32_t process) {
  auto kernel = std::make_shared<TracedKernel>();
  kernel->name = std::move(name);
  kernel->process = process;
  kernel->code = std::move(code);
  kernel->shape = shape;
  kernel->shape.ctas = ctas.size();
  kernel->ctas = std::move(ctas);
  double instructions = 0;
  for (const auto& cta : kernel->ctas) instructions += static_cast<double>(trace::InstructionCount(kernel->code, *cta));
  kernel->instructions_per_cta = instructions / static_cast<double>(kernel->ctas.size());
  kernel->digest = Digest(*kernel);
  return kernel;
}

Result<std::shared_ptr<const TracedKernel>> LoadTracedKernel(const std::string& path, const std::string& kernel,
                                                             const std::string& name, std::uint32_t process) {
  GL_TRY(file, trace::TraceFile::Open(path));
  for (std::size_t i = 0; i < file->launches().size(); ++i) {
    const trace::TraceFile::Launch& launch = file->launches()[i];
    const trace::KernelCode& code = file->kernels()[launch.info.kernel];
    if (!launch.complete || !launch.info.of_program() || code.name.find(kernel) == std::string::npos) continue;
    const auto source = trace::TraceFile::Source(file, i);
    std::vector<std::shared_ptr<const trace::CtaTrace>> ctas;
    std::uint64_t bytes = 0;
    for (const std::uint64_t cta : launch.KeptCtas()) {
      if (bytes >= kMostKernelBytes) break;
      GL_TRY(loaded, source->Load(cta));
      ctas.push_back(trace::FlatTrace(code, std::move(loaded)));
      bytes += trace::BytesOf(*ctas.back());
    }
    if (ctas.empty()) return Error{path + ": no thread block of kernel " + code.name + " was kept"};
    return TracedKernel::Make(name, code, launch.info.shape, std::move(ctas), process);
  }
  return Error{path + ": no complete launch of a kernel named '" + kernel + "'"};
}

std::shared_ptr<trace::CtaSource> BlocksOf(std::shared_ptr<const TracedKernel> kernel, std::uint64_t first,
                                           std::uint64_t count) {
  return std::make_shared<Circle>(std::move(kernel), first, count);
}

}  // namespace gridloom::study
