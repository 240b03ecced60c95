#include "sim/exec/runtime/kernel_builder.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <utility>
#include <vector>

#include "sim/exec/awaited_code.h"
#include "sim/exec/contract/layout.h"
#include "sim/exec/runtime/background/messages.h"
#include "sim/exec/runtime/elapsed.h"
#include "sim/exec/runtime/interpreter/interpreter.h"

namespace gridloom::exec {
namespace {

constexpr std::uint32_t kInterpreterFrames = 16u << 10;  // what helpers need beyond what they need under machine code
// What making machine code takes: fitted to 361 kernels of 151 programs on a Xeon with AVX-512; 80 % of those that take
// more than 100 ms take between 0.7 and 2.2 times as long.
constexpr std::uint64_t kNsPerAccess = 2'300'000, kNsPerBlock = 1'900'000, kNsPerOtherStep = 300'000;
// Kernels for which it takes less are not interpreted. Those with loops may have CTAs that run for long; where they
// cannot begin again, machine code takes over between two CTAs only.
constexpr std::uint64_t kMostWaitNs = 50'000'000, kMostWaitWithLoopsNs = 150'000'000;
constexpr std::uint32_t kMostFrameBytes = 2u << 20;  // of a warp
// A kernel is interpreted for this part of that time before its machine code is made.
constexpr std::uint64_t kPatiencePart = 20;

std::uint64_t ExpectedNs(const InterpretedCode& code) {
  const InterpretedCode::Size size = code.size();
  return size.accesses * kNsPerAccess + size.blocks * kNsPerBlock + (size.steps - size.accesses) * kNsPerOtherStep;
}

void PlaceShared(const SharedLayout& shared, LoadedKernel& loaded) {
  loaded.dynamic_shared_offset = shared.dynamic_offset;
  loaded.reserved_shared_bytes = shared.reserved_bytes;
}

/// What is known of compiled code, and its entry.
Result<LoadedKernel> Loaded(const CompiledKernel& compiled, std::unique_ptr<CodeObject> code,
                            const CompileOptions& options, const SharedLayout& shared) {
  LoadedKernel loaded;
  loaded.facts() = compiled.facts();
  const auto entry = reinterpret_cast<std::uintptr_t>(code->Find("gl_kernel"));
  if (entry == 0 || entry >= code->code_end()) return Error{"the compiled object defines no function gl_kernel"};
  loaded.code = std::move(code);
  if (compiled.by_cta) loaded.cta_entry = reinterpret_cast<CtaEntry>(entry);
  else loaded.entry = reinterpret_cast<WarpEntry>(entry);
  PlaceShared(shared, loaded);
  loaded.options = options;
  return loaded;
}

/// Keeps machine code beside the bytecode, unless there is some.
const LoadedKernel* Publish(TierState& tier, LoadedKernel machine_code) {
  const std::lock_guard lock(tier.mutex);
  if (!tier.machine_code) {
    tier.machine_code = std::make_unique<LoadedKernel>(std::move(machine_code));
    tier.better.store(tier.machine_code.get(), std::memory_order_release);
  }
  return tier.machine_code.get();
}

/// Interpreted kernels of the process whose machine code may still come.
class AwaitedTiers {
 public:
  void Add(const std::shared_ptr<TierState>& tier) {
    const std::lock_guard lock(mutex_);
    if (tiers_.size() >= 2 * kept_ + 64) Forget();
    tiers_.push_back(tier);
  }
  /// It will not come.
  void Remove(const std::shared_ptr<TierState>& tier) {
    const std::lock_guard lock(mutex_);
    std::erase_if(tiers_, [&](const auto& other) { return other.lock() == tier; });
  }
  /// Of a kernel that ran once, for a short time, no code was asked for: it would not be worth it.
  std::size_t Count() {
    const std::lock_guard lock(mutex_);
    Forget();
    return static_cast<std::size_t>(std::ranges::count_if(tiers_, [](const auto& other) {
      const auto tier = other.lock();
      return tier && tier->asked.load();
    }));
  }

 private:
  /// Those that are gone, and those whose code has come.
  void Forget() {
    std::erase_if(tiers_, [](const auto& other) {
      const auto tier = other.lock();
      return !tier || tier->better.load(std::memory_order_relaxed) != nullptr;
    });
    kept_ = tiers_.size();
  }

  std::mutex mutex_;
  std::vector<std::weak_ptr<TierState>> tiers_;
  std::size_t kept_ = 0;
};
AwaitedTiers& TheAwaitedTiers() {
  static auto* const tiers = new AwaitedTiers;  // code may come while the process ends
  return *tiers;
}

}  // namespace

std::size_t AwaitedKernels() { return TheAwaitedTiers().Count(); }

Status CheckTiers(const std::string& tiers) {
  if (tiers.empty() || tiers == "off" || tiers == "on" || tiers == "interpret") return {};
  return Error{"GRIDLOOM_TIERS=" + tiers.substr(0, 60) + " is not known; expected on, off or interpret"};
}

KernelBuilder::KernelBuilder(const Engine::Options& options, CompileFn compile, std::string compiler_id,
                             unsigned threads)
    : options_(options),
      compiler_(compile, std::move(compiler_id)),
      cache_(options.cache_dir, options.cache_bytes, options.log) {
  if (options.tiers == "interpret") tiers_ = Tiers::kInterpret;
  if (options.tiers != "on" || compile != nullptr) return;
  background_ = std::make_unique<BackgroundCompiler>(
      BackgroundCompiler::Options{compiler_.ServicePath(), compiler_.path(), cache_.enabled() ? options.cache_dir : "",
                                  options.cache_bytes, threads});
  if (background_->available()) tiers_ = Tiers::kOn;
}

const ProcessorChoices& KernelBuilder::Choices() {
  std::call_once(chosen_, [this] {
    choices_ = ChoicesOf(KnowProcessor(cache_).times);
    static_cast<void>(ApplyChoices(options_.code, choices_));  // CreateEngine has checked it
  });
  return choices_;
}

/// None, and why: the interpreter cannot run it; or, for no such reason, it is not worth it.
std::optional<LoadedKernel> KernelBuilder::LoadBytecode(ProgramImpl& program, const KernelInfo& kernel,
                                                        const CompileOptions& options, const InterpretedKernel& made,
                                                        std::string& refused) {
  auto code = InterpretedCode::Load(made.code);
  if (!code) {
    refused = code.error().message;
    return std::nullopt;
  }
  const std::uint64_t most_wait =
      (*code)->has_loops() && !(*code)->can_begin_again() ? kMostWaitWithLoopsNs : kMostWaitNs;
  if (tiers_ == Tiers::kOn && (ExpectedNs(**code) < most_wait || (*code)->stack_bytes() > kMostFrameBytes))
    return std::nullopt;
  LoadedKernel loaded;
  loaded.facts() = made.facts();
  loaded.interpreted = std::move(*code);
  loaded.entry = &InterpretWarp;
  PlaceShared(LayoutShared(program.module_as_read(), *kernel.function), loaded);
  loaded.frame_bytes = static_cast<std::uint32_t>(loaded.interpreted->stack_bytes()) + kInterpreterFrames;
  loaded.check_sites = loaded.interpreted->check_sites();
  loaded.options = options;
  if (tiers_ == Tiers::kOn) {
    loaded.tier = std::make_shared<TierState>();
    TheAwaitedTiers().Add(loaded.tier);
  }
  return loaded;
}

/// The kernel as bytecode: what is `known`, or made and kept. None: the interpreter cannot run it, though machine code
/// might, or it is not worth it.
Result<std::optional<LoadedKernel>> KernelBuilder::Interpret(ProgramImpl& program, const KernelInfo& kernel,
                                                             const CompileOptions& options, const CacheKey& key,
                                                             InterpretedKernel* known) {
  std::string refused;
  if (known) {
    if (auto loaded = LoadBytecode(program, kernel, options, *known, refused)) {
      loaded->cache_hit = true;
      // A kernel that an earlier process met, too, is worth compiling, however short it runs.
      if (loaded->tier) loaded->tier->launches.store(1, std::memory_order_relaxed);
      return std::optional(std::move(*loaded));
    }
  }
  const InterpretFn interpret = compiler_.LoadInterpret();
  if (!interpret) return std::optional<LoadedKernel>();
  InterpretedKernel made;
  interpret(&program.module_as_read(), kernel.name.c_str(), &options, &made);
  if (!made.error.empty()) return Error{made.error};
  refused = made.refuses;
  std::optional<LoadedKernel> loaded;
  if (refused.empty()) loaded = LoadBytecode(program, kernel, options, made, refused);
  if (loaded) cache_.StoreBytecode(key, made);
  if (!refused.empty() && options_.log && tiers_ == Tiers::kInterpret)
    options_.log("kernel " + kernel.name + " is not interpreted: " + refused);
  return loaded;
}

CacheKey KernelBuilder::KeyOf(const ProgramImpl& program, const KernelInfo& kernel,
                              const CompileOptions& options) const {
  // Where nothing but bytecode is wanted, machine code that others have made does not stand in its place.
  const std::string maker =
      tiers_ == Tiers::kInterpret && options.record == Recording::kNone ? compiler_.id() + " bytecode" : compiler_.id();
  return MakeCacheKey(program.CodeKeyOf(kernel, options.record != Recording::kNone), options, maker);
}

KernelTable::Built KernelBuilder::Build(ProgramImpl& program, const KernelInfo& kernel, const CompileOptions& options) {
  const bool settled = compiler_.settled();  // before: what was met may have passed since
  return {BuildNow(program, kernel, options), settled};
}

Result<LoadedKernel> KernelBuilder::BuildNow(ProgramImpl& program, const KernelInfo& kernel,
                                             const CompileOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const CacheKey key = KeyOf(program, kernel, options);
  CachedKernel known = cache_.Find(key);
  auto* const machine_code = std::get_if<CompiledKernel>(&known);
  const bool interprets = tiers_ == Tiers::kInterpret || (tiers_ == Tiers::kOn && background_->available());
  if (interprets && !machine_code && options.record == Recording::kNone) {
    GL_TRY(interpreted, Interpret(program, kernel, options, key, std::get_if<InterpretedKernel>(&known)));
    if (interpreted) {
      interpreted->build_seconds = SecondsSince(start);
      return std::move(*interpreted);
    }
  }
  if (machine_code && tiers_ == Tiers::kInterpret && options_.log)
    options_.log("kernel " + kernel.name + " is not interpreted: an earlier run could not, and has made machine code");
  std::optional<CompiledKernel> compiled;
  if (machine_code) compiled = std::move(*machine_code);
  GL_TRY(loaded, MachineCode(program, kernel, options, key, std::move(compiled)));
  loaded.build_seconds = SecondsSince(start);
  return loaded;
}

Result<CompiledKernel> KernelBuilder::Compile(ProgramImpl& program, const KernelInfo& kernel,
                                              const CompileOptions& options, const CacheKey& key) {
  const bool settled = compiler_.settled();
  const Result<CompileFn> compile = compiler_.Load();
  if (!compile && !settled && options.record == Recording::kNone && background_ && background_->available())
    return CompileBeside(program, kernel, options, key);
  if (!compile) return compile.error();
  CompiledKernel compiled;
  (*compile)(&program.module_as_read(), kernel.name.c_str(), &options, &compiled);
  if (!compiled.error.empty()) return Error{compiled.error};
  return compiled;
}

/// Where the compiler cannot be loaded into this process now. Waits for it.
Result<CompiledKernel> KernelBuilder::CompileBeside(ProgramImpl& program, const KernelInfo& kernel,
                                                    const CompileOptions& options, const CacheKey& key) {
  struct Answer {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<Result<CompiledKernel>> made;
  };
  const auto answer = std::make_shared<Answer>();
  BackgroundCompiler::Job job;
  job.module = program.module_pointer();
  job.kernel = kernel.name;
  job.options = options;
  job.key = key;
  job.done = [answer](Result<CompiledKernel> made) {
    const std::lock_guard lock(answer->mutex);
    answer->made = std::move(made);
    answer->came.notify_all();
  };
  background_->Ask(std::move(job), 0);
  std::unique_lock lock(answer->mutex);
  answer->came.wait(lock, [&] { return answer->made.has_value(); });
  return std::move(*answer->made);
}

Result<LoadedKernel> KernelBuilder::MachineCode(ProgramImpl& program, const KernelInfo& kernel,
                                                const CompileOptions& options, const CacheKey& key,
                                                std::optional<CompiledKernel> compiled) {
  std::unique_ptr<CodeObject> code;
  if (compiled) {
    // A file that passed its checksum and still does not load is as good as none.
    auto object = CodeObject::Load(compiled->object, kernel.name);
    if (object && (*object)->Find("gl_kernel")) code = std::move(*object);
    else compiled.reset();
  }
  const bool cache_hit = compiled.has_value();
  if (!compiled) {
    GL_TRY(made, Compile(program, kernel, options, key));
    compiled = std::move(made);
    GL_TRY(object, CodeObject::Load(compiled->object, kernel.name));
    code = std::move(object);
    cache_.Store(key, *compiled);
  }
  GL_TRY(loaded, Loaded(*compiled, std::move(code), options, LayoutShared(program.module_as_read(), *kernel.function)));
  loaded.cache_hit = cache_hit;
  if (options.record != Recording::kNone) {
    for (const ptx::Instruction* instruction :
         NumberInstructions(program.module_as_read(), *kernel.function).instructions)
      loaded.instruction_lines.push_back(instruction->loc.line);
  }
  return loaded;
}

Result<const LoadedKernel*> KernelBuilder::MakeNow(ProgramImpl& program, const KernelInfo& kernel,
                                                   const LoadedKernel& interpreted) {
  TierState& tier = *interpreted.tier;
  if (const LoadedKernel* const better = tier.better.load(std::memory_order_acquire)) return better;
  const CacheKey key = KeyOf(program, kernel, interpreted.options);
  GL_TRY(loaded, MachineCode(program, kernel, interpreted.options, key, cache_.Load(key)));
  return Publish(tier, std::move(loaded));
}

// ---------------------------------------------------------------------------------------------------------------------
// Machine code that comes later
// ---------------------------------------------------------------------------------------------------------------------

KernelBuilder::Use::Use(KernelBuilder& builder, const LaunchParams& params, const LoadedKernel& kernel)
    : tier_(kernel.tier) {
  if (!tier_) return;
  tier_->running.fetch_add(1, std::memory_order_relaxed);
  const bool again = tier_->launches.fetch_add(1, std::memory_order_relaxed) != 0;
  builder.AskFor(params, kernel, again ? 0 : ExpectedNs(*kernel.interpreted) / kPatiencePart);
}

KernelBuilder::Use::~Use() {
  if (tier_) tier_->running.fetch_sub(1, std::memory_order_relaxed);
}

void KernelBuilder::AskFor(const LaunchParams& params, const LoadedKernel& kernel, std::uint64_t patience_ns) {
  const std::shared_ptr<TierState> tier = kernel.tier;
  if (tier->asked.exchange(true)) return;
  const auto& program = static_cast<const ProgramImpl&>(*params.program);
  BackgroundCompiler::Job job;
  job.module = program.module_pointer();
  job.kernel = params.kernel->name;
  job.options = kernel.options;
  job.key = KeyOf(program, *params.kernel, job.options);
  job.wanted = [tier] {
    if (tier->running.load(std::memory_order_relaxed) != 0 || tier->launches.load(std::memory_order_relaxed) > 1)
      return true;
    tier->asked.store(false);  // the next launch asks again
    return false;
  };
  job.done = [tier, name = job.kernel, log = options_.log, options = job.options,
              shared = LayoutShared(program.module_as_read(), *params.kernel->function)](Result<CompiledKernel> made) {
    const auto publish = [&]() -> Status {
      if (!made) return made.error();
      GL_TRY(object, CodeObject::Load(made->object, name));
      GL_TRY(loaded, Loaded(*made, std::move(object), options, shared));
      loaded.build_reported = true;  // nobody has waited for it
      Publish(*tier, std::move(loaded));
      return {};
    };
    const Status status = publish();
    if (status.ok()) return;
    TheAwaitedTiers().Remove(tier);
    if (log) log("no machine code of kernel " + name + " from beside: " + status.error().message);
  };
  background_->Ask(std::move(job), patience_ns);
}

}  // namespace gridloom::exec
