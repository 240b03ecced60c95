// How much faster programs are when their stages overlap (section 5.2 and 5.3).
#include <algorithm>
#include <cmath>

#include "sim/study/crcs/exhibits.h"

namespace gridloom::study::crcs {
namespace {

/// Time without copies, while nothing else overlaps: what integrated GPUs could do at most.
double WithoutCopies(const Times& times) { return times.total - times.to_device - times.to_host; }

/// Besides, the first kernel overlaps with all of the prelude and the last one with all of the postlude, as the paper
/// has the bound of what was known before.
double WithSingleKernels(const Times& times) {
  return WithoutCopies(times) - std::min(times.first, times.read) - std::min(times.last, times.write);
}

/// The mean of speed-ups, as a gain in per cent.
class Mean {
 public:
  void Add(double gain) { sum_ += gain, ++count_; }
  double value() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::size_t count_ = 0;
};

std::string Percent(double value) { return Number("%.1f %%", value); }

}  // namespace

Result<Exhibit> Fig9(const Settings& settings, Runs& runs) {
  Exhibit exhibit{
      .name = {},
      .title = "Speed-up over one stage after the other, in per cent; the paper's beside it (p.)",
      .columns = {"device", "workload", "baseline ms", "no copies", "one kernel", "CRCS+FIFO", "p. FIFO", "CRCS+PPCS",
                  "p. PPCS"},
      .drawings = {{.caption = "speed-up over the baseline", .unit = "%", .names = {1}, .values = {3, 4, 5, 7}},
                   {.caption = "CRCS + PPCS, and the paper's", .unit = "%", .names = {1}, .values = {7, 8}}}};
  std::vector<Run> wanted;
  for (const std::string& workload : runs.programs()) {
    for (const char* policy : {kSerial, kFifo, kPpcs}) wanted.push_back({.program = workload, .scheme = policy});
  }
  GL_TRY(times, runs.Measure<Times>(wanted));
  Mean no_copies, single, fifo, ppcs, over;
  double most = 0, most_over = -100;
  for (std::size_t i = 0; i < runs.programs().size(); ++i) {
    const Times &base = times[3 * i], &with_fifo = times[3 * i + 1], &with_ppcs = times[3 * i + 2];
    const double gains[] = {Gain(base.total, WithoutCopies(base)), Gain(base.total, WithSingleKernels(base)),
                            Gain(base.total, with_fifo.total), Gain(base.total, with_ppcs.total)};
    const std::string& name = runs.programs()[i];
    exhibit.rows.push_back({runs.device(), name, base.total, gains[0], gains[1], gains[2],
                            PaperValue(settings, "fifo", name), gains[3], PaperValue(settings, "ppcs", name)});
    no_copies.Add(gains[0]);
    single.Add(gains[1]);
    fifo.Add(gains[2]);
    ppcs.Add(gains[3]);
    const double beside = Gain(with_fifo.total, with_ppcs.total);
    over.Add(beside);
    most = std::max(most, gains[3]);
    most_over = std::max(most_over, beside);
  }
  exhibit.rows.push_back({runs.device(), "mean", nullptr, no_copies.value(), single.value(), fifo.value(), nullptr,
                          ppcs.value(), PaperValue(settings, "ppcs", "mean")});
  GL_TRY_STATUS(AddFinding(settings, "CRCS with PPCS, mean", "ppcs_mean", Percent(ppcs.value()), exhibit));
  GL_TRY_STATUS(AddFinding(settings, "CRCS with PPCS, at most", "ppcs_most", Percent(most), exhibit));
  GL_TRY_STATUS(
      AddFinding(settings, "bound of overlapping one kernel, mean", "single_mean", Percent(single.value()), exhibit));
  GL_TRY_STATUS(AddFinding(settings, "PPCS over FIFO, mean", "over_mean", Percent(over.value()), exhibit));
  GL_TRY_STATUS(AddFinding(settings, "PPCS over FIFO, at most", "over_most", Percent(most_over), exhibit));
  return exhibit;
}

Result<Exhibit> Fig12(const Settings& settings, Runs& runs) {
  GL_TRY(workload, settings.Text("fig12.workload"));
  Exhibit exhibit{
      .name = {},
      .title = "Speed-up of " + workload + " over one stage after the other by its number of launches, in per cent",
      .columns = {"device", "launches", "baseline ms", "kernels %", "one kernel", "CRCS+FIFO", "CRCS+PPCS",
                  "p. one kernel", "p. PPCS"},
      .drawings = {{.caption = "speed-up over the baseline", .unit = "%", .names = {1}, .values = {4, 5, 6}}}};
  GL_TRY(launches, settings.Numbers("fig12.launches"));
  std::vector<Run> wanted;
  for (const double count : launches) {
    for (const char* policy : {kSerial, kFifo, kPpcs}) {
      wanted.push_back({.program = workload, .scheme = policy, .arguments = {Number("--launches=%.0f", count)}});
    }
  }
  GL_TRY(times, runs.Measure<Times>(wanted));
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const Times& base = times[3 * i];
    const std::string count = Number("%.0f", launches[i]);
    exhibit.rows.push_back({runs.device(), launches[i], base.total, 100 * base.all_kernels() / base.total,
                            Gain(base.total, WithSingleKernels(base)), Gain(base.total, times[3 * i + 1].total),
                            Gain(base.total, times[3 * i + 2].total), PaperValue(settings, "fig12.single", count),
                            PaperValue(settings, "fig12.ppcs", count)});
  }
  return exhibit;
}

Result<Exhibit> Random(const Settings& settings, Runs& runs) {
  Exhibit exhibit{
      .name = {},
      .title = "Speed-up under PPCS by the order in which inputs are read, in per cent; the paper's beside it (p.)",
      .columns = {"device", "workload", "interleaved", "p.", "array by array", "at random", "p. random",
                  "random - interleaved"},
      .drawings = {{.caption = "speed-up over the baseline", .unit = "%", .names = {1}, .values = {2, 4, 5}}}};
  std::vector<Run> wanted;
  for (const std::string& workload : runs.programs()) {
    wanted.push_back({.program = workload});
    for (const char* order : {"interleaved", "arrays", "random"}) {
      wanted.push_back({.program = workload, .scheme = kPpcs, .keys = {{"hardware.crcs.order", order}}});
    }
  }
  GL_TRY(times, runs.Measure<Times>(wanted));
  for (std::size_t i = 0; i < runs.programs().size(); ++i) {
    const std::string& name = runs.programs()[i];
    double gains[3];
    for (std::size_t order = 0; order < 3; ++order)
      gains[order] = Gain(times[4 * i].total, times[4 * i + 1 + order].total);
    exhibit.rows.push_back({runs.device(), name, gains[0], PaperValue(settings, "ppcs", name), gains[1], gains[2],
                            PaperValue(settings, "random", name), gains[2] - gains[0]});
  }
  return exhibit;
}

/// Strided ranges in place of intervals, and CTAs whose pages are there first.
Result<Exhibit> Beyond(const Settings&, Runs& runs) {
  Exhibit exhibit{
      .name = {},
      .title = "Beyond the paper: strided ranges, and thread blocks first whose pages are there; speed-up in per cent",
      .columns = {"device", "workload", "ranges", "CRCS+FIFO", "CRCS+PPCS", "crcs-ready", "best of the two - ready"},
      .drawings = {{.caption = "speed-up over the baseline", .unit = "%", .names = {1, 2}, .values = {3, 4, 5}}}};
  constexpr const char* kForms[] = {"interval", "strided"};
  constexpr const char* kPolicies[] = {kFifo, kPpcs, kReady};
  std::vector<Run> wanted;
  for (const std::string& workload : runs.programs()) {
    wanted.push_back({.program = workload});
    for (const char* form : kForms) {
      for (const char* policy : kPolicies) {
        wanted.push_back({.program = workload, .scheme = policy, .keys = {{"hardware.crcs.ranges", form}}});
      }
    }
  }
  GL_TRY(times, runs.Measure<Times>(wanted));
  Mean means[2][3];
  double behind[2] = {};
  for (std::size_t i = 0; i < runs.programs().size(); ++i) {
    const Times* const all = &times[7 * i];
    for (std::size_t form = 0; form < 2; ++form) {
      double gains[3];
      for (std::size_t policy = 0; policy < 3; ++policy) {
        gains[policy] = Gain(all[0].total, all[1 + 3 * form + policy].total);
        means[form][policy].Add(gains[policy]);
      }
      const double best = std::min(all[1 + 3 * form].total, all[2 + 3 * form].total);
      const double lost = 100 * (all[3 + 3 * form].total / best - 1);
      behind[form] = std::max(behind[form], lost);
      exhibit.rows.push_back({runs.device(), runs.programs()[i], kForms[form], gains[0], gains[1], gains[2],
                              std::max(gains[0], gains[1]) - gains[2]});
    }
  }
  for (std::size_t form = 0; form < 2; ++form) {
    const auto& mean = means[form];
    exhibit.rows.push_back(
        {runs.device(), "mean", kForms[form], mean[0].value(), mean[1].value(), mean[2].value(), nullptr});
  }
  exhibit.notes.push_back("crcs-ready takes at most " + Percent(behind[0]) +
                          " more time than the better of the paper's schedulers, with strided ranges " +
                          Percent(behind[1]) + ".");
  return exhibit;
}

}  // namespace gridloom::study::crcs
