#include "sim/study/experiment/exhibit.h"

#include <algorithm>
#include <cstdio>

#include "rewriter/support/json.h"
#include "rewriter/support/terminal.h"
#include "sim/study/report/page.h"

namespace gridloom::study {
namespace {

using Json = nlohmann::ordered_json;

std::string CellText(const Json& cell) {
  if (cell.is_null()) return "";
  if (cell.is_string()) return cell.get<std::string>();
  if (!cell.is_number_float()) return JsonText(cell);
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", cell.get<double>());
  return text;
}

}  // namespace

std::string Number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string TextOf(const Exhibit& exhibit) {
  std::vector<std::string> header;
  for (std::size_t column = 0; column < exhibit.columns.size(); ++column) {
    const bool number = std::ranges::any_of(exhibit.rows, [&](const auto& row) { return row[column].is_number(); });
    header.push_back((number ? ">" : "") + exhibit.columns[column]);
  }
  Table table(std::move(header));
  for (const auto& row : exhibit.rows) {
    std::vector<std::string> cells;
    for (const Json& cell : row) cells.push_back(CellText(cell));
    table.Add(std::move(cells));
  }
  std::string text = Coloured(Colour::kBold, exhibit.name) + "  " + exhibit.title + "\n\n" + table.Text(2) + "\n";
  for (const std::string& note : exhibit.notes) text += "  " + note + "\n";
  return text + (exhibit.notes.empty() ? "" : "\n");
}

Json JsonOf(const Exhibit& exhibit) {
  Json json{{"name", exhibit.name}, {"title", exhibit.title}, {"columns", exhibit.columns}};
  json["rows"] = Json::array();
  for (const auto& row : exhibit.rows) json["rows"].push_back(Json(row));
  json["notes"] = exhibit.notes;
  json["findings"] = Json::array();
  for (const Finding& finding : exhibit.findings)
    json["findings"].push_back({{"what", finding.what}, {"ours", finding.ours}, {"paper", finding.paper}});
  return json;
}

std::string CsvOf(const Exhibit& exhibit) {
  std::string text;
  const auto line = [&](const auto& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) text += (i == 0 ? "" : ",") + report::CsvCell(cells[i]);
    text += "\r\n";
  };
  line(exhibit.columns);
  for (const auto& row : exhibit.rows) line(row);
  return text;
}

}  // namespace gridloom::study
