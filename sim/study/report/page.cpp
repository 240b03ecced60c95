#include "sim/study/report/page.h"

#include <string_view>

namespace gridloom::report {

// Files of this folder, compiled in (cmake/embed.cmake).
extern const std::string_view kPageHtml, kPageCss, kPageJs;

namespace {

constexpr const char* kKinds[] = {"text", "count", "real", "share", "time"};
constexpr const char* kStyles[] = {"points", "steps", "stacked"};

std::string HtmlEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '&': escaped += "&amp;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

/// JSON inside <script>: no text in it can end the element or begin a comment.
std::string ScriptJson(const Json& json) {
  std::string text;
  for (const char c : JsonText(json)) {
    if (c == '<') text += "\\u003c";
    else text += c;
  }
  return text;
}

/// The template with {{name}} replaced; what is put in is not looked at again.
std::string Fill(std::string_view text, const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string filled;
  while (true) {
    const std::size_t open = text.find("{{");
    filled += text.substr(0, open);
    if (open == std::string_view::npos) return filled;
    const std::size_t close = text.find("}}", open);
    const std::string_view name = text.substr(open + 2, close - open - 2);
    for (const auto& [key, value] : values) {
      if (key == name) filled += value;
    }
    text.remove_prefix(close + 2);
  }
}

}  // namespace

std::string CsvCell(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return JsonText(value);
  std::string text = value.get<std::string>();
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos) text.insert(0, 1, '\'');
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

Block Paragraph(const std::string& text) { return {{"type", "text"}, {"text", text}}; }
Block Code(const std::string& text) { return {{"type", "code"}, {"text", text}}; }

Block Figures(const std::vector<Figure>& figures) {
  Json items = Json::array();
  for (const Figure& figure : figures)
    items.push_back({{"label", figure.label}, {"value", figure.value}, {"note", figure.note}});
  return {{"type", "figures"}, {"items", std::move(items)}};
}

Block Table(const std::string& caption, const std::vector<Column>& columns, const std::vector<Json>& rows) {
  Json heads = Json::array();
  for (const Column& column : columns) {
    heads.push_back({{"name", column.name},
                     {"unit", column.unit},
                     {"meaning", column.meaning},
                     {"kind", kKinds[static_cast<std::size_t>(column.kind)]}});
  }
  return {{"type", "table"}, {"caption", caption}, {"columns", std::move(heads)}, {"rows", rows}};
}

Block Bars(const std::string& caption, const std::string& unit, const std::vector<BarGroup>& groups,
           std::optional<double> reference) {
  Json list = Json::array();
  for (const BarGroup& group : groups) {
    Json bars = Json::array();
    for (const Bar& bar : group.bars) {
      bars.push_back({{"label", bar.label},
                      {"series", bar.series},
                      {"value", bar.value},
                      {"range", bar.range ? Json(*bar.range) : Json()}});
    }
    list.push_back({{"name", group.name}, {"bars", std::move(bars)}});
  }
  return {{"type", "bars"},
          {"caption", caption},
          {"unit", unit},
          {"groups", std::move(list)},
          {"reference", reference ? Json(*reference) : Json()}};
}

Block Divided(const std::string& caption, const std::vector<std::string>& parts, const std::vector<Shares>& rows) {
  Json list = Json::array();
  for (const Shares& row : rows) list.push_back({{"name", row.name}, {"values", row.values}});
  return {{"type", "divided"}, {"caption", caption}, {"parts", parts}, {"rows", std::move(list)}};
}

Block Lines(const std::string& caption, LineStyle style, const Axis& x, const std::vector<double>& xs, const Axis& y,
            const std::vector<Series>& series) {
  Json list = Json::array();
  for (const Series& one : series) list.push_back({{"name", one.name}, {"values", one.values}});
  return {{"type", "lines"},
          {"caption", caption},
          {"style", kStyles[static_cast<std::size_t>(style)]},
          {"x", {{"unit", x.unit}, {"begin", x.begin}, {"values", xs}}},
          {"y", {{"unit", y.unit}, {"max", y.max ? Json(*y.max) : Json()}}},
          {"series", std::move(list)}};
}

Block Timeline(const std::string& caption, const std::string& unit, double end, const std::vector<std::string>& rows,
               const std::vector<std::string>& series, const std::vector<Interval>& intervals) {
  Json list = Json::array();
  for (const Interval& one : intervals) list.push_back({one.row, one.series, one.begin, one.end, one.share});
  return {{"type", "timeline"}, {"caption", caption},          {"unit", unit}, {"end", end}, {"rows", rows},
          {"series", series},   {"intervals", std::move(list)}};
}

Block Choice(const std::string& label, std::vector<std::pair<std::string, std::vector<Block>>> options) {
  Json list = Json::array();
  for (auto& [name, blocks] : options) list.push_back({{"name", name}, {"blocks", std::move(blocks)}});
  return {{"type", "choice"}, {"label", label}, {"options", std::move(list)}};
}

std::string Page::Html() const {
  const Json data{{"title", title_}, {"subtitle", subtitle_}, {"sections", sections_}};
  return Fill(kPageHtml, {{"title", HtmlEscaped(title_)},
                          {"style", std::string(kPageCss)},
                          {"script", std::string(kPageJs)},
                          {"data", ScriptJson(data)}});
}

std::string Csv(const std::vector<Column>& columns, const std::vector<Json>& rows) {
  std::string text;
  for (const Column& column : columns) text += (&column == &columns.front() ? "" : ",") + CsvCell(column.name);
  text += "\r\n";
  for (const Json& row : rows) {
    bool first = true;
    for (const Json& value : row) {
      text += (first ? "" : ",") + CsvCell(value);
      first = false;
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace gridloom::report
