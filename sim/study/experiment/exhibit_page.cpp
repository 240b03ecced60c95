// Exhibits as a page.
#include <algorithm>
#include <cmath>
#include <map>

#include "rewriter/support/json.h"
#include "sim/study/experiment/exhibit.h"
#include "sim/study/report/page.h"

namespace gridloom::study {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<Json>;

std::string TextOfCell(const Json& cell) { return cell.is_string() ? cell.get<std::string>() : JsonText(cell); }

std::string NameOf(const Row& row, const std::vector<std::size_t>& columns) {
  std::string name;
  for (const std::size_t column : columns) name += (name.empty() ? "" : " ") + TextOfCell(row[column]);
  return name;
}

/// In their order.
std::vector<std::string> DevicesOf(const Exhibit& exhibit) {
  std::vector<std::string> devices;
  for (const Row& row : exhibit.rows) {
    const std::string device = TextOfCell(row[0]);
    if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
  }
  return devices;
}

report::Block BarsOf(const Exhibit& exhibit, const Drawing& drawing, const std::string& device) {
  std::vector<report::BarGroup> groups;
  for (const Row& row : exhibit.rows) {
    if (TextOfCell(row[0]) != device) continue;
    report::BarGroup group{.name = NameOf(row, drawing.names), .bars = {}};
    for (const std::size_t column : drawing.values) {
      if (!row[column].is_number()) continue;
      const std::string& series = exhibit.columns[column];
      report::Bar& bar =
          group.bars.emplace_back(report::Bar{.label = series, .series = series, .value = row[column].get<double>()});
      if (const auto range = drawing.ranges.find(column); range != drawing.ranges.end())
        bar.range = {row[range->second[0]].get<double>(), row[range->second[1]].get<double>()};
    }
    groups.push_back(std::move(group));
  }
  return report::Bars(device + ": " + drawing.caption, drawing.unit, groups);
}

report::Block LinesOf(const Exhibit& exhibit, const Drawing& drawing, const std::string& device) {
  std::vector<std::string> names;
  std::map<std::string, std::map<double, double>> lines;
  std::map<double, std::size_t> places;
  for (const Row& row : exhibit.rows) {
    if (TextOfCell(row[0]) != device) continue;
    const std::string name = NameOf(row, drawing.names);
    if (!lines.contains(name)) names.push_back(name);
    const double x = row[drawing.values[0]].get<double>();
    lines[name][x] = row[drawing.values[1]].get<double>();
    places[x] = 0;
  }
  std::vector<double> xs;
  for (auto& [x, place] : places) {
    place = xs.size();
    xs.push_back(x);
  }
  std::vector<report::Series> series;
  for (const std::string& name : names) {
    report::Series& line =
        series.emplace_back(report::Series{.name = name, .values = std::vector<double>(xs.size(), std::nan(""))});
    for (const auto& [x, y] : lines[name]) line.values[places[x]] = y;
  }
  const report::Axis horizontal{.unit = exhibit.columns[drawing.values[0]]},
      vertical{.unit = drawing.unit, .max = drawing.limit};
  return report::Lines(device + ": " + drawing.caption, report::LineStyle::kPoints, horizontal, xs, vertical, series);
}

report::Block TableOf(const Exhibit& exhibit) {
  std::vector<report::Column> columns;
  for (std::size_t i = 0; i < exhibit.columns.size(); ++i) {
    const bool number =
        std::ranges::all_of(exhibit.rows, [&](const Row& row) { return row[i].is_number() || row[i].is_null(); });
    columns.push_back({.name = exhibit.columns[i],
                       .unit = {},
                       .meaning = {},
                       .kind = number ? report::Kind::kReal : report::Kind::kText});
  }
  return report::Table("all numbers", columns, std::vector<Json>(exhibit.rows.begin(), exhibit.rows.end()));
}

void AddFindings(const Exhibit& exhibit, report::Page& page) {
  std::vector<report::Figure> figures;
  for (const Finding& finding : exhibit.findings)
    figures.push_back({.label = finding.what,
                       .value = finding.ours,
                       .note = finding.paper.empty() ? "" : "the paper: " + finding.paper});
  if (!figures.empty()) page.Add(report::Figures(figures));
}

}  // namespace

std::string PageOf(const std::string& title, const std::vector<Exhibit>& exhibits, const std::string& repeat) {
  report::Page page(title, "ours beside the paper's, in simulated time");
  for (const Exhibit& exhibit : exhibits) {
    page.Section(exhibit.name);
    page.Add(report::Paragraph(exhibit.title));
    AddFindings(exhibit, page);
    for (const Drawing& drawing : exhibit.drawings) {
      for (const std::string& device : DevicesOf(exhibit))
        page.Add(drawing.kind == Drawing::Kind::kBars ? BarsOf(exhibit, drawing, device)
                                                      : LinesOf(exhibit, drawing, device));
    }
    for (const std::string& note : exhibit.notes) page.Add(report::Paragraph(note));
    page.Add(TableOf(exhibit));
  }
  page.Section("again");
  page.Add(report::Code(repeat));
  return page.Html();
}

}  // namespace gridloom::study
