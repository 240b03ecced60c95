// An experiment as a file describes it: configs/experiments/NAME.yaml (docs/experiments.md).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/support/result.h"

namespace gridloom::study {

/// Keys with dots ("arrivals.seed") and their values. What the file inherits from fills what it does not say.
class Settings {
 public:
  /// `name`: an experiment in the folder of experiments, or a file when it has a slash or ends in ".yaml".
  static Result<Settings> Load(const std::string& name);
  static Result<Settings> FromText(std::string_view text, const std::string& file);

  const std::string& name() const { return name_; }
  /// Replaces a value (`--set KEY=VALUE`); the key must be there.
  Status Set(const std::string& key, const std::string& value);

  /// Errors name the file and the key.
  Result<std::string> Text(const std::string& key) const;
  Result<double> Number(const std::string& key) const;
  Result<std::vector<std::string>> List(const std::string& key) const;  ///< separated by commas or blanks
  Result<std::vector<double>> Numbers(const std::string& key) const;
  /// Names directly below a key, in the order of the file.
  std::vector<std::string> Below(const std::string& key) const;

 private:
  Status Read(const std::filesystem::path& path, int depth);
  void Fill(const std::string& key, const std::string& value);

  std::string name_, file_;
  std::map<std::string, std::string> values_;
  std::vector<std::string> order_;
};

/// Folder of the experiments, beside that of the devices.
Result<std::filesystem::path> ExperimentDirectory();
/// What `--list` says of an experiment.
struct ExperimentLine {
  std::string study, about;       ///< about: one line
  std::vector<std::string> show;  ///< exhibits
};
Result<ExperimentLine> DescribeExperiment(const std::string& name);

/// Names of all experiments there, sorted; files that begin with '_' are bases.
std::vector<std::string> ExperimentNames();

}  // namespace gridloom::study
