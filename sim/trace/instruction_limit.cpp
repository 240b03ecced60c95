#include "sim/trace/instruction_limit.h"

#include <string>
#include <utility>

namespace gridloom::trace {
namespace {

class LimitedSource final : public CtaSource {
 public:
  LimitedSource(std::shared_ptr<CtaSource> source, std::uint64_t most)
      : source_(std::move(source)), left_(most), most_(most) {}
  const KernelCode& code() const override { return source_->code(); }
  const LaunchShape& shape() const override { return source_->shape(); }

  Result<LoadedCta> Load(std::uint64_t index) override {
    GL_TRY(cta, source_->Load(index));
    if (cta.trace == nullptr) return cta;
    if (cta.trace != counted_) {
      counted_ = cta.trace;
      instructions_ = InstructionCount(code(), *cta.trace);
    }
    if (instructions_ > left_) {
      return Error{"kernel " + code().name + ": a launch executes more than " + std::to_string(most_) +
                   " warp instructions (--most-instructions)"};
    }
    left_ -= instructions_;
    return cta;
  }

 private:
  const std::shared_ptr<CtaSource> source_;
  std::uint64_t left_;
  const std::uint64_t most_;
  std::shared_ptr<const CtaTrace> counted_;  ///< many CTAs share one
  std::uint64_t instructions_ = 0;           ///< of it
};

}  // namespace

std::shared_ptr<CtaSource> WithInstructionLimit(std::shared_ptr<CtaSource> source, std::uint64_t most) {
  if (most == 0) return source;
  return std::make_shared<LimitedSource>(std::move(source), most);
}

}  // namespace gridloom::trace
