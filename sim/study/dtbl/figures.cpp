// Figures 6 to 12, and what the paper says of them. Means over programs are arithmetic for differences and geometric
// for ratios.
#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/study/dtbl/outcome.h"
#include "sim/study/paper/paper.h"
#include "sim/study/paper/parts.h"

namespace gridloom::study::dtbl {
namespace {

// The paper's versions of a program (5.2 C). All but the flat one are replays of one trace.
constexpr char kFlat[] = "flat", kCdpIdeal[] = "CDPI", kDtblIdeal[] = "DTBLI", kCdp[] = "CDP", kDtbl[] = "DTBL";
constexpr Scheme kSchemes[] = {
    {.name = kFlat, .policy = "leftover", .arguments = "--form=flat"},
    {.name = kCdpIdeal, .policy = "leftover", .arguments = "--form=cdp", .launches = "cdp-ideal"},
    {.name = kDtblIdeal, .policy = "leftover", .arguments = "--form=cdp", .launches = "dtbl-ideal"},
    {.name = kCdp, .policy = "leftover", .arguments = "--form=cdp", .launches = "cdp"},
    {.name = kDtbl, .policy = "leftover", .arguments = "--form=cdp", .launches = "dtbl"},
};

/// Rows' values of one column, and their mean.
class Column {
 public:
  void Add(double value) {
    if (!std::isfinite(value)) return;
    sum_ += value;
    logs_ += std::log(std::max(value, 1e-12));
    ++count_;
  }
  double mean() const { return count_ == 0 ? 0 : sum_ / count_; }
  double geometric() const { return count_ == 0 ? 1 : std::exp(logs_ / count_); }

 private:
  double sum_ = 0, logs_ = 0;
  double count_ = 0;
};

/// Columns that are computed from the outcomes of a pair; the last row has their means.
struct Value {
  std::string name;
  std::function<double(const std::vector<Outcome>&)> of;
  bool ratio = false;  ///< its mean is geometric
};

Result<Exhibit> TableOf(const Settings& settings, Runs& runs, const std::string& title,
                        const std::vector<std::string>& forms, const std::vector<Value>& values,
                        const std::string& paper, const std::vector<std::size_t>& drawn, const std::string& unit,
                        std::vector<Column>& columns) {
  Exhibit exhibit{.name = {}, .title = title, .columns = {"device", "pair"}};
  for (const Value& value : values) exhibit.columns.push_back(value.name);
  exhibit.columns.emplace_back("the paper");
  exhibit.drawings = {{.caption = title, .unit = unit, .names = {1}, .values = drawn}};
  GL_TRY(outcomes, runs.MeasureAll<Outcome>(forms));
  columns.assign(values.size(), {});
  for (std::size_t i = 0; i < runs.programs().size(); ++i) {
    Row row = {runs.device(), runs.programs()[i]};
    for (std::size_t v = 0; v < values.size(); ++v) {
      const double value = values[v].of(outcomes[i]);
      columns[v].Add(value);
      row.push_back(Cell(value));
    }
    row.push_back(PaperValue(settings, paper, runs.programs()[i]));
    exhibit.rows.push_back(std::move(row));
  }
  Row row = {runs.device(), "mean"};
  for (std::size_t v = 0; v < values.size(); ++v)
    row.push_back(values[v].ratio ? columns[v].geometric() : columns[v].mean());
  row.push_back(PaperValue(settings, paper, "mean"));
  exhibit.rows.push_back(std::move(row));
  return exhibit;
}

double Percent(double part, double whole) { return whole == 0 ? std::nan("") : 100 * (part / whole - 1); }

Result<Exhibit> Fig6(const Settings& settings, Runs& runs) {
  std::vector<Column> columns;
  GL_TRY(exhibit, TableOf(settings, runs, "Warp activity: active threads of the threads of warps that issue, per cent",
                          {kFlat, kCdp, kDtbl},
                          {{"flat", [](const auto& of) { return of[0].warp_activity(); }},
                           {"CDP", [](const auto& of) { return of[1].warp_activity(); }},
                           {"DTBL", [](const auto& of) { return of[2].warp_activity(); }},
                           {"DTBL over flat, points",
                            [](const auto& of) { return of[2].warp_activity() - of[0].warp_activity(); }}},
                          "activity", {2, 3, 4}, "%", columns));
  GL_TRY_STATUS(AddFinding(settings, "warp activity of DTBL over flat, mean", "activity",
                           Number("%+.1f points", columns[3].mean()), exhibit));
  return exhibit;
}

Result<Exhibit> Fig7(const Settings& settings, Runs& runs) {
  std::vector<Column> columns;
  GL_TRY(
      exhibit,
      TableOf(settings, runs, "DRAM efficiency: data cycles of the cycles in which a channel has requests",
              {kFlat, kCdp, kDtbl},
              {{"flat", [](const auto& of) { return of[0].dram_efficiency(); }},
               {"CDP", [](const auto& of) { return of[1].dram_efficiency(); }},
               {"DTBL", [](const auto& of) { return of[2].dram_efficiency(); }},
               {"CDP / flat", [](const auto& of) { return of[1].dram_efficiency() / of[0].dram_efficiency(); }, true},
               {"DTBL / flat", [](const auto& of) { return of[2].dram_efficiency() / of[0].dram_efficiency(); }, true}},
              "dram", {2, 3, 4}, "", columns));
  GL_TRY_STATUS(AddFinding(settings, "DRAM efficiency of CDP over flat, mean", "dram_cdp",
                           Number("%.2fx", columns[3].geometric()), exhibit));
  GL_TRY_STATUS(AddFinding(settings, "DRAM efficiency of DTBL over flat, mean", "dram_dtbl",
                           Number("%.2fx", columns[4].geometric()), exhibit));
  return exhibit;
}

Result<Exhibit> Fig8(const Settings& settings, Runs& runs) {
  std::vector<Column> columns;
  const auto occupancy = [](std::size_t form) {
    return [form](const std::vector<Outcome>& of) { return of[form].occupancy(); };
  };
  GL_TRY(exhibit,
         TableOf(settings, runs, "Occupancy: warps resident of those that fit, per cent",
                 {kCdpIdeal, kDtblIdeal, kCdp, kDtbl},
                 {{"CDPI", occupancy(0)},
                  {"DTBLI", occupancy(1)},
                  {"CDP", occupancy(2)},
                  {"DTBL", occupancy(3)},
                  {"DTBLI over CDPI, points", [](const auto& of) { return of[1].occupancy() - of[0].occupancy(); }},
                  {"latency costs CDP, points", [](const auto& of) { return of[2].occupancy() - of[0].occupancy(); }},
                  {"latency costs DTBL, points", [](const auto& of) { return of[3].occupancy() - of[1].occupancy(); }}},
                 "occupancy", {2, 3, 4, 5}, "%", columns));
  GL_TRY_STATUS(AddFinding(settings, "occupancy of DTBLI over CDPI, mean", "occupancy",
                           Number("%+.1f points", columns[4].mean()), exhibit));
  GL_TRY_STATUS(AddFinding(settings, "latency of launches costs CDP", "occupancy_cdp",
                           Number("%+.1f points", columns[5].mean()), exhibit));
  GL_TRY_STATUS(AddFinding(settings, "latency of launches costs DTBL", "occupancy_dtbl",
                           Number("%+.1f points", columns[6].mean()), exhibit));
  return exhibit;
}

Result<Exhibit> Fig9(const Settings& settings, Runs& runs) {
  std::vector<Column> columns;
  const auto waiting = [](std::size_t form) {
    return [form](const std::vector<Outcome>& of) { return of[form].waiting(); };
  };
  GL_TRY(
      exhibit,
      TableOf(settings, runs, "From a launch to its first thread block, cycles", {kCdpIdeal, kDtblIdeal, kCdp, kDtbl},
              {{"CDPI", waiting(0)},
               {"DTBLI", waiting(1)},
               {"CDP", waiting(2)},
               {"DTBL", waiting(3)},
               {"DTBLI over CDPI, %", [](const auto& of) { return Percent(of[1].waiting(), of[0].waiting()); }},
               {"DTBL over CDP, %", [](const auto& of) { return Percent(of[3].waiting(), of[2].waiting()); }}},
              "waiting", {2, 3, 4, 5}, "", columns));
  GL_TRY_STATUS(AddFinding(settings, "waiting time of DTBLI over CDPI, mean", "waiting_ideal",
                           Number("%+.1f %%", columns[4].mean()), exhibit));
  GL_TRY_STATUS(AddFinding(settings, "waiting time of DTBL over CDP, mean", "waiting",
                           Number("%+.1f %%", columns[5].mean()), exhibit));
  return exhibit;
}

Result<Exhibit> Fig10(const Settings& settings, Runs& runs) {
  std::vector<Column> columns;
  const auto mean = [](const Outcome& of) { return of.byte_cycles / of.busy_cycles; };
  GL_TRY(exhibit, TableOf(settings, runs, "Device memory of pending launches, bytes", {kCdp, kDtbl},
                          {{"CDP, at most", [](const auto& of) { return of[0].most_bytes; }},
                           {"DTBL, at most", [](const auto& of) { return of[1].most_bytes; }},
                           {"CDP, on average", [=](const auto& of) { return mean(of[0]); }},
                           {"DTBL, on average", [=](const auto& of) { return mean(of[1]); }},
                           {"at most, %", [](const auto& of) { return Percent(of[1].most_bytes, of[0].most_bytes); }},
                           {"on average, %", [=](const auto& of) { return Percent(mean(of[1]), mean(of[0])); }}},
                          "footprint", {2, 3}, "bytes", columns));
  GL_TRY_STATUS(AddFinding(settings, "footprint of DTBL over CDP, at most, mean", "footprint",
                           Number("%+.1f %%", columns[4].mean()), exhibit));
  exhibit.notes.push_back(Number("What pending launches take on average over time: %+.1f %%.", columns[5].mean()));
  return exhibit;
}

Result<Exhibit> Fig11(const Settings& settings, Runs& runs) {
  std::vector<Column> columns;
  const auto faster = [](std::size_t form) {
    return [form](const std::vector<Outcome>& of) { return of[0].busy_cycles / of[form].busy_cycles; };
  };
  GL_TRY(exhibit, TableOf(settings, runs, "Speed-up over the flat form", {kFlat, kCdpIdeal, kDtblIdeal, kCdp, kDtbl},
                          {{"CDPI", faster(1), true},
                           {"DTBLI", faster(2), true},
                           {"CDP", faster(3), true},
                           {"DTBL", faster(4), true},
                           {"DTBL / CDP", [](const auto& of) { return of[3].busy_cycles / of[4].busy_cycles; }, true},
                           {"flat, us", [](const auto& of) { return of[0].microseconds(); }}},
                          "speedup", {2, 3, 4, 5}, "x", columns));
  const std::pair<const char*, const char*> kFindings[] = {{"CDPI", "speedup_cdpi"},
                                                           {"DTBLI", "speedup_dtbli"},
                                                           {"CDP", "speedup_cdp"},
                                                           {"DTBL", "speedup_dtbl"},
                                                           {"DTBL over CDP", "speedup_over"}};
  for (std::size_t i = 0; i < std::size(kFindings); ++i) {
    GL_TRY_STATUS(AddFinding(settings, std::string("speed-up, ") + kFindings[i].first + ", geometric mean",
                             kFindings[i].second, Number("%.2fx", columns[i].geometric()), exhibit));
    exhibit.notes.back() += Number(" Arithmetic: %.2fx.", columns[i].mean());
  }
  return exhibit;
}

Result<Exhibit> Fig12(const Settings& settings, Runs& runs) {
  GL_TRY(sizes, settings.Numbers("fig12.entries"));
  if (sizes.size() < 2) return Error{settings.name() + ": fig12.entries needs at least two sizes"};
  GL_TRY(usual, settings.Number("fig12.usual"));
  Exhibit exhibit{.name = {},
                  .title = "Entries of the aggregated group table: speed over that with " + Number("%.0f", usual),
                  .columns = {"device", "pair"}};
  std::vector<std::vector<Outcome>> by_size;
  for (const double size : sizes) {
    GL_TRY(outcomes, runs.MeasureAll<Outcome>({kDtbl}, {{"hardware.dtbl.agt_entries", Number("%.0f", size)}}));
    std::vector<Outcome> column;
    for (const auto& of : outcomes) column.push_back(of[0]);
    by_size.push_back(std::move(column));
    exhibit.columns.push_back(Number("%.0f", size));
  }
  exhibit.columns.emplace_back("most taken of the largest");
  exhibit.columns.emplace_back("spilled of the usual, %");
  const auto base = std::ranges::find(sizes, usual);
  if (base == sizes.end()) return Error{settings.name() + ": fig12.usual is none of fig12.entries"};
  const auto& usual_of = by_size[static_cast<std::size_t>(base - sizes.begin())];
  std::vector<Column> columns(sizes.size());
  for (std::size_t i = 0; i < runs.programs().size(); ++i) {
    Row row = {runs.device(), runs.programs()[i]};
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      const double faster = usual_of[i].busy_cycles / by_size[s][i].busy_cycles;
      columns[s].Add(faster);
      row.emplace_back(faster);
    }
    row.emplace_back(by_size.back()[i].table_most);
    row.emplace_back(usual_of[i].joined == 0 ? 0 : 100 * usual_of[i].spills / usual_of[i].joined);
    exhibit.rows.push_back(std::move(row));
  }
  Row row = {runs.device(), "mean"};
  for (const Column& column : columns) row.emplace_back(column.geometric());
  row.resize(exhibit.columns.size());
  exhibit.rows.push_back(std::move(row));
  exhibit.drawings = {{.caption = exhibit.title, .unit = "x", .names = {1}, .values = {}}};
  for (std::size_t s = 0; s < sizes.size(); ++s) exhibit.drawings[0].values.push_back(2 + s);
  GL_TRY_STATUS(AddFinding(settings, "speed with the smallest table of the figure, mean", "agt_small",
                           Number("%.2fx", columns.front().geometric()), exhibit));
  GL_TRY_STATUS(AddFinding(settings, "speed with the largest, mean", "agt_large",
                           Number("%.2fx", columns.back().geometric()), exhibit));
  return exhibit;
}

Result<Exhibit> Matches(const Settings& settings, Runs& runs) {
  Exhibit exhibit{.name = {},
                  .title = "Groups of thread blocks that found a kernel of their code to join",
                  .columns = {"device", "pair", "launches", "joined", "no such kernel", "in order", "joined, %",
                              "did not fit the table"}};
  GL_TRY(outcomes, runs.MeasureAll<Outcome>({kDtbl}));
  Column joined;
  for (std::size_t i = 0; i < runs.programs().size(); ++i) {
    const Outcome& of = outcomes[i][0];
    const double share = of.launches == 0 ? std::nan("") : 100 * of.joined / of.launches;
    joined.Add(share);
    exhibit.rows.push_back(
        {runs.device(), runs.programs()[i], of.launches, of.joined, of.unmatched, of.ordered, Cell(share), of.spills});
  }
  GL_TRY_STATUS(AddFinding(settings, "groups that joined a kernel, mean of pairs that launch", "matches",
                           Number("%.1f %%", joined.mean()), exhibit));
  return exhibit;
}

Result<Exhibit> Readings(const Settings& settings, Runs& runs) {
  Exhibit exhibit{.name = {},
                  .title = "Where the paper is open: speed-up over the flat form, geometric means",
                  .columns = {"device", "reading", "CDPI", "DTBLI", "CDP", "DTBL", "DTBL / CDP",
                              "waiting DTBL over CDP, %", "footprint, %"}};
  GL_TRY(readings, ReadingsFrom(settings));
  for (const auto& [name, keys] : readings) {
    GL_TRY(outcomes, runs.MeasureAll<Outcome>({kFlat, kCdpIdeal, kDtblIdeal, kCdp, kDtbl}, keys));
    Column speed[5], waiting, footprint;
    for (const auto& of : outcomes) {
      for (std::size_t form = 1; form < 5; ++form) speed[form - 1].Add(of[0].busy_cycles / of[form].busy_cycles);
      speed[4].Add(of[3].busy_cycles / of[4].busy_cycles);
      waiting.Add(Percent(of[4].waiting(), of[3].waiting()));
      footprint.Add(Percent(of[4].most_bytes, of[3].most_bytes));
    }
    Row row = {runs.device(), name};
    for (const Column& column : speed) row.emplace_back(column.geometric());
    row.emplace_back(waiting.mean());
    row.emplace_back(footprint.mean());
    exhibit.rows.push_back(std::move(row));
  }
  return exhibit;
}

Result<Exhibit> Devices(const Settings& settings, Runs& runs) {
  GL_TRY(devices, settings.List("devices.names"));
  GL_TRY(percents, settings.Numbers("devices.percent"));
  Exhibit exhibit{
      .name = {},
      .title = "On other devices, and where launches take less: speed-up over the flat form, geometric means",
      .columns = {"device", "launches take, % of the device's", "CDP", "DTBL", "DTBL / CDP"}};
  for (const std::string& device : devices) {
    for (const double percent : percents) {
      GL_TRY(outcomes, runs.MeasureAll<Outcome>({kFlat, kCdp, kDtbl},
                                                {{"timing.device_launch.percent", Number("%.0f", percent)}}, device));
      Column cdp, dtbl, over;
      for (const auto& of : outcomes) {
        cdp.Add(of[0].busy_cycles / of[1].busy_cycles);
        dtbl.Add(of[0].busy_cycles / of[2].busy_cycles);
        over.Add(of[1].busy_cycles / of[2].busy_cycles);
      }
      exhibit.rows.push_back({device, percent, cdp.geometric(), dtbl.geometric(), over.geometric()});
    }
  }
  return exhibit;
}

constexpr ExhibitRow<Runs> kExhibits[] = {
    {"fig6", Fig6},          ///< warp activity
    {"fig7", Fig7},          ///< DRAM efficiency
    {"fig8", Fig8},          ///< occupancy of the SMs
    {"fig9", Fig9},          ///< from a launch to its first thread block
    {"fig10", Fig10},        ///< device memory that pending launches take
    {"fig11", Fig11},        ///< speed-up over the flat form
    {"fig12", Fig12},        ///< sizes of the aggregated group table
    {"matches", Matches},    ///< groups that found a kernel to join
    {"readings", Readings},  ///< where the paper is open: each replaces one default
    {"devices", Devices},    ///< on other devices, and with launches that cost less
};

}  // namespace

/// J. Wang, N. Rubin, A. Sidelnik and S. Yalamanchili, "Dynamic thread block launch: a lightweight execution mechanism
/// to support irregular applications on GPUs", ISCA 2015 (docs/device-launches.md).
extern constinit const Paper kPaper{.name = "dtbl",
                                    .version = 1,
                                    .exhibits = kExhibits,
                                    .schemes = kSchemes,
                                    .programs = "pairs",
                                    .names_programs = true,
                                    .tried = kDtbl};

}  // namespace gridloom::study::dtbl
