// What the mechanisms cost: time and instructions of profilers and release code (section 4.2.4), bits on the chip
// (section 5.4).
#include <algorithm>
#include <cmath>

#include "sim/study/crcs/exhibits.h"

namespace gridloom::study::crcs {

Result<Exhibit> Profilers(const Settings& settings, Runs& runs) {
  Exhibit exhibit{
      .name = {},
      .title = "What profilers and release code cost under CRCS with FIFO",
      .columns = {"device", "workload", "run time ms", "profilers ms", "profilers %", "instructions of profilers %",
                  "of release code %"},
      .drawings = {{.caption = "time in profilers", .unit = "% of the run time", .names = {1}, .values = {4}}}};
  std::vector<Run> wanted;
  for (const std::string& workload : runs.programs()) {
    for (const char* policy : {kSerial, kFifo}) wanted.push_back({.program = workload, .scheme = policy});
  }
  GL_TRY(times, runs.Measure<Times>(wanted));
  double sum = 0, most = 0;
  for (std::size_t i = 0; i < runs.programs().size(); ++i) {
    const Times &base = times[2 * i], &overlapped = times[2 * i + 1];
    const double share = 100 * overlapped.profilers / overlapped.total;
    exhibit.rows.push_back({runs.device(), runs.programs()[i], overlapped.total, overlapped.profilers, share,
                            100 * overlapped.profiler_instructions / base.kernel_instructions,
                            100 * (overlapped.kernel_instructions / base.kernel_instructions - 1)});
    sum += share;
    most = std::max(most, share);
  }
  const double mean = sum / static_cast<double>(runs.programs().size());
  GL_TRY(paper, settings.Text("paper.findings.profilers"));
  const std::string ours = Number("%.2f", mean) + " % on average, " + Number("%.1f", most) + " % at most";
  exhibit.findings.push_back({"profilers' share of the run time", ours, paper});
  exhibit.notes.push_back("Profilers take " + ours + "; the paper: " + paper + ".");
  exhibit.notes.push_back("Instructions are of warps, in per cent of those of the program's own kernels.");
  return exhibit;
}

Result<Exhibit> Storage(const Settings& settings, Runs& runs) {
  Exhibit exhibit{
      .name = {}, .title = "Bits that the mechanisms need on the chip", .columns = {"device", "what", "KiB"}};
  GL_TRY(device, runs.DeviceOf({.scheme = kPpcs}));
  const auto number = [&](const std::string& key) { return settings.Number("storage." + key); };
  GL_TRY(entries, number("tlb_entries"));
  GL_TRY(kernel_bits, number("kernel_id_bits"));
  GL_TRY(count_bits, number("count_bits"));
  GL_TRY(pointer_bits, number("pointer_bits"));
  GL_TRY(sm_bits, number("sm_count_bits"));
  GL_TRY(page_bits, number("page_count_bits"));
  GL_TRY(read_only, number("read_only_cache_kib"));
  constexpr double kBitsPerKib = 8 * 1024;
  const double sms = device.sm.count;
  const double ready_and_back = 2;
  const double tlb = entries * (ready_and_back + kernel_bits + 2 * count_bits + pointer_bits) / kBitsPerKib;
  const double kernels_known = std::exp2(kernel_bits);
  const double scheduler = kernels_known * (kernel_bits + sm_bits + page_bits) / kBitsPerKib;
  GL_TRY(shared, number("shared_kib"));
  const double l1 = static_cast<double>(device.timing.l1.size_bytes) / 1024,
               l2 = static_cast<double>(device.l2.size_bytes) / 1024;
  const double caches = sms * (l1 + shared + read_only) + l2;
  const double share = 100 * (sms * tlb + scheduler) / caches;
  const auto row = [&](const std::string& what, double kib) { exhibit.rows.push_back({runs.device(), what, kib}); };
  row("entries of an SM's TLB", tlb);
  row("of all SMs", sms * tlb);
  row("PPCS, for " + Number("%.0f", kernels_known) + " kernels", scheduler);
  row("caches and shared memory of the device", caches);
  GL_TRY(paper, settings.Text("paper.findings.storage"));
  exhibit.findings.push_back({"overhead", Number("%.2f %%", share), paper});
  exhibit.notes.push_back("Together " + Number("%.2f", share) + " % of caches and shared memory; the paper: " + paper +
                          ".");
  std::vector<Run> wanted;
  for (const std::string& workload : runs.programs()) wanted.push_back({.program = workload, .scheme = kPpcs});
  GL_TRY(times, runs.Measure<Times>(wanted));
  double references = 0, kernels = 0;
  for (const Times& one : times) {
    references = std::max(references, one.most_references);
    kernels = std::max(kernels, one.most_kernels);
  }
  exhibit.notes.push_back("The workloads need counts up to " + Number("%.0f", references) + " (" +
                          Number("%.0f", count_bits) + " bits hold " + Number("%.0f", std::exp2(count_bits) - 1) +
                          ") and " + Number("%.0f", kernels) + " kernels at the same time.");
  return exhibit;
}

}  // namespace gridloom::study::crcs
