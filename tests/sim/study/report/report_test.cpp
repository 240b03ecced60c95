// The building blocks of pages: nothing from outside, nothing hostile runs, values come back as they were written.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/study/report/page.h"
#include "tests/file_size_limit.h"

namespace gridloom::report {
namespace {

constexpr const char* kHostile = "</script><script>alert(1)</script><!-- \"'&\n\xff";

std::string Contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// The data in a page, read back as the page's script does.
Json DataOf(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = html.find(open) + open.size();
  return Json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Page FullPage(const std::string& name) {
  Page page(name, name);
  page.Section(name);
  page.Add(Paragraph(name));
  page.Add(Code(name));
  page.Add(Figures({{name, name, name}}));
  page.Add(
      Table(name, {{name, name, name, Kind::kText}, {"n", "", "", Kind::kCount}}, {Json{name, 7}, Json{nullptr, 0.5}}));
  page.Add(Bars(name, name, {{name, {{name, name, 2.5}}}}, 1));
  page.Add(Divided(name, {name}, {{name, {1}}}));
  Axis axis;
  axis.unit = name;
  page.Add(Lines(name, LineStyle::kStacked, axis, {1, 2}, axis, {{name, {3, 4}}}));
  page.Add(Timeline(name, name, 10, {name}, {name}, {{0, 0, 1, 2, 0.5}}));
  page.Add(Choice(name, {{name, {Paragraph(name)}}}));
  return page;
}

TEST_CASE("Page_NeedsNoNetworkAndNoOtherFile") {
  const std::string html = FullPage("kernel").Html();
  for (const char* outside : {"http:", "https:", "src=", "@import", "url(", "<link rel=\"stylesheet", "fetch(",
                              "XMLHttpRequest", "import("}) {
    INFO(outside);
    CHECK(html.find(outside) == std::string::npos);
  }
  CHECK(html.find("default-src 'none'") != std::string::npos);
  CHECK(html.find("prefers-color-scheme: dark") != std::string::npos);
  CHECK(html.find("{{") == std::string::npos);
}

TEST_CASE("Page_HostileNames_StayTexts") {
  const std::string hostile = FullPage(kHostile).Html(), tame = FullPage("kernel").Html();
  // Neither more scripts nor an earlier end of one.
  CHECK(Count(hostile, "<script") == Count(tame, "<script"));
  CHECK(Count(hostile, "</script") == Count(tame, "</script"));
  CHECK(Count(hostile, "<!--") == 0);
  const Json data = DataOf(hostile);
  // What is not UTF-8.
  const std::string shown = std::string(kHostile).substr(0, std::string(kHostile).size() - 1) + "\xef\xbf\xbd";
  CHECK(data["title"] == shown);
  CHECK(data["sections"][0]["blocks"][3]["rows"][0][0] == shown);
}

TEST_CASE("Page_BlocksKeepTheirValues") {
  const Json data = DataOf(FullPage("kernel").Html());
  const Json& blocks = data["sections"][0]["blocks"];
  std::string types;
  for (const Json& block : blocks) types += block["type"].get<std::string>() + " ";
  CHECK(types == "text code figures table bars divided lines timeline choice ");
  CHECK(blocks[3]["columns"][1]["kind"] == "count");
  CHECK(blocks[3]["rows"][1][0].is_null());
  CHECK(blocks[4]["groups"][0]["bars"][0]["value"] == 2.5);
  CHECK(blocks[4]["reference"] == 1);
  CHECK(blocks[6]["x"]["values"] == Json{1, 2});
  CHECK(blocks[6]["style"] == "stacked");
  CHECK(blocks[7]["intervals"][0] == Json{0, 0, 1, 2, 0.5});
  CHECK(blocks[8]["options"][0]["blocks"][0]["text"] == "kernel");
}

TEST_CASE("Csv_QuotesWhatNeedsIt_AndNumbersReadBackTheSame") {
  const std::vector<Column> columns{{"name", "", "", Kind::kText}, {"value", "", "", Kind::kReal}};
  CHECK(Csv(columns, {Json{"plain", 1}, Json{"a,b \"c\"\nd", nullptr}}) ==
        "name,value\r\nplain,1\r\n\"a,b \"\"c\"\"\nd\",\r\n");
  const double value = 0.1 + 0.2;
  const std::string text = Csv(columns, {Json{"x", value}});
  CHECK(std::stod(text.substr(text.find("x,") + 2)) == value);
}

TEST_CASE("Csv_TextsThatLookLikeFormulas_AreMadeTexts") {
  for (const char* text : {"=1+1", "+1", "-1", "@SUM(A1)", "\tx"})
    CHECK(CsvCell(Json(text)) == "'" + std::string(text));
  CHECK(CsvCell(Json("=\"a\",b")) == "\"'=\"\"a\"\",b\"");
  CHECK(CsvCell(Json(-1)) == "-1");
  CHECK(CsvCell(Json(-0.5)) == "-0.5");
  CHECK(CsvCell(Json("a=b")) == "a=b");
  CHECK(CsvCell(Json("")) == "");
}

TEST_CASE("Page_NamesCannotEndItsElements") {
  Page page("</title><script>alert(1)</script>", "\"'<!--");
  page.Section("s");
  page.Add(
      Table("</script><img src=x onerror=alert(1)>", {{"<b>", "\"", "'", Kind::kText}}, {Json{"</script>\u2028\xff"}}));
  const std::string html = page.Html();
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = html.find(part, at)) != std::string::npos; at += part.size()) ++found;
    return found;
  };
  CHECK(count("</script>") == 2);  // the page's own
  CHECK(count("</title>") == 1);
  CHECK(count("<img") == 0);
  CHECK(count("<!--") == 0);
}

TEST_CASE("WriteFile_ReplacesAsAWhole_AndSaysWhyItCannot") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("gridloom_report_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "file").string();
  REQUIRE(WriteFile(path, "first").ok());
  REQUIRE(WriteFile(path, "second").ok());
  CHECK(Contents(path) == "second");
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  const Status nowhere = WriteFile((folder / "no/file").string(), "x");
  REQUIRE(!nowhere.ok());
  CHECK(nowhere.error().message.find("no/file: No such file or directory") != std::string::npos);
  // A full disk leaves what was there.
  {
    const test::FileSizeLimit limit(100);
    const Status full = WriteFile(path, std::string(1000, 'x'));
    REQUIRE(!full.ok());
    CHECK(full.error().message == "cannot write " + path + ": File too large");
  }
  CHECK(Contents(path) == "second");
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gridloom::report
