// Pagoda: T. T. Yeh, A. Sabne, P. Sakdhnagool, R. Eigenmann, T. G. Rogers, PPoPP 2017 (docs/pagoda-results.md).
#include "sim/study/paper/paper.h"

#include <algorithm>
#include <charconv>

#include "sim/study/pagoda/exhibits.h"

namespace gridloom::study::pagoda {
namespace {

constexpr ExhibitRow<Runs> kExhibits[] = {
    {"table3", Table3}, {"fig5", Fig5},         {"fig6", Fig6},       {"fig7", Fig7},
    {"fig8", Fig8},     {"fig9", Fig9},         {"fig10", Fig10},     {"fig11", Fig11},
    {"table5", Table5}, {"readings", Readings}, {"devices", Devices},
};

// Tasks that are spawned have no order: as many streams as the programs have, so that none waits for another.
constexpr std::string_view kTasks = "--form=tasks", kSpawned = "--form=tasks --streams=1024";
constexpr Scheme kSchemes[] = {
    {.name = kHyperQ, .policy = "leftover", .arguments = kTasks},
    {.name = kGraph, .policy = "leftover", .arguments = "--form=graph"},
    {.name = kFusion, .policy = "leftover", .arguments = "--form=fused"},
    {.name = kGemtc, .policy = "gemtc", .arguments = kSpawned},
    {.name = kGemtcFree, .policy = "gemtc", .arguments = kSpawned},
    {.name = kBatching, .policy = "pagoda", .arguments = kSpawned},
    {.name = kBatchingFree, .policy = "pagoda", .arguments = kSpawned},
    {.name = kPagoda, .policy = "pagoda", .arguments = kSpawned},
};

std::uint64_t WholeNumber(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// A batch is as many tasks as blocks of their threads are on the device, or as many as the keys say.
Result<std::uint64_t> BatchOf(const Settings& settings, const sim::DeviceSpec& device, const Run& run) {
  const auto key = run.keys.find("hardware.gemtc.batch");
  if (key != run.keys.end() && WholeNumber(key->second) != 0) return WholeNumber(key->second);
  GL_TRY(words, settings.List("programs." + run.program));
  words.insert(words.end(), run.arguments.begin(), run.arguments.end());
  std::uint64_t threads = 128;  // as the programs have it
  for (const std::string& word : words) {
    if (word.starts_with("--threads=")) threads = std::max<std::uint64_t>(1, WholeNumber(word.substr(10)));
  }
  return std::max<std::uint64_t>(
      1, std::min<std::uint64_t>(device.sm.max_blocks, device.sm.max_threads / threads) * device.sm.count);
}

/// Batches, and kernels without shared memory where GeMTC needs them.
Status Complete(const Settings& settings, const sim::DeviceSpec& device, Run& run) {
  const bool gemtc = run.scheme == kGemtc || run.scheme == kGemtcFree,
             batching = run.scheme == kBatching || run.scheme == kBatchingFree;
  if (!gemtc && !batching) return {};
  GL_TRY(batch, BatchOf(settings, device, run));
  if (batching) run.keys["hardware.pagoda.batch"] = std::to_string(batch);
  if (run.scheme == kGemtc || run.scheme == kBatching) {
    run.arguments.emplace_back("--spawn=batches");
    run.arguments.push_back("--batch=" + std::to_string(batch));
  }
  GL_TRY(unshared, settings.List("unshared"));
  if (gemtc && std::ranges::find(unshared, run.program) != unshared.end()) run.arguments.emplace_back("--shared=no");
  return {};
}

}  // namespace

extern constinit const Paper kPaper{.name = "pagoda",
                                    .version = 3,
                                    .exhibits = kExhibits,
                                    .schemes = kSchemes,
                                    .names_programs = true,
                                    .keys_stay = true,
                                    .tried = kPagoda,
                                    .complete = Complete};

}  // namespace gridloom::study::pagoda
