// The list of all studies.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "sim/study/experiment/study.h"

namespace gridloom::study {

struct StudyRow {
  std::string_view name;     ///< the value of `study` in its experiments' files
  std::string_view summary;  ///< one line
  /// Reads what it needs of the settings; measures nothing.
  Result<std::unique_ptr<Study>> (*create)(const Settings& settings, const Environment& environment);
};

std::span<const StudyRow> Studies();

/// The study of the experiment. Fails on one that there is not, with the nearest name.
Result<std::unique_ptr<Study>> CreateStudy(const Settings& settings, const Environment& environment);

}  // namespace gridloom::study
