#include "sim/study/measure/policy_supply.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/study/measure/kernel_profiles.h"
#include "sim/study/measure/profiling.h"
#include "sim/study/measure/timed_device.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::study {
namespace {

/// Bytes at most of thread blocks that a profile is made from, as the walk along their paths reads them.
constexpr std::uint64_t kMostTraceBytes = 256u << 20;
/// A profile from fewer blocks than the device holds is made anew from a launch that has so many times more.
constexpr std::uint64_t kGrowth = 4;

std::uint64_t HashOf(const trace::KernelCode& code) {
  static_assert(sizeof(trace::Instruction) == 16 && sizeof(trace::BasicBlock) == 8);
  std::uint64_t hash = XXH3_64bits(code.name.data(), code.name.size());
  const auto add = [&](const auto& table) {
    hash = XXH3_64bits_withSeed(table.data(), table.size() * sizeof table[0], hash);
  };
  add(code.instructions);
  add(code.operands);
  add(code.blocks);
  return hash;
}

/// Takes the first blocks of a source before the model asks for them, and gives them when it does.
class ReadAhead final : public trace::CtaSource {
 public:
  explicit ReadAhead(std::shared_ptr<trace::CtaSource> source) : source_(std::move(source)) {}
  const trace::KernelCode& code() const override { return source_->code(); }
  const trace::LaunchShape& shape() const override { return source_->shape(); }
  Result<trace::LoadedCta> Load(std::uint64_t index) override {
    if (index >= ahead_.size()) return source_->Load(index);
    return std::exchange(ahead_[index], {});
  }

  /// Up to `most` blocks, fewer where the launch ended early. They are checked.
  Result<std::vector<std::shared_ptr<const trace::CtaTrace>>> Take(std::uint64_t most) {
    std::vector<std::shared_ptr<const trace::CtaTrace>> flat;
    std::uint64_t bytes = 0;
    while (flat.size() < std::min(most, shape().ctas) && bytes < kMostTraceBytes) {
      GL_TRY(cta, source_->Load(flat.size()));
      if (cta.trace == nullptr) break;
      ahead_.push_back(cta);
      GL_TRY_STATUS(checks_.Check(code(), shape(), cta));
      flat.push_back(trace::FlatTrace(code(), std::move(cta)));
      bytes += trace::BytesOf(*flat.back());
    }
    return flat;
  }

 private:
  const std::shared_ptr<trace::CtaSource> source_;
  trace::CtaChecks checks_;
  std::vector<trace::LoadedCta> ahead_;  ///< from block 0 on
};

}  // namespace

Result<std::shared_ptr<PolicySupply>> PolicySupply::Create(const sim::DeviceSpec& device, Options options) {
  std::shared_ptr<PolicySupply> supply(new PolicySupply(device, std::move(options)));
  if (!supply->options_.profiles.empty()) {
    GL_TRY(file, model::LoadProfiles(supply->options_.profiles));
    supply->file_ = std::move(file);
  }
  return supply;
}

/// Made when they are first wanted. Planners and table are shared by all policies that are made, so that nothing is
/// learned twice.
Result<policy::PolicyInputs> PolicySupply::Inputs() {
  const std::lock_guard lock(mutex_);
  if (ready_) return inputs_;
  GL_TRY(config, LoadKerneletConfig());
  auto table = std::make_shared<model::ProfileTable>();
  if (file_) {
    for (const model::KernelProfile& profile : file_->kernels) {
      GL_TRY(id, table->Add(profile));
      static_cast<void>(id);
    }
  }
  GL_TRY(setup, model::SetUpKernelet(file_ ? file_->sm : SmModelOf(device_), table, config));
  config_ = config;
  table_ = std::move(table);
  inputs_ = std::move(setup.inputs);
  ready_ = true;
  return inputs_;
}

Result<std::unique_ptr<policy::Policy>> PolicySupply::Make(std::string_view name) {
  GL_TRY(known, policy::FindPolicy(name));
  const bool profiles = known->needs.Has(policy::Need::kProfiles);
  policy::PolicyInputs inputs;
  if (profiles) {
    GL_TRY(given, Inputs());
    inputs = std::move(given);
  }
  inputs.follows_pages = RangesOf(device_).has_value();
  GL_TRY(policy, policy::MakePolicy(name, inputs));
  wanted_.store(profiles, std::memory_order_release);  // pairs with the load in Profile
  return policy;
}

std::uint64_t PolicySupply::Profile(std::uint32_t tenant, std::shared_ptr<trace::CtaSource>& source) {
  if (!wanted_.load(std::memory_order_acquire)) return 0;
  if (file_) return Look(tenant, *source);
  const trace::LaunchShape& shape = source->shape();
  const auto needs = timing::NeedsOf(shape, device_);
  if (!needs.ok()) return 0;  // the model refuses it
  const std::uint64_t load = std::uint64_t{timing::CtasPerSm(*needs, device_)} * device_.sm.count;
  const Kind kind{HashOf(source->code()), shape.threads_per_cta, shape.registers_per_thread, shape.shared_bytes};
  auto known = kinds_.find(kind);
  if (known == kinds_.end()) {
    Brought& brought = brought_[tenant];
    if (brought.kinds >= options_.most_kinds) {
      Tell(tenant, source->code().name,
           "its tenant has " + std::to_string(brought.kinds) + " kinds of kernels already");
      return 0;
    }
    ++brought.kinds;
    known = kinds_.emplace(kind, Profiled{}).first;
  }
  Profiled& profiled = known->second;
  const bool too_few = profiled.blocks < load && shape.ctas >= kGrowth * profiled.blocks;
  if (profiled.failed || !too_few) return profiled.id;
  std::uint64_t blocks = 0;
  const auto measured = Measure(source, load, &blocks);
  if (measured.ok()) {
    profiled = {.id = *measured, .blocks = blocks};
  } else {
    profiled.failed = blocks != 0;
    Tell(tenant, source->code().name, measured.error().message);
  }
  return profiled.id;
}

std::uint64_t PolicySupply::Look(std::uint32_t tenant, const trace::CtaSource& source) {
  const std::uint64_t id = ProfileOf(*table_, source.code(), source.shape());
  if (id != 0) return id;
  const std::string warps = std::to_string(source.shape().warps_per_cta());
  Tell(tenant, source.code().name,
       options_.profiles + " has none of it with blocks of " + warps + (warps == "1" ? " warp" : " warps"));
  return 0;
}

Result<std::uint64_t> PolicySupply::Measure(std::shared_ptr<trace::CtaSource>& source, std::uint64_t most_blocks,
                                            std::uint64_t* blocks) {
  const auto ahead = std::make_shared<ReadAhead>(source);
  source = ahead;
  GL_TRY(ctas, ahead->Take(most_blocks));
  *blocks = ctas.size();
  if (ctas.empty()) return Error{"none of its thread blocks came"};
  // Another kernel, or the same from few blocks, may have the name; in the table each has its own.
  const std::uint32_t warps = source->shape().warps_per_cta();
  std::string name = source->code().name;
  for (int number = 2; table_->Find(name, warps) != 0; ++number)
    name = source->code().name + " (" + std::to_string(number) + ")";
  const auto kernel = TracedKernel::Make(name, source->code(), source->shape(), std::move(ctas));
  std::uint64_t simulated = 0;
  auto profile = MeasureProfile(kernel, device_, config_,
                                {.most = config_.profile_instructions * device_.sm.count, .simulated = &simulated});
  warp_instructions_ += simulated;
  if (!profile.ok()) return std::move(profile).error();
  GL_TRY(id, table_->Add(std::move(profile).value()));
  ++kernels_;
  return id;
}

void PolicySupply::Tell(std::uint32_t tenant, const std::string& kernel, const std::string& why) {
  std::set<std::uint64_t>& told = brought_[tenant].told;
  if (!options_.tell || told.size() >= options_.most_kinds ||
      !told.insert(XXH3_64bits(kernel.data(), kernel.size())).second)
    return;
  options_.tell("kernel " + kernel + " has no profile, and is scheduled without one: " + why);
}

PolicySupply::Cost PolicySupply::cost() const { return {.kernels = kernels_, .warp_instructions = warp_instructions_}; }

}  // namespace gridloom::study
