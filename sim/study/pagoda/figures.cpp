// Figures 5 to 11: times of programs and of their tasks under the schemes.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <thread>

#include "sim/study/pagoda/exhibits.h"

namespace gridloom::study::pagoda {
namespace {

/// A line of a figure: a program under one scheme, with arguments that are the same for all schemes, and some for
/// fusion alone.
struct Point {
  std::vector<nlohmann::ordered_json> names;  ///< behind the device
  std::string program;
  std::vector<std::string> arguments{};
  std::vector<std::string> fused{};  ///< further ones where tasks are fused
  DeviceKeys keys{};
};

using Figures = std::vector<std::vector<std::optional<Outcome>>>;  // by point, then by scheme

Result<Figures> MeasurePoints(const Settings& settings, Runs& runs, const std::vector<Point>& points,
                              const std::vector<std::string>& schemes) {
  std::vector<Run> wanted;
  for (const Point& point : points) {
    for (const std::string& scheme : schemes) {
      if (!Can(settings, point.program, scheme)) continue;
      Run run{
          .program = point.program, .scheme = scheme, .arguments = point.arguments, .device = "", .keys = point.keys};
      if (scheme == kFusion) run.arguments.insert(run.arguments.end(), point.fused.begin(), point.fused.end());
      wanted.push_back(std::move(run));
    }
  }
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
  Figures figures;
  std::size_t next = 0;
  for (const Point& point : points) {
    auto& row = figures.emplace_back();
    for (const std::string& scheme : schemes) {
      if (Can(settings, point.program, scheme)) row.emplace_back(outcomes[next++]);
      else row.emplace_back();
    }
  }
  return figures;
}

std::vector<std::string> ColumnsOf(std::vector<std::string> names, const std::vector<std::string>& schemes,
                                   const std::string& unit) {
  names.insert(names.begin(), "device");
  for (const std::string& scheme : schemes) names.push_back(scheme + unit);
  return names;
}

double ValueOf(const std::optional<Outcome>& of, double (Outcome::*value)() const) {
  return of ? ((*of).*value)() : std::nan("");
}

/// Rows of values, one for each point.
void AddRows(Runs& runs, const std::vector<Point>& points, const Figures& figures, double (Outcome::*value)() const,
             Exhibit& exhibit) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    Row row = {runs.device()};
    row.insert(row.end(), points[i].names.begin(), points[i].names.end());
    for (const auto& of : figures[i]) row.push_back(Cell(ValueOf(of, value)));
    exhibit.rows.push_back(std::move(row));
  }
}

/// How much faster column `faster` is than `slower`, over the points where both are.
double SpeedUp(const Figures& figures, std::size_t faster, std::size_t slower, double (Outcome::*value)() const) {
  GeometricMean mean;
  for (const auto& row : figures) {
    if (row[faster] && row[slower]) mean.Add(ValueOf(row[slower], value) / ValueOf(row[faster], value));
  }
  return mean.value();
}

std::vector<std::string> Chosen(const Settings& settings, const std::string& key, Runs& runs) {
  const auto listed = settings.List(key);
  return listed.ok() && !listed->empty() ? *listed : runs.programs();
}

/// What the program's own form for the host takes, of its line "NAME: N ms wall, …"; negative where the program is not
/// there.
Result<double> HostMilliseconds(const Settings& settings, const Environment& environment, const std::string& program) {
  GL_TRY(words, settings.List("programs." + program));
  const std::filesystem::path path = environment.programs / "pagoda" / words.front();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return -1.0;
  // Its check of results needs a device.
  std::string command = environment.tool.string() + " run -q -- " + path.string();
  for (std::size_t i = 1; i < words.size(); ++i) command += " " + words[i];
  FILE* const output = popen((command + " --form=pthreads --time").c_str(), "r");
  if (output == nullptr) return Error{"cannot start " + path.string()};
  std::array<char, 512> line{};
  double milliseconds = -1;
  while (fgets(line.data(), line.size(), output) != nullptr) {
    const char* const colon = std::strchr(line.data(), ':');
    if (colon != nullptr && std::strstr(line.data(), " ms wall") != nullptr) std::sscanf(colon, ": %lf", &milliseconds);
  }
  if (pclose(output) != 0) return Error{command + " failed"};
  return milliseconds;
}

}  // namespace

bool Can(const Settings& settings, const std::string& program, const std::string& scheme) {
  if (scheme != kFusion && scheme != kGraph && scheme != kGemtc) return true;
  const auto uncounted = settings.List("uncounted");
  return !uncounted.ok() || std::ranges::find(*uncounted, program) == uncounted->end();
}

Result<Exhibit> Fig5(const Settings& settings, Runs& runs) {
  const std::vector<std::string> schemes = {kHyperQ, kGemtc, kFusion, kGraph, kPagoda};
  Exhibit exhibit{.name = {},
                  .title = "Time with copies, ms; on the host, threads of all cores",
                  .columns = ColumnsOf({"program"}, schemes, "")};
  exhibit.columns.emplace_back("Pagoda over HyperQ");
  exhibit.columns.emplace_back("this host");
  exhibit.drawings = {{.caption = exhibit.title, .unit = "ms", .names = {1}, .values = {2, 3, 4, 5, 6}}};
  std::vector<Point> points;
  for (const std::string& program : runs.programs()) points.push_back({.names = {program}, .program = program});
  GL_TRY(figures, MeasurePoints(settings, runs, points, schemes));
  AddRows(runs, points, figures, &Outcome::milliseconds, exhibit);
  GeometricMean over_host;
  for (std::size_t i = 0; i < points.size(); ++i) {
    GL_TRY(host, HostMilliseconds(settings, runs.environment(), points[i].program));
    exhibit.rows[i].push_back(Cell(figures[i][0]->milliseconds() / figures[i][4]->milliseconds()));
    exhibit.rows[i].push_back(host < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(host));
    if (host > 0) over_host.Add(host / figures[i][4]->milliseconds());
  }
  const auto mean = [&](std::size_t slower) {
    return Number("%.2fx", SpeedUp(figures, 4, slower, &Outcome::milliseconds));
  };
  GL_TRY_STATUS(AddFinding(settings, "Pagoda over HyperQ, geometric mean", "hyperq", mean(0), exhibit));
  GL_TRY_STATUS(AddFinding(settings, "Pagoda over GeMTC, geometric mean", "gemtc", mean(1), exhibit));
  exhibit.notes.push_back("Pagoda over static fusion of regular tasks: " + mean(2) + "; over graphs: " + mean(3) +
                          ". The paper has neither.");
  GL_TRY_STATUS(AddFinding(
      settings, "Pagoda over threads of this host, " + std::to_string(std::thread::hardware_concurrency()) + " cores",
      "pthreads", Number("%.2fx", over_host.value()), exhibit));
  return exhibit;
}

Result<Exhibit> Fig6(const Settings& settings, Runs& runs) {
  const std::vector<std::string> schemes = {kHyperQ, kGemtc, kPagoda};
  Exhibit exhibit{.name = {},
                  .title = "Time with copies by the number of tasks, ms",
                  .columns = ColumnsOf({"program", "tasks"}, schemes, "")};
  exhibit.drawings = {{.kind = Drawing::Kind::kLines,
                       .caption = "Pagoda: time by tasks",
                       .unit = "ms",
                       .names = {1},
                       .values = {2, 5}}};
  GL_TRY(counts, settings.Numbers("fig6.tasks"));
  std::vector<Point> points;
  for (const std::string& program : Chosen(settings, "fig6.programs", runs)) {
    for (const double count : counts) {
      points.push_back(
          {.names = {program, count}, .program = program, .arguments = {"--tasks=" + Number("%.0f", count)}});
    }
  }
  GL_TRY(figures, MeasurePoints(settings, runs, points, schemes));
  AddRows(runs, points, figures, &Outcome::milliseconds, exhibit);
  for (const double count : counts) {
    Figures those;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].names[1] == count) those.push_back(figures[i]);
    }
    exhibit.notes.push_back(Number("%.0f tasks: Pagoda over HyperQ ", count) +
                            Number("%.2fx", SpeedUp(those, 2, 0, &Outcome::milliseconds)) +
                            Number(", over GeMTC %.2fx.", SpeedUp(those, 2, 1, &Outcome::milliseconds)));
  }
  GL_TRY_STATUS(AddPapersNote(settings, "tasks", exhibit));
  return exhibit;
}

Result<Exhibit> Fig7(const Settings& settings, Runs& runs) {
  const std::vector<std::string> schemes = {kHyperQ, kGemtc, kPagoda};
  Exhibit exhibit{.name = {},
                  .title = "Time of the kernels by threads of a task, without copies, ms",
                  .columns = ColumnsOf({"program", "threads"}, schemes, "")};
  exhibit.drawings = {{.kind = Drawing::Kind::kLines,
                       .caption = "Pagoda: time by threads",
                       .unit = "ms",
                       .names = {1},
                       .values = {2, 5}}};
  GL_TRY(counts, settings.Numbers("fig7.threads"));
  GL_TRY(unshared, settings.List("unshared"));
  std::vector<Point> points;
  for (const std::string& program : Chosen(settings, "fig7.programs", runs)) {
    for (const double count : counts) {
      Point point{.names = {program, count},
                  .program = program,
                  .arguments = {"--threads=" + Number("%.0f", count), "--copies=no"}};
      if (std::ranges::find(unshared, program) != unshared.end()) point.arguments.emplace_back("--shared=no");
      point.keys = {{"hardware.pagoda.threads", "1048576"}};
      points.push_back(std::move(point));
    }
  }
  GL_TRY(figures, MeasurePoints(settings, runs, points, schemes));
  AddRows(runs, points, figures, &Outcome::span_ms, exhibit);
  for (const double count : counts) {
    Figures those;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].names[1] == count) those.push_back(figures[i]);
    }
    exhibit.notes.push_back(Number("%.0f threads: Pagoda over HyperQ ", count) +
                            Number("%.2fx", SpeedUp(those, 2, 0, &Outcome::span_ms)) +
                            Number(", over GeMTC %.2fx.", SpeedUp(those, 2, 1, &Outcome::span_ms)));
  }
  GL_TRY_STATUS(AddPapersNote(settings, "threads", exhibit));
  return exhibit;
}

Result<Exhibit> Fig8(const Settings& settings, Runs& runs) {
  const std::vector<std::string> schemes = {kHyperQ, kPagoda};
  Exhibit exhibit{.name = {},
                  .title = "Time of the kernels by size of the input and threads of a task (blocks of 256), ms",
                  .columns = ColumnsOf({"program", "size", "threads"}, schemes, "")};
  exhibit.columns.emplace_back("Pagoda over HyperQ");
  exhibit.drawings = {{.kind = Drawing::Kind::kLines,
                       .caption = "Pagoda over HyperQ by threads",
                       .unit = "x",
                       .names = {1, 2},
                       .values = {3, 6}}};
  GL_TRY(sizes, settings.Numbers("fig8.sizes"));
  GL_TRY(blocks, settings.Numbers("fig8.blocks"));
  std::vector<Point> points;
  for (const std::string& program : Chosen(settings, "fig8.programs", runs)) {
    for (const double size : sizes) {
      for (const double count : blocks) {
        points.push_back({.names = {program, size, 256 * count},
                          .program = program,
                          .arguments = {"--threads=256", "--blocks=" + Number("%.0f", count),
                                        "--size=" + Number("%.0f", size), "--copies=no"},
                          .fused = {},
                          .keys = {{"hardware.pagoda.threads", "1048576"}}});
      }
    }
  }
  GL_TRY(figures, MeasurePoints(settings, runs, points, schemes));
  AddRows(runs, points, figures, &Outcome::span_ms, exhibit);
  for (std::size_t i = 0; i < points.size(); ++i)
    exhibit.rows[i].push_back(Cell(figures[i][0]->span_ms() / figures[i][1]->span_ms()));
  GL_TRY_STATUS(AddPapersNote(settings, "sizes", exhibit));
  return exhibit;
}

Result<Exhibit> Fig9(const Settings& settings, Runs& runs) {
  const std::vector<std::string> schemes = {kFusion, kHyperQ, kPagoda};
  Exhibit exhibit{.name = {},
                  .title = "Tasks of irregular sizes: time with copies, ms",
                  .columns = ColumnsOf({"program"}, schemes, "")};
  exhibit.drawings = {{.caption = exhibit.title, .unit = "ms", .names = {1}, .values = {2, 3, 4}}};
  GL_TRY(arguments, settings.List("fig9.arguments"));
  GL_TRY(fused, settings.List("fig9.fused"));
  std::vector<Point> points;
  for (const std::string& program : runs.programs()) {
    if (Can(settings, program, kFusion))
      points.push_back({.names = {program}, .program = program, .arguments = arguments, .fused = fused});
  }
  GL_TRY(figures, MeasurePoints(settings, runs, points, schemes));
  AddRows(runs, points, figures, &Outcome::milliseconds, exhibit);
  GL_TRY_STATUS(AddFinding(settings, "Pagoda over static fusion, geometric mean", "fusion",
                           Number("%.2fx", SpeedUp(figures, 2, 0, &Outcome::milliseconds)), exhibit));
  exhibit.notes.push_back("Pagoda over HyperQ: " + Number("%.2fx.", SpeedUp(figures, 2, 1, &Outcome::milliseconds)));
  return exhibit;
}

Result<Exhibit> Fig10(const Settings& settings, Runs& runs) {
  const std::vector<std::string> schemes = {kFusion, kPagoda};
  Exhibit exhibit{.name = {},
                  .title = "Latency of a task, us: from its launch to its end, mean",
                  .columns = ColumnsOf({"program", "tasks"}, schemes, "")};
  exhibit.drawings = {{.kind = Drawing::Kind::kLines,
                       .caption = "fusion: latency by tasks",
                       .unit = "us",
                       .names = {1},
                       .values = {2, 3}},
                      {.kind = Drawing::Kind::kLines,
                       .caption = "Pagoda: latency by tasks",
                       .unit = "us",
                       .names = {1},
                       .values = {2, 4}}};
  GL_TRY(counts, settings.Numbers("fig10.tasks"));
  std::vector<Point> points;
  for (const std::string& program : Chosen(settings, "fig10.programs", runs)) {
    for (const double count : counts) {
      const std::string tasks = Number("%.0f", count);
      points.push_back({.names = {program, count},
                        .program = program,
                        .arguments = {"--tasks=" + tasks},
                        .fused = {"--batch=" + tasks}});
    }
  }
  GL_TRY(figures, MeasurePoints(settings, runs, points, schemes));
  AddRows(runs, points, figures, &Outcome::latency_us, exhibit);
  GL_TRY_STATUS(AddPapersNote(settings, "latency", exhibit));
  return exhibit;
}

Result<Exhibit> Fig11(const Settings& settings, Runs& runs) {
  const std::vector<std::string> schemes = {kGemtc, kBatching, kPagoda};
  Exhibit exhibit{.name = {},
                  .title = "Concurrent scheduling and continuous spawning: time with copies, ms",
                  .columns = ColumnsOf({"program"}, schemes, "")};
  exhibit.drawings = {{.caption = exhibit.title, .unit = "ms", .names = {1}, .values = {2, 3, 4}}};
  std::vector<Point> points;
  for (const std::string& program : runs.programs()) {
    if (Can(settings, program, kGemtc)) points.push_back({.names = {program}, .program = program});
  }
  GL_TRY(figures, MeasurePoints(settings, runs, points, schemes));
  AddRows(runs, points, figures, &Outcome::milliseconds, exhibit);
  exhibit.notes.push_back(
      "Concurrent scheduling (batches over GeMTC): " + Number("%.2fx", SpeedUp(figures, 1, 0, &Outcome::milliseconds)) +
      "; continuous spawning (over batches): " + Number("%.2fx.", SpeedUp(figures, 2, 1, &Outcome::milliseconds)));
  GL_TRY_STATUS(AddPapersNote(settings, "spawning", exhibit));
  return exhibit;
}

}  // namespace gridloom::study::pagoda
