#include "sim/trace/range_forms.h"

#include <algorithm>
#include <string>

namespace gridloom::trace {

std::string_view NameOf(LaunchInfo::Ranges form) {
  switch (form) {
    case LaunchInfo::Ranges::kInterval: return "interval";
    case LaunchInfo::Ranges::kStrided: return "strided";
    case LaunchInfo::Ranges::kNone: break;
  }
  return "none";
}

Result<std::vector<LaunchInfo::Ranges>> ParseRangeForms(std::string_view text) {
  std::vector<LaunchInfo::Ranges> forms;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view name = text.substr(at, end - at);
    auto form = LaunchInfo::Ranges::kNone;
    for (const auto known : {LaunchInfo::Ranges::kInterval, LaunchInfo::Ranges::kStrided}) {
      if (name == NameOf(known)) form = known;
    }
    if (form == LaunchInfo::Ranges::kNone || std::ranges::find(forms, form) != forms.end())
      return Error{"'" + std::string(text) + "'; expected interval, strided or interval,strided"};
    forms.push_back(form);
    at = end + 1;
  }
  return forms;
}

}  // namespace gridloom::trace
