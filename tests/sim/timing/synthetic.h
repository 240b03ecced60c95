// Traces made by hand, for tests and benchmarks of the timing model.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include "sim/trace/kernel_trace.h"

namespace gridloom::timing {

inline constexpr std::uint32_t kAllLanes = 0xffffffffu;

/// Writes a code table, instruction by instruction. Instructions before the first Block() are an error.
class CodeBuilder {
 public:
  using Registers = std::initializer_list<std::uint16_t>;

  explicit CodeBuilder(std::string name) { code_.name = std::move(name); }

  /// Begins a basic block; returns its number.
  std::uint32_t Block();
  void Op(trace::OpClass op, Registers destinations, Registers sources);
  /// `address` is the register that the address comes from; 0: one that is always ready.
  void Load(trace::Space space, std::uint16_t destination, std::uint8_t width = 4, unsigned flags = 0,
            std::uint16_t address = 0);
  void Store(trace::Space space, std::uint16_t value, std::uint8_t width = 4, unsigned flags = 0);
  void Atomic(trace::Space space, std::uint16_t destination, std::uint8_t width = 4);
  void Barrier(std::uint8_t number = 0, std::uint8_t warps = 0, bool arrive = false);
  void Exit() { Op(trace::OpClass::kControl, {}, {}); }
  trace::KernelCode code() const { return code_; }

 private:
  trace::Instruction& Add(trace::OpClass op, Registers destinations, Registers sources);
  trace::KernelCode code_;
};

/// Writes a CTA, warp by warp.
class CtaBuilder {
 public:
  void Warp();
  void Visit(std::uint32_t block, std::uint32_t mask = kAllLanes, std::uint32_t times = 1);
  void Access(std::uint64_t base, std::int32_t stride = 4, std::uint32_t mask = kAllLanes);
  void Scatter(const std::vector<std::uint64_t>& addresses,
               std::uint32_t mask = kAllLanes);  ///< one for each lane of the mask
  /// The last visits of the warp, with their accesses, are made so many times more.
  void Repeat(std::uint32_t visits, std::uint32_t accesses, std::uint64_t more);
  std::shared_ptr<const trace::CtaTrace> Finish() { return std::make_shared<const trace::CtaTrace>(std::move(cta_)); }

 private:
  trace::CtaTrace cta_;
};

/// A launch whose CTAs a function makes.
class SyntheticSource final : public trace::CtaSource {
 public:
  using Make = std::function<trace::LoadedCta(std::uint64_t index)>;
  SyntheticSource(trace::KernelCode code, trace::LaunchShape shape, Make make)
      : code_(std::move(code)), shape_(shape), make_(std::move(make)) {}
  const trace::KernelCode& code() const override { return code_; }
  const trace::LaunchShape& shape() const override { return shape_; }
  Result<trace::LoadedCta> Load(std::uint64_t index) override { return make_(index); }

 private:
  trace::KernelCode code_;
  trace::LaunchShape shape_;
  Make make_;
};

/// The CTA with all its addresses but those of shared memory `shift` on.
trace::LoadedCta Shifted(const trace::KernelCode& code, std::shared_ptr<const trace::CtaTrace> cta,
                         std::uint64_t shift);

/// A launch of equal CTAs; the addresses of CTA i but those of shared memory are i * `shift` on.
std::shared_ptr<trace::CtaSource> SameCtas(trace::KernelCode code, trace::LaunchShape shape,
                                           std::shared_ptr<const trace::CtaTrace> cta, std::uint64_t shift = 0);

}  // namespace gridloom::timing
