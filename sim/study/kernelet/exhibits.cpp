#include "sim/study/kernelet/exhibits.h"

#include <algorithm>
#include <cmath>

#include "sim/study/kernelet/parts.h"

namespace gridloom::study {
namespace {

using Json = nlohmann::ordered_json;

/// IPC of an SM in the paper's unit, whose peak on the C2050 is 1 (its cycles are those of the shader clock).
Result<double> PaperIpcUnit(const Settings& settings, const KernelStudy& study) {
  GL_TRY(peak, settings.Number("paper.peak_ipc." + study.device().id));
  const sim::TimingSpec::Sm& sm = study.device().timing.sm;
  return peak / (sm.schedulers * sm.issue_width);
}

Result<Exhibit> Table4(const Settings& settings, DeviceStudies& studies) {
  Exhibit exhibit{
      .name = "table4",
      .title = "Memory and computational characteristics, ours beside the paper's (p.)",
      .columns = {"device", "kernel", "PUR", "p. PUR", "MUR", "p. MUR", "occupancy", "p. occ.", "R_m", "uncoalesced"},
      .drawings = {{.caption = "PUR, and the paper's (p.)", .unit = "", .names = {1}, .values = {2, 3}},
                   {.caption = "MUR, and the paper's (p.)", .unit = "", .names = {1}, .values = {4, 5}}}};
  GL_TRY(unit, settings.Number("mur_unit"));
  GL_TRY(note, settings.Text("paper.notes.table4"));
  for (const LayoutStudies& layouts : studies) {
    const auto& study = layouts.front();
    double ratio = 0;
    for (std::size_t i = 0; i < study->kernels().size(); ++i) {
      const model::KernelProfile& profile = study->profile(i);
      GL_TRY(paper, settings.Numbers("paper.table4." + study->device().id + "." + profile.kernel));
      if (paper.size() != 3)
        return Error{"paper.table4." + study->device().id + "." + profile.kernel + " must have 3 numbers"};
      const double occupancy =
          static_cast<double>(profile.max_resident_ctas) * profile.needs.warps / study->sm().empty.free_warps;
      exhibit.rows.push_back({study->device().id, profile.kernel, profile.pur, paper[0], profile.mur, paper[1],
                              occupancy, paper[2], profile.memory_ratio, profile.uncoalesced_share});
      ratio += std::abs(std::log(profile.pur / paper[0]));
    }
    const double mean = std::exp(ratio / static_cast<double>(study->kernels().size()));
    exhibit.findings.push_back(
        {study->device().id + ", PUR beside the paper's (geometric mean)", "factor " + Number("%.2f", mean), ""});
    exhibit.notes.push_back(study->device().id + ": PUR differs from the paper's by a factor of " +
                            Number("%.2f", mean) + " in the geometric mean.");
  }
  exhibit.notes.push_back("MUR is the share of DRAM's peak bandwidth times " + Number("%g", unit) +
                          ", the paper's unit (configs/experiments/_kernelet.yaml says why). " + note);
  return exhibit;
}

Result<Exhibit> Fig6(const Settings& settings, DeviceStudies& studies) {
  Exhibit exhibit{.name = "fig6",
                  .title = "Overhead of sliced execution, T_s / T_ns - 1, by slice size",
                  .columns = {"device", "kernel", "blocks per SM", "slice", "overhead %", "smallest slice"},
                  .drawings = {{.kind = Drawing::Kind::kLines,
                                .caption = "overhead of slices; above 20 % cut off",
                                .unit = "%",
                                .names = {1},
                                .values = {2, 4},
                                .limit = 20}}};
  GL_TRY(limit, settings.Number("slicing.overhead"));
  GL_TRY(launches, settings.Text("paper.notes.fig6.launches"));
  for (const LayoutStudies& layouts : studies) {
    const auto& study = layouts.front();
    double most = 0;
    std::string worst;
    std::size_t small = 0, all = 0;
    for (std::size_t i = 0; i < study->kernels().size(); ++i) {
      const model::KernelProfile& profile = study->profile(i);
      for (const SliceCost& cost : study->slices(i)) {
        const std::uint64_t slice = std::uint64_t{cost.ctas_per_sm} * study->device().sm.count;
        exhibit.rows.push_back({study->device().id, profile.kernel, cost.ctas_per_sm, slice, 100 * cost.overhead,
                                slice == profile.smallest_slice ? "<" : ""});
        if (cost.overhead > most) {
          most = cost.overhead;
          worst = profile.kernel;
        }
        ++all;
        small += cost.overhead < limit;
      }
    }
    GL_TRY(finding, settings.Text("paper.findings.fig6." + study->device().id));
    GL_TRY(note, settings.Text("paper.notes.fig6." + study->device().id));
    exhibit.findings.push_back(
        {study->device().id + ", costliest slices", Number("%.1f %%", 100 * most) + " (" + worst + ")", finding});
    exhibit.notes.push_back(study->device().id + ": at most " + Number("%.1f", 100 * most) + " % (" + worst + "); " +
                            std::to_string(small) + " of " + std::to_string(all) + " sizes cost less than " +
                            Number("%g", 100 * limit) + " %. The paper: " + note);
  }
  exhibit.notes.push_back(launches + "; slices go to " + std::to_string(kSliceStreams) + " streams in turn.");
  return exhibit;
}

/// Rows of measured and predicted IPC, and their mean absolute error.
class Comparison {
 public:
  Comparison(Exhibit& exhibit, double unit) : exhibit_(exhibit), unit_(unit) {}
  void Add(const std::string& device, const std::string& what, const std::string& ratio, double measured,
           double predicted) {
    const double error = std::abs(measured - predicted) * unit_;
    exhibit_.rows.push_back({device, what, ratio, measured * unit_, predicted * unit_, error});
    sum_ += error;
    most_ = std::max(most_, error);
    ++count_;
  }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  double most() const { return most_; }
  std::size_t count() const { return count_; }

 private:
  Exhibit& exhibit_;
  const double unit_;
  double sum_ = 0, most_ = 0;
  std::size_t count_ = 0;
};

constexpr const char* kComparisonColumns[] = {"device", "kernels", "ratio", "measured IPC", "predicted IPC", "error"};

Exhibit ComparisonExhibit(std::string name, std::string title) {
  return {.name = std::move(name),
          .title = std::move(title),
          .columns = {std::begin(kComparisonColumns), std::end(kComparisonColumns)},
          .drawings = {{.caption = "IPC", .unit = "instructions/cycle", .names = {1, 2}, .values = {3, 4}}}};
}

Result<Exhibit> Fig7(const Settings& settings, DeviceStudies& studies) {
  Exhibit exhibit = ComparisonExhibit("fig7", "Predicted and measured IPC of single kernels, in the paper's unit");
  for (const LayoutStudies& layouts : studies) {
    const auto& study = layouts.front();
    GL_TRY(unit, PaperIpcUnit(settings, *study));
    Comparison comparison(exhibit, unit);
    const model::MarkovModel markov(study->sm());
    double chain_alone = 0;
    for (std::size_t i = 0; i < study->kernels().size(); ++i) {
      const model::KernelProfile& profile = study->profile(i);
      comparison.Add(study->device().id, profile.kernel, std::to_string(profile.max_resident_ctas), profile.ipc,
                     study->model()->Alone(profile));
      chain_alone +=
          std::abs(markov.Alone(profile) - profile.ipc) * unit / static_cast<double>(study->kernels().size());
    }
    GL_TRY(paper, settings.Number("paper.model_error." + study->device().id));
    exhibit.findings.push_back(
        {study->device().id + ", mean error of IPC", Number("%.3f", comparison.mean()), Number("%.2f", paper)});
    exhibit.notes.push_back(
        study->device().id + ": mean absolute error " + Number("%.3f", comparison.mean()) + ", largest " +
        Number("%.3f", comparison.most()) + "; the paper's mean is " + Number("%.2f", paper) +
        ". The Markov chain without bounds of the SM's other resources: " + Number("%.3f", chain_alone) + ".");
  }
  return exhibit;
}

/// A pair's loads that a figure compares.
using ChooseLoad = std::function<std::optional<PairLoad>(const KernelStudy& study, std::size_t a, std::size_t b)>;

std::vector<PairLoad> LoadsOf(const KernelStudy& study, const ChooseLoad& choose) {
  std::vector<PairLoad> loads;
  for (std::size_t a = 0; a < study.kernels().size(); ++a) {
    for (std::size_t b = a + 1; b < study.kernels().size(); ++b) {
      if (const auto load = choose(study, a, b)) loads.push_back(*load);
    }
  }
  return loads;
}

std::array<double, 2> Predicted(const KernelStudy& study, const PairLoad& load, const model::CoRunModel& model) {
  // Both models answer wherever there is room, and loads come from SliceRatios and OneToOne.
  return model.Together(study.profile(load.a), load.ctas_a, study.profile(load.b), load.ctas_b)
      .value_or(std::array{0.0, 0.0});
}

Status ComparePairs(const Settings& settings, KernelStudy& study, const ChooseLoad& choose,
                    const model::CoRunModel& model, const std::string& remark, Exhibit& exhibit) {
  const std::vector<PairLoad> loads = LoadsOf(study, choose);
  GL_TRY_STATUS(study.MeasurePairs(loads));
  GL_TRY(unit, PaperIpcUnit(settings, study));
  Comparison comparison(exhibit, unit);
  double signed_sum = 0;
  for (const PairLoad& load : loads) {
    GL_TRY(measured, study.PairIpc(load));
    const auto predicted = Predicted(study, load, model);
    comparison.Add(study.device().id, PairName(study, load.a, load.b), RatioText(load), measured[0] + measured[1],
                   predicted[0] + predicted[1]);
    signed_sum += (predicted[0] + predicted[1] - measured[0] - measured[1]) * unit;
  }
  exhibit.findings.push_back({study.device().id + ", mean error of IPC", Number("%.3f", comparison.mean()), ""});
  exhibit.notes.push_back(
      study.device().id + ": " + std::to_string(comparison.count()) + " pairs, mean absolute error " +
      Number("%.3f", comparison.mean()) + ", largest " + Number("%.3f", comparison.most()) + ", mean error " +
      Number("%+.3f", signed_sum / static_cast<double>(std::max<std::size_t>(loads.size(), 1))) + ". " + remark);
  return {};
}

Result<Exhibit> Fig8(const Settings& settings, DeviceStudies& studies) {
  Exhibit exhibit =
      ComparisonExhibit("fig8", "Predicted and measured IPC of pairs, in the slice ratio that the model chooses");
  GL_TRY(note, settings.Text("paper.notes.fig8"));
  for (const LayoutStudies& layouts : studies)
    GL_TRY_STATUS(ComparePairs(settings, *layouts.front(), ModelsChoice, *layouts.front()->model(), note, exhibit));
  return exhibit;
}

Result<Exhibit> Fig9(const Settings& settings, DeviceStudies& studies) {
  Exhibit exhibit = ComparisonExhibit("fig9", "Predicted and measured IPC of pairs, as many blocks of each");
  const auto one_to_one = [](const KernelStudy& study, std::size_t a, std::size_t b) { return study.OneToOne(a, b); };
  GL_TRY(note, settings.Text("paper.notes.fig9"));
  for (const LayoutStudies& layouts : studies)
    GL_TRY_STATUS(ComparePairs(settings, *layouts.front(), one_to_one, *layouts.front()->model(), note, exhibit));
  return exhibit;
}

Result<Exhibit> Fig10(const Settings& settings, DeviceStudies& studies) {
  Exhibit exhibit{.name = "fig10",
                  .title = "Predicted IPC of kernels with uncoalesced accesses, with and without the third state",
                  .columns = {"device", "kernel", "uncoalesced", "measured IPC", "predicted IPC", "all coalesced"},
                  .drawings = {{.caption = "IPC", .unit = "instructions/cycle", .names = {1}, .values = {3, 4, 5}}}};
  for (const LayoutStudies& layouts : studies) {
    const auto& study = layouts.front();
    GL_TRY(unit, PaperIpcUnit(settings, *study));
    for (std::size_t i = 0; i < study->kernels().size(); ++i) {
      const model::KernelProfile& profile = study->profile(i);
      if (profile.uncoalesced_share == 0) continue;
      const model::Resident resident{.kernel = &profile, .ctas = profile.max_resident_ctas};
      exhibit.rows.push_back({study->device().id, profile.kernel, profile.uncoalesced_share, profile.ipc * unit,
                              model::PredictIpc(study->sm(), resident) * unit,
                              model::PredictIpc(study->sm(), resident, {.uncoalesced = false}) * unit});
    }
  }
  GL_TRY(note, settings.Text("paper.notes.fig10"));
  exhibit.notes.push_back(note);
  return exhibit;
}

Result<Exhibit> Fig11(const Settings& settings, DeviceStudies& studies) {
  Exhibit exhibit = ComparisonExhibit("fig11", "IPC of pairs predicted as if one warp scheduler served the SM");
  GL_TRY(note, settings.Text("paper.notes.fig11"));
  for (const LayoutStudies& layouts : studies) {
    const auto& study = layouts.front();
    if (study->device().timing.sm.schedulers < 4) continue;
    const model::MarkovModel one_scheduler(study->sm(), {.virtual_sm = false});
    GL_TRY_STATUS(ComparePairs(settings, *study, ModelsChoice, one_scheduler, note, exhibit));
  }
  return exhibit;
}

Result<Exhibit> Fig12(const Settings& settings, DeviceStudies& studies) {
  GL_TRY(finding, settings.Text("paper.findings.fig12"));
  GL_TRY(note, settings.Text("paper.notes.fig12"));
  Exhibit exhibit{
      .name = "fig12",
      .title = "Predicted and measured co-scheduling profit CP (Eq. 1), in the slice ratio that the model chooses",
      .columns = {"device", "kernels", "ratio", "measured CP", "predicted CP", "error"},
      .drawings = {{.caption = "co-scheduling profit", .unit = "", .names = {1, 2}, .values = {3, 4}}}};
  for (const LayoutStudies& layouts : studies) {
    const auto& study = layouts.front();
    const std::vector<PairLoad> loads = LoadsOf(*study, ModelsChoice);
    GL_TRY_STATUS(study->MeasurePairs(loads));
    double sum = 0;
    for (const PairLoad& load : loads) {
      GL_TRY(measured, MeasuredProfit(*study, load));
      const double alone[] = {study->model()->Alone(study->profile(load.a)),
                              study->model()->Alone(study->profile(load.b))};
      const double predicted = model::CoSchedulingProfit(alone, Predicted(*study, load, *study->model()));
      exhibit.rows.push_back({study->device().id, PairName(*study, load.a, load.b), RatioText(load), measured,
                              predicted, std::abs(measured - predicted)});
      sum += std::abs(measured - predicted);
    }
    const std::string mean = Number("%.3f", sum / static_cast<double>(std::max<std::size_t>(loads.size(), 1)));
    exhibit.findings.push_back({study->device().id + ", mean error of CP", mean, finding});
    exhibit.notes.push_back(study->device().id + ": mean absolute error " + mean + ". " + note);
  }
  return exhibit;
}

/// PUR and MUR, for counting pruned pairs.
model::KernelProfile Point(double pur, double mur) {
  model::KernelProfile profile;
  profile.pur = pur;
  profile.mur = mur;
  return profile;
}

std::size_t PrunedPairs(const std::vector<model::KernelProfile>& kernels, double prune_pur, double prune_mur) {
  std::size_t pruned = 0;
  for (std::size_t a = 0; a < kernels.size(); ++a) {
    for (std::size_t b = a + 1; b < kernels.size(); ++b)
      pruned += model::Prunes(kernels[a], kernels[b], prune_pur, prune_mur);
  }
  return pruned;
}

Result<Exhibit> Table6(const Settings& settings, DeviceStudies& studies) {
  Exhibit exhibit{.name = "table6", .title = "", .columns = {"alpha_m"}};
  GL_TRY(device, settings.Text("paper.table6.device"));
  GL_TRY(alphas, settings.Numbers("paper.table6.alpha_p"));
  GL_TRY(note, settings.Text("paper.notes.table6"));
  for (const double alpha : alphas) exhibit.columns.push_back(Number("%.1f", alpha));
  const auto layouts =
      std::ranges::find(studies, device, [](const LayoutStudies& candidate) { return candidate.front()->device().id; });
  if (layouts == studies.end()) return Error{"table6 is about the device " + device + "; `devices` must name it"};
  exhibit.title = "Pairs pruned on the " + layouts->front()->device().name +
                  ": ours / with the PUR and MUR of the paper's Table 4 / the paper's";
  std::vector<model::KernelProfile> ours, papers;
  const auto& study = layouts->front();
  for (std::size_t i = 0; i < study->kernels().size(); ++i) {
    ours.push_back(Point(study->profile(i).pur, study->profile(i).mur));
    GL_TRY(paper, settings.Numbers("paper.table4." + device + "." + study->kernels()[i].traced->name));
    papers.push_back(Point(paper.at(0), paper.at(1)));
  }
  std::size_t equal = 0, cells = 0;
  for (const std::string& row : settings.Below("paper.table6.pairs")) {
    GL_TRY(printed, settings.Numbers("paper.table6.pairs." + row));
    if (printed.size() != alphas.size())
      return Error{"paper.table6.pairs." + row + " must have as many numbers as alpha_p"};
    std::vector<Json> line{row};
    for (std::size_t i = 0; i < printed.size(); ++i) {
      const double prune_pur = alphas[i], prune_mur = std::stod(row);
      const std::size_t from_paper = PrunedPairs(papers, prune_pur, prune_mur);
      equal += from_paper == static_cast<std::size_t>(printed[i]);
      ++cells;
      line.push_back(std::to_string(PrunedPairs(ours, prune_pur, prune_mur)) + "/" + std::to_string(from_paper) + "/" +
                     Number("%g", printed[i]));
    }
    exhibit.rows.push_back(std::move(line));
  }
  exhibit.findings.push_back({"numbers that the paper's PUR and MUR give",
                              std::to_string(equal) + " of " + std::to_string(cells), std::to_string(cells)});
  exhibit.notes.push_back("With the paper's PUR and MUR, " + std::to_string(equal) + " of " + std::to_string(cells) +
                          " numbers are the paper's: " + note);
  return exhibit;
}

constexpr ExhibitRow<DeviceStudies> kExhibits[] = {
    {"table4", Table4}, {"fig6", Fig6},     {"fig7", Fig7},         {"fig8", Fig8},     {"fig9", Fig9},
    {"fig10", Fig10},   {"fig11", Fig11},   {"fig12", Fig12},       {"table6", Table6}, {"fig13", Fig13},
    {"fig14", Fig14},   {"probes", Probes}, {"together", Together}, {"pairs", Pairs}};

}  // namespace

std::span<const ExhibitRow<DeviceStudies>> KerneletExhibits() { return kExhibits; }

}  // namespace gridloom::study
